/* SPDX-License-Identifier: Apache-2.0
 * The inside of a chain: planned by chain_plan.c, run by chain.c. */
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
/* Rows of at least this length are cut into tiles one by one; several shorter rows make a tile. */
#define CHAIN_LONG_ROW 256
/* A tile of the widest type, or a pattern shorter than a long row, repeated over a tile that starts
 * inside it. */
#define CHAIN_SLOT ((TILE + CHAIN_LONG_ROW) * 8)
#define CHAIN_MADE (-1)

/* An input from outside, and how its elements lie along a tile:
 *     dense    as in the output
 *     row      contiguous, elsewhere than the output's rows
 *     single   one element for all
 *     pattern  a short row, repeated
 *     gather   otherwise: element by element */
struct operand {
    const tri_tensor *tensor;
    int index; /* input of the unit, or CHAIN_MADE */
    int first, last; /* steps that use it */
    tri_type type;
    enum { OPERAND_DENSE, OPERAND_ROW, OPERAND_SINGLE, OPERAND_PATTERN, OPERAND_GATHER } mode;
    int64_t step, period;
    int slot;
    void (*widen)(float *to, const void *from, size_t n); /* of bf16 and f16 */
};

/* A tile function; null: repeats its input, a single element, over the tile. Values are numbered:
 * operands from 0, steps from CHAIN_OPERANDS. */
struct step {
    tile_fn *fn;
    float p[2];
    int n_in, in[3];
    int slot; /* of its value; -1: the value is computed where it is stored */
    int out;  /* output of the unit; -1: not used outside */
    bool single;
    size_t width, stored_size; /* of an element in a tile, and in the tensor */
    void (*narrow)(void *to, const float *from, size_t n); /* of bf16 and f16 */
    void (*round)(float *x, size_t n);                     /* if later steps use it */
};

/* The walk of the operands is over rows: those of the output, or of its last two dimensions joined,
 * if all operands allow that. */
struct chain {
    tri_tensor *const *input; /* the unit's */
    struct walk walk;
    int64_t row, count;
    int64_t rows_per_tile; /* 0: a row is cut into pieces */
    int64_t piece;
    int n_operands, n_steps;
    int raw_slot; /* for 16-bit floats before widening; -1: none */
    int load[CHAIN_OPERANDS]; /* operands in the order of their first use */
    struct operand operand[CHAIN_OPERANDS];
    struct step step[CHAIN_STEPS];
};

#endif
