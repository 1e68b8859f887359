/* SPDX-License-Identifier: Apache-2.0
 * attention_dx: the gradients of attention with respect to q, k and v (or the packed input), from
 * dy, y, lse and attention's inputs. p = exp(scale q k' + mask - lse) is recomputed; z is dropout's
 * factor. With ds = p (z dy v' - sum(dy y)): dq = scale ds k, dk = scale ds' q, dv = (p z)' dy. */
#include "ops/attention.h"

static int infer(const tri_node *n, tri_spec *out) {
    if (!attention_check_dx(n)) return 0;
    int n_out = n->n_in - ATTENTION_BEFORE <= 2 ? 1 : 3;
    for (int i = 0; i < n_out; i++) out[i] = *in_spec(n, ATTENTION_BEFORE + i);
    return n_out;
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    struct attention_letters l;
    attention_letters(n, &l);
    if (n->n_out == 1)
        snprintf(text, bytes, "%s->%s", l.inputs, l.q);
    else
        snprintf(text, bytes, "%s->%s,%s,%s", l.inputs, l.q, l.k, l.v);
}

static double flops(const tri_node *n) { return attention_flops(n, 3, 2); }

const tri_op op_attention_dx = {
    .name = "attention_dx",
    .inputs = 4,
    .inputs_max = 7,
    .infer = infer,
    .gradient = tri_grad_refused,
    ATTENTION_ROW,
    .examples = EXAMPLES(
        "f32[2,2,3,3], f32[2,2,3,3], f32[2,2,3]@1:2, f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,3] "
        "{scale=0.5}",
        "f32[2,3,6], f32[2,3,6], f32[2,2,3]@1:2, f32[2,3,4], f32[2,3,4], f32[2,3,6], bool[2,3,3] "
        "{head=2, scale=0.7, causal=1}",
        "f32[2,4,4], f32[2,4,4], f32[2,2,4]@1:2, f32[2,4,12] {head=2, scale=0.7}",
        "f32[2,5,4], f32[2,5,4], f32[2,2,5]@1:2, f32[2,5,12], f32[2,1,1,5] "
        "{head=2, scale=0.7, dropout=0.3}",
        "f32[1,1,70,9], f32[1,1,70,9], f32[1,1,70]@3:4, f32[1,1,70,20], f32[1,1,37,20], "
        "f32[1,1,37,9], f32[70,37]@-2:2 {scale=0.5, causal=1}",
        "f32[1,19,22], f32[1,19,22], f32[1,2,19]@3:4, f32[1,19,66], bool[1,1,19,19] "
        "{head=11, scale=1.5, dropout=0.1, causal=1}",
        "bf16[2,5,4], bf16[2,5,4], f32[2,2,5]@1:2, bf16[2,5,12] {head=2, scale=0.7}"),
};
