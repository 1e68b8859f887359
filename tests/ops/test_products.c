/* SPDX-License-Identifier: Apache-2.0
 * Products of f32, bit for bit: random sizes, transposes, leading dimensions, tails, threads and
 * instruction sets against plain loops in the documented order: blocks of 256 of k, added in order,
 * each one chain of fused multiply-adds from 0. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "dev/dev.h"

#define BLOCK 256
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

struct product {
    int64_t batch, m, n, k;
    bool trans_a, trans_b, shared_b; /* shared_b: one b for the whole batch */
    bool tail;                       /* relu(y + bias) */
    int threads;
    const char *isa;
};

static struct product draw(const char *const *isa, int isas) {
    struct product p = {.batch = random_below(3) ? 1 : 1 + random_below(5)};
    do {
        p.m = random_size(), p.n = random_size(), p.k = random_size();
    } while (p.batch * p.m * p.n * p.k > MOST_WORK);
    p.trans_a = random_below(2), p.trans_b = random_below(2), p.shared_b = random_below(2);
    p.tail = random_below(2);
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
    float s = 0;
    for (int64_t i = 0; i < k; i++) s = __builtin_fmaf(a[i * a_step], b[i * b_step], s);
    *sum = s;
}

static float element(const struct product *p, const float *a, const float *b, int64_t i,
                     int64_t j) {
    const int64_t a_step = p->trans_a ? p->m : 1, b_step = p->trans_b ? 1 : p->n;
    float y = 0;
    a += i * (p->trans_a ? 1 : p->k);
    b += j * (p->trans_b ? p->k : 1);
    for (int64_t k = 0; k < p->k; k += BLOCK) {
        float sum;
        chain(a + k * a_step, a_step, b + k * b_step, b_step, p->k - k < BLOCK ? p->k - k : BLOCK,
              &sum);
        y = k ? y + sum : sum;
    }
    return y;
}

/* ---- the device ---- */

static tri_run *open_product(const struct product *p) {
    const tri_init normal = {.kind = TRI_NORMAL, .b = 1};
    tri_graph *g = tri_graph_new(1);
    tri_shape a = p->trans_a ? TRI_SHAPE(p->batch, p->k, p->m) : TRI_SHAPE(p->batch, p->m, p->k);
    tri_shape b = p->trans_b ? TRI_SHAPE(p->batch, p->n, p->k) : TRI_SHAPE(p->batch, p->k, p->n);
    if (p->shared_b) b.dim[0] = 1;
    tri_tensor *x = tri_state(g, "a", TRI_F32, a, normal);
    tri_tensor *w = tri_state(g, "b", TRI_F32, b, normal);
    tri_tensor *y = tri_matmul(x, w, .trans_a = p->trans_a, .trans_b = p->trans_b);
    if (p->tail) y = tri_relu(tri_add(y, tri_state(g, "bias", TRI_F32, TRI_SHAPE(p->n), normal)));
    tri_output(y, "y");
    setenv("TRIREME_ISA", p->isa, 1);
    tri_run *run = tri_open(g, &(tri_options){.forward = true, .device = "cpu", .seed = 5,
                                              .threads = p->threads});
    unsetenv("TRIREME_ISA");
    if (!run || tri_forward(run)) fail_msg("%s", tri_message());
    return run;
}

static float *read_all(tri_run *run, const char *name, int64_t count) {
    float *x = malloc((size_t)count * sizeof *x);
    assert_non_null(x);
    if (tri_read(run, name, x, (size_t)count * sizeof *x)) fail_msg("%s", tri_message());
    return x;
}

static void compare(const struct product *p) {
    tri_run *run = open_product(p);
    const int64_t matrix = p->m * p->n;
    float *a = read_all(run, "a", p->batch * p->m * p->k);
    float *b = read_all(run, "b", (p->shared_b ? 1 : p->batch) * p->k * p->n);
    float *bias = p->tail ? read_all(run, "bias", p->n) : NULL;
    float *y = read_all(run, "y", p->batch * matrix);
    for (int64_t i = 0; i < p->batch * matrix; i++) {
        const int64_t s = i / matrix;
        float want = element(p, a + s * p->m * p->k, b + (p->shared_b ? 0 : s * p->k * p->n),
                             i % matrix / p->n, i % p->n);
        if (bias) want += bias[i % p->n];
        if (bias && want < 0) want = 0;
        if (memcmp(&want, &y[i], sizeof want))
            fail_msg("[%lld, %lld, %lld] k %lld%s%s%s%s, %s, %d threads: element %lld is %a, not "
                     "%a", (long long)p->batch, (long long)p->m, (long long)p->n, (long long)p->k,
                     p->trans_a ? " trans_a" : "", p->trans_b ? " trans_b" : "",
                     p->shared_b ? " shared b" : "", p->tail ? " tail" : "", p->isa, p->threads,
                     (long long)i, (double)y[i], (double)want);
    }
    free(a), free(b), free(bias), free(y);
    assert_int_equal(tri_close(run), TRI_OK);
}

static void random_products(void **state) {
    static const char *const every[] = {"plain", "avx2", "avx512"};
    const char *isa[COUNT(every)];
    int isas = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(every); i++) {
        setenv("TRIREME_ISA", every[i], 1);
        if (!dev_find("cpu")->open()) isa[isas++] = every[i];
    }
    unsetenv("TRIREME_ISA");
    assert_true(isas > 0);
    for (int i = 0; i < 1000; i++) {
        const struct product p = draw(isa, isas);
        compare(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
