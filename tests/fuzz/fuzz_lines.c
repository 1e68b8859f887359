/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as lines of metrics.jsonl. What JSON's own reader makes of a line is what is read. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of an object without a name twice. */
static void compare(const struct lines *l, const json_t *object) {
    const json_t *results = json_object_get(object, "eval");
    for (size_t i = 0; i < l->n; i++) {
        const json_t *a = json_object_get(object, l->name[i]);
        const json_t *b = json_object_get(results, l->name[i]);
        if (json_is_number(a) && json_is_number(b)) continue;
        const json_t *number = json_is_number(a) ? a : json_is_number(b) ? b : NULL;
        CHECK(number ? l->value[i] == json_number_value(number) : isnan(l->value[i]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lines l = {0};
    char *text = malloc(size + 1);
    if (size) memcpy(text, data, size);
    text[size] = 0;
    for (char *line = text, *end; line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        if (end) *end = 0;
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        const bool good = lines_scan(&l, line);
        if (good && object && l.n < 100) compare(&l, object);
        json_decref(object);
    }
    lines_free(&l);
    free(text);
    return 0;
}
