/* SPDX-License-Identifier: Apache-2.0
 * OpenBLAS and BLIS, which are loaded side by side: products only. Their threads follow
 * OPENBLAS_NUM_THREADS, BLIS_NUM_THREADS and OMP_NUM_THREADS. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

enum { ROW_MAJOR = 101, AS_IS = 111, TRANSPOSED = 112 };
typedef void gemm_fn(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                     const float *a, int lda, const float *b, int ldb, float beta, float *c,
                     int ldc);

struct job {
    gemm_fn *gemm;
    const struct task *t;
    const float *a, *b;
    float *c;
};

static gemm_fn *openblas_gemm, *blis_gemm;

static void *load(const char *const *names, gemm_fn **gemm) {
    void *so = NULL;
    for (; *names && !so; names++) so = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    if (so) *(void **)gemm = dlsym(so, "cblas_sgemm");
    return so && *gemm ? so : NULL;
}

/* ---- OpenBLAS ---- */

static const char *open_openblas(int threads, char *about, size_t bytes) {
    static const char *const runtimes[] = {"serial", "pthreads", "OpenMP"};
    void *so = load((const char *const[]){"libopenblas.so.0", NULL}, &openblas_gemm);
    if (!so) return "it is not installed";
    char *(*config)(void) = NULL, *(*core)(void) = NULL;
    int (*parallel)(void) = NULL;
    *(void **)&config = dlsym(so, "openblas_get_config");
    *(void **)&core = dlsym(so, "openblas_get_corename");
    *(void **)&parallel = dlsym(so, "openblas_get_parallel");
    if (!config || !core || !parallel) return "it does not describe itself";
    const int runtime = parallel();
    char version[32] = "";
    sscanf(config(), "OpenBLAS %31s", version);
    snprintf(about, bytes, "OpenBLAS %s, %s, %s", version,
             runtime >= 0 && runtime < 3 ? runtimes[runtime] : "?", core());
    return threads > 1 && !runtime ? "it was built without threads" : NULL;
}

/* ---- BLIS ---- */

static const char *open_blis(int threads, char *about, size_t bytes) {
    void *so = load((const char *const[]){"libblis.so.4", "libblis.so", NULL}, &blis_gemm);
    if (!so) return "it is not installed";
    const char *(*version)(void) = NULL, *(*name)(int arch) = NULL;
    int (*arch)(void) = NULL, (*pthreads)(void) = NULL, (*openmp)(void) = NULL;
    *(void **)&version = dlsym(so, "bli_info_get_version_str");
    *(void **)&name = dlsym(so, "bli_arch_string");
    *(void **)&arch = dlsym(so, "bli_arch_query_id");
    *(void **)&pthreads = dlsym(so, "bli_info_get_enable_pthreads");
    *(void **)&openmp = dlsym(so, "bli_info_get_enable_openmp");
    if (!version || !name || !arch || !pthreads || !openmp) return "it does not describe itself";
    const char *kernels = name(arch()), *isa = getenv("TRIREME_ISA");
    snprintf(about, bytes, "BLIS %s, %s, %s", version(),
             pthreads() ? "pthreads" : openmp() ? "OpenMP" : "serial", kernels);
    /* Its own switch aborts if the build lacks the kernels. */
    if (isa && !strcmp(isa, "avx2") && (!strcmp(kernels, "skx") || !strcmp(kernels, "knl")))
        return "it cannot be limited to AVX2";
    return threads > 1 && !pthreads() && !openmp() ? "it was built without threads" : NULL;
}

/* ---- jobs ---- */

static void *prepare(gemm_fn *gemm, const struct task *t, float *const in[2]) {
    if (t->half || t->convolves || t->product.gelu) return NULL;
    struct job *j = take(sizeof *j);
    const size_t out = (size_t)tri_shape_count(&t->out) * sizeof(float);
    *j = (struct job){gemm, t, in[0], in[1], take(out)};
    return j;
}
static void *prepare_openblas(const struct task *t, int way, float *const in[2]) {
    (void)way;
    return prepare(openblas_gemm, t, in);
}
static void *prepare_blis(const struct task *t, int way, float *const in[2]) {
    (void)way;
    return prepare(blis_gemm, t, in);
}

static void run(void *job) {
    const struct job *j = job;
    const int m = (int)j->t->product.m, n = (int)j->t->product.n, k = (int)j->t->product.k;
    const bool ta = j->t->product.trans_a, tb = j->t->product.trans_b;
    for (int64_t i = 0; i < j->t->product.batch; i++)
        j->gemm(ROW_MAJOR, ta ? TRANSPOSED : AS_IS, tb ? TRANSPOSED : AS_IS, m, n, k, 1,
                j->a + i * m * k, ta ? m : k, j->b + i * k * n, tb ? k : n, 0, j->c + i * m * n,
                n);
}

static void read_plain(void *job, float *out) {
    const struct job *j = job;
    memcpy(out, j->c, (size_t)tri_shape_count(&j->t->out) * sizeof *out);
}

static void release(void *job) {
    free(((struct job *)job)->c);
    free(job);
}

const struct library openblas = {"openblas", 1, open_openblas, prepare_openblas, run, read_plain,
                                 release, NULL};
const struct library blis = {"blis", 1, open_blis, prepare_blis, run, read_plain, release, NULL};
