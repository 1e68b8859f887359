/* SPDX-License-Identifier: Apache-2.0
 * The batches of an evaluation that several processes share. Each is drawn once; its sums go to a place of its own,
 * and are added up in the batches' order, whoever has computed them. */
#ifndef EXEC_SHARE_H
#define EXEC_SHARE_H

#include <stdatomic.h>

#include "base/base.h"

/* At the begin of the memory, which all zeros make ready to be drawn from. */
struct share_head {
    _Atomic int64_t next; /* the batch that is drawn next */
    int64_t batches;
    int values; /* sums of a batch */
};

struct share {
    struct share_head *head;
    _Atomic uint32_t *done; /* by batch: its sums are there */
    double *sum;            /* by batch, then value */
};

size_t share_bytes(int64_t batches, int values);
/* Memory of share_bytes. */
void share_bind(struct share *s, void *memory, int64_t batches, int values);

/* -1: there is none left. */
int64_t share_draw(const struct share *s);
void share_put(const struct share *s, int64_t batch, const double *sums);
/* Null: whoever drew it has not computed it. */
const double *share_find(const struct share *s, int64_t batch);

#endif
