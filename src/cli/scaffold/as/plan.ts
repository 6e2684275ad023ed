// The faster a server answers, the more requests it gets; failures count as slowness.

import { Setup, Wishes, settings } from "./forebay/configure";
import { Selector, Spill } from "./forebay/host";
import { Allocation, Member, Server, Tier } from "./forebay/plan";

/** The most that the fastest server gets of the slowest one's share: who got nothing would never be seen to be fast again. */
const SPREAD: i64 = 8;
/** How long a plan holds if no other one comes, in ms. */
const LIFETIME = 10_000;

export function configure(setup: Setup): Wishes {
  const wishes = new Wishes();
  wishes.problems = settings(setup.config, new Map<string, string>());
  return wishes;
}

export function plan(now: i64, servers: Server[]): Allocation | null {
  let best = i64.MAX_VALUE;
  for (let at = 0; at < servers.length; at++) {
    if (servers[at].latency >= 0) best = min(best, slowness(servers[at]));
  }
  const members: Member[] = [];
  for (let at = 0; at < servers.length; at++) {
    const server = servers[at];
    if (server.state == 0 && server.weight > 0) members.push(new Member(at, weight(server, best), -1));
  }
  if (members.length == 0) return null;
  return new Allocation([new Tier(Selector.Roundrobin, Spill.WhenFull, members)], LIFETIME);
}

/** What a server's answers take in µs, eleven times as much if all of them are failures. */
function slowness(server: Server): i64 {
  const taken: i64 = max(server.latency, 1);
  return taken + (taken * 10 * server.failed) / max(server.completed, 1);
}

/** Who is not known yet counts as the best. */
function weight(server: Server, best: i64): i32 {
  const share: i64 = server.latency < 0 ? 256 : max((256 * best) / slowness(server), 256 / SPREAD);
  return <i32>min(max((server.weight * share) / 16, 1), 4096);
}
