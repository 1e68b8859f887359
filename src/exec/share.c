/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/share.h"

#include <string.h>

#include "plan/memory.h"

static size_t head_bytes(void) { return memory_round(sizeof(struct share_head)); }
static size_t done_bytes(int64_t batches) { return memory_round((size_t)batches * sizeof(uint32_t)); }

size_t share_bytes(int64_t batches, int values) {
    return head_bytes() + done_bytes(batches) + (size_t)batches * (size_t)values * sizeof(double);
}

void share_bind(struct share *s, void *memory, int64_t batches, int values) {
    char *at = memory;
    *s = (struct share){.head = memory, .done = (_Atomic uint32_t *)(at + head_bytes()),
                        .sum = (double *)(at + head_bytes() + done_bytes(batches))};
    s->head->batches = batches;
    s->head->values = values;
}

int64_t share_draw(const struct share *s) {
    if (atomic_load(&s->head->next) >= s->head->batches) return -1;
    int64_t batch = atomic_fetch_add(&s->head->next, 1);
    return batch < s->head->batches ? batch : -1;
}

void share_put(const struct share *s, int64_t batch, const double *sums) {
    size_t n = (size_t)s->head->values;
    memcpy(s->sum + (size_t)batch * n, sums, n * sizeof *sums);
    atomic_store(&s->done[batch], 1);
}

const double *share_find(const struct share *s, int64_t batch) {
    return atomic_load(&s->done[batch]) ? s->sum + (size_t)batch * (size_t)s->head->values : NULL;
}
