/* SPDX-License-Identifier: Apache-2.0
 * The loader's pieces of samples under the model checker (model.h): threads of two processes
 * fetch lanes and read ahead, are late across steps, paused and die. A lane is computed only
 * with its own samples: no late reader writes to them. */
#include "model.h"

#include "base/wait.h"
#include "data/data.h"
#include "run/executables.h"
#include "run/feed.h"
#include "run/loader.h"
#include "run/padding.h"

/* The loader's surroundings. A wait ends the call; a thread that is out of patience calls it
 * again at a time at which every other reader is late. */
static void model_seek(struct sampler *s, int64_t step);
static void model_take(const struct sampler *s, int64_t place, int64_t n, uint64_t *index);
static tri_status model_row(const struct feed_place *to, int64_t index);
static char *model_buffer(int buffer);
static void model_wait(bool (*holds)(void *arg), void *arg);
static int64_t clock_now;
#define executables_at(run, step) ((void)(step), (struct machine *)(run)->executable)
#define machine_buffer(m, k) ((void)(m), model_buffer(k))
#define sampler_seek model_seek
#define sampler_take model_take
#define sampler_padding(s) INT64_MAX
#define feed_row(m, data, to, index, epoch, seed) ((void)(m), (void)(epoch), model_row(to, index))
#define base_now() clock_now
#define wait_late(slowest) ((void)(slowest), (int64_t)1)
#define wait_wake(queue) ((void)(queue))
#define wait_until(queue, kind, holds, arg, until, heartbeat) \
    ((void)(queue), (void)(until), (void)(heartbeat), model_wait(holds, arg))
/* How many steps are done is shared, too. */
#undef atomic_load
#define atomic_load(at)                                                         \
    _Generic((at), const _Atomic uint64_t *: seen_load((const claim_word *)(at)), \
             default: atomic_load_explicit(at, memory_order_seq_cst))
#include "run/loader.c"

/* ---- the world ---- */

#define LANES 2 /* of one sample, which is one piece */
#define ACTORS 3 /* two threads that compute, of two processes; one that reads ahead */
#define BUFFERS 2
#define HALF (-1)

enum doing { IDLE, READ, COMPUTE, FORGET, ABSENT, DEAD, FETCH };
enum { DIE, JOIN, COMPUTED, BURY };
enum { WAITS = -1 };

struct thread {
    int doing, step, lane;
    bool waits, own; /* own: it found its samples in its own buffer */
    int process;     /* of FORGET: whose */
};

struct state {
    struct world w;
    claim_word word[BUFFERS * LANES];
    _Atomic uint64_t done; /* steps */
    int32_t buffer[BUFFERS][LANES], own[ACTORS][LANES];
    struct thread thread[ACTORS + 1];
    int computed; /* a bit for each lane of the step that is open */
};

static struct {
    int buffers, steps;
    int owner[ACTORS]; /* the processes of threads */
    int failing;       /* a bit for each lane that process 0 fails to read */
} given;
static struct state *now;
static int reads; /* the process of the thread that reads */
static int64_t sought;

static int32_t right_value(int64_t step, int64_t lane) { return (int32_t)(step * 16 + lane); }

static int64_t open_step(const struct state *w) { return (int64_t)w->done + 1; }

static bool is_alive(const struct thread *t) { return t->doing != ABSENT && t->doing != DEAD; }

/* ---- the code under test ---- */

static void model_seek(struct sampler *s, int64_t step) {
    (void)s;
    sought = step + 1;
}

static void model_take(const struct sampler *s, int64_t place, int64_t n, uint64_t *index) {
    (void)s;
    for (int64_t i = 0; i < n; i++) index[i] = (uint64_t)right_value(sought, place + i);
}

/* A sample is written in two halves. */
static tri_status model_row(const struct feed_place *to, int64_t index) {
    int32_t *at = (int32_t *)(void *)to->buffer + to->row;
    if (seen_effect()) *at = HALF;
    CLAIM_POINT("half a sample");
    if (!reads && given.failing >> to->row & 1) return base_fail(TRI_FAILED, "a sample");
    if (seen_effect()) *at = (int32_t)index;
    return TRI_OK;
}

