/* SPDX-License-Identifier: Apache-2.0
 * gather: the rows of a table [v, ...] that ids select. Shape: ids.shape + table.shape[1:]. Of a
 * table that is a part of another (first, all) the rows of ids outside of the part are zeros. */
#include "ops/gather.h"

static int infer(const tri_node *n, tri_spec *out) {
    const tri_shape *table = in_shape(n, 0);
    if (!op_need_index(n, 1)) return 0;
    if (table->rank < 1) return tri_op_error(n, "the table needs at least 1 dimension");
    if (!gather_check(n, table)) return 0;
    out[0] = (tri_spec){in_spec(n, 0)->type, *in_shape(n, 1)};
    tri_shape *y = &out[0].shape;
    if (y->rank + table->rank - 1 > TRI_MAX_RANK)
        return tri_op_error(n, "the result would have %d dimensions; at most %d can be",
                            y->rank + table->rank - 1, TRI_MAX_RANK);
    for (int i = 1; i < table->rank; i++) y->dim[y->rank++] = table->dim[i];
    return 1;
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    dx[0] = APPLY_LIKE(n, "gather_grad", INPUTS(dy[0], n->in[1], n->in[0]));
}

/* table [v,w], ids [d]: "ab,i->ib". */
static void factors(const tri_node *n, char *text, size_t bytes) {
    struct gather_letters l = gather_letters(in_shape(n, 0), in_shape(n, 1));
    snprintf(text, bytes, "%s,%s->%s", l.table, l.ids, l.rows);
}

const tri_op op_gather = {
    .name = "gather",
    .inputs = 2,
    .attributes = GATHER,
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .names = "a:vocab",
    .follows = GATHER_FOLLOWS,
    .examples = EXAMPLES("f32[5,3], i64[4]@0:5", "f32[3,2,2], i32[2,3]@0:3", "f32[4], i64[2,3]@0:4",
                         "f32[5,3], i64[]@0:5", "f32[1,1], i32[1]@0:1",
                         "i64[5]@-9:10, i32[3]@0:5", "bf16[5,3], i64[4]@0:5",
                         "f32[3,4], i64[9]@0:7 {first=2, all=7}",
                         "i32[2]@-9:9, i64[2,4]@0:5 {first=3, all=5}"),
};

tri_tensor *tri_gather(tri_tensor *table, tri_tensor *ids) {
    return APPLY("gather", INPUTS(table, ids));
}
