// The canonical ABI by hand, as far as a policy that picks needs it. A list or a text crosses as a pointer and a length;
// text is UTF-16, which is why the component is packed with `--text utf16`: the host transcodes.

// @ts-ignore: decorator
@external("forebay:policy/log@0.1.0", "write") declare function write(level: i32, text: usize, length: i32): void;
// @ts-ignore: decorator
@external("forebay:policy/request@0.1.0", "hash") export declare function hash(attribute: i32): i32;
// @ts-ignore: decorator
@external("forebay:policy/request@0.1.0", "length") export declare function length(attribute: i32): i32;
// @ts-ignore: decorator
@external("forebay:policy/servers@0.1.0", "in-flight") export declare function inFlight(server: i32): i32;
// @ts-ignore: decorator
@external("forebay:policy/servers@0.1.0", "column") declare function column(figure: i32, into: usize): void;

/** What the host has handed over in this call: nobody but us frees it. */
const handed: usize[] = [];

export function cabi_realloc(old: usize, oldSize: usize, align: usize, size: usize): usize {
  if (!old) {
    handed.push(heap.alloc(size));
    return handed[handed.length - 1];
  }
  const at = handed.lastIndexOf(old);
  return (handed[at] = heap.realloc(old, size));
}

/** Frees it: the end of a call. */
export function forget(): void {
  while (handed.length) heap.free(handed.pop());
}

export function text(place: usize, length: i32): string {
  return String.UTF16.decodeUnsafe(place, <usize>length << 1);
}

/** The text at an index of a list. */
export function textAt(list: usize, at: i32): string {
  return text(load<usize>(list + at * 8), load<i32>(list + at * 8, 4));
}

/** The requests in flight of all servers, by index. */
export function allInFlight(): StaticArray<i32> {
  const into = memory.data(8, 4);
  column(0, into);
  const loads = new StaticArray<i32>(load<i32>(into, 4));
  memory.copy(changetype<usize>(loads), load<usize>(into), loads.length * 4);
  return loads;
}

/** A list of texts in memory that is static to the garbage collector: `kept` must hold the texts themselves. */
export function lower(kept: string[]): usize {
  const list = heap.alloc(kept.length * 8);
  handed.push(list);
  for (let at = 0; at < kept.length; at++) {
    store<usize>(list + at * 8, changetype<usize>(kept[at]));
    store<i32>(list + at * 8, kept[at].length, 4);
  }
  return list;
}

/** What AssemblyScript calls when it finds a mistake: the operator reads what it was, and the call ends. */
export function abort(message: string | null, file: string | null, line: u32, column: u32): void {
  const words = (message ? message : "aborted") + " at " + (file ? file : "?") + ":" + line.toString();
  write(0, changetype<usize>(words), words.length);
  unreachable();
}
