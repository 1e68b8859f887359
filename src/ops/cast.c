/* SPDX-License-Identifier: Apache-2.0
 * cast: conversion to another type. Integer types truncate the fraction; bool is x != 0. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    out[0] = (tri_spec){(tri_type)tri_attr_int(n, "to"), *in_shape(n, 0)};
    return 1;
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *x = n->in[0];
    if (type_is_float(x->spec.type) && type_is_float(n->out->spec.type))
        dx[0] = tri_cast(dy[0], x->spec.type);
}

const tri_op op_cast = {
    .name = "cast",
    .inputs = 1,
    .attributes = "to:type",
    .infer = infer,
    .gradient = gradient,
    .factors = "...->...",
    .linear = TRI_LINEAR_JOINTLY,
    .precision = TRI_PRECISION_ANY,
    .examples = EXAMPLES("f32[3,5] {to=bf16}", "bf16[7] {to=f32}", "f16[2,3] {to=f32}",
                         "f32[6]@-9:9 {to=i32}", "i64[4]@-9:10 {to=f32}", "bool[4] {to=f32}",
                         "i32[5]@-1:2 {to=bool}", "u8[4]@0:256 {to=f32}", "f32[] {to=f32}"),
};

tri_tensor *tri_cast(tri_tensor *x, tri_type type) {
    return x && x->spec.type == type ? x : APPLY("cast", INPUTS(x), AI("to", type));
}
