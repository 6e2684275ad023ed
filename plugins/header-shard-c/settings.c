#include "settings.h"
#include <string.h>

static void skip_blanks(settings *table) {
    while (table->at < table->end && strchr(" \t\r\n", *table->at)) table->at++;
}

static bool take(settings *table, char sign) {
    skip_blanks(table);
    if (table->at >= table->end || *table->at != sign) return false;
    table->at++;
    return true;
}

/* What stands between two quotes, the first of which was taken. */
static bool text(settings *table, const char **begin, size_t *length, bool *plain) {
    *begin = table->at;
    *plain = true;
    for (; table->at < table->end; table->at++) {
        if (*table->at == '\\') {
            *plain = false;
            table->at++;
        } else if (*table->at == '"') {
            *length = (size_t)(table->at++ - *begin);
            return true;
        }
    }
    return false;
}

/* A table or a list, whole. */
static bool skip_nested(settings *table) {
    const char *begin;
    size_t length, depth = 0;
    bool plain;
    while (table->at < table->end) {
        char sign = *table->at++;
        if (sign == '"' && !text(table, &begin, &length, &plain)) return false;
        if (sign == '{' || sign == '[') depth++;
        if ((sign == '}' || sign == ']') && --depth == 0) return true;
    }
    return false;
}

static bool value(settings *table, setting *one) {
    bool plain;
    if (take(table, '"')) {
        if (!text(table, &one->value, &one->value_length, &plain)) return false;
        one->kind = plain ? SETTING_TEXT : SETTING_OTHER;
        return true;
    }
    if (table->at >= table->end) return false;
    one->value = table->at;
    if (*table->at == '{' || *table->at == '[') {
        one->kind = SETTING_OTHER;
        return skip_nested(table);
    }
    while (table->at < table->end && !strchr(" \t\r\n,}", *table->at)) table->at++;
    one->value_length = (size_t)(table->at - one->value);
    one->kind = *one->value == '-' || (*one->value >= '0' && *one->value <= '9') ? SETTING_NUMBER : SETTING_OTHER;
    return one->value_length > 0;
}

bool settings_open(settings *table, const char *json, size_t length) {
    *table = (settings){json, json + length};
    return take(table, '{');
}

bool settings_next(settings *table, setting *one, bool *broken) {
    *broken = false;
    if (take(table, '}')) return false;
    take(table, ',');
    bool plain;
    *broken = !take(table, '"') || !text(table, &one->key, &one->key_length, &plain) || !take(table, ':') ||
              !value(table, one);
    return !*broken;
}

int64_t setting_decimal(const setting *one, int places) {
    int64_t number = 0;
    size_t at = 0;
    if (one->kind != SETTING_NUMBER) return -1;
    for (; at < one->value_length && one->value[at] != '.'; at++) {
        if (one->value[at] < '0' || one->value[at] > '9' || at == 9) return -1;
        number = number * 10 + one->value[at] - '0';
    }
    if (at == 0 || at + 1 == one->value_length) return -1;
    for (at++; places > 0; at++, places--) {
        number *= 10;
        if (at >= one->value_length) continue;
        if (one->value[at] < '0' || one->value[at] > '9') return -1;
        number += one->value[at] - '0';
    }
    return at < one->value_length ? -1 : number;
}

bool setting_is_token(const setting *one) {
    if (one->kind != SETTING_TEXT || one->value_length == 0) return false;
    for (size_t at = 0; at < one->value_length; at++) {
        char sign = one->value[at];
        bool letter = (sign | 32) >= 'a' && (sign | 32) <= 'z';
        if (!letter && !(sign >= '0' && sign <= '9') && (sign == 0 || !strchr("!#$%&'*+-.^_`|~", sign))) return false;
    }
    return true;
}
