//! The canonical ABI by hand, as far as a policy that picks needs it: where the host puts what it hands over, and how its
//! functions are called. A list or a text crosses as a pointer and a length.

const std = @import("std");

/// What the host hands over in a call lives until the end of that call.
var arena = std.heap.ArenaAllocator.init(std.heap.wasm_allocator);
pub const memory = arena.allocator();

/// The end of a call.
pub fn forget() void {
    _ = arena.reset(.{ .retain_with_limit = 64 << 10 });
}

export fn cabi_realloc(old: ?[*]u8, old_size: usize, alignment: usize, size: usize) [*]u8 {
    const new = memory.rawAlloc(size, .fromByteUnits(alignment), 0) orelse @panic("out of memory");
    if (old) |bytes| @memcpy(new[0..old_size], bytes[0..old_size]);
    return new;
}

pub fn List(comptime Item: type) type {
    return extern struct {
        ptr: [*]const Item,
        len: usize,

        pub fn of(items: []const Item) @This() {
            return .{ .ptr = items.ptr, .len = items.len };
        }

        pub fn slice(self: @This()) []const Item {
            return self.ptr[0..self.len];
        }
    };
}

pub const Text = List(u8);

pub const request = struct {
    pub extern "forebay:policy/request@0.1.0" fn hash(attribute: i32) i32;
    pub extern "forebay:policy/request@0.1.0" fn length(attribute: i32) i32;
};

pub const servers = struct {
    extern "forebay:policy/servers@0.1.0" fn @"in-flight"(server: i32) i32;
    extern "forebay:policy/servers@0.1.0" fn column(figure: i32, into: *List(i32)) void;

    pub fn inFlight(server: i32) i32 {
        return @"in-flight"(server);
    }

    /// The requests in flight of all servers, by index.
    pub fn allInFlight() []const i32 {
        var into: List(i32) = undefined;
        column(0, &into);
        return into.slice();
    }
};

extern "forebay:policy/log@0.1.0" fn write(level: i32, ptr: [*]const u8, len: usize) void;

/// What Zig does when it finds a mistake: the operator reads what it was, and the call ends.
pub fn panic(message: []const u8, _: ?usize) noreturn {
    write(0, message.ptr, message.len);
    @trap();
}
