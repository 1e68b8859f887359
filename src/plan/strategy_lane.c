/* SPDX-License-Identifier: Apache-2.0
 * A mesh splits what lanes compute: a strategy for anything else would be ignored. */
#include <stdlib.h>

#include "plan/strategy_inside.h"

/* The strategies that some node of the lane follows, as ask.from. */
struct followed {
    const char **from;
    size_t n, capacity;
};

static bool is_followed(const struct followed *f, const char *from) {
    for (size_t i = 0; i < f->n; i++)
        if (f->from[i] == from) return true;
    return false;
}

/* Whether the node must be split as line ask[axis].from says. */
static bool must_split(const struct ask *ask) {
    return (ask->kind == ASK_FACTOR || ask->kind == ASK_LAYOUT) && !ask->maybe;
}

static bool find_asks(const struct strategies *s, const tri_node *n,
                      struct ask ask[MESH_MOST_AXES]) {
    const bool found = strategies_find(s, n, ask);
    strategies_ask_layout(s, n, ask);
    return n->n_in && (found || s->n_layouts);
}

static bool list_followed(const struct strategies *s, const tri_graph *lane, struct followed *f) {
    struct ask ask[MESH_MOST_AXES];
    for (size_t i = 0; lane && i < lane->n_nodes; i++) {
        if (!find_asks(s, lane->node[i], ask)) continue;
        for (int a = 0; a < s->mesh.n; a++) {
            if (!must_split(&ask[a]) || is_followed(f, ask[a].from)) continue;
            if (!ARRAY_GROW(f->from, f->n, f->capacity)) return false;
            f->from[f->n++] = ask[a].from;
        }
    }
    return true;
}

tri_status strategies_check_lane(const struct strategies *s, const tri_graph *whole,
                                 const tri_graph *lane) {
    struct followed f = {0};
    struct ask ask[MESH_MOST_AXES];
    tri_status status = list_followed(s, lane, &f) ? TRI_OK : base_no_memory("strategies");
    for (size_t i = 0; i < whole->n_nodes && !status; i++) {
        if (!find_asks(s, whole->node[i], ask)) continue;
        for (int a = 0; a < s->mesh.n && !status; a++)
            if (must_split(&ask[a]) && !is_followed(&f, ask[a].from))
                status = strategy_fail_at(
                    &(struct strategy_line){.from = ask[a].from}, &s->mesh, whole->node[i],
                    "it cannot be split: a mesh splits what depends on the samples of a lane, and "
                    "this depends on weights alone or on results of the whole batch");
    }
    free(f.from);
    return status;
}
