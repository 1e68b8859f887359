/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/host.h"
#include "base/wait.h"
#include "crew/spend.h"

struct team {
    int threads, started;
    atomic_bool crowded;     /* more threads than cores: waiting threads do not spin */
    wait_queue event;        /* for changes of the words below, and for team_wait */
    atomic_uint work_number; /* counts calls of team_run */
    atomic_int busy;         /* threads that have not finished work; without the caller */
    atomic_bool leave;       /* threads must end */
    void (*work)(void *arg, int thread);
    void *arg;
    struct member {
        struct team *team;
        pthread_t thread;
        int index;
        unsigned seen; /* the last work_number that it has finished */
    } member[];
};

void team_wait(struct team *t, bool (*holds)(void *arg), void *arg) {
    if (holds(arg)) return;
    const enum spent was = spend(SPENT_WAIT_THREADS);
    bool crowded = atomic_load_explicit(&t->crowded, memory_order_relaxed);
    wait_until(&t->event, crowded ? WAIT_CROWDED : WAIT_TOGETHER, holds, arg, INT64_MAX, NULL);
    spend(was);
}

void team_wake(struct team *t) { wait_wake(&t->event); }

void team_crowd(struct team *t, bool crowded) {
    if (t) atomic_store_explicit(&t->crowded, crowded, memory_order_relaxed);
}

static bool has_work(void *arg) {
    const struct member *m = arg;
    return atomic_load(&m->team->work_number) != m->seen;
}

static void *member_main(void *arg) {
    struct member *m = arg;
    struct team *t = m->team;
    for (;; m->seen++) {
        team_wait(t, has_work, m);
        if (atomic_load(&t->leave)) return NULL;
        t->work(t->arg, m->index);
        spend(SPENT_WAIT_THREADS);
        if (atomic_fetch_sub(&t->busy, 1) == 1) team_wake(t);
    }
}

static void start_work(struct team *t) {
    atomic_fetch_add(&t->work_number, 1);
    team_wake(t);
}

static bool all_done(void *arg) {
    struct team *t = arg;
    return !atomic_load(&t->busy);
}

void team_run(struct team *t, void (*work)(void *arg, int thread), void *arg) {
    if (t) {
        CHECK(team_works(t));
        t->work = work;
        t->arg = arg;
        atomic_store(&t->busy, t->threads - 1);
        start_work(t);
    }
    work(arg, 0);
    if (t) team_wait(t, all_done, t);
}

tri_status team_plan(int threads, struct team **out) {
    *out = NULL;
    if (threads <= 1) return TRI_OK;
    struct team *t = calloc(1, sizeof *t + (size_t)threads * sizeof t->member[0]);
    if (!t) return base_no_memory("threads");
    team_crowd(t, threads > host_cores());
    t->threads = threads;
    t->started = 1;
    *out = t;
    return TRI_OK;
}

tri_status team_start(struct team *t) {
    while (t && t->started < t->threads) {
        const int i = t->started;
        t->member[i] = (struct member){.team = t, .index = i};
        int failed = pthread_create(&t->member[i].thread, NULL, member_main, &t->member[i]);
        if (failed)
            return base_fail(TRI_FAILED, "cannot start thread %d of %d (error %d); use fewer "
                             "--threads", i + 1, t->threads, failed);
        t->started++;
    }
    return TRI_OK;
}

bool team_works(const struct team *t) { return !t || t->started == t->threads; }

tri_status team_make(int threads, struct team **out) {
    tri_status status = team_plan(threads, out);
    if (!status) status = team_start(*out);
    if (!status) return TRI_OK;
    team_free(*out);
    *out = NULL;
    return status;
}

void team_free(struct team *t) {
    if (!t) return;
    atomic_store(&t->leave, true);
    start_work(t);
    for (int i = 1; i < t->started; i++) pthread_join(t->member[i].thread, NULL);
    free(t);
}

int team_threads(const struct team *t) { return t ? t->threads : 1; }
