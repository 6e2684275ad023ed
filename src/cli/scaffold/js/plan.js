// The faster a server answers, the more requests it gets; failures count as slowness.

import { guarded, settings } from "./guarded.js";

/** The most that the fastest server gets of the slowest one's share: who got nothing would never be seen to be fast again. */
const SPREAD = 8;
/** How long a plan holds if no other one comes, in ms. */
const LIFETIME = 10_000;

export const configure = {
  configure(setup) {
    settings(setup.config, {});
    return { attributes: [], headers: [] };
  },
};

export const balancePlan = {
  plan: guarded(undefined, (now, servers) => {
    const known = servers.filter(({ latency }) => latency >= 0).map(slowness);
    const best = Math.min(...known);
    const members = servers.flatMap((server, index) => {
      if (server.state !== 0 || server.weight === 0) return [];
      return [{ server: index, weight: weightOf(server, best), cap: -1 }];
    });
    if (members.length === 0) return undefined;
    return { tiers: [{ selector: "roundrobin", spill: "when-full", members }], lifetime: LIFETIME };
  }),
};

/** What a server's answers take in µs, eleven times as much if all of them are failures. */
function slowness({ latency, completed, failed }) {
  const taken = Math.max(latency, 1);
  return taken + Math.trunc((taken * 10 * failed) / Math.max(completed, 1));
}

/** Who is not known yet counts as the best. */
function weightOf(server, best) {
  const share = server.latency < 0 ? 256 : Math.max(Math.trunc((256 * best) / slowness(server)), 256 / SPREAD);
  return Math.min(Math.max(Math.trunc((server.weight * share) / 16), 1), 4096);
}
