/* SPDX-License-Identifier: Apache-2.0
 * Initial values as text: "normal(0,0.02)". */
#include <string.h>

#include "graph/graph.h"

static const char *const names[] = {
    [TRI_CONSTANT] = "constant",
    [TRI_UNIFORM] = "uniform",
    [TRI_NORMAL] = "normal",
    [TRI_TRUNCATED_NORMAL] = "truncated_normal",
    [TRI_XAVIER_UNIFORM] = "xavier_uniform",
    [TRI_XAVIER_NORMAL] = "xavier_normal",
    [TRI_HE_UNIFORM] = "he_uniform",
    [TRI_HE_NORMAL] = "he_normal",
    [TRI_HE_NORMAL_OUT] = "he_normal_out",
};

char *init_print(struct arena *a, const tri_init *init) {
    const char *name = (size_t)init->kind < COUNT(names) ? names[init->kind] : "unknown";
    return arena_text(a, "%s(%.17g,%.17g)", name, init->a, init->b);
}

bool init_parse(const char *text, tri_init *init) {
    size_t name = strcspn(text, "(");
    char *end;
    *init = (tri_init){0};
    if (text[name] != '(') return false;
    const char *a = text + name + 1, *b;
    init->a = base_number(a, &end);
    if (end == a || *end != ',') return false;
    b = end + 1;
    init->b = base_number(b, &end);
    if (end == b || end[0] != ')' || end[1]) return false;
    for (size_t i = 0; i < COUNT(names); i++)
        if (strlen(names[i]) == name && !memcmp(names[i], text, name)) {
            init->kind = (unsigned)i;
            return true;
        }
    return false;
}
