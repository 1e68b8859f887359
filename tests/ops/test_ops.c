/* SPDX-License-Identifier: Apache-2.0
 * Every operator of the table, from its row alone, on every device. Arguments name operators to
 * check only those. FEW=1 leaves out the reference device, which the others are compared with. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dev/dev.h"
#include "check/opcheck.h"

/* Operators that promise second derivatives: elementwise, matmul, reductions, softmax,
 * convolution. */
static const char *const twice[] = {
    "add", "sub", "mul", "div", "pow", "maximum", "minimum", "where", "neg", "exp", "log", "sqrt",
    "rsqrt", "abs", "erf", "clip", "relu", "relu6", "leaky_relu", "gelu", "gelu_tanh", "silu",
    "sigmoid", "tanh", "softplus", "matmul", "sum", "mean", "max", "sum_squares", "softmax",
    "log_softmax", "conv2d", "conv2d_dx", "conv2d_dw"};

/* Operators that need all of their input, or have none: they cannot be split. */
static const char *const whole[] = {"input", "param", "state", "constant", "scalar", "array",
                                    "given", "view"};

static bool among(const char *name, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(name, list[i])) return true;
    return false;
}

/* Operators that the cpu takes with channels in blocks. */
static const char *const blocked[] = {"batch_norm", "batch_norm_dx", "max_pool", "max_pool_dx",
                                      "avg_pool",   "avg_pool_dx",   "add",      "where"};

/* What the examples of an operator's row must show. */
static void check_report(const tri_op *op, const struct opcheck_report *r) {
    bool differentiable = op->gradient != tri_grad_none && op->gradient != tri_grad_refused;
    if (differentiable && !r->derivatives[0]) fail_msg("no example has a derivative");
    if (among(op->name, twice, COUNT(twice)) && !r->derivatives[1])
        fail_msg("no example has a second derivative");
    if (!among(op->name, whole, COUNT(whole)) && !r->splits) fail_msg("no example can be split");
    if (!among(op->name, whole, COUNT(whole)) && !r->shards)
        fail_msg("no example can be split over a mesh");
    if (op->split_form && !r->forms) fail_msg("no example has a split form");
}

static void check(void **state) {
    const tri_op *op = ((const tri_op **)*state)[0];
    for (int i = 0; dev_at(i); i++) {
        const char *device = dev_at(i)->kind->name;
        bool ref = !strcmp(device, "ref");
        struct opcheck_report r;
        if (ref && getenv("FEW")) continue;
        if (opcheck_run(op, device, &r)) fail_msg("%s: %s", device, tri_message());
        if (ref) check_report(op, &r);
        if (!strcmp(device, "cpu") && among(op->name, blocked, COUNT(blocked)) && !r.blocks)
            fail_msg("no example has channels in blocks");
    }
}

int main(int argc, char **argv) {
    static struct CMUnitTest tests[512];
    static const tri_op *ops[512];
    int n = 0;
    for (int i = 0; registry_at(i); i++) {
        bool wanted = argc < 2;
        for (int k = 1; k < argc; k++) wanted |= !strcmp(argv[k], registry_at(i)->op->name);
        if (!wanted) continue;
        ops[n] = registry_at(i)->op;
        tests[n] = (struct CMUnitTest){.name = ops[n]->name, .test_func = check,
                                       .initial_state = &ops[n]};
        n++;
    }
    return _cmocka_run_group_tests("ops", tests, (size_t)n, NULL, NULL);
}
