/* SPDX-License-Identifier: Apache-2.0 */
#include "train/settings.h"

#include <string.h>

static bool set(const struct setting_key *k, const char *value, char **end) {
    double number = base_number(value, end);
    if (*end == value || !(number >= k->low) || number > 1e15) return false;
    if (k->real) *k->real = number;
    if (k->whole) *k->whole = (int64_t)number;
    return !k->whole || (double)*k->whole == number;
}

bool settings_parse(const char *text, const struct setting_key *keys, size_t n) {
    while (*text) {
        size_t length = strcspn(text, "=,"), i = 0;
        while (i < n && (strlen(keys[i].name) != length || memcmp(keys[i].name, text, length))) i++;
        char *end;
        if (i == n || text[length] != '=' || !set(&keys[i], text + length + 1, &end)) return false;
        if (*end && *end != ',') return false;
        text = *end ? end + 1 : end;
    }
    return true;
}
