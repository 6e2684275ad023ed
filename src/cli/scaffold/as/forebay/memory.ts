// What crosses between this module and its host: the canonical ABI, where texts are UTF-16 as they are here.

/** Memory for what the host is about to give. It is ours, and freed by who reads it. */
export function cabi_realloc(old: usize, oldSize: usize, align: usize, size: usize): usize {
  return old ? heap.realloc(old, size) : heap.alloc(size);
}

/** A text that was given. */
export function text(at: usize, length: i32): string {
  const read = String.UTF16.decodeUnsafe(at, <usize>length << 1);
  if (length) heap.free(at);
  return read;
}

/** A text that may be missing; then it is empty. */
export function optional(isThere: i32, at: usize, length: i32): string {
  return isThere ? text(at, length) : "";
}

/** A list of texts that was given. */
export function texts(at: usize, count: i32): string[] {
  const read = new Array<string>(count);
  for (let index = 0; index < count; index++) {
    const one = at + (<usize>index << 3);
    read[index] = text(load<usize>(one), load<i32>(one, 4));
  }
  if (count) heap.free(at);
  return read;
}

/** A list of numbers that was given. */
export function numbers(at: usize, count: i32): i32[] {
  const read = new Array<i32>(count);
  for (let index = 0; index < count; index++) read[index] = load<i32>(at + (<usize>index << 2));
  if (count) heap.free(at);
  return read;
}

/** Puts a text where the host looks for it. The copy stays for good: only `configure` answers with texts. */
export function putText(into: usize, value: string): void {
  const size = <usize>value.length << 1;
  const copy = heap.alloc(size);
  memory.copy(copy, changetype<usize>(value), size);
  putList(into, copy, value.length);
}

/** Puts a list of texts where the host looks for it. */
export function putTexts(into: usize, values: string[]): void {
  const list = heap.alloc(<usize>values.length << 3);
  for (let index = 0; index < values.length; index++) putText(list + (<usize>index << 3), values[index]);
  putList(into, list, values.length);
}

/** Puts the place and the length of a list where the host looks for it. */
export function putList(into: usize, at: usize, count: i32): void {
  store<usize>(into, at);
  store<i32>(into, count, 4);
}
