/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/relax.h"

#define SPIN 2000 /* turns, some 50 us: longer than a short operator, shorter than a core's patience */

struct team {
    int threads;
    bool crowded; /* more threads than cores: whoever waits lets others run */
    atomic_uint work_number; /* of the piece of work that is there */
    atomic_int busy;         /* threads but the caller that are not done with it */
    atomic_bool leave;
    void (*work)(void *arg, int thread);
    void *arg;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* of work_number */
    struct member {
        struct team *team;
        pthread_t thread;
        int index;
    } member[];
};

void team_pause(const struct team *t, unsigned turn) {
    if ((t && t->crowded) || turn >= SPIN)
        sched_yield();
    else
        base_relax();
}

static void wait_for_work(struct team *t, unsigned seen) {
    for (unsigned i = 0; i < SPIN && !t->crowded; i++) {
        if (atomic_load_explicit(&t->work_number, memory_order_acquire) != seen) return;
        base_relax();
    }
    pthread_mutex_lock(&t->mutex);
    while (atomic_load(&t->work_number) == seen) pthread_cond_wait(&t->changed, &t->mutex);
    pthread_mutex_unlock(&t->mutex);
}

static void *member_main(void *arg) {
    struct member *m = arg;
    struct team *t = m->team;
    for (unsigned seen = 0;; seen++) {
        wait_for_work(t, seen);
        if (atomic_load(&t->leave)) return NULL;
        t->work(t->arg, m->index);
        atomic_fetch_sub_explicit(&t->busy, 1, memory_order_release);
    }
}

static void call(struct team *t) {
    pthread_mutex_lock(&t->mutex);
    atomic_fetch_add_explicit(&t->work_number, 1, memory_order_release);
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mutex);
}

void team_run(struct team *t, void (*work)(void *arg, int thread), void *arg) {
    if (t) {
        t->work = work;
        t->arg = arg;
        atomic_store(&t->busy, t->threads - 1);
        call(t);
    }
    work(arg, 0);
    for (unsigned i = 0; t && atomic_load_explicit(&t->busy, memory_order_acquire); i++)
        team_pause(t, i);
}

tri_status team_make(int threads, struct team **out) {
    *out = NULL;
    if (threads <= 1) return TRI_OK;
    struct team *t = calloc(1, sizeof *t + (size_t)threads * sizeof t->member[0]);
    if (!t) return base_no_memory("threads");
    t->crowded = threads > team_cores();
    t->threads = 1;
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->changed, NULL);
    for (int i = 1; i < threads; i++) {
        t->member[i] = (struct member){.team = t, .index = i};
        int failed = pthread_create(&t->member[i].thread, NULL, member_main, &t->member[i]);
        if (failed) {
            team_free(t);
            return base_fail(TRI_FAILED, "thread %d of %d cannot be started (error %d); fewer "
                             "--threads", i + 1, threads, failed);
        }
        t->threads++;
    }
    *out = t;
    return TRI_OK;
}

void team_free(struct team *t) {
    if (!t) return;
    atomic_store(&t->leave, true);
    call(t);
    for (int i = 1; i < t->threads; i++) pthread_join(t->member[i].thread, NULL);
    pthread_mutex_destroy(&t->mutex);
    pthread_cond_destroy(&t->changed);
    free(t);
}

int team_threads(const struct team *t) { return t ? t->threads : 1; }

/* "max 100000" or "150000 100000": the quota of a period, in whole cores; 0: no limit. */
static int quota(void) {
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "r");
    long long most, period;
    int n = f ? fscanf(f, "%lld %lld", &most, &period) : 0;
    if (f) fclose(f);
    return n == 2 && period > 0 ? (int)((most + period - 1) / period) : 0;
}

int team_cores(void) {
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set), most = quota();
    return most > 0 && most < cores ? most : cores;
}
