/* SPDX-License-Identifier: Apache-2.0
 * Products and convolutions of f32 and bf16, bit for bit: random sizes, transposes, batches of
 * which a factor may be shared, tails, strides, dilation, padding, formats, threads and instruction
 * sets against plain loops in the documented order (docs/arithmetic.md): of f32 blocks of 256 of k,
 * of bf16 groups of 32, also of numbers that are zeros, subnormal, infinite or NaN. SLOW=1 tries
 * more, FEW=1 fewer. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/convert.h"
#include "dev/cpu/isa.h"
#include "dev/dev.h"
#include "ops/op.h"

#define BLOCK 256
#define GROUP 32
#define MOST 700          /* of a size */
#define MOST_WORK 2000000 /* multiplications of a product */

static uint64_t seed = 1;

static int64_t random_below(int64_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(seed >> 33) % n;
}

/* Small sizes are as likely as large ones. */
static int64_t random_size(void) {
    return (int64_t)exp((double)random_below(1000) / 1000 * log(MOST + 1));
}

/* Numbers of every kind; one of so many is infinite, NaN, or as large as can be. */
static uint16_t draw_wild(int64_t seldom) {
    static const uint16_t large[] = {0x7f80, 0x7fc0, 0x7f7f};
    const int sign = (int)random_below(2) << 15, digits = (int)random_below(128);
    if (random_below(seldom) == 0) return (uint16_t)(sign | large[random_below(3)]);
    static const int least[] = {1, 62, 125}; /* exponents: subnormal products have the second's */
    const int kind = (int)random_below(8);
    int exponent = kind > 1 ? least[kind > 3 ? 2 : kind - 2] + (int)random_below(3) : 0;
    return (uint16_t)(sign | exponent << 7 | (kind ? digits : 0));
}

/* The same numbers for the same name and count. */
static void write_wild(tri_run *run, const char *name, int64_t count, int64_t seldom) {
    uint16_t *x = malloc((size_t)count * sizeof *x);
    const uint64_t kept = seed;
    assert_non_null(x);
    seed = (uint64_t)(count + name[0]);
    for (int64_t i = 0; i < count; i++) x[i] = draw_wild(seldom);
    if (tri_write(run, name, x, (size_t)count * sizeof *x)) fail_msg("%s", tri_message());
    seed = kept;
    free(x);
}

/* Of NaN only that it is one. */
static bool alike(float a, float b) { return !memcmp(&a, &b, sizeof a) || (a != a && b != b); }

struct product {
    int64_t batch, m, n, k;
    bool trans_a, trans_b;
    bool shared_a, shared_b; /* one for the whole batch */
    bool tail;               /* relu(y + bias) */
    bool half, wild;         /* bf16; of every kind of numbers */
    double size_a, size_b;   /* standard deviations; 0: 1 */
    int threads, also;       /* with `also` threads again, if not 0 */
    const char *isa;
};

/* Some bf16 numbers are subnormal, or their products are. */
static void choose_sizes(bool half, double *a, double *b) {
    const int64_t tiny = half ? random_below(8) : 0;
    *a = tiny == 1 ? 1e-19 : tiny == 2 ? 1e-38 : 1;
    *b = tiny == 1 ? 1e-19 : 1;
}

static struct product draw(const char *const *isa, int isas) {
    struct product p = {.batch = random_below(3) ? 1 : 1 + random_below(5)};
    do {
        p.m = random_size(), p.n = random_size(), p.k = random_size();
    } while (p.batch * p.m * p.n * p.k > MOST_WORK);
    p.trans_a = random_below(2), p.trans_b = random_below(2);
    p.shared_a = random_below(3) == 0, p.shared_b = !p.shared_a && random_below(2);
    p.tail = random_below(2);
    p.half = random_below(3) == 0;
    choose_sizes(p.half, &p.size_a, &p.size_b);
    p.wild = p.half && random_below(2);
    p.threads = 1 + (int)random_below(3);
    p.isa = isa[random_below(isas)];
    return p;
}

/* ---- plain loops ---- */

#ifdef __x86_64__
__attribute__((target_clones("fma", "default")))
#endif
static void chain(const float *a, int64_t a_step, const float *b, int64_t b_step, int64_t k,
                  float *sum) {
    float s = *sum;
    for (int64_t i = 0; i < k; i++) s = __builtin_fmaf(a[i * a_step], b[i * b_step], s);
    *sum = s;
}

