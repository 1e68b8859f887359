/* SPDX-License-Identifier: Apache-2.0
 * Samples for BERT's pre-training. */
#ifndef DATA_PRETRAIN_H
#define DATA_PRETRAIN_H

#include "data/corpus.h"
#include "data/data.h"

struct pretrain {
    struct corpus corpus;
    int64_t length;      /* of a sample, in ids */
    int64_t predictions; /* the most masked places in a sample */
    uint32_t count;      /* ids are below this */
    uint32_t cls, sep, mask, pad;
    size_t *span; /* two numbers per sample: its first sentence and the one after its last */
    size_t n_spans, span_capacity;
};

/* Cuts documents into spans; call it after the other fields are set. `name` is used in messages. */
tri_status pretrain_begin(struct pretrain *p, const char *name);
#define PRETRAIN_FIELDS 8
void pretrain_fields(const struct pretrain *p, tri_field field[PRETRAIN_FIELDS]);
tri_fill pretrain_fill; /* user: struct pretrain */
int64_t pretrain_length(const void *pretrain, int64_t index);

#endif
