/* SPDX-License-Identifier: Apache-2.0
 * Factor letters of gather and its gradient: rows of a table [v, ...] that ids select. */
#ifndef OPS_GATHER_H
#define OPS_GATHER_H

#include "ops/op.h"

/* table "Abc", ids "ij", rows "ijbc". */
struct gather_letters {
    char table[TRI_MAX_RANK + 1], ids[TRI_MAX_RANK + 1], rows[2 * TRI_MAX_RANK + 1];
};

static inline struct gather_letters gather_letters(const tri_shape *table, const tri_shape *ids) {
    struct gather_letters l;
    op_letters(l.table, table->rank, 1u << 0);
    op_letters(l.ids, ids->rank, 0);
    for (char *p = l.ids; *p; p++) *p = (char)(*p + TRI_MAX_RANK);
    memcpy(l.rows, l.ids, (size_t)ids->rank);
    memcpy(l.rows + ids->rank, l.table + 1, (size_t)table->rank); /* with the terminator */
    return l;
}

#endif