/* The loops to compare with take most of the time, and a sanitizer would make them several times as
 * long. */
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("address", "undefined"))), \
                             apply_to = function)
#endif

static float fma_f32(float a, float b, float sum) {
    chain(&a, 1, &b, 1, 1, &sum);
    return sum;
}

/* A sum, term by term. f32: blocks of 256, added in order, each one chain of fused multiply-adds
 * from 0. half: groups of 32. */
struct sum {
    float all, block;
    int64_t k;
    bool half;
    float group[GROUP][2];
};

static float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }

/* The even and the odd terms of a group are one chain each; their sum is added to all others.
 * Missing terms are zeros. */
static void end_group(struct sum *s) {
    float chain[2] = {0};
    if (s->k % GROUP) memset(s->group[s->k % GROUP], 0, (size_t)(GROUP - s->k % GROUP) * 8);
    for (int i = 0; i < GROUP; i++)
        chain[i % 2] = flushed(fma_f32(flushed(s->group[i][0]), flushed(s->group[i][1]),
                                       chain[i % 2]));
    s->all = flushed(s->all + flushed(chain[0] + chain[1]));
}

static void add(struct sum *s, float a, float b) {
    if (s->half) {
        s->group[s->k % GROUP][0] = a, s->group[s->k % GROUP][1] = b;
        if (++s->k % GROUP == 0) end_group(s);
        return;
    }
    if (s->k && s->k % BLOCK == 0) {
        s->all = s->k == BLOCK ? s->block : s->all + s->block;
        s->block = 0;
    }
    s->block = fma_f32(a, b, s->block);
    s->k++;
}

static float total(struct sum *s) {
    if (!s->half) return s->k > BLOCK ? s->all + s->block : s->block;
    if (s->k % GROUP) end_group(s);
    return s->all;
}

static float rounded(bool half, float x) {
    return half ? convert_bf16_to_f32(convert_f32_to_bf16(x)) : x;
}

static float half_element(const struct product *p, const float *a, int64_t a_step, const float *b,
                          int64_t b_step) {
    struct sum s = {.half = true};
    for (int64_t k = 0; k < p->k; k++) add(&s, a[k * a_step], b[k * b_step]);
    return rounded(true, total(&s));
}

static float element(const struct product *p, const float *a, const float *b, int64_t i,
                     int64_t j) {
    const int64_t a_step = p->trans_a ? p->m : 1, b_step = p->trans_b ? 1 : p->n;
    float y = 0;
    a += i * (p->trans_a ? 1 : p->k);
    b += j * (p->trans_b ? p->k : 1);
    if (p->half) return half_element(p, a, a_step, b, b_step);
    for (int64_t k = 0; k < p->k; k += BLOCK) {
        float sum = 0;
        chain(a + k * a_step, a_step, b + k * b_step, b_step, p->k - k < BLOCK ? p->k - k : BLOCK,
              &sum);
        y = k ? y + sum : sum;
    }
    return y;
}

#ifdef __clang__
#pragma clang attribute pop
#endif

/* ---- the device ---- */

static tri_run *open_product(const struct product *p) {
    const tri_init normal_a = {.kind = TRI_NORMAL, .b = p->size_a > 0 ? p->size_a : 1};
    const tri_init normal_b = {.kind = TRI_NORMAL, .b = p->size_b > 0 ? p->size_b : 1};
    const tri_type type = p->half ? TRI_BF16 : TRI_F32;
    tri_graph *g = tri_graph_new(1);
    tri_shape a = p->trans_a ? TRI_SHAPE(p->batch, p->k, p->m) : TRI_SHAPE(p->batch, p->m, p->k);
    tri_shape b = p->trans_b ? TRI_SHAPE(p->batch, p->n, p->k) : TRI_SHAPE(p->batch, p->k, p->n);
    if (p->shared_a) a.dim[0] = 1;
    if (p->shared_b) b.dim[0] = 1;
    tri_tensor *x = tri_state(g, "a", type, a, normal_a);
    tri_tensor *w = tri_state(g, "b", type, b, normal_b);
    tri_tensor *y = tri_matmul(x, w, .trans_a = p->trans_a, .trans_b = p->trans_b);
    if (p->tail) y = tri_relu(tri_add(y, tri_state(g, "bias", type, TRI_SHAPE(p->n), normal_a)));
    tri_output(y, "y");
    setenv("TRIREME_ISA", p->isa, 1);
    tri_run *run = tri_open(g, &(tri_options){.forward = true, .device = "cpu", .seed = 5,
                                              .threads = p->threads});
    unsetenv("TRIREME_ISA");
    if (!run) fail_msg("%s", tri_message());
    if (p->wild) {
        write_wild(run, "a", tri_shape_count(&a), 20 * p->k);
        write_wild(run, "b", tri_shape_count(&b), 20 * p->k);
    }
    if (tri_forward(run)) fail_msg("%s", tri_message());
    return run;
}

