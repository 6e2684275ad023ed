"""Requests with the same value of a header go to the same server. While that one is crowded, the next one helps."""

from guarded import guarded, settings
from wit_world import exports
from wit_world.exports.balance_pick import Choice
from wit_world.exports.configure import Wishes
from wit_world.imports.request import hash as hash_of
from wit_world.imports.servers import in_flight

# Requests that a server may have before another one helps.
CROWDED = 8
BITS = 0xFFFFFFFF

# The servers that take requests: each one's index, and a number that stays when indices change.
servers = []


class Configure(exports.Configure):
    def configure(self, setup):
        header = settings(setup.config, header="x-user")["header"]
        return Wishes(attributes=[f"header:{header}"], headers=[])


class BalancePick(exports.BalancePick):
    @guarded(no_opinion=None)
    def table(self, table):
        servers[:] = [
            (index, seed(name))
            for index, name in enumerate(table.names)
            if table.states[index] == 0 and table.weights[index] > 0
        ]

    @guarded(no_opinion=Choice(-1, -1))
    def pick(self, key, avoid):
        if not key:
            return Choice(-1, -1)
        first, second = best_two(hash_of(0), avoid)
        crowded = second >= 0 and in_flight(first) >= CROWDED and in_flight(second) < in_flight(first)
        return Choice(second, first) if crowded else Choice(first, second)


def best_two(key, avoid):
    """The two servers that come first in this key's own order of all; -1 where there is none."""
    first = second = most = more = -1
    for index, number in servers:
        score = 0 if index == avoid else mixed(key ^ number)
        if score > most:
            first, second, most, more = index, first, score, most
        elif score > more:
            second, more = index, score
    return first, second


def seed(text):
    """A text as 32 bits (FNV-1a)."""
    bits = 0x811C9DC5
    for byte in text.encode():
        bits = (bits ^ byte) * 0x01000193 & BITS
    return bits


def mixed(bits):
    """32 bits, each of which depends on all that are given; the last steps of MurmurHash3."""
    bits = (bits ^ bits >> 16) * 0x85EBCA6B & BITS
    bits = (bits ^ bits >> 13) * 0xC2B2AE35 & BITS
    return bits ^ bits >> 16
