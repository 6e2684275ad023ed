// Which servers a key prefers, in order: weighted rendezvous hashing over the names of the servers. What it means and why
// stands in ../header-shard/src/shards.rs; this computes the same numbers.
import { cost, seedOf } from "./wide.js";

/** So that no product is beyond 2^53: more than a million in flight is a million. */
const LOAD_MAX = 1 << 20;

/** The servers as they were shown last. */
export class Shards {
  constructor(names, weights, states) {
    this.servers = names.map((name, at) => {
      const weight = states[at] === 0 ? weights[at] : 0;
      return { seed: seedOf(name), weight, inverse: Math.floor((1 << 24) / Math.max(weight, 1)) };
    });
    this.weight = this.servers.reduce((sum, server) => sum + server.weight, 0);
    /** What the key of this call costs at each server, in two parts. */
    this.costs = new Float64Array(this.servers.length * 2);
  }

  /** Where a key goes, and whom to ask if that one is full: the first two in its order that take requests and are not
   * crowded; −1 for nobody. `load` tells the requests in flight, of one or of all. */
  choose(key, avoid, spill, load) {
    this.servers.forEach(({ seed, inverse }, at) => cost(seed, key, inverse, this.costs, 2 * at));
    const order = this.best(avoid);
    if (order.first < 0 || load.of(order.first) < spill.least) return order;
    const roomy = this.best(avoid, this.roomy(spill, load.all()));
    if (roomy.first < 0) return order;
    if (roomy.second < 0) roomy.second = roomy.first === order.first ? order.second : order.first;
    return roomy;
  }

  /** Who is not crowded, by index. */
  roomy(spill, inFlight) {
    const loads = this.servers.map((_, at) => Math.min(Math.max(inFlight[at] ?? 0, 0), LOAD_MAX));
    const share = spill.factor * (loads.reduce((sum, load) => sum + load, 0) + 1);
    return loads.map((load, at) =>
      load < spill.least || (load + 1) * this.weight * 1000 <= share * this.servers[at].weight);
  }

  /** The first two in the key's order among those. */
  best(avoid, among) {
    const { servers, costs } = this;
    let first = -1, second = -1;
    for (let at = 0; at < servers.length; at++) {
      if (servers[at].weight <= 0 || at === avoid || (among && !among[at])) continue;
      if (isLess(costs, at, first)) [first, second] = [at, first];
      else if (isLess(costs, at, second)) second = at;
    }
    return { first, second };
  }
}

/** Whether a server costs less than another one, or there is no other. */
function isLess(costs, one, other) {
  if (other < 0 || costs[2 * one] < costs[2 * other]) return true;
  return costs[2 * one] === costs[2 * other] && costs[2 * one + 1] < costs[2 * other + 1];
}
