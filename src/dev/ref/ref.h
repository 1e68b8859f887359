/* SPDX-License-Identifier: Apache-2.0
 * The reference backend: plain loops in double precision for every operator and type, written to be
 * obviously correct. It is the oracle of the tests and not meant to be fast. */
#ifndef DEV_REF_REF_H
#define DEV_REF_REF_H

#include "base/convert.h"
#include "base/integer.h"
#include "dev/dev.h"

extern const struct dev_row ref_elementwise[], ref_shape[], ref_reduce[], ref_matmul[], ref_conv[],
    ref_pool[], ref_norm[], ref_loss[], ref_random[], ref_attention[];

static inline const tri_spec *ref_in(const tri_call *c, int i) { return &c->node->in[i]->spec; }
static inline const tri_spec *ref_out(const tri_call *c, int i) { return &c->node->out[i].spec; }

/* Element i of an input as a double; elements of i64 beyond 2^53 need ref_load_i64. */
static inline double ref_load(const tri_call *c, int input, int64_t i) {
    return convert_load(ref_in(c, input)->type, c->in[input], (size_t)i);
}
static inline void ref_store(const tri_call *c, int output, int64_t i, double v) {
    convert_store(ref_out(c, output)->type, c->out[output], (size_t)i, v);
}
static inline int64_t ref_load_i64(const tri_call *c, int input, int64_t i) {
    return integer_load(ref_in(c, input)->type, c->in[input], (size_t)i);
}
static inline void ref_store_i64(const tri_call *c, int output, int64_t i, int64_t v) {
    integer_store(ref_out(c, output)->type, c->out[output], (size_t)i, v);
}

/* The order of maxima: NaN is above all numbers, so that it is not lost. */
static inline bool ref_above(double a, double b) { return a > b || (a != a && b == b); }

#endif
