/* SPDX-License-Identifier: Apache-2.0
 * gather_grad: the gradient of gather. Starts with zeros in the shape of the table, whose data is
 * not read, and adds the rows of dy in the order of ids. Of a table that is a part of another, ids
 * outside of the part are left out. */
#include "ops/gather.h"

static int infer(const tri_node *n, tri_spec *out) {
    const tri_shape *dy = in_shape(n, 0), *ids = in_shape(n, 1), *table = in_shape(n, 2);
    if (!op_need_float(n, 0) || !op_need_index(n, 1)) return 0;
    bool fits = table->rank >= 1 && dy->rank == ids->rank + table->rank - 1;
    for (int i = 0; fits && i < dy->rank; i++)
        fits = dy->dim[i] == (i < ids->rank ? ids->dim[i] : table->dim[i - ids->rank + 1]);
    if (!fits) return tri_op_error(n, "input 0 must be ids.shape + table.shape[1:]");
    if (!gather_check(n, table)) return 0;
    out[0] = (tri_spec){in_spec(n, 0)->type, *table};
    return 1;
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    dx[0] = APPLY_LIKE(n, "gather", INPUTS(dy[0], n->in[1]));
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    struct gather_letters l = gather_letters(in_shape(n, 2), in_shape(n, 1));
    snprintf(text, bytes, "%s,%s,%s->%s", l.rows, l.ids, l.table, l.table);
}

const tri_op op_gather_grad = {
    .name = "gather_grad",
    .inputs = 3,
    .attributes = GATHER,
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .names = "a:vocab",
    .follows = GATHER_FOLLOWS,
    .examples = EXAMPLES("f32[4,3], i64[4]@0:5, f32[5,3]", "f32[2,3,2,2], i32[2,3]@0:3, f32[3,2,2]",
                         "f32[2,3], i64[2,3]@0:4, f32[4]", "f32[3], i64[]@0:5, f32[5,3]",
                         "bf16[4,3], i64[4]@0:5, bf16[5,3]",
                         "f32[9,4], i64[9]@0:7, f32[3,4] {first=2, all=7}"),
    .shape_only = 1u << 2,
};
