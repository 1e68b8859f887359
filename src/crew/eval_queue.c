/* SPDX-License-Identifier: Apache-2.0 */
#include "crew/eval_queue.h"

#include <string.h>

size_t eval_queue_bytes(int64_t batches, int values) {
    return (size_t)batches * (sizeof(claim_word) + (size_t)values * sizeof(double));
}

void eval_queue_bind(struct eval_queue *s, void *memory, int64_t batches, int values) {
    *s = (struct eval_queue){.batches = batches, .values = values, .word = memory,
                             .sum = (double *)((claim_word *)memory + batches), .step = 1};
}

void eval_queue_begin(struct eval_queue *s, uint64_t step) {
    s->step = (uint32_t)step;
    s->next = 0;
}

static struct claim look(const struct eval_queue *s, int64_t batch) {
    return claim_look_held(&s->word[batch], s->step);
}

static bool try_claim(const struct eval_queue *s, int64_t batch) {
    struct claim c = look(s, batch);
    return c.state == CLAIM_FREE && claim_try(&s->word[batch], &c, s->owner);
}

bool eval_queue_left(struct eval_queue *s) {
    while (s->next < s->batches && look(s, s->next).state != CLAIM_FREE) s->next++;
    return s->next < s->batches;
}

int64_t eval_queue_claim(struct eval_queue *s, int64_t first) {
    if (try_claim(s, first)) return first;
    while (eval_queue_left(s))
        if (try_claim(s, s->next)) return s->next++;
    return -1;
}

void eval_queue_put(const struct eval_queue *s, int64_t batch, const double *sums) {
    const struct claim held = {.step = s->step, .owner = s->owner};
    size_t n = (size_t)s->values;
    if (sums) memcpy(s->sum + (size_t)batch * n, sums, n * sizeof *sums);
    CLAIM_POINT("sums of batch");
    claim_publish(&s->word[batch], &held, sums ? CLAIM_DONE : CLAIM_FAILED, s->owner, 0);
    if (s->queue) wait_wake(s->queue);
}

const double *eval_queue_find(const struct eval_queue *s, int64_t batch) {
    bool done = look(s, batch).state == CLAIM_DONE;
    return done ? s->sum + (size_t)batch * (size_t)s->values : NULL;
}

bool eval_queue_in_flight(const struct eval_queue *s, int64_t batch) {
    struct claim c = look(s, batch);
    return c.state == CLAIM_TAKEN && c.step == s->step;
}
