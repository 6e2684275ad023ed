// Sends requests with the same key to the same server, and only as many as it can take: `header-shard` in AssemblyScript.
// The same configuration, the same choices; what they mean stands in ../header-shard/src/lib.rs.
//
// The shape of a policy in AssemblyScript: one exported function for each of the contract, which `contract.mjs` renames to
// what the canonical ABI calls it. What is returned is a pointer to a record; what is in it must live until the call
// after it, `cabi_post_…`: it is kept in `answer`, where the garbage collector finds it.
import { allInFlight, forget, hash, inFlight, length, lower, text, textAt } from "./abi";
import { Settings } from "./settings";
import { Choice, Server, Shards, Spill } from "./shards";

export { cabi_realloc } from "./abi";

const SOURCES = ["header", "cookie", "query"];
const KEYS = ["header", "cookie", "query", "spill", "spill-min"];

// What the instance remembers between calls.
let attributes: i32 = 0;
let spill = new Spill();
let shards = new Shards();

/** The texts of the answer of `configure`. */
let answer: string[] = [];

/** A result: a word for which case it is, then a pointer and a length; for wishes two of them. */
const result = memory.data(20, 4);
const choice = memory.data(8, 4);

export function configure(
  policy: usize, policyLength: i32, attachment: usize, attachmentLength: i32, config: usize, configLength: i32,
  backends: usize, backendsLength: i32, redirects: usize, redirectsLength: i32, responses: usize, responsesLength: i32,
): usize {
  const settings = new Settings(text(config, configLength));
  answer = [];
  for (let at = 0; at < SOURCES.length; at++) {
    const name = settings.token(SOURCES[at]);
    if (name.length) answer.push(SOURCES[at] + ":" + name);
  }
  if (!answer.length) answer.push("header:x-shard-key");
  const factor = "must be a number from 1 to 100 with at most three decimals";
  const least = "must be a whole number from 0 to 1000000";
  spill.factor = settings.number("spill", 3, 1500, 1000, 100000, factor);
  spill.least = settings.number("spill-min", 0, 8, 0, 1000000, least);
  settings.finish(KEYS);
  attributes = answer.length;
  if (settings.problems.length) return refused(settings);
  store<u8>(result, 0);
  store<usize>(result, lower(answer), 4);
  store<i32>(result, answer.length, 8);
  store<usize>(result, 0, 12);
  store<i32>(result, 0, 16);
  return result;
}

/** A problem is two texts, one behind the other. */
function refused(settings: Settings): usize {
  answer = [];
  for (let at = 0; at < settings.problems.length; at++) {
    answer.push(settings.problems[at].path);
    answer.push(settings.problems[at].message);
  }
  store<u8>(result, 1);
  store<usize>(result, lower(answer), 4);
  store<i32>(result, answer.length / 2, 8);
  return result;
}

export function cabi_post_configure(result: usize): void {
  answer = [];
  forget();
}

export function table(
  names: usize, count: i32, zones: usize, zonesLength: i32, weights: usize, weightsLength: i32, states: usize,
  statesLength: i32, limits: usize, limitsLength: i32, latencies: usize, latenciesLength: i32,
): void {
  shards = new Shards();
  for (let at = 0; at < count; at++) {
    const state = load<i32>(states + at * 4);
    shards.add(new Server(textAt(names, at), state == 0 ? load<i32>(weights + at * 4) : 0));
  }
  forget();
}

export function pick(key: usize, keyLength: i32, avoid: i32): usize {
  const chosen = choose(keyHash(keyLength), avoid);
  store<i32>(choice, chosen.first);
  store<i32>(choice, chosen.second, 4);
  forget();
  return choice;
}

/** The hash of the first attribute that is there and not empty, −1 if none is. The first of all was given; the others are
 * asked for. */
function keyHash(keyLength: i32): i32 {
  if (keyLength > 0) return hash(0);
  for (let at = 1; at < attributes; at++) if (length(at) > 0) return hash(at);
  return -1;
}

function choose(key: i32, avoid: i32): Choice {
  if (key < 0) return new Choice();
  const order = shards.order(key, avoid);
  if (order.first < 0 || inFlight(order.first) < spill.least) return order;
  return shards.spilled(key, avoid, spill, allInFlight(), order);
}
