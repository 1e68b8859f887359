/* SPDX-License-Identifier: Apache-2.0 */
#include "crew/eval_queue.h"

#include <string.h>

#include "plan/memory.h"

static size_t word_bytes(int64_t batches) { return memory_round((size_t)batches * sizeof(board_cell)); }

size_t eval_queue_bytes(int64_t batches, int values) {
    return word_bytes(batches) + (size_t)batches * (size_t)values * sizeof(double);
}

void eval_queue_bind(struct eval_queue *s, void *memory, int64_t batches, int values) {
    *s = (struct eval_queue){.batches = batches, .values = values, .word = memory,
                        .sum = (double *)((char *)memory + word_bytes(batches)), .step = 1};
}

void eval_queue_begin(struct eval_queue *s, uint64_t step) {
    s->step = (uint32_t)step;
    s->next = 0;
}

/* Whoever came too late for a step finds nothing in words of a later one. */
static struct board_word look(const struct eval_queue *s, int64_t batch, uint64_t *packed) {
    bool late;
    struct board_word w = board_read(&s->word[batch], s->step, packed, &late), is = board_unpack(*packed);
    return late || is.state == BOARD_CLAIMED ? is : w;
}

static bool is_free(const struct eval_queue *s, int64_t batch, uint64_t *packed) {
    struct board_word w = look(s, batch, packed);
    return w.step == s->step && w.state == BOARD_FREE;
}

static bool claim(const struct eval_queue *s, int64_t batch) {
    uint64_t seen;
    struct board_word mine = {s->step, BOARD_CLAIMED, s->owner, 0};
    if (!is_free(s, batch, &seen) || !atomic_compare_exchange_strong(&s->word[batch], &seen, board_pack(mine)))
        return false;
    BOARD_POINT("claim batch");
    return true;
}

bool eval_queue_left(struct eval_queue *s) {
    uint64_t packed;
    while (s->next < s->batches && !is_free(s, s->next, &packed)) s->next++;
    return s->next < s->batches;
}

int64_t eval_queue_draw(struct eval_queue *s, int64_t first) {
    if (claim(s, first)) return first;
    while (eval_queue_left(s))
        if (claim(s, s->next)) return s->next++;
    return -1;
}

/* Nobody else touches the word, unless this process is dead. */
void eval_queue_put(const struct eval_queue *s, int64_t batch, const double *sums) {
    size_t n = (size_t)s->values;
    struct board_word w = {s->step, sums ? BOARD_DONE : BOARD_FAILED, s->owner, 0};
    if (sums) memcpy(s->sum + (size_t)batch * n, sums, n * sizeof *sums);
    BOARD_POINT("sums of batch");
    atomic_store(&s->word[batch], board_pack(w));
    BOARD_POINT("publish batch");
    if (s->queue) wait_wake(s->queue);
}

const double *eval_queue_find(const struct eval_queue *s, int64_t batch) {
    uint64_t packed;
    struct board_word w = look(s, batch, &packed);
    return w.step == s->step && w.state == BOARD_DONE ? s->sum + (size_t)batch * (size_t)s->values : NULL;
}

bool eval_queue_in_flight(const struct eval_queue *s, int64_t batch) {
    uint64_t packed;
    struct board_word w = look(s, batch, &packed);
    return w.step == s->step && w.state == BOARD_CLAIMED;
}
