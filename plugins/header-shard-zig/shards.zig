//! Which servers a key prefers, in order: weighted rendezvous hashing over the names of the servers. What it means and
//! why stands in ../header-shard/src/shards.rs; this computes the same numbers.

const std = @import("std");

pub const Server = struct {
    /// The hash of its name.
    seed: u64,
    /// 0 takes no requests.
    weight: i64,
    /// 2^24 / weight.
    inverse: u64,

    pub fn of(name: []const u8, given: i32, state: i32) Server {
        var hash: u64 = 0xcbf29ce484222325; // FNV-1a
        for (name) |byte| hash = (hash ^ byte) *% 0x100000001b3;
        const weight = if (state == 0) given else 0;
        return .{ .seed = mix(hash), .weight = weight, .inverse = (1 << 24) / @as(u64, @intCast(@max(weight, 1))) };
    }

    /// An exponential draw of the pair, divided by the weight: the lower, the earlier in the order.
    fn cost(self: Server, key: u32) u64 {
        return minusLog2(mix(self.seed ^ key)) * self.inverse;
    }
};

pub const Spill = struct {
    /// Thousandths of its share of the requests in flight, beyond which a server is crowded.
    factor: i64 = 1500,
    /// With fewer requests in flight than this, it never is.
    least: i64 = 8,
};

/// −1 for nobody.
pub const Choice = extern struct { first: i32 = -1, second: i32 = -1 };

/// The servers as they were shown last.
pub const Shards = struct {
    servers: []const Server = &.{},
    /// The weight of all that take requests.
    weight: i64 = 0,

    /// Where a key goes, and whom to ask if that one is full: the first two in its order that take requests and are not
    /// crowded. `load` tells the requests in flight, of one or of all.
    pub fn choose(self: Shards, key: u32, avoid: i32, spill: Spill, load: anytype) Choice {
        const order = self.best(key, avoid, null);
        if (order.first < 0 or load.of(order.first) < spill.least) return order;
        var now = Figures{ .spill = spill, .loads = load.all() };
        for (now.loads) |one| now.total += bounded(one);
        const roomy = self.best(key, avoid, now);
        if (roomy.first < 0) return order;
        if (roomy.second >= 0) return roomy;
        return .{ .first = roomy.first, .second = if (roomy.first == order.first) order.second else order.first };
    }

    /// The first two in the key's order; with figures, only among those that have room.
    fn best(self: Shards, key: u32, avoid: i32, figures: ?Figures) Choice {
        var choice = Choice{};
        var first: u64 = std.math.maxInt(u64);
        var second = first;
        for (self.servers, 0..) |server, at| {
            if (server.weight <= 0 or at == avoid) continue;
            if (figures) |now| if (!now.isRoomy(self, at)) continue;
            const cost = server.cost(key);
            if (cost < first) {
                second = first;
                choice.second = choice.first;
                first = cost;
                choice.first = @intCast(at);
            } else if (cost < second) {
                second = cost;
                choice.second = @intCast(at);
            }
        }
        return choice;
    }
};

const Figures = struct {
    spill: Spill,
    loads: []const i32,
    total: i64 = 0,

    fn isRoomy(self: Figures, shards: Shards, at: usize) bool {
        const load = if (at < self.loads.len) bounded(self.loads[at]) else 0;
        return load < self.spill.least or
            (load + 1) * shards.weight * 1000 <= self.spill.factor * (self.total + 1) * shards.servers[at].weight;
    }
};

/// 64 − log₂ of a number, in units of 2^-32: a straight line between powers of two and the curve above it.
fn minusLog2(given: u64) u64 {
    const number = given | 1;
    const zeros: u6 = @intCast(@clz(number));
    const part = (number << zeros << 1) >> 32;
    const above = (part * ((1 << 32) - part)) >> 32;
    return ((@as(u64, zeros) + 1) << 32) - part - ((above * 1409) >> 12);
}

/// Spreads every bit over all: the end of SplitMix64.
fn mix(given: u64) u64 {
    var bits = given;
    bits = (bits ^ (bits >> 30)) *% 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) *% 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
}

/// So that no product overflows: more than a million in flight is a million.
fn bounded(load: i32) i64 {
    return std.math.clamp(load, 0, 1 << 20);
}
