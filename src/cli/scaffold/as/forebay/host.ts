// What the host does for a policy: see wit/host.wit. And the words of the contract, which an entry would export.

// @ts-ignore: decorator
@external("forebay:policy/log@0.1.0", "write")
declare function write(level: i32, at: usize, length: i32): void;

// @ts-ignore: decorator
@external("forebay:policy/request@0.1.0", "hash")
export declare function hash(attribute: i32): i32;

// @ts-ignore: decorator
@external("forebay:policy/request@0.1.0", "draw")
export declare function draw(bound: i32): i32;

// @ts-ignore: decorator
@external("forebay:policy/request@0.1.0", "now")
export declare function now(): i64;

// @ts-ignore: decorator
@external("forebay:policy/servers@0.1.0", "in-flight")
export declare function inFlight(server: i32): i32;

// @ts-ignore: decorator
@external("forebay:policy/servers@0.1.0", "queued")
export declare function queued(server: i32): i32;

// @ts-ignore: decorator
@external("forebay:policy/servers@0.1.0", "idle")
export declare function idle(server: i32): i32;

// @ts-ignore: decorator
@external("forebay:policy/edits@0.1.0", "set")
declare function edit(message: i32, header: i32, at: usize, length: i32): void;

export enum Level { Error, Warn, Info, Debug }
export enum Message { Request, Response }
export enum Method { Get, Head, Post, Put, Delete, Connect, Options, Trace, Patch, Other }
export enum Selector { Random, Roundrobin, Leastconn }
export enum Spill { WhenDown, WhenFull }

export function log(level: Level, line: string): void {
  write(level, changetype<usize>(line), line.length);
}

/** Replaces all fields of the header with that index in the wishes by one. */
export function set(message: Message, header: i32, value: string): void {
  edit(message, header, changetype<usize>(value), value.length);
}

/** What is called when something is thrown: the operator reads it, and the call ends. */
export function aborted(message: string | null, file: string | null, line: i32, column: i32): void {
  const what = message ? message : "aborted";
  const where = file ? file : "unknown";
  log(Level.Error, `${what} (${where}:${line}:${column})`);
  unreachable();
}
