/* What comes with a certain header goes over a connection that nobody shares with its client.

   What is given as an argument is ours and must be freed; what is returned must come from the heap. */
#include "support.h"

#define WITH_NOBODY 0

static setting settings[] = {{"header", "authorization"}};

bool exports_forebay_policy_configure_configure(exports_forebay_policy_configure_setup_t *setup,
                                                exports_forebay_policy_configure_wishes_t *wishes, problems *refused) {
    bool fine = settings_read(&setup->config, settings, 1, refused);
    exports_forebay_policy_configure_setup_free(setup);
    if (!fine) return false;
    *wishes = (exports_forebay_policy_configure_wishes_t){0};
    wish_for(wishes, "header:", settings[0].value);
    return true;
}

void exports_forebay_policy_reuse_prefer(sharer_string_t *header, sharer_string_t *second, int32_t first_request,
                                         exports_forebay_policy_reuse_preference_t *answer) {
    (void)first_request;
    bool is_private = header && header->len > 0;
    *answer = (exports_forebay_policy_reuse_preference_t){
        .mode = is_private ? WITH_NOBODY : -1, .fresh = -1, .tag = -1, .tag_attribute = -1};
    if (header) sharer_string_free(header);
    if (second) sharer_string_free(second);
}
