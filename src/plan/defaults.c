/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/defaults.h"

#include <stddef.h>
#include <string.h>

#include "base/base.h"

#define FIELD_BYTES sizeof(int64_t)
_Static_assert(sizeof(const char *) == FIELD_BYTES, "texts and counts have the same size");

/* Values that override something, such as stages 1 or schedule "constant", which may replace those
 * of the network, are no defaults. */
static const struct {
    size_t at;
    const char *text; /* null: it is an int64_t */
    int64_t count;
} defaults[] = {
    {offsetof(tri_options, sampler), "shuffled", 0},
    {offsetof(tri_options, tail), "drop", 0},
    {offsetof(tri_options, amp), "O0", 0},
    {offsetof(tri_options, amp_type), "bf16", 0},
    {offsetof(tri_options, conv), "auto", 0},
    {offsetof(tri_options, math), "portable", 0},
    {offsetof(tri_options, unset), "follow", 0},
    {offsetof(tri_options, pipeline), "1f1b", 0},
    {offsetof(tri_options, steal), "late", 0},
    {offsetof(tri_options, chunks), NULL, 2},
    {offsetof(tri_options, bucket), NULL, DEFAULT_BUCKET},
};

void defaults_forget(tri_options *o) {
    for (size_t i = 0; i < COUNT(defaults); i++) {
        const char **text = (const char **)((char *)o + defaults[i].at);
        int64_t *count = (int64_t *)((char *)o + defaults[i].at);
        if (!defaults[i].text && *count == defaults[i].count) *count = 0;
        if (defaults[i].text && *text && !strcmp(*text, defaults[i].text)) *text = NULL;
    }
}

void defaults_restore(tri_options *o, const tri_options *before) {
    for (size_t i = 0; i < COUNT(defaults); i++) {
        char *to = (char *)o + defaults[i].at;
        if (!memcmp(to, &(int64_t){0}, FIELD_BYTES))
            memcpy(to, (const char *)before + defaults[i].at, FIELD_BYTES);
    }
}
