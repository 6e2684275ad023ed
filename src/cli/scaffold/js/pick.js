// Requests with the same value of a header go to the same server. While that one is crowded, the next one helps.

import { guarded, settings } from "./guarded.js";
import { hash } from "forebay:policy/request@0.1.0";
import { inFlight } from "forebay:policy/servers@0.1.0";

/** Requests that a server may have before another one helps. */
const CROWDED = 8;
const NO_OPINION = { first: -1, second: -1 };

/** The servers that take requests, by index, and a number for each that stays when indices change. */
let servers = [], seeds = [];

export const configure = {
  configure(setup) {
    const { header } = settings(setup.config, { header: "x-user" });
    return { attributes: [`header:${header}`], headers: [] };
  },
};

export const balancePick = {
  table: guarded(undefined, ({ names, weights, states }) => {
    servers = [...names.keys()].filter((at) => states[at] === 0 && weights[at] > 0);
    seeds = servers.map((at) => seedOf(names[at]));
  }),

  pick: guarded(NO_OPINION, (key, avoid) => {
    if (key === "") return NO_OPINION;
    const { first, second } = bestTwo(hash(0), avoid);
    const crowded = second >= 0 && inFlight(first) >= CROWDED && inFlight(second) < inFlight(first);
    return crowded ? { first: second, second: first } : { first, second };
  }),
};

/** The two servers that come first in this key's own order of all; -1 where there is none. */
function bestTwo(key, avoid) {
  let first = -1, second = -1, most = -1, more = -1;
  for (let at = 0; at < servers.length; at++) {
    const index = servers[at];
    const score = index === avoid ? 0 : mixed(key ^ seeds[at]);
    if (score > most) {
      second = first, more = most;
      first = index, most = score;
    } else if (score > more) {
      second = index, more = score;
    }
  }
  return { first, second };
}

/** A text as 32 bits (FNV-1a). */
function seedOf(text) {
  let bits = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) bits = Math.imul(bits ^ text.charCodeAt(at), 0x01000193);
  return bits;
}

/** 32 bits, each of which depends on all that are given; the last steps of MurmurHash3. */
function mixed(bits) {
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
