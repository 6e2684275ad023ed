// Requests with the same value of a header go to the same server. While that one is crowded, the next one helps.

import { Setup, Wishes, settings } from "./forebay/configure";
import { hash, inFlight } from "./forebay/host";
import { Choice, Columns } from "./forebay/pick";

/** Requests that a server may have before another one helps. */
const CROWDED = 8;

/** The servers that take requests, by index, and a number for each that stays when indices change. */
let servers: i32[] = [];
let seeds: u32[] = [];

export function configure(setup: Setup): Wishes {
  const wishes = new Wishes();
  const keys = new Map<string, string>().set("header", "x-user");
  wishes.problems = settings(setup.config, keys);
  wishes.attributes = ["header:" + keys.get("header")];
  return wishes;
}

export function table(table: Columns): void {
  servers = [];
  seeds = [];
  for (let at = 0; at < table.names.length; at++) {
    if (table.states[at] != 0 || table.weights[at] == 0) continue;
    servers.push(at);
    seeds.push(seed(table.names[at]));
  }
}

export function pick(key: string, avoid: i32): Choice {
  if (key == "") return new Choice(-1, -1);
  const best = bestTwo(hash(0), avoid);
  if (best.second < 0) return best;
  const load = inFlight(best.first);
  return load >= CROWDED && inFlight(best.second) < load ? new Choice(best.second, best.first) : best;
}

/** The two servers that come first in this key's own order of all; -1 where there is none. */
function bestTwo(key: u32, avoid: i32): Choice {
  const best = new Choice(-1, -1);
  let most: i64 = -1, more: i64 = -1;
  for (let at = 0; at < servers.length; at++) {
    const score: i64 = servers[at] == avoid ? 0 : mixed(key ^ seeds[at]);
    if (score > most) {
      best.second = best.first;
      more = most;
      best.first = servers[at];
      most = score;
    } else if (score > more) {
      best.second = servers[at];
      more = score;
    }
  }
  return best;
}

/** A text as 32 bits (FNV-1a). */
function seed(text: string): u32 {
  let bits: u32 = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) bits = (bits ^ text.charCodeAt(at)) * 0x01000193;
  return bits;
}

/** 32 bits, each of which depends on all that are given; the last steps of MurmurHash3. */
function mixed(bits: u32): u32 {
  bits = (bits ^ (bits >> 16)) * 0x85ebca6b;
  bits = (bits ^ (bits >> 13)) * 0xc2b2ae35;
  return bits ^ (bits >> 16);
}