static float *read_all(tri_run *run, const char *name, bool half, int64_t count) {
    float *x = malloc((size_t)count * sizeof *x);
    uint16_t *bits = (uint16_t *)x;
    assert_non_null(x);
    if (tri_read(run, name, x, (size_t)count * (half ? sizeof *bits : sizeof *x)))
        fail_msg("%s", tri_message());
    for (int64_t i = count - 1; half && i >= 0; i--) x[i] = convert_bf16_to_f32(bits[i]);
    return x;
}

static void same(tri_run *run, const char *name, bool half, int64_t count, const float *expected) {
    float *got = read_all(run, name, half, count);
    assert_memory_equal(got, expected, (size_t)count * sizeof *got);
    free(got);
}

static void compare(const struct product *p) {
    tri_run *run = open_product(p);
    const int64_t matrix = p->m * p->n;
    float *a = read_all(run, "a", p->half, (p->shared_a ? 1 : p->batch) * p->m * p->k);
    float *b = read_all(run, "b", p->half, (p->shared_b ? 1 : p->batch) * p->k * p->n);
    float *bias = p->tail ? read_all(run, "bias", p->half, p->n) : NULL;
    float *y = read_all(run, "y", p->half, p->batch * matrix);
    for (int64_t i = 0; i < p->batch * matrix; i++) {
        const int64_t s = i / matrix;
        float want = element(p, a + (p->shared_a ? 0 : s * p->m * p->k),
                             b + (p->shared_b ? 0 : s * p->k * p->n),
                             i % matrix / p->n, i % p->n);
        if (bias) want = rounded(p->half, want + bias[i % p->n]);
        if (bias && want < 0) want = 0;
        if (!alike(want, y[i]))
            fail_msg("[%lld, %lld, %lld] k %lld%s%s%s%s%s%s of %g and %g, %s, %d threads: element "
                     "%lld is %a, not %a", (long long)p->batch, (long long)p->m, (long long)p->n,
                     (long long)p->k,
                     p->trans_a ? " trans_a" : "", p->trans_b ? " trans_b" : "",
                     p->shared_a ? " shared a" : "", p->shared_b ? " shared b" : "",
                     p->tail ? " tail" : "", p->wild ? " wild" : p->half ? " bf16" : "",
                     p->size_a, p->size_b, p->isa,
                     p->threads, (long long)i, (double)y[i], (double)want);
    }
    assert_int_equal(tri_close(run), TRI_OK);
    if (p->also) {
        struct product other = *p;
        other.threads = p->also;
        run = open_product(&other);
        same(run, "y", p->half, p->batch * matrix, y);
        assert_int_equal(tri_close(run), TRI_OK);
    }
    free(a), free(b), free(bias), free(y);
}

/* ---- convolutions ---- */

struct conv {
    int64_t n, c, o, h, w, kh, kw, stride, stride_w, dilation, pad, groups, oh, ow;
    bool bias, half, wild;
    double size_x, size_w; /* standard deviations; 0: 1 */
    int threads, also;     /* with `also` threads again, if not 0 */
    const char *isa, *passes;
};

/* Few channels have an order of their own (docs/arithmetic.md), which this test does not know. */
static bool has_own_order(const struct conv *v) {
    return !v->half && v->groups == 1 && v->stride == 1 && v->stride_w == 1 && v->c < 16 &&
           v->o <= 16 && v->pad <= (v->kh - 1) * v->dilation && v->pad <= (v->kw - 1) * v->dilation;
}

