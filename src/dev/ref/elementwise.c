/* SPDX-License-Identifier: Apache-2.0
 * Reference kernels of elementwise operators. Floating-point types are computed in double; integers
 * and bool exactly, wrapping around in two's complement. */
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "dev/ref/index.h"
#include "dev/ref/ref.h"

static int64_t count(const tri_call *c) { return tri_shape_count(&ref_out(c, 0)->shape); }

/* ---- one operand ---- */

typedef double unary_f(const tri_node *n, double x);
typedef int64_t unary_i(int64_t x);

#define F(name, value)                             \
    static double f_##name(const tri_node *n, double x) { \
        (void)n;                                   \
        return value;                              \
    }
#define ATTR(name) tri_attr_float(n, name)

F(neg, -x)
F(exp, math_exp(x))
F(log, math_log(x))
F(sqrt, sqrt(x))
F(rsqrt, 1 / sqrt(x))
F(abs, fabs(x))
F(sign, x > 0 ? 1 : x < 0 ? -1 : x)
F(erf, math_erf(x))
F(relu, x <= 0 ? 0 : x) /* NaN stays NaN, here and below */
F(relu6, x <= 0 ? 0 : x >= 6 ? 6 : x)
F(leaky_relu, x <= 0 ? x * ATTR("slope") : x)
F(clip, x < ATTR("low") ? ATTR("low") : x > ATTR("high") ? ATTR("high") : x)
F(gelu, 0.5 * x * (1 + math_erf(x * 0.70710678118654752)))
F(gelu_tanh, 0.5 * x * (1 + math_tanh(0.79788456080286536 * (x + 0.044715 * x * x * x))))
F(sigmoid, x >= 0 ? 1 / (1 + math_exp(-x)) : math_exp(x) / (1 + math_exp(x)))
F(silu, x * f_sigmoid(n, x))
F(tanh, math_tanh(x))
F(softplus, (x > 0 ? x : 0) + math_log1p(math_exp(-fabs(x))))
F(not, !(x != 0))

static int64_t i_neg(int64_t x) { return (int64_t)(0 - (uint64_t)x); }
static int64_t i_abs(int64_t x) { return x < 0 ? i_neg(x) : x; }
static int64_t i_sign(int64_t x) { return (x > 0) - (x < 0); }
static int64_t i_not(int64_t x) { return !x; }

/* Operator, and its form for integers or null. */
#define UNARY(X)                                                                             \
    X(neg, i_neg) X(exp, NULL) X(log, NULL) X(sqrt, NULL) X(rsqrt, NULL) X(abs, i_abs)       \
    X(sign, i_sign) X(erf, NULL) X(relu, NULL) X(relu6, NULL) X(leaky_relu, NULL)            \
    X(clip, NULL) X(gelu, NULL) X(gelu_tanh, NULL) X(sigmoid, NULL) X(silu, NULL)            \
    X(tanh, NULL) X(softplus, NULL) X(not, i_not)

static const struct unary {
    const char *op;
    unary_f *f;
    unary_i *i;
} unaries[] = {
#define ENTRY(name, exact) {#name, f_##name, exact},
    UNARY(ENTRY)
};

static tri_status find_unary(const tri_node *n, void **state) {
    for (size_t i = 0; i < COUNT(unaries); i++)
        if (node_is(n, unaries[i].op)) *state = (void *)&unaries[i];
    return TRI_OK;
}

static void unary(const tri_call *c) {
    const struct unary *u = c->state;
    bool exact = u->i && !type_is_float(ref_in(c, 0)->type);
    for (int64_t i = 0, n = count(c); i < n; i++) {
        if (exact)
            ref_store_i64(c, 0, i, u->i(ref_load_i64(c, 0, i)));
        else
            ref_store(c, 0, i, u->f(c->node, ref_load(c, 0, i)));
    }
}

/* ---- two operands ---- */

typedef double binary_f(double a, double b);
typedef int64_t binary_i(int64_t a, int64_t b);

#define F2(name, value) \
    static double f2_##name(double a, double b) { return value; }
#define I2(name, value) \
    static int64_t i2_##name(int64_t a, int64_t b) { return (int64_t)(value); }
#define BOTH(name, value) F2(name, value) I2(name, value)

