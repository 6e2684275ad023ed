//! Reads the table `config = { … }`: names, numbers, and what is wrong with them.

const std = @import("std");
const abi = @import("abi.zig");

/// Something wrong: the path of the key, and what would be right.
pub const Problem = extern struct { path: abi.Text, message: abi.Text };

pub const Settings = struct {
    table: std.json.ObjectMap = .empty,
    problems: std.ArrayList(Problem) = .empty,

    /// Of the JSON text that `configure` is given.
    pub fn read(config: []const u8) !Settings {
        var settings = Settings{};
        // Numbers stay as they were written: decimals are counted.
        const options = std.json.ParseOptions{ .parse_numbers = false };
        if (std.json.parseFromSliceLeaky(std.json.Value, abi.memory, config, options)) |value| {
            if (value == .object) settings.table = value.object else try settings.wrong("", "must be a table");
        } else |_| try settings.wrong("", "must be a table");
        return settings;
    }

    /// A name of a header, cookie or the like: a token of RFC 9110.
    pub fn token(self: *Settings, key: []const u8) !?[]const u8 {
        const given = self.table.get(key) orelse return null;
        if (given != .string or given.string.len == 0) {
            try self.wrong(key, "must be a text that is not empty");
            return null;
        }
        for (given.string) |sign| {
            if (std.ascii.isAlphanumeric(sign) or std.mem.findScalar(u8, "!#$%&'*+-.^_`|~", sign) != null) continue;
            try self.wrong(key, "must be a name without blanks and separators");
            return null;
        }
        return given.string;
    }

    /// A number with so many decimals at most, in units of the last.
    pub fn number(self: *Settings, key: []const u8, places: usize, default: i64, range: [2]i64, message: []const u8) !i64 {
        const given = self.table.get(key) orelse return default;
        if (given == .number_string) {
            if (decimal(given.number_string, places)) |found| {
                if (found >= range[0] and found <= range[1]) return found;
            }
        }
        try self.wrong(key, message);
        return default;
    }

    /// Whatever is no key of the policy.
    pub fn finish(self: *Settings, known: []const []const u8) !void {
        for (self.table.keys()) |key| {
            for (known) |one| {
                if (std.mem.eql(u8, one, key)) break;
            } else {
                const list = try std.mem.join(abi.memory, "`, `", known);
                try self.wrong(key, try std.mem.concat(abi.memory, u8, &.{ "unknown; the keys are `", list, "`" }));
            }
        }
    }

    fn wrong(self: *Settings, path: []const u8, message: []const u8) !void {
        try self.problems.append(abi.memory, .{ .path = .of(path), .message = .of(message) });
    }
};

/// `12`, `12.5`: in units of 10 to the −`places`.
fn decimal(text: []const u8, places: usize) ?i64 {
    const point = std.mem.findScalar(u8, text, '.');
    const whole = text[0 .. point orelse text.len];
    const rest = if (point) |at| text[at + 1 ..] else "";
    if (whole.len == 0 or whole.len > 9 or rest.len > places) return null;
    var number: i64 = 0;
    for ([_][]const u8{ whole, rest }) |digits| for (digits) |digit| {
        if (!std.ascii.isDigit(digit)) return null;
        number = number * 10 + digit - '0';
    };
    for (rest.len..places) |_| number *= 10;
    return number;
}