static int64_t places(int64_t length, int64_t kernel, int64_t stride, const struct conv *v) {
    return (length + 2 * v->pad - (kernel - 1) * v->dilation - 1) / stride + 1;
}

/* Half of them have whole blocks of 16 channels. */
static struct conv draw_conv(const char *const *isa, int isas) {
    struct conv v = {.n = 1 + random_below(3)};
    const int64_t block = random_below(2) ? 16 : 1;
    v.groups = random_below(3) ? 1 : 1 + random_below(4);
    v.kh = 1 + random_below(4), v.kw = 1 + random_below(4);
    v.c = v.groups * block * (1 + random_below(block > 1 ? 4 : 40));
    v.o = v.groups * (random_below(2) ? 16 : 1) * (1 + random_below(4));
    v.stride = 1 + random_below(3), v.stride_w = random_below(2) ? v.stride : 1 + random_below(4);
    v.dilation = 1 + random_below(3), v.pad = random_below(3);
    const bool thin = random_below(3) == 0; /* depthwise, or some channels in a group */
    if (thin) v.groups = v.c = v.o = 16 * (1 + random_below(3));
    if (thin && random_below(2)) v.groups >>= random_below(5);
    if (thin && random_below(2)) v.kw = 1 + random_below(33);
    v.h = (v.kh - 1) * v.dilation + 1 + random_below(9);
    v.w = (v.kw - 1) * v.dilation + 1 + random_below(9);
    v.oh = places(v.h, v.kh, v.stride, &v);
    v.ow = places(v.w, v.kw, v.stride_w, &v);
    v.bias = random_below(3) == 0;
    v.half = random_below(3) < (thin ? 2 : 1);
    choose_sizes(v.half, &v.size_x, &v.size_w);
    v.wild = v.half && random_below(2);
    v.threads = 1 + (int)random_below(3);
    v.isa = isa[random_below(isas)];
    v.passes = random_below(4) ? NULL : "-format";
    return has_own_order(&v) ? draw_conv(isa, isas) : v;
}

#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("address", "undefined"))), \
                             apply_to = function)
#endif

static int64_t group_of(const struct conv *v, int64_t o) { return o / (v->o / v->groups); }

/* Of the input at [n, c, h, l], 0 outside it. */
static float input_at(const struct conv *v, const float *x, int64_t n, int64_t c, int64_t h,
                      int64_t l) {
    const bool inside = h >= 0 && h < v->h && l >= 0 && l < v->w;
    return inside ? x[((n * v->c + c) * v->h + h) * v->w + l] : 0;
}

/* c: within the group. */
static float weight_at(const struct conv *v, const float *w, int64_t o, int64_t c, int64_t i,
                       int64_t j) {
    return w[((o * (v->c / v->groups) + c) * v->kh + i) * v->kw + j];
}

static float conv_element(const struct conv *v, const float *x, const float *w, int64_t n,
                          int64_t o, int64_t r, int64_t q) {
    const int64_t channels = v->c / v->groups;
    struct sum s = {.half = v->half};
    for (int64_t i = 0; i < v->kh; i++)
        for (int64_t j = 0; j < v->kw; j++)
            for (int64_t c = 0; c < channels; c++)
                add(&s,
                    input_at(v, x, n, group_of(v, o) * channels + c,
                             r * v->stride - v->pad + i * v->dilation,
                             q * v->stride_w - v->pad + j * v->dilation),
                    weight_at(v, w, o, c, i, j));
    return total(&s);
}

/* Taps that fall between strides are not counted; those beside dy are zeros. */
static float dx_element(const struct conv *v, const float *dy, const float *w, int64_t n,
                        int64_t c, int64_t h, int64_t l) {
    const int64_t outputs = v->o / v->groups, group = c / (v->c / v->groups);
    struct sum s = {.half = v->half};
    for (int64_t i = 0; i < v->kh; i++)
        for (int64_t j = 0; j < v->kw; j++) {
            const int64_t down = h + v->pad - i * v->dilation;
            const int64_t across = l + v->pad - j * v->dilation;
            if (down % v->stride || across % v->stride_w) continue;
            const int64_t r = down / v->stride, q = across / v->stride_w;
            const bool inside = down >= 0 && r < v->oh && across >= 0 && q < v->ow;
            for (int64_t o = group * outputs; o < (group + 1) * outputs; o++)
                add(&s, inside ? dy[((n * v->o + o) * v->oh + r) * v->ow + q] : 0,
                    weight_at(v, w, o, c % (v->c / v->groups), i, j));
        }
    return total(&s);
}

