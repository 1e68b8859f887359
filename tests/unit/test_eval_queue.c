/* SPDX-License-Identifier: Apache-2.0
 * The queue of an evaluation under the model checker (model.h): processes claim batches, compute
 * and publish them in any order, are late across steps, paused and die. */
#include "model.h"

#include <pthread.h>

static void *copy_seen(void *to, const void *from, size_t bytes);
#define memcpy copy_seen
#include "crew/eval_queue.c"
#undef memcpy

/* ---- the world ---- */

#define MOST_PROCESSES 3
#define MOST_BATCHES 2

enum doing { IDLE, PUT, RECOVER, ABSENT, DEAD, DRAW }; /* DRAW + k: wants batch k first */
static const char *const doing_name[] = {"", "publish", "recover", "", "", "claim 0", "claim 1"};
enum { DIE, JOIN, NEXT, BURY };

struct process {
    int doing, step;
    int next;  /* of its queue */
    int batch; /* that it computes; of RECOVER: whom */
};

struct state {
    struct world w;
    uint64_t memory[16]; /* of the queue */
    struct process process[MOST_PROCESSES + 1];
    int step, done[MOST_BATCHES]; /* done: the last step for which the batch was published */
};

static int processes, batches, steps, failing;

static double right_value(int step, int64_t batch) { return step * 100 + (double)batch; }

/* Sums are written in two halves. */
static void *copy_seen(void *to, const void *from, size_t bytes) {
    if (seen_effect()) memset(to, 0xff, bytes);
    CLAIM_POINT("half of the sums");
    if (seen_effect()) (memcpy)(to, from, bytes);
    return to;
}

static struct eval_queue queue_of(struct state *w, int who) {
    struct eval_queue q;
    eval_queue_bind(&q, w->memory, batches, 1);
    eval_queue_begin(&q, (uint64_t)w->process[who].step);
    q.owner = who;
    q.next = w->process[who].next;
    return q;
}

static int make(void *world, int who, int does) {
    struct state *w = world;
    struct process *p = &w->process[who];
    struct eval_queue q = queue_of(w, who);
    double sum = right_value(p->step, p->batch);
    int result = 0;
    p->doing = does;
    if (does >= DRAW) result = (int)eval_queue_claim(&q, does - DRAW);
    if (does == PUT) eval_queue_put(&q, p->batch, failing >> p->batch & 1 ? NULL : &sum);
    if (does == RECOVER) claim_forget(q.word, batches, p->batch);
    p->next = (int)q.next;
    return result;
}

static void after(void *world, int who, int did, int result) {
    struct state *w = world;
    struct process *p = &w->process[who];
    p->doing = did >= DRAW && result >= 0 ? PUT : IDLE;
    if (did >= DRAW && result >= 0) {
        p->batch = result;
        if (w->done[result] >= p->step) broken("a batch is computed once");
    }
    if (did == PUT) w->done[p->batch] = p->step;
    if (did == RECOVER) w->process[p->batch].doing = p->doing = ABSENT;
    if (p->doing == IDLE) p->batch = 0;
}

static void die(void *world, int who) {
    struct process *p = &((struct state *)world)->process[who];
    *p = (struct process){.doing = who < processes ? DEAD : ABSENT};
}

static void other(void *world, const struct act *a) {
    struct state *w = world;
    struct process *p = &w->process[a->who];
    if (a->does == DIE) kill_actor(&w->w, a->who);
    if (a->does == NEXT) w->step++;
    if (a->does == JOIN || a->does == NEXT) *p = (struct process){.step = w->step};
    if (a->does == BURY) *p = (struct process){.doing = RECOVER, .batch = a->n};
}

/* ---- what may happen ---- */

static bool is_alive(const struct process *p) { return p->doing != ABSENT && p->doing != DEAD; }

static void offer_idle(const struct state *w, int who) {
    for (int k = 0; k < batches; k++) model_call(who, DRAW + k);
    if (w->process[who].step < w->step) model_other(who, JOIN, 0);
    else if (w->step < steps) model_other(who, NEXT, 0);
}

static void offer(const void *world) {
    const struct state *w = world;
    const struct process *recoverer = &w->process[processes];
    for (int i = 0; i < processes; i++) {
        const struct process *p = &w->process[i];
        if (p->doing == IDLE) offer_idle(w, i);
        else if (is_alive(p)) model_call(i, p->doing);
        if (is_alive(p) && w->w.deaths) model_other(i, DIE, 0);
        if (p->doing == ABSENT) model_other(i, JOIN, 0);
        if (p->doing == DEAD && recoverer->doing == ABSENT) model_other(processes, BURY, i);
    }
    if (recoverer->doing == RECOVER) model_call(processes, RECOVER);
    if (w->w.logged[processes] && w->w.deaths) model_other(processes, DIE, 0);
}

