// Which servers a key prefers, in order: weighted rendezvous hashing over the names of the servers. What it means and why
// stands in ../header-shard/src/shards.rs; this computes the same numbers.

/** So that no product overflows: more than a million in flight is a million. */
const LOAD_MAX: i64 = 1 << 20;

export class Server {
  /** The hash of its name. */
  seed: u64;
  /** 2^24 / weight. */
  inverse: u64;

  /** With weight 0 it takes no requests. */
  constructor(name: string, readonly weight: i64) {
    const bytes = String.UTF8.encode(name), place = changetype<usize>(bytes);
    let hash: u64 = 0xcbf29ce484222325; // FNV-1a
    for (let at = 0; at < bytes.byteLength; at++) hash = (hash ^ load<u8>(place + at)) * 0x100000001b3;
    this.seed = mix(hash);
    this.inverse = (1 << 24) / <u64>max(weight, 1);
  }

  /** An exponential draw of the pair, divided by the weight: the lower, the earlier in the order. */
  cost(key: u32): u64 {
    return minusLog2(mix(this.seed ^ key)) * this.inverse;
  }
}

export class Spill {
  /** Thousandths of its share of the requests in flight, beyond which a server is crowded. */
  factor: i64 = 1500;
  /** With fewer requests in flight than this, it never is. */
  least: i64 = 8;
}

/** −1 for nobody. */
export class Choice {
  constructor(public first: i32 = -1, public second: i32 = -1) {}
}

/** The servers as they were shown last. */
export class Shards {
  servers: Server[] = [];
  /** The weight of all that take requests. */
  weight: i64 = 0;

  add(server: Server): void {
    this.servers.push(server);
    this.weight += server.weight;
  }

  /** The first two in the key's order. */
  order(key: u32, avoid: i32): Choice {
    return this.best(key, avoid, null);
  }

  /** The first two that are not crowded; `order` if there are none. `loads` are the requests in flight, by index. */
  spilled(key: u32, avoid: i32, spill: Spill, loads: StaticArray<i32>, order: Choice): Choice {
    const choice = this.best(key, avoid, new Figures(spill, loads));
    if (choice.first < 0) return order;
    if (choice.second < 0) choice.second = choice.first == order.first ? order.second : order.first;
    return choice;
  }

  private best(key: u32, avoid: i32, now: Figures | null): Choice {
    const choice = new Choice();
    let first = u64.MAX_VALUE, second = u64.MAX_VALUE;
    for (let at = 0; at < this.servers.length; at++) {
      const server = this.servers[at];
      if (server.weight <= 0 || at == avoid || (now && !now.isRoomy(this, at))) continue;
      const cost = server.cost(key);
      if (cost < first) {
        second = first, choice.second = choice.first;
        first = cost, choice.first = at;
      } else if (cost < second) {
        second = cost, choice.second = at;
      }
    }
    return choice;
  }
}

class Figures {
  total: i64 = 0;

  constructor(readonly spill: Spill, readonly loads: StaticArray<i32>) {
    for (let at = 0; at < loads.length; at++) this.total += bounded(loads[at]);
  }

  isRoomy(shards: Shards, at: i32): bool {
    const load = at < this.loads.length ? bounded(this.loads[at]) : 0;
    return load < this.spill.least ||
      (load + 1) * shards.weight * 1000 <= this.spill.factor * (this.total + 1) * shards.servers[at].weight;
  }
}

/** 64 − log₂ of a number, in units of 2^-32: a straight line between powers of two and the curve above it. */
function minusLog2(given: u64): u64 {
  const number = given | 1;
  const zeros = clz(number);
  const part = (number << zeros << 1) >> 32;
  const above = (part * ((<u64>1 << 32) - part)) >> 32;
  return ((zeros + 1) << 32) - part - ((above * 1409) >> 12);
}

/** Spreads every bit over all: the end of SplitMix64. */
function mix(bits: u64): u64 {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

function bounded(load: i32): i64 {
  return max(0, min(<i64>load, LOAD_MAX));
}
