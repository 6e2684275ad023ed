/* Reads the table `config = { … }`: JSON text of texts and numbers, one key after the other. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *at, *end;
} settings;

typedef enum { SETTING_TEXT, SETTING_NUMBER, SETTING_OTHER } setting_kind;

/* A key and its value, as slices of the JSON text: a text without its quotes. What has an escape (`\`) is OTHER: no
   name and no number needs one. */
typedef struct {
    const char *key, *value;
    size_t key_length, value_length;
    setting_kind kind;
} setting;

/* Enters the table. False: the text is none. */
bool settings_open(settings *table, const char *json, size_t length);

/* The next key. False at the end of the table; `broken` says whether it is the end. */
bool settings_next(settings *table, setting *one, bool *broken);

/* `12` or `12.5` in units of 10 to the -places; -1 if it is anything else, or has more decimals. */
int64_t setting_decimal(const setting *one, int places);

/* A name of a header or cookie: a token of RFC 9110. */
bool setting_is_token(const setting *one);

#endif
