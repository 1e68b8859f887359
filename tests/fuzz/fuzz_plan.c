/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a plan. An accepted plan must print and read back to the same text, with the right
 * hashes; a refusal must be one line of text. */
#include <stdlib.h>
#include <string.h>

#include "plan/plan_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct plan_file p, again;
    struct text once = {0}, twice = {0};
    tri_options o = {0};
    if (plan_parse("fuzz", (const char *)data, size, &p)) {
        const char *m = tri_message();
        CHECK(m[0] && !strchr(m, '\n'));
        return 0;
    }
    plan_print(&p, &once);
    if (plan_parse("again", once.data, once.size, &again))
        base_bug(__FILE__, __LINE__, tri_message(), once.data);
    plan_print(&again, &twice);
    if (strcmp(once.data, twice.data)) base_bug(__FILE__, __LINE__, once.data, twice.data);
    for (int i = 0; i < PLAN_PARTS; i++) CHECK(!plan_is_edited(&again, (enum plan_part)i));
    CHECK(!plan_take(&p, &o) && !plan_take(&again, &o));
    CHECK(!plan_check_strategies(&p) || !strchr(tri_message(), '\n'));
    text_free(&once);
    text_free(&twice);
    plan_free(&p);
    plan_free(&again);
    return 0;
}
