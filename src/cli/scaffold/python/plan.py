"""The faster a server answers, the more requests it gets; failures count as slowness."""

from guarded import guarded, settings
from wit_world import exports
from wit_world.exports.balance_plan import Allocation, Member, Selector, Spill, Tier
from wit_world.exports.configure import Wishes

# The most that the fastest server gets of the slowest one's share: who got nothing would never be seen to be fast again.
SPREAD = 8
# How long a plan holds if no other one comes, in ms.
LIFETIME = 10_000


class Configure(exports.Configure):
    def configure(self, setup):
        settings(setup.config)
        return Wishes(attributes=[], headers=[])


class BalancePlan(exports.BalancePlan):
    @guarded(no_opinion=None)
    def plan(self, now, servers):
        known = [slowness(server) for server in servers if server.latency >= 0]
        best = min(known, default=0)
        members = [
            Member(server=index, weight=weight(server, best), cap=-1)
            for index, server in enumerate(servers)
            if server.state == 0 and server.weight > 0
        ]
        if not members:
            return None
        tier = Tier(selector=Selector.ROUNDROBIN, spill=Spill.WHEN_FULL, members=members)
        return Allocation(tiers=[tier], lifetime=LIFETIME)


def slowness(server):
    """What a server's answers take in µs, eleven times as much if all of them are failures."""
    taken = max(server.latency, 1)
    return taken + taken * 10 * server.failed // max(server.completed, 1)


def weight(server, best):
    """Who is not known yet counts as the best."""
    share = 256 if server.latency < 0 else max(256 * best // slowness(server), 256 // SPREAD)
    return min(max(server.weight * share // 16, 1), 4096)
