/* SPDX-License-Identifier: Apache-2.0
 * Depthwise convolutions in f32, in which every channel has a weight of its own. The channels fill
 * blocks of 16, and vectors run over the channels of a block; a plane below is that of a block,
 * [h, w, 16]. Where a tensor is plain, planes are brought into blocks and back. What conv_depth.c
 * (y and dx) and conv_depth_dw.c have in common, and of it what conv_thin.c needs for bf16. */
#ifndef DEV_CPU_CONV_DEPTH_H
#define DEV_CPU_CONV_DEPTH_H

#include "dev/cpu/conv_own.h"
#include "dev/cpu/isa.h"
#include "dev/cpu/vec.h"

#define BLOCK 16  /* channels that lie together */
#define CHAIN 256 /* terms of a chain of fused multiply-adds */
/* Elements: so far ahead what is read is fetched to the cache; what is written, half as far. One by
 * one, between other instructions: processors drop some of many prefetches at once. */
#define AHEAD 2048

/* What is fixed when a loop is compiled. ANY: nothing. ONE, TWO: the stride across, with dilation
 * 1. BACK: ONE from right to left. */
enum shape { ANY, ONE, TWO, BACK, SHAPES };

struct plane {
    int64_t channels, h, w;
    bool plain; /* not in blocks */
};

static inline struct plane plane_of(const tri_tensor *t) {
    const int64_t *d = t->spec.shape.dim;
    return (struct plane){d[1], d[2], d[3], !t->block};
}

static inline int64_t floats(const struct plane *p) { return p->h * p->w * BLOCK; }
static inline bool inside(int64_t at, int64_t length) { return (uint64_t)at < (uint64_t)length; }

/* [16, n] to [n, 16] */
APART void bring(const float *from, int64_t n, float *to) {
    for (int64_t i = 0; i < n; i++, from++, to += BLOCK)
        UNROLL for (int k = 0; k < BLOCK; k++) to[k] = from[k * n];
}

/* The inverse. */
APART void put(const float *from, int64_t n, float *to) {
    for (int64_t i = 0; i < n; i++, from += BLOCK, to++)
        UNROLL for (int k = 0; k < BLOCK; k++) to[k * n] = from[k];
}

/* Loads a vector that several multiplications use into a register. Compilers would rather read it
 * again for each, and loads are what limits these loops. */
INLINE vec load_once(const float *from) { return *(const volatile vec_at *)from; }

/* Before a loop over the columns that some places read. */
#ifdef __clang__
#define UNROLL_COLUMNS UNROLL
#else
#define UNROLL_COLUMNS _Pragma("GCC unroll 32")
#endif

#endif
