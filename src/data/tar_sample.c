/* SPDX-License-Identifier: Apache-2.0 */
#include "data/tar_sample.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "data/picture.h"

#define LABEL_BYTES 65536

enum tar_kind tar_kind_of(const char *name, size_t *key) {
    static const struct {
        const char *ending;
        enum tar_kind kind;
    } kinds[] = {{"jpg", TAR_PICTURE},
                 {"jpeg", TAR_PICTURE},
                 {"png", TAR_PICTURE},
                 {"cls", TAR_CLASS},
                 {"json", TAR_JSON}};
    const char *slash = strrchr(name, '/'), *ending = strchr(slash ? slash + 1 : name, '.');
    *key = ending ? (size_t)(ending - name) : 0;
    for (size_t i = 0; ending && i < COUNT(kinds); i++)
        if (!strcasecmp(ending + 1, kinds[i].ending)) return kinds[i].kind;
    return TAR_OTHER;
}

static bool class_of_json(const char *text, size_t n, int64_t *label) {
    static const char *const names[] = {"label", "class", "cls"};
    json_t *all = json_loadb(text, n, 0, NULL);
    bool found = false;
    for (size_t i = 0; i < COUNT(names) && !found; i++) {
        json_t *value = json_object_get(all, names[i]);
        found = json_is_integer(value);
        if (found) *label = json_integer_value(value);
    }
    json_decref(all);
    return found;
}

static bool class_of_text(const char *text, int64_t *label) {
    char *end;
    errno = 0;
    *label = strtoll(text, &end, 10);
    if (end == text || errno) return false;
    return !end[strspn(end, " \t\r\n")];
}

tri_status tar_read_class(struct tar_scan *scan, const struct tar_entry *e, enum tar_kind kind,
                          int64_t *label, bool *found) {
    char text[LABEL_BYTES + 1];
    if (e->size > LABEL_BYTES)
        return base_fail(PICTURE_BAD, "%s: %s is too long for a label", scan->name, e->name);
    int64_t n = scan->read(scan->user, e->offset, text, (size_t)e->size);
    if (n < 0) return PICTURE_BAD;
    text[n] = 0;
    *found = kind == TAR_JSON ? class_of_json(text, (size_t)n, label) : class_of_text(text, label);
    if (kind == TAR_JSON && !*found) return TRI_OK; /* it may be about something else */
    if (*found && *label >= 0 && *label < INT32_MAX) return TRI_OK;
    *found = false;
    return base_fail(PICTURE_BAD, "%s: %s has no class: a number of at least 0", scan->name,
                     e->name);
}