/* How many parts the samples are cut into. */
static int64_t dw_parts(const struct conv *v) {
    const int64_t weight = v->o * v->c / v->groups * v->kh * v->kw;
    const int64_t data = v->n * (v->c * v->h * v->w + v->o * v->oh * v->ow);
    const double work = 2.0 * (double)(v->n * v->oh * v->ow) * (double)weight;
    int64_t parts = (int64_t)(work / 16e6), worth = data / weight > 2 ? data / weight : 2;
    if (weight >= v->n * v->c * v->oh * v->ow && v->o / v->groups % 16 == 0) return 1;
    if (!v->half && v->groups == v->c && v->o == v->c && v->c % 16 == 0) return 1;
    parts = parts < 16 ? parts : 16;
    parts = parts < worth ? parts : worth;
    parts = parts < v->n ? parts : v->n;
    return parts > 1 ? parts : 1;
}

/* Of the samples of a part; zeros for padding count. */
static float dw_of_samples(const struct conv *v, const float *dy, const float *x, int64_t o,
                           int64_t c, int64_t i, int64_t j, int64_t samples) {
    struct sum s = {.half = v->half};
    for (int64_t k = 0; k < samples * v->oh * v->ow; k++) {
        const int64_t q = k % v->ow, r = k / v->ow % v->oh, n = k / v->ow / v->oh;
        add(&s, dy[((n * v->o + o) * v->oh + r) * v->ow + q],
            input_at(v, x, n, group_of(v, o) * (v->c / v->groups) + c,
                     r * v->stride - v->pad + i * v->dilation,
                     q * v->stride_w - v->pad + j * v->dilation));
    }
    return v->half ? total(&s) : 0 + total(&s);
}

static float dw_element(const struct conv *v, const float *dy, const float *x, int64_t o,
                        int64_t c, int64_t i, int64_t j) {
    const int64_t parts = dw_parts(v);
    float all = 0;
    for (int64_t p = 0; p < parts; p++) {
        const int64_t begin = v->n * p / parts, end = v->n * (p + 1) / parts;
        const float sum = dw_of_samples(v, dy + begin * v->o * v->oh * v->ow,
                                        x + begin * v->c * v->h * v->w, o, c, i, j, end - begin);
        all = p ? all + sum : sum;
    }
    return all;
}

#ifdef __clang__
#pragma clang attribute pop
#endif

static void expect(const struct conv *v, const char *what, int64_t at, float got, float want) {
    if (alike(got, want)) return;
    fail_msg("%s of [%lld, %lld, %lld, %lld] by [%lld, %lld, %lld], strides %lld and %lld, "
             "dilation %lld, pad %lld, %lld groups%s, %s, %d threads, passes %s: element %lld is "
             "%a, not %a", what,
             (long long)v->n, (long long)v->c, (long long)v->h, (long long)v->w, (long long)v->o,
             (long long)v->kh, (long long)v->kw, (long long)v->stride, (long long)v->stride_w,
             (long long)v->dilation, (long long)v->pad, (long long)v->groups,
             v->wild ? ", wild" : v->half ? ", bf16" : "", v->isa, v->threads,
             v->passes ? v->passes : "all", (long long)at, (double)got, (double)want);
}

