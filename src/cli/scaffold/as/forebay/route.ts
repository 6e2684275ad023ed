// How the host asks for a route: see wit/route.wit.

import { route } from "../policy";
import { Method } from "./host";
import { optional, text } from "./memory";

export { cabi_realloc } from "./memory";
export { configure__configure } from "./configure";

export class Decision {
  constructor(public action: i32, public target: i32, public remember: i32) {}
}

const answer = memory.data(12, 4);

/** An attribute that a request does not have is given as an empty text. */
export function route__route(
  method: Method, host: usize, hostLength: i32, path: usize, pathLength: i32,
  hasFirst: i32, first: usize, firstLength: i32, hasSecond: i32, second: usize, secondLength: i32,
): usize {
  const decision = route(
    method, text(host, hostLength), text(path, pathLength),
    optional(hasFirst, first, firstLength), optional(hasSecond, second, secondLength),
  );
  store<i32>(answer, decision.action);
  store<i32>(answer, decision.target, 4);
  store<i32>(answer, decision.remember, 8);
  return answer;
}
