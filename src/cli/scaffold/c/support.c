#include "support.h"
#include <stdlib.h>
#include <string.h>

static const char *at, *end;

static bool take(char sign) {
    while (at < end && strchr(" \t\r\n", *at)) at++;
    if (at == end || *at != sign) return false;
    at++;
    return true;
}

/* A text without escapes: no name of a header needs one. */
static bool text(char *into) {
    size_t length = 0;
    if (!take('"')) return false;
    while (at < end && *at != '"' && *at != '\\' && length < TEXT_MAX) into[length++] = *at++;
    into[length] = 0;
    return length > 0 && take('"');
}

static setting *find(setting *known, size_t count, const char *key) {
    for (size_t index = 0; index < count; index++)
        if (strcmp(known[index].key, key) == 0) return &known[index];
    return NULL;
}

bool settings_read(const {{world}}_string_t *config, setting *known, size_t count, problems *refused) {
    char key[TEXT_MAX + 1];
    at = (const char *)config->ptr;
    end = at + config->len;
    if (!take('{')) return refuse(refused, "", "must be a table");
    while (!take('}')) {
        take(',');
        if (!text(key) || !take(':')) return refuse(refused, "", "must be a table of texts");
        setting *one = find(known, count, key);
        if (!one) return refuse(refused, key, "unknown: see the keys at the top of policy.c");
        if (!text(one->value)) return refuse(refused, key, "must be a text of at most 127 bytes");
    }
    return true;
}

bool refuse(problems *refused, const char *key, const char *message) {
    refused->len = 1;
    refused->ptr = malloc(sizeof *refused->ptr);
    {{world}}_string_dup(&refused->ptr->path, key);
    {{world}}_string_dup(&refused->ptr->message, message);
    return false;
}

void wish_for(exports_forebay_policy_configure_wishes_t *wishes, const char *source, const char *name) {
    char attribute[2 * TEXT_MAX] = "";
    strcat(strcat(attribute, source), name);
    wishes->attributes.len = 1;
    wishes->attributes.ptr = malloc(sizeof *wishes->attributes.ptr);
    {{world}}_string_dup(wishes->attributes.ptr, attribute);
}
