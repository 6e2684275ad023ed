"""Sends requests with the same key to the same server, and only as many as it can take: `header-shard` in Python. The same
configuration, the same choices; what they mean stands in ../header-shard/src/lib.rs.

The shape of a policy in Python: a class for each interface of the contract, named after it. A result is what is returned;
its error is raised as `Err`. Whatever else is raised ends the call; Python prints its traceback."""

from componentize_py_types import Err
from settings import Settings
from shards import Shards, Spill
from wit_world import exports
from wit_world.exports.balance_pick import Choice
from wit_world.exports.configure import Problem, Wishes
from wit_world.imports import request, servers

NOBODY = Choice(first=-1, second=-1)

# What the instance remembers between calls.
attributes = 0
spill = Spill()
shards = Shards([], [], [])


class Configure(exports.Configure):
    def configure(self, setup):
        global attributes, spill
        settings = Settings(setup.config)
        sources = ((source, settings.token(source)) for source in ("header", "cookie", "query"))
        wanted = [f"{source}:{name}" for source, name in sources if name] or ["header:x-shard-key"]
        factor = "must be a number from 1 to 100 with at most three decimals"
        least = "must be a whole number from 0 to 1000000"
        spill = Spill(
            factor=settings.number("spill", 3, 1500, 1000, 100_000, factor),
            least=settings.number("spill-min", 0, 8, 0, 1_000_000, least),
        )
        if problems := settings.finish():
            raise Err([Problem(path, message) for path, message in problems])
        attributes = len(wanted)
        return Wishes(attributes=wanted, headers=[])


class BalancePick(exports.BalancePick):
    def table(self, table):
        global shards
        shards = Shards(table.names, table.weights, table.states)

    def pick(self, key, avoid):
        found = key_hash(key)
        if found < 0:
            return NOBODY
        return Choice(*shards.choose(found, avoid, spill, servers.in_flight, in_flight))


def key_hash(key):
    """The hash of the first attribute that is there and not empty, −1 if none is. The first of all was given; the others
    are asked for."""
    if key:
        return request.hash(0)
    return next((request.hash(at) for at in range(1, attributes) if request.length(at) > 0), -1)


def in_flight():
    return servers.column(servers.Figure.IN_FLIGHT)
