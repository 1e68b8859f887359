/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/estimates.h"

#include <string.h>

bool estimate_is(const char *name) {
    return !strncmp(name, ESTIMATE_PREFIX, strlen(ESTIMATE_PREFIX));
}

void estimate_name(const char *param, int top, struct text *name) {
    text_add(name, ESTIMATE_PREFIX "%04d.%s", top, param);
}

tri_status wire_of_update(const tri_options *o, const struct cut *cut, size_t i,
                          const tri_tensor **gradient, struct wire_want *want, bool *used) {
    const tri_tensor *target = cut->whole->update[i].target;
    tri_status status = cut_gradient(cut, i, gradient);
    if (status || !*gradient) return status;
    if ((*gradient)->spec.type != TRI_F32 || target->spec.shape.rank < 2) *gradient = NULL;
    return *gradient ? wire_ask_format(o, source_name(target->node), want, used) : TRI_OK;
}

static tri_status add(tri_graph *g, const tri_tensor *param, tri_tensor *gradient,
                      tri_tensor *condition, int top) {
    struct text name = {0};
    estimate_name(source_name(param->node), top, &name);
    if (name.failed) return base_no_memory("estimates");
    const tri_attr attr[] = {{.name = "name", .text = name.data},
                             {.name = "type", .i = gradient->spec.type},
                             {.name = "shape", .list = gradient->spec.shape},
                             {.name = "top", .i = top}};
    tri_assign_if(graph_apply(g, "state", 0, NULL, 4, attr), gradient, condition);
    text_free(&name);
    return tri_graph_status(g);
}

static tri_status add_all(const struct cut *cut, const tri_options *o, int nodes) {
    tri_graph *whole = cut->whole;
    const size_t n = whole->n_updates; /* without those of estimates */
    bool used[WIRE_PARTS_MOST];
    tri_status status = TRI_OK;
    for (size_t i = 0; i < n && !status; i++) {
        const struct graph_update u = whole->update[i];
        const tri_tensor *g;
        struct wire_want want;
        status = wire_of_update(o, cut, i, &g, &want, used);
        for (int k = 0; k < nodes && !status && g && want.format == WIRE_TOPK; k++)
            status = add(whole, u.target, (tri_tensor *)g, u.condition, k);
    }
    return status;
}

static tri_status check(const tri_graph *whole, int64_t lanes, tri_type half,
                        const tri_options *o) {
    const char *scale = o->optimizer.loss_scale;
    if (scale ? !strncmp(scale, "dynamic", 7) : half == TRI_F16)
        return base_fail(TRI_USAGE, "--wire %s keeps estimates of gradients, and a dynamic loss "
                         "scale multiplies these by another number after each change: give a "
                         "number, --loss-scale 1024, or --amp-type bf16", o->wire);
    if (lanes > 1) return TRI_OK;
    return base_fail(TRI_USAGE, "--wire %s keeps estimates of sums of lanes, and there is one "
                     "lane; add --lanes %d", o->wire, whole->batch > 3 ? 4 : 2);
}

tri_status estimates_add(tri_graph *whole, int64_t lanes, tri_type half, const tri_options *o) {
    struct lane_tree tree = {0};
    struct cut cut;
    if (!wire_ask_estimates(o)) return TRI_OK;
    tri_status status = check(whole, lanes, half, o);
    if (status) return status;
    status = cut_make(whole, lanes, true, &cut);
    if (status) return status;
    status = lane_tree_make(lanes, wire_ask_depth(o), &tree);
    if (!status) status = add_all(&cut, o, tree.n_tops);
    lane_tree_free(&tree);
    cut_free(&cut);
    return status;
}
