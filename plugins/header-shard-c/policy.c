/* Sends requests with the same key to the same server, and only as many as it can take: `header-shard` in C. The same
   configuration, the same choices; what they mean stands in ../header-shard/src/lib.rs.

   The shape of a policy in C: `configure` is called once, `table` when servers change, `pick` for each request. What is
   given as an argument is ours and must be freed; what is returned is freed by the bindings after the host has read it,
   so it must come from the heap. */
#include "picker.h"
#include "settings.h"
#include "shards.h"
#include <stdlib.h>
#include <string.h>

#define ATTRIBUTES_MAX 3
#define PROBLEMS_MAX 64

typedef exports_forebay_policy_configure_problem_t problem;

static const char *const sources[ATTRIBUTES_MAX] = {"header", "cookie", "query"};

static int32_t attributes;
static shard_spill spill;
static shards known;

static problem problems[PROBLEMS_MAX];
static size_t problem_count;

static void wrong(const char *path, size_t length, const char *message) {
    if (problem_count == PROBLEMS_MAX) return;
    problem *one = &problems[problem_count++];
    picker_string_dup_n(&one->path, path, length);
    picker_string_dup(&one->message, message);
}

static bool is(const setting *one, const char *key) {
    return one->key_length == strlen(key) && memcmp(one->key, key, one->key_length) == 0;
}

static void read_number(const setting *one, int places, int64_t least, int64_t most, int64_t *into, const char *message) {
    int64_t number = setting_decimal(one, places);
    if (number < least || number > most) wrong(one->key, one->key_length, message);
    else *into = number;
}

static void read_one(const setting *one, setting names[ATTRIBUTES_MAX]) {
    if (is(one, "spill")) {
        read_number(one, 3, 1000, 100000, &spill.factor, "must be a number from 1 to 100 with at most three decimals");
        return;
    }
    if (is(one, "spill-min")) {
        read_number(one, 0, 0, 1000000, &spill.least, "must be a whole number from 0 to 1000000");
        return;
    }
    for (int at = 0; at < ATTRIBUTES_MAX; at++) {
        if (!is(one, sources[at])) continue;
        if (setting_is_token(one)) names[at] = *one;
        else wrong(one->key, one->key_length, "must be a name without blanks and separators");
        return;
    }
    wrong(one->key, one->key_length, "unknown; the keys are `header`, `cookie`, `query`, `spill`, `spill-min`");
}

static void ask_for(picker_string_t *into, const char *source, const char *name, size_t length) {
    char attribute[256];
    size_t before = strlen(source);
    if (length > sizeof attribute - before - 1) length = sizeof attribute - before - 1;
    memcpy(attribute, source, before);
    attribute[before] = ':';
    memcpy(attribute + before + 1, name, length);
    picker_string_dup_n(into, attribute, before + 1 + length);
}

bool exports_forebay_policy_configure_configure(exports_forebay_policy_configure_setup_t *setup,
                                                exports_forebay_policy_configure_wishes_t *wishes,
                                                exports_forebay_policy_configure_list_problem_t *refused) {
    settings table;
    setting one, names[ATTRIBUTES_MAX] = {0};
    bool broken = false;
    spill = (shard_spill){.factor = 1500, .least = 8};
    problem_count = 0;
    if (!settings_open(&table, (const char *)setup->config.ptr, setup->config.len)) broken = true;
    while (!broken && settings_next(&table, &one, &broken)) read_one(&one, names);
    if (broken) wrong("", 0, "must be a table");

    if (problem_count == 0) {
        picker_string_t *list = malloc(ATTRIBUTES_MAX * sizeof *list);
        attributes = 0;
        for (int at = 0; at < ATTRIBUTES_MAX; at++)
            if (names[at].value) ask_for(&list[attributes++], sources[at], names[at].value, names[at].value_length);
        if (attributes == 0) ask_for(&list[attributes++], "header", "x-shard-key", strlen("x-shard-key"));
        wishes->attributes = (picker_list_string_t){list, (size_t)attributes};
        wishes->headers = (picker_list_string_t){NULL, 0};
    } else {
        refused->len = problem_count;
        refused->ptr = malloc(problem_count * sizeof *problems);
        memcpy(refused->ptr, problems, problem_count * sizeof *problems);
    }
    exports_forebay_policy_configure_setup_free(setup);
    return problem_count == 0;
}

void exports_forebay_policy_balance_pick_table(exports_forebay_policy_balance_pick_columns_t *table) {
    free(known.servers);
    known = (shards){.count = table->names.len, .servers = malloc(table->names.len * sizeof *known.servers + 1)};
    for (size_t at = 0; at < known.count; at++) {
        picker_string_t *name = &table->names.ptr[at];
        known.servers[at] = shard_server_of(name->ptr, name->len, table->weights.ptr[at], table->states.ptr[at]);
        known.weight += known.servers[at].weight;
    }
    /* wit-bindgen 0.63 frees only the lists of texts here: the lists of numbers are ours to free. */
    exports_forebay_policy_balance_pick_columns_free(table);
    picker_list_s32_free(&table->weights);
    picker_list_s32_free(&table->states);
    picker_list_s32_free(&table->limits);
    picker_list_s32_free(&table->latencies);
}

/* The hash of the first attribute that is there and not empty, -1 if none is. The first of all was given, the others are
   asked for. */
static int32_t hash(const picker_string_t *key) {
    if (key->len > 0) return forebay_policy_request_hash(0);
    for (int32_t at = 1; at < attributes; at++)
        if (forebay_policy_request_length(at) > 0) return forebay_policy_request_hash(at);
    return -1;
}

static shard_choice choose(int32_t key, int32_t avoid) {
    if (key < 0) return (shard_choice){-1, -1};
    shard_choice order = shards_order(&known, (uint32_t)key, avoid);
    if (order.first < 0 || forebay_policy_servers_in_flight(order.first) < spill.least) return order;
    picker_list_s32_t loads;
    forebay_policy_servers_column(FOREBAY_POLICY_SERVERS_FIGURE_IN_FLIGHT, &loads);
    shard_choice choice = shards_spill(&known, (uint32_t)key, avoid, &spill, loads.ptr, loads.len, order);
    picker_list_s32_free(&loads);
    return choice;
}

void exports_forebay_policy_balance_pick_pick(picker_string_t *key, int32_t avoid,
                                              exports_forebay_policy_balance_pick_choice_t *answer) {
    shard_choice choice = choose(hash(key), avoid);
    picker_string_free(key);
    answer->first = choice.first;
    answer->second = choice.second;
}
