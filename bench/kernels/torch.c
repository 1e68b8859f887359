/* SPDX-License-Identifier: Apache-2.0
 * PyTorch, in a process of its own that bench/kernels.py starts (torch_jobs.py): requests go to
 * stdout, answers come from stdin. It makes its own inputs, and its results are not compared. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels.h"

const char *torch_version;

static const char *open_torch(int threads, char *about, size_t bytes) {
    (void)threads;
    snprintf(about, bytes, "PyTorch %s", torch_version ? torch_version : "");
    return torch_version ? NULL : "this Python imports none";
}

/* The answer to a request: seconds. */
static double answer(void) {
    char line[64];
    printf("\n");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) {
        fprintf(stderr, "kernels: PyTorch does not answer\n");
        exit(1);
    }
    return atof(line);
}

static void *prepare(const struct task *t, int way, float *const in[2]) {
    const int64_t product[] = {t->product.batch, t->product.m, t->product.n, t->product.k,
                               t->product.trans_a, t->product.trans_b};
    const struct conv *v = &t->conv;
    const int64_t conv[] = {v->count, v->c, v->o, v->h, v->oh, v->size, v->stride, v->pad,
                            v->groups};
    (void)way, (void)in;
    if (t->product.gelu) return NULL;
    printf("torch %s %s %s", t->convolves ? "conv" : "product", t->half ? "bf16" : "f32",
           directions[t->direction]);
    for (size_t i = 0; i < (t->convolves ? COUNT(conv) : COUNT(product)); i++)
        printf(" %lld", (long long)(t->convolves ? conv : product)[i]);
    answer();
    return (void *)t;
}

/* The process has one job, the latest. */
static double measure(void *job, int runs) {
    (void)job;
    printf("torch run %d", runs);
    return answer();
}

static void release(void *job) { (void)job; }

const struct library torch = {"torch", 1, open_torch, prepare, NULL, NULL, release, measure};
