/* SPDX-License-Identifier: Apache-2.0
 * make bench-kernels: single products and convolutions of f32 or bf16, ours beside those of other
 * libraries. main.c measures, shapes.c has the tasks, exact.c the results in double, rates.c what
 * the processor reaches in registers; each other file is a library, ours among them. */
#ifndef KERNELS_H
#define KERNELS_H

#include "base/base.h"

enum direction { FORWARD, DX, DW };
extern const char *const directions[]; /* "y", "dx", "dw" */

/* A product or a convolution; tensors are plain (row-major).
 * Product: out [batch, m, n] = a [batch, m, k] b [batch, k, n]; with trans_a, a is [batch, k, m],
 * with trans_b, b is [batch, n, k].
 * Convolution: x [count, c, h, h], w [o, c / groups, size, size], y [count, o, oh, oh]. FORWARD is
 * y of x and w, DX is dx of dy and w, DW is dw of dy and x. */
struct task {
    char name[64]; /* "bert-up-dx"; "": no task, to be left out */
    enum direction direction;
    bool convolves;
    bool half; /* the tensors are bf16; else f32 */
    struct {
        int64_t batch, m, n, k;
        bool trans_a, trans_b;
        bool gelu; /* ours alone: gelu(a b + a bias of zeros) */
    } product;
    struct conv {
        int64_t count, c, o, h, oh, size, stride, pad, groups;
    } conv;
    tri_shape in[2], out;
    double flops; /* of a product or a direct convolution */
};

/* False after the last. */
bool task_at(int i, struct task *t);

/* A library. Its jobs run with as many threads as it was opened for. */
struct library {
    const char *name;
    int ways; /* of which the fastest counts; way 0 is direct */
    /* Null, with a short text about the library in `about`; or the reason why it cannot be used. */
    const char *(*open)(int threads, char *about, size_t bytes);
    /* Null: it has no such way. */
    void *(*prepare)(const struct task *t, int way, float *const in[2]);
    void (*run)(void *job);
    void (*read)(void *job, float *out);
    void (*release)(void *job);
    /* Of a library in another process, which has neither run nor read: seconds of a run, the median
     * of some after one that does not count. */
    double (*measure)(void *job, int runs);
};

extern const struct library ours, openblas, blis, onednn, torch;

/* Of a job of ours: the operations that it computes, which Winograd's algorithm reduces. */
double ours_flops(const void *job);
bool ours_winograd(const void *job);
/* The set of instructions of its products of bf16. */
const char *ours_instructions(void);
/* Convolutions of ours may use Winograd's algorithm. */
void ours_allow_winograd(bool may);

/* Some elements of a task's result, in double. */
struct exact {
    int64_t n;
    int64_t *at; /* offsets in `out` */
    double *value;
};
void exact_make(const struct task *t, float *const in[2], struct exact *e);
/* The root mean square and the largest of the differences, in root mean squares of the values. */
void exact_errors(const struct exact *e, const float *out, double *rms, double *worst);
void exact_free(struct exact *e);

/* ---- rates in registers ---- */

/* Fused multiply-adds of f32; VDPBF16PS; tiles of bf16 (TDPBF16PS). */
enum instruction { FMA, PAIRS, TILES, INSTRUCTIONS };
extern const char *const instruction_names[INSTRUCTIONS];

/* Before anything else runs. */
const char *rates_open(int threads);
bool rates_have(enum instruction i);
/* The unit of our products. */
enum instruction rates_chosen(bool half);
/* Operations per second on the threads of a measurement. */
double rates_registers(enum instruction i);
/* The rate of two threads over that of one; 0: there is one processor. */
double rates_both(enum instruction i);

/* Some microseconds of a unit's instructions; returns the number of operations, or 0 if the
 * compiler lacks them. */
double ours_multiply(void);
double pairs_multiply(void);
double tiles_multiply(void);

/* Sorts x. */
double median(double *x, int n);

/* The version of PyTorch, whose jobs the reader of stdout runs: torch.c. */
extern const char *torch_version;

/* Aligned memory, or the program ends. */
void *take(size_t bytes);

#endif
