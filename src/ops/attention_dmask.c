/* SPDX-License-Identifier: Apache-2.0
 * attention_dmask: the gradient of attention with respect to an added mask. It has the inputs of
 * attention_dx. The result is ds summed over the dimensions in which the mask is broadcast, except
 * the batch: for a mask [t] it is [b, 1, 1, t]. */
#include "ops/attention.h"

static int infer(const tri_node *n, tri_spec *out) {
    struct attention a;
    if (!attention_check_dx(n)) return 0;
    attention_of(n, &a);
    if (a.mask < 0 || !type_is_float(in_spec(n, a.mask)->type))
        return tri_op_error(n, "there is no added mask");
    out[0] = (tri_spec){in_spec(n, a.mask)->type,
                        TRI_SHAPE(a.batch, a.mask_stride[1] ? a.heads : 1,
                                  a.mask_stride[2] ? a.queries : 1, a.mask_stride[3] ? a.keys : 1)};
    return 1;
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    struct attention_letters l;
    struct attention a;
    attention_letters(n, &l);
    attention_of(n, &a);
    snprintf(text, bytes, "%s->b%c%c%c", l.inputs, a.mask_stride[1] ? 'h' : '1',
             a.mask_stride[2] ? 'S' : '1', a.mask_stride[3] ? 'T' : '1');
}

static double flops(const tri_node *n) { return attention_flops(n, 1, 1); }

const tri_op op_attention_dmask = {
    .name = "attention_dmask",
    .inputs = 5,
    .inputs_max = 7,
    .infer = infer,
    .gradient = tri_grad_refused,
    ATTENTION_ROW,
    .examples = EXAMPLES(
        "f32[2,2,3,3], f32[2,2,3,3], f32[2,2,3]@1:2, f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,3], "
        "f32[2,1,5] {scale=0.5}",
        "f32[2,4,4], f32[2,4,4], f32[2,2,4]@1:2, f32[2,4,12], f32[2,1,4,4] "
        "{head=2, scale=0.7, causal=1}",
        "f32[2,4,4], f32[2,4,4], f32[2,2,4]@1:2, f32[2,4,12], f32[4,1] "
        "{head=2, scale=0.7, dropout=0.3}",
        "f32[1,1,70,9], f32[1,1,70,9], f32[1,1,70]@3:4, f32[1,1,70,20], f32[1,1,37,20], "
        "f32[1,1,37,9], f32[37]@-2:2 {scale=0.5, causal=1}",
        "bf16[2,5,4], bf16[2,5,4], f32[2,2,5]@1:2, bf16[2,5,12], f32[2,5,5] "
        "{head=2, scale=0.7}"),
};