/* What is published is right, and no process waits for a batch that nobody computes. */
static void check(const void *world) {
    struct state copy = *(const struct state *)world;
    bool quiet = true;
    for (int i = 0; i <= processes; i++)
        quiet = quiet && !copy.w.logged[i] &&
                (copy.process[i].doing == IDLE || copy.process[i].doing == ABSENT);
    for (int i = 0; i < processes; i++) {
        struct eval_queue q = queue_of(&copy, i);
        for (int k = 0; k < batches && copy.process[i].step == copy.step; k++) {
            const double *sum = eval_queue_find(&q, k);
            if (sum && *sum != right_value(copy.step, k)) broken("published sums are right");
            if (quiet && eval_queue_in_flight(&q, k))
                broken("what a dead process computed is free");
        }
    }
}

static uint64_t hash(const void *world) {
    const struct state *w = world;
    uint64_t h = mix(1, (uint64_t)w->step);
    for (size_t i = 0; i < COUNT(w->memory); i++) h = mix(h, w->memory[i]);
    for (int i = 0; i < batches; i++) h = mix(h, (uint64_t)w->done[i]);
    for (int i = 0; i <= processes; i++) {
        const struct process *p = &w->process[i];
        h = mix(h, (uint64_t)(p->doing << 12 | p->step << 8 | p->next << 4 | p->batch));
    }
    return h;
}

static void print(FILE *to, const void *world, const struct act *a) {
    static const char *const what[] = {"dies", "joins", "begins the next step", "recovers from"};
    const struct process *p = &((const struct state *)world)->process[a->who];
    fprintf(to, "%s (step %d, batch %d)", a->what == OTHER ? what[a->does] : doing_name[a->does],
            p->step, p->batch);
}

/* ---- what is tried ---- */

static void any_order(void **unused) {
    (void)unused;
    static const struct {
        int processes, batches, steps, deaths, pauses, failing;
    } rows[] = {{2, 2, 2, 1, 1, 0}, {2, 2, 2, 0, 2, 0}, {2, 2, 1, 1, 2, 1}, {3, 1, 3, 1, 1, 0},
                {2, 2, 3, 2, 1, 0}, {2, 2, 3, 1, 2, 2}, {3, 2, 2, 1, 1, 0}, {3, 2, 1, 0, 2, 0}};
    for (size_t i = 0; i < (all() ? COUNT(rows) : 4); i++) {
        const struct protocol p = {sizeof(struct state), rows[i].processes + 1, offer, make, after,
                                   die, other, check, hash, print, 0, 0};
        struct state begin = {.w = {.deaths = rows[i].deaths, .pauses = rows[i].pauses}, .step = 1};
        processes = rows[i].processes;
        batches = rows[i].batches;
        steps = rows[i].steps;
        failing = rows[i].failing;
        assert_true(eval_queue_bytes(batches, 1) <= sizeof begin.memory);
        for (int k = 0; k <= processes; k++)
            begin.process[k] = (struct process){k < processes ? IDLE : ABSENT, 1, 0, 0};
        model_check(&p, &begin.w);
    }
}

/* ---- real threads ---- */

#define MANY 20000
#define THREADS 4

struct crowd {
    struct eval_queue queue;
    atomic_int *drawn;
};

static void *draw_all(void *arg) {
    struct crowd *c = arg;
    for (int64_t k; (k = eval_queue_claim(&c->queue, 0)) >= 0;) {
        const double sum = (double)k;
        atomic_fetch_add(&c->drawn[k], 1);
        eval_queue_put(&c->queue, k, &sum);
    }
    return NULL;
}

static void by_many(void **state) {
    (void)state;
    void *memory = calloc(1, eval_queue_bytes(MANY, 1));
    atomic_int *drawn = calloc(MANY, sizeof *drawn);
    struct crowd c[THREADS];
    pthread_t thread[THREADS];
    assert_true(memory && drawn);
    for (int i = 0; i < THREADS; i++) {
        c[i].drawn = drawn;
        eval_queue_bind(&c[i].queue, memory, MANY, 1);
        c[i].queue.owner = i;
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, draw_all, &c[i]), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    for (int64_t k = 0; k < MANY; k++) {
        assert_int_equal(atomic_load(&drawn[k]), 1);
        assert_true(eval_queue_find(&c[0].queue, k)[0] == (double)k);
    }
    free(memory);
    free(drawn);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_many), cmocka_unit_test(any_order)};
    return cmocka_run_group_tests_name("eval_queue", tests, NULL, NULL);
}
