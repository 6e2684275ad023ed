/* Requests with the same value of a header go to the same server. While that one is crowded, the next one helps.

   What is given as an argument is ours and must be freed; what is returned must come from the heap. */
#include "support.h"
#include <stdlib.h>

/* Requests that a server may have before another one helps. */
#define CROWDED 8

typedef exports_forebay_policy_balance_pick_choice_t choice;

static setting settings[] = {{"header", "x-user"}};

/* The servers that take requests: each one's index, and a number that stays when indices change. */
static struct {
    int32_t index;
    uint32_t seed;
} *servers;
static size_t count;

bool exports_forebay_policy_configure_configure(exports_forebay_policy_configure_setup_t *setup,
                                                exports_forebay_policy_configure_wishes_t *wishes, problems *refused) {
    bool fine = settings_read(&setup->config, settings, 1, refused);
    exports_forebay_policy_configure_setup_free(setup);
    if (!fine) return false;
    *wishes = (exports_forebay_policy_configure_wishes_t){0};
    wish_for(wishes, "header:", settings[0].value);
    return true;
}

/* A text as 32 bits (FNV-1a). */
static uint32_t seed(const picker_string_t *text) {
    uint32_t bits = 0x811c9dc5;
    for (size_t at = 0; at < text->len; at++) bits = (bits ^ text->ptr[at]) * 0x01000193;
    return bits;
}

/* 32 bits, each of which depends on all that are given; the last steps of MurmurHash3. */
static uint32_t mixed(uint32_t bits) {
    bits = (bits ^ bits >> 16) * 0x85ebca6b;
    bits = (bits ^ bits >> 13) * 0xc2b2ae35;
    return bits ^ bits >> 16;
}

void exports_forebay_policy_balance_pick_table(exports_forebay_policy_balance_pick_columns_t *table) {
    servers = realloc(servers, table->names.len * sizeof *servers + 1);
    count = 0;
    for (size_t at = 0; at < table->names.len; at++) {
        if (table->states.ptr[at] != 0 || table->weights.ptr[at] == 0) continue;
        servers[count].index = (int32_t)at;
        servers[count++].seed = seed(&table->names.ptr[at]);
    }
    exports_forebay_policy_balance_pick_columns_free(table);
    /* The generated line above forgets the lists of numbers. */
    picker_list_s32_free(&table->weights);
    picker_list_s32_free(&table->states);
    picker_list_s32_free(&table->limits);
    picker_list_s32_free(&table->latencies);
}

/* The two servers that come first in this key's own order of all; -1 where there is none. */
static choice best_two(uint32_t key, int32_t avoid) {
    choice best = {-1, -1};
    int64_t most = -1, more = -1;
    for (size_t at = 0; at < count; at++) {
        int64_t score = servers[at].index == avoid ? 0 : mixed(key ^ servers[at].seed);
        if (score > most) {
            best = (choice){servers[at].index, best.first};
            more = most;
            most = score;
        } else if (score > more) {
            best.second = servers[at].index;
            more = score;
        }
    }
    return best;
}

void exports_forebay_policy_balance_pick_pick(picker_string_t *key, int32_t avoid, choice *answer) {
    *answer = (choice){-1, -1};
    if (key->len > 0) *answer = best_two((uint32_t)forebay_policy_request_hash(0), avoid);
    picker_string_free(key);
    if (answer->second < 0) return;
    int32_t load = forebay_policy_servers_in_flight(answer->first);
    if (load >= CROWDED && forebay_policy_servers_in_flight(answer->second) < load)
        *answer = (choice){answer->second, answer->first};
}
