//! Sends requests with the same key to the same server, and only as many as it can take: `header-shard` in Zig. The same
//! configuration, the same choices; what they mean stands in ../header-shard/src/lib.rs.
//!
//! The shape of a policy in Zig: one exported function for each of the contract, named as the canonical ABI names it.
//! What is returned is a pointer to a record; a text or a list in it must live until the call after it, `cabi_post_…`.

const std = @import("std");
const abi = @import("abi.zig");
const shards = @import("shards.zig");
const Settings = @import("settings.zig").Settings;
const Problem = @import("settings.zig").Problem;

pub const panic = std.debug.FullPanic(abi.panic);

const sources = [_][]const u8{ "header", "cookie", "query" };
const keys = sources ++ [_][]const u8{ "spill", "spill-min" };

const Wishes = extern struct { attributes: abi.List(abi.Text), headers: abi.List(abi.Text) };
const Answer = extern struct {
    refused: u8,
    body: extern union { wishes: Wishes, problems: abi.List(Problem) },
};

/// What the instance remembers between calls.
var attributes: i32 = 0;
var spill = shards.Spill{};
var known = shards.Shards{};

var answer: Answer = undefined;
var choice: shards.Choice = undefined;

export fn @"forebay:policy/configure@0.1.0#configure"(
    _: usize, _: usize, // policy
    _: usize, _: usize, // attachment
    config: [*]const u8, length: usize,
    _: usize, _: usize, // backends
    _: usize, _: usize, // redirects
    _: usize, _: usize, // responses
) *const Answer {
    answer = configure(config[0..length]) catch @panic("out of memory");
    return &answer;
}

export fn @"cabi_post_forebay:policy/configure@0.1.0#configure"(_: *const Answer) void {
    abi.forget();
}

fn configure(config: []const u8) !Answer {
    var settings = try Settings.read(config);
    var wanted: std.ArrayList(abi.Text) = .empty;
    for (sources) |source| {
        const name = try settings.token(source) orelse continue;
        try wanted.append(abi.memory, .of(try std.mem.concat(abi.memory, u8, &.{ source, ":", name })));
    }
    if (wanted.items.len == 0) try wanted.append(abi.memory, .of("header:x-shard-key"));
    const factor = "must be a number from 1 to 100 with at most three decimals";
    const least = "must be a whole number from 0 to 1000000";
    spill.factor = try settings.number("spill", 3, 1500, .{ 1000, 100_000 }, factor);
    spill.least = try settings.number("spill-min", 0, 8, .{ 0, 1_000_000 }, least);
    try settings.finish(&keys);
    if (settings.problems.items.len > 0) return .{ .refused = 1, .body = .{ .problems = .of(settings.problems.items) } };
    attributes = @intCast(wanted.items.len);
    return .{ .refused = 0, .body = .{ .wishes = .{ .attributes = .of(wanted.items), .headers = .of(&.{}) } } };
}

export fn @"forebay:policy/balance-pick@0.1.0#table"(
    names: [*]const abi.Text, count: usize,
    _: usize, _: usize, // zones
    weights: [*]const i32, _: usize,
    states: [*]const i32, _: usize,
    _: usize, _: usize, // limits
    _: usize, _: usize, // latencies
) void {
    const keep = std.heap.wasm_allocator;
    keep.free(known.servers);
    known = .{};
    const servers = keep.alloc(shards.Server, count) catch @panic("out of memory");
    for (servers, names, weights, states) |*server, name, weight, state| {
        server.* = .of(name.slice(), weight, state);
        known.weight += server.weight;
    }
    known.servers = servers;
    abi.forget();
}

export fn @"forebay:policy/balance-pick@0.1.0#pick"(_: usize, length: usize, avoid: i32) *const shards.Choice {
    choice = if (hash(length)) |key| known.choose(key, avoid, spill, Live) else .{};
    abi.forget();
    return &choice;
}

/// The hash of the first attribute that is there and not empty. The first of all was given; the others are asked for.
fn hash(length: usize) ?u32 {
    var at: i32 = 0;
    if (length == 0) {
        at = 1;
        while (at < attributes and abi.request.length(at) <= 0) at += 1;
        if (at >= attributes) return null;
    }
    return std.math.cast(u32, abi.request.hash(at));
}

/// The host's figures.
const Live = struct {
    pub fn of(server: i32) i32 {
        return abi.servers.inFlight(server);
    }
    pub fn all() []const i32 {
        return abi.servers.allInFlight();
    }
};
