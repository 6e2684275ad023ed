/* Requests with a cookie go to another backend.

   What is given as an argument is ours and must be freed; what is returned must come from the heap. */
#include "support.h"
#include <string.h>

#define BACKEND 0

typedef exports_forebay_policy_route_decision_t decision;

static setting settings[] = {{"cookie", "preview"}, {"backend", "next"}};

/* The index of the backend for who has the cookie. */
static int32_t target = -1;

static int32_t find(const router_list_string_t *names, const char *name) {
    for (size_t at = 0; at < names->len; at++)
        if (names->ptr[at].len == strlen(name) && memcmp(names->ptr[at].ptr, name, names->ptr[at].len) == 0)
            return (int32_t)at;
    return -1;
}

bool exports_forebay_policy_configure_configure(exports_forebay_policy_configure_setup_t *setup,
                                                exports_forebay_policy_configure_wishes_t *wishes, problems *refused) {
    bool fine = settings_read(&setup->config, settings, 2, refused);
    target = find(&setup->backends, settings[1].value);
    /* Without an attachment only the keys are checked, and no backends are given. */
    if (fine && target < 0 && setup->attachment.len > 0)
        fine = refuse(refused, "backend", "there is no backend of this name");
    exports_forebay_policy_configure_setup_free(setup);
    if (!fine) return false;
    *wishes = (exports_forebay_policy_configure_wishes_t){0};
    wish_for(wishes, "cookie:", settings[0].value);
    return true;
}

void exports_forebay_policy_route_route(exports_forebay_policy_route_method_t method, router_string_t *host,
                                        router_string_t *path, router_string_t *cookie, router_string_t *second,
                                        decision *answer) {
    (void)method;
    bool has_cookie = cookie && cookie->len > 0;
    *answer = has_cookie && target >= 0 ? (decision){BACKEND, target, 0} : (decision){-1, -1, 0};
    router_string_free(host);
    router_string_free(path);
    if (cookie) router_string_free(cookie);
    if (second) router_string_free(second);
}
