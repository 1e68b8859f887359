/* SPDX-License-Identifier: Apache-2.0
 * What a chain is inside: made by chain_plan.c, run by chain.c. */
#ifndef DEV_CPU_CHAIN_PLAN_H
#define DEV_CPU_CHAIN_PLAN_H

#include "base/convert.h"
#include "dev/cpu/chain.h"
#include "dev/cpu/tile.h"
#include "dev/cpu/walk.h"

#define CHAIN_OPERANDS WALK_MAX
#define CHAIN_STEPS 48
#define CHAIN_VALUES (CHAIN_OPERANDS + CHAIN_STEPS)
#define CHAIN_SLOTS 16
/* Rows of the innermost dimension that are at least this long are cut into tiles one by one; of
 * shorter ones several make a tile. */
#define CHAIN_LONG_ROW 256
/* A tile of the widest type, or a pattern shorter than a long row, over a tile that begins within
 * it. */
#define CHAIN_SLOT ((TILE + CHAIN_LONG_ROW) * 8)
#define CHAIN_MADE (-1)

/* What comes from outside. How it lies along a tile:
 * dense    as the output does
 * row      in one piece, elsewhere than the output's rows
 * single   one element for all
 * pattern  a short row, repeated
 * gather   otherwise: element by element */
struct operand {
    const tri_tensor *tensor;
    int index; /* input of the unit, or CHAIN_MADE */
    int first, last; /* steps that need it */
    tri_type type;
    enum { OPERAND_DENSE, OPERAND_ROW, OPERAND_SINGLE, OPERAND_PATTERN, OPERAND_GATHER } mode;
    int64_t step, period;
    int slot;
    void (*widen)(float *to, const void *from, size_t n); /* of bf16 and f16 */
};

/* A tile function; without one its input, a single element, is written as often as the tile has
 * elements. Values are numbered: operands from 0, steps from CHAIN_OPERANDS on. */
struct step {
    tile_fn *fn;
    float p[2];
    int n_in, in[3];
    int slot; /* of its value; -1: that lies where it is stored */
    int out;  /* output of the unit; -1: not used outside */
    bool single;
    size_t width, stored_size; /* of an element in a tile, and of the tensor */
    void (*narrow)(void *to, const float *from, size_t n); /* of bf16 and f16 */
    void (*round)(float *x, size_t n);                     /* if it is used after it */
};

/* The walk, of the operands, is over rows: those of the
 * output, or, where all operands allow it, of its last two dimensions together. */
struct chain {
    tri_tensor *const *input; /* the unit's */
    struct walk walk;
    int64_t row, count;
    int64_t rows_per_tile; /* 0: a row is cut into pieces */
    int64_t piece;
    int n_operands, n_steps;
    int raw_slot; /* for 16-bit floats before they are widened; -1: there are none */
    int load[CHAIN_OPERANDS]; /* operands in the order of their first use */
    struct operand operand[CHAIN_OPERANDS];
    struct step step[CHAIN_STEPS];
};

#endif
