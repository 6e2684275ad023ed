#include "shards.h"
#include <stdbool.h>

/* Spreads every bit over all: the end of SplitMix64. */
static uint64_t mix(uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    return bits ^ (bits >> 31);
}

/* 64 - log2 of a number, in units of 2^-32: a straight line between powers of two and the curve above it. */
static uint64_t minus_log2(uint64_t number) {
    number |= 1;
    uint64_t zeros = (uint64_t)__builtin_clzll(number);
    uint64_t part = (number << zeros << 1) >> 32;
    uint64_t above = (part * ((UINT64_C(1) << 32) - part)) >> 32;
    return ((zeros + 1) << 32) - part - ((above * 1409) >> 12);
}

static uint64_t cost(uint32_t key, const shard_server *server) {
    return minus_log2(mix(server->seed ^ key)) * server->inverse;
}

/* So that no product overflows: more than a million in flight is a million. */
static int64_t bounded(int32_t load) {
    return load < 0 ? 0 : load > 1 << 20 ? 1 << 20 : load;
}

typedef struct {
    const shard_spill *spill;
    const int32_t *loads;
    size_t count;
    int64_t total;
} figures;

static bool roomy(const shards *all, size_t at, const figures *now) {
    int64_t load = at < now->count ? bounded(now->loads[at]) : 0;
    return load < now->spill->least ||
           (load + 1) * all->weight * 1000 <= now->spill->factor * (now->total + 1) * all->servers[at].weight;
}

/* The first two in the key's order; with figures, only among those that have room. */
static shard_choice best(const shards *all, uint32_t key, int32_t avoid, const figures *now) {
    shard_choice choice = {-1, -1};
    uint64_t first = UINT64_MAX, second = UINT64_MAX;
    for (size_t at = 0; at < all->count; at++) {
        const shard_server *server = &all->servers[at];
        if (server->weight <= 0 || (int32_t)at == avoid || (now && !roomy(all, at, now))) continue;
        uint64_t one = cost(key, server);
        if (one < first) {
            second = first, choice.second = choice.first;
            first = one, choice.first = (int32_t)at;
        } else if (one < second) {
            second = one, choice.second = (int32_t)at;
        }
    }
    return choice;
}

shard_server shard_server_of(const uint8_t *name, size_t length, int32_t weight, int32_t state) {
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t at = 0; at < length; at++) hash = (hash ^ name[at]) * 0x100000001b3u;
    weight = state == 0 ? weight : 0;
    return (shard_server){mix(hash), weight, (UINT64_C(1) << 24) / (uint64_t)(weight > 1 ? weight : 1)};
}

shard_choice shards_order(const shards *all, uint32_t key, int32_t avoid) {
    return best(all, key, avoid, NULL);
}

shard_choice shards_spill(const shards *all, uint32_t key, int32_t avoid, const shard_spill *spill, const int32_t *loads,
                          size_t count, shard_choice order) {
    figures now = {spill, loads, count, 0};
    for (size_t at = 0; at < count; at++) now.total += bounded(loads[at]);
    shard_choice choice = best(all, key, avoid, &now);
    if (choice.first < 0) return order;
    if (choice.second < 0) choice.second = choice.first == order.first ? order.second : order.first;
    return choice;
}
