// Sends requests with the same key to the same server, and only as many as it can take: `header-shard` in JavaScript. The
// same configuration, the same choices; what they mean stands in ../header-shard/src/lib.rs.
//
// The shape of a policy in JavaScript: an object for each interface of the contract, with its functions in camel case. A
// result is what is returned; its error is what is thrown, so whatever else is thrown is told to the operator first.
import { hash, length } from "forebay:policy/request@0.1.0";
import { column, inFlight } from "forebay:policy/servers@0.1.0";
import { guarded } from "./guarded.js";
import { Settings } from "./settings.js";
import { Shards } from "./shards.js";

/** What the instance remembers between calls. */
let attributes = 0;
let spill = {};
let shards = new Shards([], [], []);

export const configure = guarded({
  configure(setup) {
    const settings = new Settings(setup.config);
    const wanted = [];
    for (const source of ["header", "cookie", "query"]) {
      const name = settings.token(source);
      if (name !== undefined) wanted.push(`${source}:${name}`);
    }
    if (wanted.length === 0) wanted.push("header:x-shard-key");
    const factor = "must be a number from 1 to 100 with at most three decimals";
    const least = "must be a whole number from 0 to 1000000";
    spill = {
      factor: settings.number("spill", 3, 1500, 1000, 100_000, factor),
      least: settings.number("spill-min", 0, 8, 0, 1_000_000, least),
    };
    const problems = settings.finish();
    if (problems.length > 0) throw problems;
    attributes = wanted.length;
    return { attributes: wanted, headers: [] };
  },
});

export const balancePick = guarded({
  table({ names, weights, states }) {
    shards = new Shards(names, weights, states);
  },

  pick(key, avoid) {
    const found = keyHash(key);
    return found < 0 ? { first: -1, second: -1 } : shards.choose(found, avoid, spill, live);
  },
});

/** The hash of the first attribute that is there and not empty, −1 if none is. The first of all was given; the others are
 * asked for. */
function keyHash(key) {
  if (key !== "") return hash(0);
  for (let at = 1; at < attributes; at++) if (length(at) > 0) return hash(at);
  return -1;
}

/** The host's figures. */
const live = { of: inFlight, all: () => column("in-flight") };