static char *model_buffer(int buffer) { return (char *)now->buffer[buffer]; }

static void model_wait(bool (*holds)(void *arg), void *arg) {
    if (!holds(arg)) seen_leave(WAITS);
}

/* FETCH + lane: waits for others; FETCH + LANES + lane: is out of patience. */
static int make(void *world, int who, int does) {
    static struct tri_data data = {.concurrent = true};
    static tri_run run = {.data = &data, .n_executables = 1};
    struct state *w = now = world;
    struct thread *t = &w->thread[who];
    struct loader_reader r = {.own = (char *)w->own[who]};
    const struct loader_place place = {.word = w->word, .done = &w->done, .of = 1,
                                       .owner = who < ACTORS ? given.owner[who] : 0};
    struct loader l = {.run = &run, .place = place, .buffers = given.buffers, .run_threads = 1,
                       .reader = &r, .first = 1, .ahead = true};
    char *buffer = NULL;
    run.executable[0] = (struct machine){
        .batch = LANES, .lanes = LANES, .buffer_bytes = sizeof w->buffer[0]};
    run.total = given.steps;
    reads = place.owner;
    clock_now = does >= FETCH + LANES ? 2 : 0;
    if (does == FORGET) {
        claim_forget(w->word, BUFFERS * LANES, t->process);
        return 0;
    }
    if (does == READ) return read_any(&l, &r);
    if (!w->w.logged[who])
        *t = (struct thread){
            .doing = does, .step = (int)open_step(w), .lane = (does - FETCH) % LANES};
    struct loader_request request = {.step = t->step, .lane = t->lane};
    if (loader_fetch(&l, &request, &buffer)) return 0;
    return buffer == r.own ? 2 : 1;
}

static void after(void *world, int who, int did, int result) {
    struct state *w = world;
    struct thread *t = &w->thread[who];
    t->doing = did >= FETCH && result > 0 ? COMPUTE : IDLE;
    t->waits = result == WAITS;
    t->own = did >= FETCH && result == 2;
    if (did != FORGET) return;
    for (int i = 0; i < ACTORS; i++)
        if (given.owner[i] == t->process) w->thread[i].doing = ABSENT;
    *t = (struct thread){.doing = ABSENT};
}

/* All threads of a process die. */
static void die(void *world, int who) {
    struct state *w = world;
    w->thread[who] = (struct thread){.doing = ABSENT};
    for (int i = 0; who < ACTORS && i < ACTORS; i++) {
        if (given.owner[i] != given.owner[who]) continue;
        w->thread[i] = (struct thread){.doing = DEAD};
        w->w.logged[i] = 0;
    }
}

static void other(void *world, const struct act *a) {
    struct state *w = world;
    struct thread *t = &w->thread[a->who];
    if (a->does == DIE) kill_actor(&w->w, a->who);
    if (a->does == JOIN) *t = (struct thread){.doing = IDLE};
    if (a->does == BURY) *t = (struct thread){.doing = FORGET, .process = a->n};
    if (a->does != COMPUTED) return;
    if (t->step == open_step(w)) w->computed |= 1 << t->lane;
    *t = (struct thread){.doing = IDLE};
    if (w->computed != (1 << LANES) - 1) return;
    w->computed = 0;
    atomic_store(&w->done, w->done + 1);
}

/* ---- what may happen ---- */

static void offer_thread(const struct state *w, int who) {
    const struct thread *t = &w->thread[who];
    bool ahead = who == ACTORS - 1, over = open_step(w) > given.steps;
    if (t->doing == IDLE && ahead) model_call(who, READ);
    for (int i = 0; t->doing == IDLE && !ahead && !over && i < LANES; i++) {
        if (w->computed >> i & 1) continue;
        model_call(who, FETCH + i);
        if (t->waits) model_call(who, FETCH + LANES + i);
    }
    if (t->doing == READ || t->doing >= FETCH) model_call(who, t->doing);
    if (t->doing == COMPUTE) model_other(who, COMPUTED, 0);
    if (is_alive(t) && w->w.deaths) model_other(who, DIE, 0);
    if (t->doing == ABSENT) model_other(who, JOIN, 0);
    if (t->doing == DEAD && w->thread[ACTORS].doing == ABSENT)
        model_other(ACTORS, BURY, given.owner[who]);
}

