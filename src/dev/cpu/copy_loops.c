/* SPDX-License-Identifier: Apache-2.0
 * The inner loops of a copy. */
#include "dev/cpu/copy.h"
#include "dev/cpu/turn.h"
#include "dev/cpu/vec.h"

/* ---- elements ---- */

/* Lines and rows of a block: both sides of it stay in the first-level cache. */
#define BLOCK 16

/* The part of a loop in the block that begins there. */
INLINE struct copy_loop block_of(struct copy_loop l, int64_t begin) {
    l.length = least(l.length - begin, BLOCK);
    return l;
}

/* Calls copy(..., line, row, to, from) for each block of x. */
#define EVERY_BLOCK(copy, ...)                                                                  \
    for (int64_t p = 0; p < x.plane.length; p++, to += x.plane.to, from += x.plane.from)        \
        for (int64_t l = 0; l < x.line.length; l += BLOCK)                                      \
            for (int64_t r = 0; r < x.row.length; r += BLOCK)                                   \
                copy(__VA_ARGS__ block_of(x.line, l), block_of(x.row, r),                       \
                     to + l * x.line.to + r * x.row.to, from + l * x.line.from + r * x.row.from)

/* Continues at row r with high x wide elements at a time, which are turned in registers. The last
 * lines, and if `all` the last rows, are copied together with those before them once more. */
#define TURN(high, wide, all, turn)                                                             \
    if (row.length >= high && line.length >= wide)                                              \
        for (; r + (all ? 1 : high) <= row.length; r += high)                                   \
            for (int64_t l = 0; l < line.length; l += wide) {                                   \
                const int64_t r0 = least(r, row.length - high);                                 \
                const int64_t l0 = least(l, line.length - wide);                                \
                turn((const void *)(from + l0 * size + r0 * row.from), row.from / size,         \
                     (void *)(to + l0 * line.to + r0 * size), line.to / size);                  \
            }

INLINE void copy_block(const int size, struct copy_loop line, struct copy_loop row, char *to,
                       const char *from) {
    int64_t r = 0;
    if (row.to == size && line.from == size && row.from % size == 0 && line.to % size == 0) {
        if (size == 4) {
            if (VEC == 16) TURN(16, 4, false, turn_16_4)
            TURN(8, 4, false, turn_8_4)
            TURN(4, 4, true, turn_4_4)
        }
        if (size == 2) TURN(8, 8, true, turn_8_8)
    }
    if (r >= row.length) return;
    for (int64_t l = 0; l < line.length; l++)
        for (int64_t i = r; i < row.length; i++)
            memcpy(to + l * line.to + i * row.to, from + l * line.from + i * row.from,
                   (size_t)size);
}

#define ELEMENTS(size)                                                                          \
    static void elements_##size(struct copy_loops x, char *to, const char *from) {              \
        EVERY_BLOCK(copy_block, size,);                                                         \
    }
ELEMENTS(1)
ELEMENTS(2)
ELEMENTS(4)
ELEMENTS(8)

/* ---- rows ---- */

/* Calls copy(to, from, n) for each row of x. */
#define EVERY_ROW(copy, n)                                                                      \
    for (int64_t p = 0; p < x.plane.length; p++, to += x.plane.to, from += x.plane.from)        \
        for (int64_t l = 0; l < x.line.length; l++)                                             \
            copy(to + l * x.line.to, from + l * x.line.from, n)

INLINE void copy_row(char *to, const char *from, int64_t bytes) {
    const int64_t piece = 32;
    int64_t at = 0;
    if (bytes < 8 * piece)
        for (; at + piece <= bytes; at += piece) memcpy(to + at, from + at, (size_t)piece);
    if (at < bytes) memcpy(to + at, from + at, (size_t)(bytes - at));
}

static void rows(struct copy_loops x, char *to, const char *from) {
    EVERY_ROW(copy_row, x.row.length * x.row.to);
}

INLINE void round_row(void *to, const void *from, int64_t n) {
    EACH(n, STORE(TRI_BF16, to, LOAD(TRI_F32, from, 0)));
}

/* For rows that are not contiguous in the input, or not in the output. */
INLINE void round_block(struct copy_loop line, struct copy_loop row, char *to, const char *from) {
    float block[BLOCK][BLOCK];
    const struct copy_loop lines = {line.length, sizeof *block, line.from};
    const struct copy_loop rows = {row.length, sizeof **block, row.from};
    copy_block(sizeof **block, lines, rows, (char *)block, from);
    for (int64_t l = 0; l < line.length; l++, to += line.to) {
        uint16_t half[BLOCK];
        const bool contiguous = row.to == sizeof *half;
        round_row(contiguous ? (void *)to : half, block[l], row.length);
        for (int64_t r = 0; r < row.length && !contiguous; r++)
            memcpy(to + r * row.to, &half[r], sizeof *half);
    }
}

static void rounded(struct copy_loops x, char *to, const char *from) {
    if (x.row.from == sizeof(float) && x.row.to == sizeof(uint16_t))
        EVERY_ROW(round_row, x.row.length);
    else
        EVERY_BLOCK(round_block,);
}

const struct copy_set FOR_ISA(copy_set) = {
    .elements = {elements_1, elements_2, elements_4, elements_8},
    .rows = rows,
    .rounded = rounded,
};
