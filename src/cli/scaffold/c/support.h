/* What every policy needs: settings, and answers of `configure`. */
#ifndef SUPPORT_H
#define SUPPORT_H

#include "bindings/{{world}}.h"

#define TEXT_MAX 127

/* A key of `config = { … }`, and its value unless the operator has another. */
typedef struct {
    const char *key;
    char value[TEXT_MAX + 1];
} setting;

typedef exports_forebay_policy_configure_list_problem_t problems;

/* Reads `config = { … }`. False: it is refused, for the reason that is now in `refused`. */
bool settings_read(const {{world}}_string_t *config, setting *known, size_t count, problems *refused);

/* Refuses the configuration; the operator sees the key that it is about. Always false. */
bool refuse(problems *refused, const char *key, const char *message);

/* The wish for one attribute, such as `header:` and a name. */
void wish_for(exports_forebay_policy_configure_wishes_t *wishes, const char *source, const char *name);

#endif
