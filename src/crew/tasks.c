/* SPDX-License-Identifier: Apache-2.0 */
#include "crew/tasks.h"

#include <string.h>

#include "base/base.h"

/* ---- claiming ---- */

static bool try_claim(const struct tasks *t, int task, struct claim *held) {
    *held = claim_look(&t->word[task], t->step);
    return held->state == CLAIM_FREE && claim_try(&t->word[task], held, t->thread);
}

int tasks_claim(const struct tasks *t, int begin, int end, struct claim *held) {
    bool ranked = t->rank >= 0 && t->rank < t->ranks;
    int64_t n = end - begin;
    int own = ranked ? begin + (int)(n * t->rank / t->ranks) : begin;
    int next = ranked ? begin + (int)(n * (t->rank + 1) / t->ranks) : begin;
    for (int i = own; i < next; i++)
        if (try_claim(t, i, held)) return i;
    for (int i = end; i-- > begin;)
        if ((i < own || i >= next) && try_claim(t, i, held)) return i;
    return -1;
}

bool tasks_wait(claim_word *word, int begin, int end, uint32_t step) {
    for (int i = begin; i < end; i++)
        if (claim_look(&word[i], step).state == CLAIM_FREE) return true;
    return false;
}

bool tasks_complete(claim_word *word, int begin, int end, uint32_t step, int *from) {
    if (*from < begin) *from = begin;
    for (; *from < end; ++*from) {
        enum claim_state s = claim_look(&word[*from], step).state;
        if (s != CLAIM_DONE && s != CLAIM_PASSED) return false;
    }
    return true;
}

bool tasks_untouched(claim_word *word, int begin, int end, uint32_t step) {
    for (int i = begin; i < end; i++) {
        struct claim c = claim_look(&word[i], step);
        if (c.state != CLAIM_PASSED && (c.state != CLAIM_FREE || c.value)) return false;
    }
    return true;
}

/* ---- running ---- */

/* An undo record belongs to one part: the word of its task says all but which part is next. */
static uint64_t name_of(uint32_t step, int task, int part) {
    return (uint64_t)step << 32 | (uint64_t)(unsigned)(task + 1) << 8 | (uint64_t)(unsigned)part;
}

void tasks_save_begin(const struct tasks *t) {
    atomic_store_explicit(&t->undo->of, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* before the record changes */
    t->undo->n = 0;
}

char *tasks_save(const struct tasks *t, const void *at, size_t bytes) {
    struct undo *u = t->undo;
    char *to = (char *)(u + 1);
    CHECK(u->n < UNDO_RANGES);
    for (int i = 0; i < u->n; i++) to += u->range[i].bytes;
    u->range[u->n].at = (uint64_t)((const char *)at - t->base);
    u->range[u->n++].bytes = bytes;
    return to;
}

void tasks_save_end(const struct tasks *t, int task, const struct claim *held) {
    CLAIM_POINT("save");
    atomic_store_explicit(&t->undo->of, name_of(t->step, t->first + task, held->value),
                          memory_order_release);
    atomic_thread_fence(memory_order_release); /* before the part's values change */
    CLAIM_POINT("save counts");
}

bool tasks_advance(const struct tasks *t, int task, struct claim *held) {
    CLAIM_POINT("computed in place");
    int part = held->value++;
    const struct claim before = {.step = held->step, .owner = held->owner, .value = part};
    return claim_publish(&t->word[task], &before, CLAIM_TAKEN, held->owner, held->value);
}

void tasks_done(const struct tasks *t, int task, const struct claim *held) {
    claim_publish(&t->word[task], held, CLAIM_DONE, t->thread, 0);
}

/* ---- recovery ---- */

static void restore(const struct undo *u, char *base) {
    const char *from = (const char *)(u + 1);
    for (int i = 0; i < u->n; i++) {
        memcpy(base + u->range[i].at, from, u->range[i].bytes);
        from += u->range[i].bytes;
        CLAIM_POINT("restore");
    }
}

void tasks_recover(claim_word *word, int n_tasks, int thread, const struct undo *undo, char *base) {
    for (int i = 0; i < n_tasks; i++) {
        struct claim c = claim_read(&word[i]);
        if (c.state != CLAIM_TAKEN || c.owner != thread) continue;
        if (atomic_load_explicit(&undo->of, memory_order_acquire) == name_of(c.step, i, c.value))
            restore(undo, base);
    }
    claim_forget(word, n_tasks, thread);
}