static tri_run *open_conv(const struct conv *v) {
    const tri_init normal_x = {.kind = TRI_NORMAL, .b = v->size_x > 0 ? v->size_x : 1};
    const tri_init normal = {.kind = TRI_NORMAL, .b = v->size_w > 0 ? v->size_w : 1};
    const tri_type type = v->half ? TRI_BF16 : TRI_F32;
    tri_graph *g = tri_graph_new(1);
    tri_tensor *x = tri_state(g, "x", type, TRI_SHAPE(v->n, v->c, v->h, v->w), normal_x);
    const int64_t channels = v->c / v->groups;
    tri_tensor *w = tri_state(g, "w", type, TRI_SHAPE(v->o, channels, v->kh, v->kw), normal);
    tri_tensor *dy = tri_state(g, "dy", type, TRI_SHAPE(v->n, v->o, v->oh, v->ow), normal);
    tri_tensor *bias = v->bias ? tri_state(g, "bias", type, TRI_SHAPE(v->o), normal) : NULL;
    tri_tensor *y = tri_conv2d(x, w, .bias = bias, .stride = v->stride,
                               .stride_w = v->stride_w, .pad = v->pad,
                               .dilation = v->dilation, .groups = v->groups);
    tri_tensor *backward[] = {dy, w, x}, *weight[] = {dy, x, w};
    tri_output(y, "y");
    tri_output(APPLY_LIKE(y->node, "conv2d_dx", backward), "dx");
    tri_output(APPLY_LIKE(y->node, "conv2d_dw", weight), "dw");
    setenv("TRIREME_ISA", v->isa, 1);
    tri_run *run = tri_open(g, &(tri_options){.forward = true, .device = "cpu", .seed = 7,
                                              .threads = v->threads, .conv = "direct",
                                              .passes = v->passes});
    unsetenv("TRIREME_ISA");
    if (!run) fail_msg("%s", tri_message());
    if (v->wild) {
        write_wild(run, "x", tri_shape_count(&x->spec.shape), 1000);
        write_wild(run, "w", tri_shape_count(&w->spec.shape), 1000);
        write_wild(run, "dy", tri_shape_count(&dy->spec.shape), 1000);
    }
    if (tri_forward(run)) fail_msg("%s", tri_message());
    return run;
}

static void compare_conv(const struct conv *v) {
    tri_run *run = open_conv(v);
    const int64_t xs = v->n * v->c * v->h * v->w, ys = v->n * v->o * v->oh * v->ow;
    const int64_t channels = v->c / v->groups, ws = v->o * channels * v->kh * v->kw;
    float *a = read_all(run, "x", v->half, xs), *b = read_all(run, "w", v->half, ws);
    float *got_dw = read_all(run, "dw", v->half, ws);
    float *d = read_all(run, "dy", v->half, ys);
    float *add_to = v->bias ? read_all(run, "bias", v->half, v->o) : NULL;
    float *got_y = read_all(run, "y", v->half, ys), *got_dx = read_all(run, "dx", v->half, xs);
    for (int64_t k = 0; k < ys; k++) {
        const int64_t q = k % v->ow, r = k / v->ow % v->oh, o = k / v->ow / v->oh % v->o;
        float want = conv_element(v, a, b, k / v->ow / v->oh / v->o, o, r, q);
        if (add_to) want += add_to[o];
        expect(v, "conv2d", k, got_y[k], rounded(v->half, want));
    }
    for (int64_t k = 0; k < xs; k++) {
        const int64_t l = k % v->w, h = k / v->w % v->h, c = k / v->w / v->h % v->c;
        expect(v, "conv2d_dx", k, got_dx[k],
               rounded(v->half, dx_element(v, d, b, k / v->w / v->h / v->c, c, h, l)));
    }
    for (int64_t k = 0; k < ws; k++) {
        const int64_t j = k % v->kw, i = k / v->kw % v->kh, c = k / v->kw / v->kh % channels;
        expect(v, "conv2d_dw", k, got_dw[k],
               rounded(v->half, dw_element(v, d, a, k / v->kw / v->kh / channels, c, i, j)));
    }
    assert_int_equal(tri_close(run), TRI_OK);
    if (v->also) {
        struct conv other = *v;
        other.threads = v->also;
        run = open_conv(&other);
        same(run, "y", v->half, ys, got_y);
        same(run, "dx", v->half, xs, got_dx);
        same(run, "dw", v->half, ws, got_dw);
        assert_int_equal(tri_close(run), TRI_OK);
    }
    free(a), free(b), free(d), free(add_to), free(got_y), free(got_dx), free(got_dw);
}

/* ---- tests ---- */

static const char *isa[ISAS];
static int isas;

static int find_instructions(void **state) {
    (void)state;
    for (size_t i = 0; i < ISAS; i++) {
        setenv("TRIREME_ISA", isa_names[i], 1);
        if (!dev_open(dev_find("cpu"))) isa[isas++] = isa_names[i];
    }
    unsetenv("TRIREME_ISA");
    return isas ? 0 : -1;
}