F2(add, a + b)
I2(add, (uint64_t)a + (uint64_t)b)
F2(sub, a - b)
I2(sub, (uint64_t)a - (uint64_t)b)
F2(mul, a * b)
I2(mul, (uint64_t)a * (uint64_t)b)
F2(div, a / b)
F2(pow, math_pow(a, b))
F2(maximum, ref_above(a, b) ? a : b)
I2(maximum, a > b ? a : b)
F2(minimum, ref_above(-a, -b) ? a : b)
I2(minimum, a < b ? a : b)
BOTH(equal, a == b)
BOTH(not_equal, a != b)
BOTH(less, a < b)
BOTH(less_equal, a <= b)
BOTH(greater, a > b)
BOTH(greater_equal, a >= b)
I2(and, a && b)
I2(or, a || b)

/* Operator, its form for floating-point, its form for integers and bool. */
#define BINARY(X)                                                                            \
    X(add, f2_add, i2_add) X(sub, f2_sub, i2_sub) X(mul, f2_mul, i2_mul)                     \
    X(div, f2_div, NULL) X(pow, f2_pow, NULL)                                                \
    X(maximum, f2_maximum, i2_maximum) X(minimum, f2_minimum, i2_minimum)                    \
    X(equal, f2_equal, i2_equal) X(not_equal, f2_not_equal, i2_not_equal)                    \
    X(less, f2_less, i2_less) X(less_equal, f2_less_equal, i2_less_equal)                    \
    X(greater, f2_greater, i2_greater)                                                       \
    X(greater_equal, f2_greater_equal, i2_greater_equal)                                     \
    X(and, NULL, i2_and) X(or, NULL, i2_or)

static const struct binary {
    const char *op;
    binary_f *f;
    binary_i *i;
} binaries[] = {
#define ENTRY2(name, real, exact) {#name, real, exact},
    BINARY(ENTRY2)
};

static tri_status find_binary(const tri_node *n, void **state) {
    for (size_t i = 0; i < COUNT(binaries); i++)
        if (node_is(n, binaries[i].op)) *state = (void *)&binaries[i];
    return TRI_OK;
}

static void binary(const tri_call *c) {
    const struct binary *b = c->state;
    bool exact = !type_is_float(ref_in(c, 0)->type);
    struct walk w = walk_over(&ref_out(c, 0)->shape);
    for (int k = 0; k < 2; k++) walk_operand(&w, k, &ref_in(c, k)->shape);
    int64_t i = 0;
    do {
        if (exact)
            ref_store_i64(c, 0, i++, b->i(ref_load_i64(c, 0, w.offset[0]),
                                          ref_load_i64(c, 1, w.offset[1])));
        else
            ref_store(c, 0, i++, b->f(ref_load(c, 0, w.offset[0]), ref_load(c, 1, w.offset[1])));
    } while (walk_next(&w));
}

/* ---- the others ---- */

static void where(const tri_call *c) {
    size_t size = tri_type_size(ref_out(c, 0)->type);
    struct walk w = walk_over(&ref_out(c, 0)->shape);
    for (int k = 0; k < 3; k++) walk_operand(&w, k, &ref_in(c, k)->shape);
    char *out = c->out[0];
    do {
        int k = ref_load_i64(c, 0, w.offset[0]) ? 1 : 2;
        memcpy(out, (const char *)c->in[k] + (size_t)w.offset[k] * size, size);
        out += size;
    } while (walk_next(&w));
}

static void cast(const tri_call *c) {
    convert(ref_out(c, 0)->type, c->out[0], ref_in(c, 0)->type, c->in[0], (size_t)count(c));
}

static void copy(const tri_call *c) { memcpy(c->out[0], c->in[0], base_spec_bytes(ref_out(c, 0))); }

static void fill_like(const tri_call *c) {
    double value = tri_attr_float(c->node, "value");
    for (int64_t i = 0, n = count(c); i < n; i++) ref_store(c, 0, i, value);
}

const struct dev_row ref_elementwise[] = {
#define ROW(name, exact) {.op = #name, .run = unary, .prepare = find_unary},
    UNARY(ROW)
#define ROW2(name, real, exact) {.op = #name, .run = binary, .prepare = find_binary},
    BINARY(ROW2)
    {.op = "where", .run = where},
    {.op = "cast", .run = cast},
    {.op = "stop_gradient", .run = copy},
    {.op = "fill_like", .run = fill_like},
    {0},
};
