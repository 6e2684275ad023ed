/* The faster a server answers, the more requests it gets; failures count as slowness.

   What is given as an argument is ours and must be freed; what is returned must come from the heap. */
#include "support.h"
#include <stdlib.h>

/* The most that the fastest server gets of the slowest one's share: who got nothing would never be seen to be fast again. */
#define SPREAD 8
/* How long a plan holds if no other one comes, in ms. */
#define LIFETIME 10000

typedef exports_forebay_policy_balance_plan_server_t server;
typedef exports_forebay_policy_balance_plan_tier_t tier;
typedef exports_forebay_policy_balance_plan_member_t member;

bool exports_forebay_policy_configure_configure(exports_forebay_policy_configure_setup_t *setup,
                                                exports_forebay_policy_configure_wishes_t *wishes, problems *refused) {
    bool fine = settings_read(&setup->config, NULL, 0, refused);
    exports_forebay_policy_configure_setup_free(setup);
    if (fine) *wishes = (exports_forebay_policy_configure_wishes_t){0};
    return fine;
}

/* What a server's answers take in µs, eleven times as much if all of them are failures; -1 while nothing is known. */
static int64_t slowness(const server *one) {
    if (one->latency < 0) return -1;
    int64_t taken = one->latency > 0 ? one->latency : 1;
    return taken + taken * 10 * one->failed / (one->completed > 0 ? one->completed : 1);
}

/* Who is not known yet counts as the best. */
static int32_t weight(const server *one, int64_t best) {
    int64_t slow = slowness(one), share = slow < 0 ? 256 : 256 * best / slow;
    if (share < 256 / SPREAD) share = 256 / SPREAD;
    int64_t weight = one->weight * share / 16;
    return weight < 1 ? 1 : weight > 4096 ? 4096 : (int32_t)weight;
}

bool exports_forebay_policy_balance_plan_plan(int64_t now, exports_forebay_policy_balance_plan_list_server_t *servers,
                                              exports_forebay_policy_balance_plan_allocation_t *plan) {
    (void)now;
    int64_t best = -1;
    size_t count = 0;
    member *members = malloc(servers->len * sizeof *members + 1);
    for (size_t at = 0; at < servers->len; at++) {
        int64_t slow = slowness(&servers->ptr[at]);
        if (slow >= 0 && (best < 0 || slow < best)) best = slow;
    }
    for (size_t at = 0; at < servers->len; at++) {
        const server *one = &servers->ptr[at];
        if (one->state != 0 || one->weight == 0) continue;
        members[count++] = (member){.server = (int32_t)at, .weight = weight(one, best), .cap = -1};
    }
    exports_forebay_policy_balance_plan_list_server_free(servers);
    if (count == 0) {
        free(members);
        return false;
    }
    plan->lifetime = LIFETIME;
    plan->tiers.len = 1;
    plan->tiers.ptr = malloc(sizeof *plan->tiers.ptr);
    *plan->tiers.ptr = (tier){
        .selector = EXPORTS_FOREBAY_POLICY_BALANCE_PLAN_SELECTOR_ROUNDROBIN,
        .spill = EXPORTS_FOREBAY_POLICY_BALANCE_PLAN_SPILL_WHEN_FULL,
        .members = {members, count},
    };
    return true;
}
