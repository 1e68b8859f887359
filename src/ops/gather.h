/* SPDX-License-Identifier: Apache-2.0
 * Factor letters of gather and its gradient: rows of a table [v, ...] that ids select. */
#ifndef OPS_GATHER_H
#define OPS_GATHER_H

#include "ops/op.h"

/* The table may be rows `first` on of a table of `all` rows (0: as many as it has), in which ids
 * count. */
#define GATHER "first:int=0 all:int=0"
#define GATHER_FOLLOWS "first=begin:a all=extent:a"

/* table "abc", ids "ij", rows "ijbc". */
struct gather_letters {
    char table[TRI_MAX_RANK + 1], ids[TRI_MAX_RANK + 1], rows[2 * TRI_MAX_RANK + 1];
};

static inline struct gather_letters gather_letters(const tri_shape *table, const tri_shape *ids) {
    struct gather_letters l;
    op_letters(l.table, table->rank, 0);
    op_letters(l.ids, ids->rank, 0);
    for (char *p = l.ids; *p; p++) *p = (char)(*p + TRI_MAX_RANK);
    memcpy(l.rows, l.ids, (size_t)ids->rank);
    memcpy(l.rows + ids->rank, l.table + 1, (size_t)table->rank); /* with the terminator */
    return l;
}

/* The number of rows that ids count in, for a table of which the node has `rows`. */
static inline int64_t gather_all(const tri_node *n, int64_t rows) {
    int64_t all = tri_attr_int(n, "all");
    return all ? all : rows;
}

static inline bool gather_check(const tri_node *n, const tri_shape *table) {
    int64_t first = tri_attr_int(n, "first"), all = gather_all(n, table->dim[0]);
    return (first >= 0 && first + table->dim[0] <= all) ||
           tri_op_error(n, "first is %lld: the %lld rows of the table are not among %lld",
                        (long long)first, (long long)table->dim[0], (long long)all);
}

#endif
