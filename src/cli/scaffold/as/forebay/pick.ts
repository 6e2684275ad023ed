// How the host asks for a server: see wit/balance-pick.wit.

import { pick, table } from "../policy";
import { numbers, text, texts } from "./memory";

export { cabi_realloc } from "./memory";
export { configure__configure } from "./configure";

export class Columns {
  constructor(
    public names: string[],
    public zones: string[],
    public weights: i32[],
    public states: i32[],
    public limits: i32[],
    public latencies: i32[],
  ) {}
}

export class Choice {
  constructor(public first: i32, public second: i32) {}
}

const answer = memory.data(8, 4);

export function balance_pick__table(
  names: usize, nameCount: i32, zones: usize, zoneCount: i32, weights: usize, weightCount: i32,
  states: usize, stateCount: i32, limits: usize, limitCount: i32, latencies: usize, latencyCount: i32,
): void {
  table(new Columns(
    texts(names, nameCount), texts(zones, zoneCount), numbers(weights, weightCount),
    numbers(states, stateCount), numbers(limits, limitCount), numbers(latencies, latencyCount),
  ));
}

export function balance_pick__pick(key: usize, length: i32, avoid: i32): usize {
  const choice = pick(text(key, length), avoid);
  store<i32>(answer, choice.first);
  store<i32>(answer, choice.second, 4);
  return answer;
}
