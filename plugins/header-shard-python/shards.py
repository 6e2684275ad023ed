"""Which servers a key prefers, in order: weighted rendezvous hashing over the names of the servers. What it means and
why stands in ../header-shard/src/shards.rs; this computes the same numbers."""

from dataclasses import dataclass

MASK = (1 << 64) - 1
# So that nobody's sum differs: more than a million in flight is a million.
LOAD_MAX = 1 << 20


@dataclass(slots=True)
class Spill:
    # Thousandths of its share of the requests in flight, beyond which a server is crowded.
    factor: int = 1500
    # With fewer requests in flight than this, it never is.
    least: int = 8


class Shards:
    """The servers as they were shown last."""

    def __init__(self, names, weights, states):
        self.weights = [weight if state == 0 else 0 for weight, state in zip(weights, states)]
        self.weight = sum(self.weights)
        # Index, hash of the name and 2^24 / weight of each that takes requests.
        self.ready = [
            (at, mix(fnv1a(name.encode())), (1 << 24) // weight)
            for at, (name, weight) in enumerate(zip(names, self.weights))
            if weight > 0
        ]

    def choose(self, key, avoid, spill, load, loads):
        """Where a key goes, and whom to ask if that one is full: the first two in its order that take requests and are
        not crowded; −1 for nobody. `load` tells the requests in flight of one server, `loads` of all."""
        order = [at for _, at in sorted((cost(key, seed, inverse), at) for at, seed, inverse in self.ready if at != avoid)]
        first, second = (order + [-1, -1])[:2]
        if first < 0 or load(first) < spill.least:
            return first, second
        match self.roomy(order, spill, loads()):
            case []:
                return first, second
            case [roomy]:
                return roomy, second if roomy == first else first
            case roomy:
                return roomy[0], roomy[1]

    def roomy(self, order, spill, loads):
        """Those that are not crowded."""
        loads = [min(max(load, 0), LOAD_MAX) for load in loads]
        share = spill.factor * (sum(loads) + 1)
        scale = self.weight * 1000
        return [
            at for at in order if loads[at] < spill.least or (loads[at] + 1) * scale <= share * self.weights[at]
        ]


def cost(key, seed, inverse):
    """An exponential draw of the pair, divided by the weight: the lower, the earlier in the order. 64 − log₂ in units of
    2^-32 is a straight line between powers of two and the curve above it."""
    number = mix(seed ^ key) | 1
    zeros = 64 - number.bit_length()
    part = (number << (zeros + 1) & MASK) >> 32
    above = part * ((1 << 32) - part) >> 32
    return ((zeros + 1 << 32) - part - (above * 1409 >> 12)) * inverse


def mix(bits):
    """Spreads every bit over all: the end of SplitMix64."""
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & MASK
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & MASK
    return bits ^ bits >> 31


def fnv1a(name):
    value = 0xCBF29CE484222325
    for byte in name:
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value