static void random_products(void **state) {
    (void)state;
    for (int i = 0; i < (getenv("FEW") ? 300 : 1000); i++) {
        const struct product p = draw(isa, isas);
        compare(&p);
    }
}

/* Large enough to be cut into parts by rows, columns and matrices. */
static void products_in_parts(void **state) {
    static const struct product cases[] = {
        {1, 32, 1024, 1024, .trans_b = true},
        {1, 40, 2100, 2090, .trans_b = true, .tail = true},
        {1, 300, 1100, 96, .tail = true},
        {1, 520, 300, 300, .trans_a = true},
        {7, 100, 200, 300, .tail = true},
        {40, 30, 70, 90, .shared_b = true, .trans_a = true},
        {60, 30, 60, 90, .shared_a = true, .tail = true},
        {1, 2000, 600, 24, .tail = true},
        {1, 3000, 40, 600, .trans_b = true},
        {1, 8, 4200, 1024, .tail = true},
        {1, 300, 1100, 301, .tail = true, .half = true},
        {30, 70, 90, 60, .half = true},
        {1, 48, 71, 1088, .half = true},
        {2, 39, 37, 1100, .trans_a = true, .trans_b = true, .half = true},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct product p = cases[i];
        p.threads = 1, p.also = 3;
        p.isa = isa[isas - 1];
        compare(&p);
    }
}

static void random_convolutions(void **state) {
    (void)state;
    for (int i = 0; i < (getenv("FEW") ? 80 : 400); i++) {
        const struct conv v = draw_conv(isa, isas);
        compare_conv(&v);
    }
}

static void convolutions_in_parts(void **state) {
    static const struct conv cases[] = {
        {.n = 4, .c = 32, .o = 48, .h = 20, .w = 21, .kh = 3, .kw = 3, .stride = 1, .pad = 1},
        {.n = 4, .c = 3, .o = 64, .h = 60, .w = 57, .kh = 7, .kw = 7, .stride = 2, .pad = 3},
        {.n = 4, .c = 24, .o = 40, .h = 30, .w = 31, .kh = 3, .kw = 3, .stride = 1, .pad = 1},
        {.n = 4, .c = 36, .o = 84, .h = 60, .w = 61, .kh = 3, .kw = 3, .stride = 2, .groups = 2},
        {.n = 4, .c = 64, .o = 64, .h = 60, .w = 61, .kh = 3, .kw = 3, .stride = 2, .groups = 64},
        {.n = 1, .c = 16, .o = 16, .h = 36, .w = 36, .kh = 33, .kw = 34, .stride = 1, .pad = 5},
        /* several strips */
        {.n = 2, .c = 32, .o = 16, .h = 47, .w = 48, .kh = 3, .kw = 3, .stride = 1, .pad = 1},
        /* no place of a remainder */
        {.n = 3, .c = 32, .o = 32, .h = 1, .w = 1, .kh = 1, .kw = 1, .stride = 2},
        /* by outputs */
        {.n = 28, .c = 576, .o = 1040, .h = 1, .w = 1, .kh = 1, .kw = 1, .stride = 1},
        {.n = 2, .c = 256, .o = 256, .h = 8, .w = 8, .kh = 3, .kw = 3, .stride = 1, .pad = 1},
    };
    (void)state;
    for (size_t i = 0; i < 2 * COUNT(cases); i++) {
        struct conv v = cases[i / 2];
        v.half = i % 2;
        if (v.kh > 32 && (v.half || getenv("FEW"))) continue; /* these take long */
        if (v.half && v.h > 1 && (getenv("FEW") || (i / 2 % 2 && !getenv("SLOW")))) continue;
        v.stride_w = v.stride, v.dilation = 1, v.groups = v.groups ? v.groups : 1;
        v.oh = places(v.h, v.kh, v.stride, &v), v.ow = places(v.w, v.kw, v.stride, &v);
        v.threads = 3, v.also = v.half ? 0 : 1, v.isa = isa[isas - 1];
        assert_true(dw_parts(&v) > 1 || v.kh > 32 || v.groups > 2 || v.c > 255 || v.h == 1);
        compare_conv(&v);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_products),
                                       cmocka_unit_test(products_in_parts),
                                       cmocka_unit_test(random_convolutions),
                                       cmocka_unit_test(convolutions_in_parts)};
    return cmocka_run_group_tests(tests, find_instructions, NULL);
}
