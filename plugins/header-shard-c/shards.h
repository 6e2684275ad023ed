/* Which servers a key prefers, in order: weighted rendezvous hashing over the names of the servers. What it means and
   why stands in ../header-shard/src/shards.rs; this computes the same numbers. */
#ifndef SHARDS_H
#define SHARDS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t seed;    /* the hash of its name */
    int64_t weight;   /* 0 takes no requests */
    uint64_t inverse; /* 2^24 / weight */
} shard_server;

typedef struct {
    shard_server *servers;
    size_t count;
    int64_t weight; /* of all that take requests */
} shards;

typedef struct {
    int64_t factor; /* thousandths of its share of the requests in flight, beyond which a server is crowded */
    int64_t least;  /* with fewer requests in flight than this, it never is */
} shard_spill;

typedef struct {
    int32_t first, second; /* -1 for nobody */
} shard_choice;

shard_server shard_server_of(const uint8_t *name, size_t length, int32_t weight, int32_t state);

/* The first two in the key's order, without that one. */
shard_choice shards_order(const shards *all, uint32_t key, int32_t avoid);

/* The first two that are not crowded; `order` if there are none. `loads` are the requests in flight, by index. */
shard_choice shards_spill(const shards *all, uint32_t key, int32_t avoid, const shard_spill *spill, const int32_t *loads,
                          size_t count, shard_choice order);

#endif
