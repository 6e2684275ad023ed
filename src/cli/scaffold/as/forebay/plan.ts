// How the host asks for a plan: see wit/balance-plan.wit.

import { plan } from "../policy";
import { Selector, Spill } from "./host";
import { putList, text } from "./memory";

export { cabi_realloc } from "./memory";
export { configure__configure } from "./configure";

export class Server {
  name: string = "";
  tags: Map<string, string> = new Map<string, string>();
  weight: i32 = 0;
  state: i32 = 0;
  limit: i32 = 0;
  inFlight: i32 = 0;
  queued: i32 = 0;
  idle: i32 = 0;
  latency: i32 = 0;
  completed: i32 = 0;
  failed: i32 = 0;
}

export class Member {
  constructor(public server: i32, public weight: i32, public cap: i32) {}
}

export class Tier {
  constructor(public selector: Selector, public spill: Spill, public members: Member[]) {}
}

export class Allocation {
  constructor(public tiers: Tier[], public lifetime: i32) {}
}

const SERVER: usize = 52;
const TIER: usize = 12;
const MEMBER: usize = 12;
const answer = memory.data(16, 4);
/** What the answer before pointed to, to be freed. */
let kept: usize[] = [];

export function balance_plan__plan(now: i64, servers: usize, count: i32): usize {
  const allocation = plan(now, read(servers, count));
  for (let index = 0; index < kept.length; index++) heap.free(kept[index]);
  kept = [];
  store<u8>(answer, allocation ? 1 : 0);
  if (allocation) {
    putTiers(answer + 4, allocation.tiers);
    store<i32>(answer, allocation.lifetime, 12);
  }
  return answer;
}

function read(at: usize, count: i32): Server[] {
  const servers = new Array<Server>(count);
  for (let index = 0; index < count; index++) servers[index] = readOne(at + <usize>index * SERVER);
  if (count) heap.free(at);
  return servers;
}

function readOne(at: usize): Server {
  const server = new Server();
  server.name = text(load<usize>(at), load<i32>(at, 4));
  const tags = load<usize>(at, 8), count = load<i32>(at, 12);
  for (let index = 0; index < count; index++) {
    const tag = tags + (<usize>index << 4);
    server.tags.set(text(load<usize>(tag), load<i32>(tag, 4)), text(load<usize>(tag, 8), load<i32>(tag, 12)));
  }
  if (count) heap.free(tags);
  server.weight = load<i32>(at, 16);
  server.state = load<i32>(at, 20);
  server.limit = load<i32>(at, 24);
  server.inFlight = load<i32>(at, 28);
  server.queued = load<i32>(at, 32);
  server.idle = load<i32>(at, 36);
  server.latency = load<i32>(at, 40);
  server.completed = load<i32>(at, 44);
  server.failed = load<i32>(at, 48);
  return server;
}

function putTiers(into: usize, tiers: Tier[]): void {
  const list = keep(<usize>tiers.length * TIER);
  for (let index = 0; index < tiers.length; index++) {
    const at = list + <usize>index * TIER;
    store<u8>(at, tiers[index].selector);
    store<u8>(at, tiers[index].spill, 1);
    putMembers(at + 4, tiers[index].members);
  }
  putList(into, list, tiers.length);
}

function putMembers(into: usize, members: Member[]): void {
  const list = keep(<usize>members.length * MEMBER);
  for (let index = 0; index < members.length; index++) {
    const at = list + <usize>index * MEMBER;
    store<i32>(at, members[index].server);
    store<i32>(at, members[index].weight, 4);
    store<i32>(at, members[index].cap, 8);
  }
  putList(into, list, members.length);
}

function keep(size: usize): usize {
  const place = heap.alloc(size);
  kept.push(place);
  return place;
}
