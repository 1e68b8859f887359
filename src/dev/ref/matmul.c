/* SPDX-License-Identifier: Apache-2.0
 * Reference kernel of matmul: sums over k in order, in double. */
#include "dev/ref/index.h"
#include "dev/ref/ref.h"

/* The last two dimensions as rows and columns of the product, after transposition. */
struct matrix {
    int64_t rows, columns, row_stride, column_stride;
};

static struct matrix matrix(const tri_shape *s, bool transposed) {
    int64_t a = s->dim[s->rank - 2], b = s->dim[s->rank - 1];
    return transposed ? (struct matrix){b, a, 1, b} : (struct matrix){a, b, b, 1};
}

static double dot(const tri_call *c, int64_t a, int64_t a_step, int64_t b, int64_t b_step,
                  int64_t k) {
    double sum = 0;
    for (int64_t i = 0; i < k; i++)
        sum += ref_load(c, 0, a + i * a_step) * ref_load(c, 1, b + i * b_step);
    return sum;
}

/* The leading dimensions only. */
static tri_shape leading(const tri_shape *s) {
    tri_shape lead = *s;
    lead.rank -= 2;
    return lead;
}

static void matmul(const tri_call *c) {
    struct matrix a = matrix(&ref_in(c, 0)->shape, tri_attr_int(c->node, "trans_a"));
    struct matrix b = matrix(&ref_in(c, 1)->shape, tri_attr_int(c->node, "trans_b"));
    tri_shape lead = leading(&ref_out(c, 0)->shape);
    struct walk w = walk_over(&lead);
    for (int k = 0; k < 2; k++) {
        tri_shape own = leading(&ref_in(c, k)->shape);
        walk_operand(&w, k, &own);
    }
    int64_t out = 0;
    do {
        int64_t at_a = w.offset[0] * a.rows * a.columns, at_b = w.offset[1] * b.rows * b.columns;
        for (int64_t i = 0; i < a.rows; i++)
            for (int64_t j = 0; j < b.columns; j++)
                ref_store(c, 0, out++,
                          dot(c, at_a + i * a.row_stride, a.column_stride,
                              at_b + j * b.column_stride, b.row_stride, a.columns));
    } while (walk_next(&w));
}

const struct dev_row ref_matmul[] = {
    {.op = "matmul", .run = matmul},
    {0},
};