static void offer(const void *world) {
    const struct state *w = world;
    for (int i = 0; i < ACTORS; i++) offer_thread(w, i);
    if (w->thread[ACTORS].doing == FORGET) model_call(ACTORS, FORGET);
    if (w->w.logged[ACTORS] && w->w.deaths) model_other(ACTORS, DIE, 0);
}

/* A lane has its samples from the moment when they are fetched until it is computed. */
static void check(const void *world) {
    const struct state *w = world;
    bool quiet = true;
    for (int i = 0; i < ACTORS; i++) {
        const struct thread *t = &w->thread[i];
        quiet = quiet && !w->w.logged[i] && t->doing != DEAD;
        if (t->doing != COMPUTE || t->step != open_step(w)) continue;
        int32_t is = t->own ? w->own[i][t->lane] : w->buffer[t->step % given.buffers][t->lane];
        if (is != right_value(t->step, t->lane)) broken("a lane is computed with its samples");
    }
    for (int i = 0; quiet && w->thread[ACTORS].doing == ABSENT && i < BUFFERS * LANES; i++)
        if (claim_read((claim_word *)&w->word[i]).state == CLAIM_TAKEN)
            broken("what a dead process was reading is free");
}

static uint64_t hash(const void *world) {
    const struct state *w = world;
    uint64_t h = mix(mix(1, w->done), (uint64_t)w->computed);
    for (int i = 0; i < BUFFERS * LANES; i++)
        h = mix(mix(h, w->word[i]), (uint64_t)w->buffer[i / LANES][i % LANES]);
    for (int i = 0; i <= ACTORS; i++) {
        const struct thread *t = &w->thread[i];
        h = mix(h, (uint64_t)(t->doing << 16 | t->step << 12 | t->lane << 8 | t->process << 4 |
                              t->waits << 1 | t->own));
        if (t->own) h = mix(h, (uint64_t)w->own[i][t->lane]);
    }
    return h;
}

static void print(FILE *to, const void *world, const struct act *a) {
    static const char *const what[] = {"dies", "joins", "computes", "recovers from"};
    static const char *const calls[] = {
        "", "reads ahead", "", "forgets", "", "", "fetches lane 0", "fetches lane 1",
        "fetches late lane 0", "fetches late lane 1"};
    const struct state *w = world;
    fprintf(to, "%s (step %d, open %d)", a->what == OTHER ? what[a->does] : calls[a->does],
            w->thread[a->who].step, (int)open_step(w));
}

/* ---- what is tried ---- */

static void own_samples(void **unused) {
    (void)unused;
    static const struct {
        int buffers, steps, deaths, pauses, failing;
        int reader; /* the process that reads ahead */
    } rows[] = {{1, 2, 0, 1, 0, 1}, {2, 3, 0, 1, 0, 0}, {1, 2, 1, 0, 1, 1}, {1, 1, 1, 1, 2, 0},
                {1, 3, 0, 2, 0, 1}, {2, 3, 1, 1, 0, 1}, {2, 3, 1, 1, 3, 0}, {2, 4, 0, 2, 0, 1}};
    for (size_t i = 0; i < (all() ? COUNT(rows) : 4); i++) {
        const struct protocol p = {sizeof(struct state), ACTORS + 1, offer, make, after, die, other,
                                   check, hash, print, 0, 0};
        struct state begin = {.w = {.deaths = rows[i].deaths, .pauses = rows[i].pauses}};
        given.buffers = rows[i].buffers;
        given.steps = rows[i].steps;
        given.failing = rows[i].failing;
        for (int k = 0; k < ACTORS; k++) given.owner[k] = k < 2 ? k : rows[i].reader;
        begin.thread[ACTORS].doing = ABSENT;
        model_check(&p, &begin.w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(own_samples)};
    return cmocka_run_group_tests_name("pieces", tests, NULL, NULL);
}
