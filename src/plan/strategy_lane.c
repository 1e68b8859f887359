/* SPDX-License-Identifier: Apache-2.0
 * A mesh splits what lanes compute: a strategy for anything else would be ignored. */
#include <stdlib.h>
#include <string.h>

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

/* What is asked of the node and its first result, or of another result alone. */
static void find_asks(const struct strategies *s, const tri_node *n, int result,
                      struct ask ask[MESH_MOST_AXES]) {
    if (result) memset(ask, 0, sizeof *ask * MESH_MOST_AXES);
    else strategies_find(s, n, ask);
    strategies_ask_layout(s, &n->out[result], ask);
}

static bool list_followed(const struct strategies *s, const tri_node *n, struct followed *f) {
    struct ask ask[MESH_MOST_AXES];
    for (int k = 0; k < n->n_out; k++) {
        find_asks(s, n, k, ask);
        for (int a = 0; a < s->mesh.n; a++) {
            if (!must_split(&ask[a]) || is_followed(f, ask[a].from)) continue;
            if (!ARRAY_GROW(f->from, f->n, f->capacity)) return false;
            f->from[f->n++] = ask[a].from;
        }
    }
    return true;
}

static tri_status check_followed(const struct strategies *s, const tri_node *n,
                                 const struct followed *f) {
    struct ask ask[MESH_MOST_AXES];
    for (int k = 0; k < n->n_out; k++) {
        find_asks(s, n, k, ask);
        for (int a = 0; a < s->mesh.n; a++)
            if (must_split(&ask[a]) && !is_followed(f, ask[a].from))
                return strategy_fail_at(
                    &(struct strategy_line){.from = ask[a].from}, &s->mesh, n,
                    "it cannot be split: a mesh splits what depends on the samples of a lane, and "
                    "this depends on weights alone or on results of the whole batch");
    }
    return TRI_OK;
}

tri_status strategies_check_lane(const struct strategies *s, const tri_graph *whole,
                                 const tri_graph *lane) {
    struct followed f = {0};
    bool ok = true;
    tri_status status = TRI_OK;
    for (size_t i = 0; lane && i < lane->n_nodes && ok; i++)
        if (lane->node[i]->n_in) ok = list_followed(s, lane->node[i], &f);
    if (!ok) status = base_no_memory("strategies");
    for (size_t i = 0; i < whole->n_nodes && !status; i++)
        if (whole->node[i]->n_in) status = check_followed(s, whole->node[i], &f);
    free(f.from);
    return status;
}
