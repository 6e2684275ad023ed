// How the host asks how a connection may be shared: see wit/reuse.wit.

import { prefer } from "../policy";
import { optional } from "./memory";

export { cabi_realloc } from "./memory";
export { configure__configure } from "./configure";

export class Preference {
  constructor(public mode: i32, public fresh: i32, public tag: i32, public tagAttribute: i32) {}
}

const answer = memory.data(16, 4);

/** An attribute that a request does not have is given as an empty text. */
export function reuse__prefer(
  hasFirst: i32, first: usize, firstLength: i32, hasSecond: i32, second: usize, secondLength: i32, firstRequest: i32,
): usize {
  const preference = prefer(
    optional(hasFirst, first, firstLength), optional(hasSecond, second, secondLength), firstRequest,
  );
  store<i32>(answer, preference.mode);
  store<i32>(answer, preference.fresh, 4);
  store<i32>(answer, preference.tag, 8);
  store<i32>(answer, preference.tagAttribute, 12);
  return answer;
}
