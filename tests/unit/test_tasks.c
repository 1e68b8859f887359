/* SPDX-License-Identifier: Apache-2.0
 * The update's tasks under the model checker (model.h): threads claim and run the tasks of two
 * sweeps, are paused and die anywhere, also within a part that is computed in place; an actor
 * recovers from deaths. Whatever happens, each part is applied exactly once. */
#include "model.h"

#include "machine/program.h"

static void *copy_seen(void *to, const void *from, size_t bytes);
static bool run_parts(const struct program *p, size_t item, int thread, int64_t first, int64_t end,
                      const struct program_step *step);
#define memcpy copy_seen
#define program_run_parts run_parts
#include "crew/tasks.c"
#undef memcpy
#include "machine/sweep.c"

/* ---- the world ---- */

#define MOST_THREADS 3
#define PARTS 2
#define TASKS 3
#define SWEEPS 2
#define HALF 0x10000 /* a part that is being computed */

/* Items, and tasks: x in place, part by part; z in place, from x; y from x, not in place. */
enum { X, Z, Y };

enum doing { DRAW = 1, RUN, LOOK, RECOVER, ABSENT, DEAD, REST };
static const char *const doing_name[] = {"", "claim", "run", "complete?", "recover", "", "", ""};
enum { DIE, JOIN, WAKE, BURY };

struct thread {
    int doing, step, sweep;
    int task; /* of RECOVER: whom */
    struct claim held;
};

struct state {
    struct world w;
    claim_word word[TASKS];
    int32_t x[PARTS], z, y[PARTS];
    struct {
        struct undo undo;
        int32_t values[PARTS];
    } undo[MOST_THREADS + 1]; /* the last: of the thread that recovers, unused */
    struct thread thread[MOST_THREADS + 1];
    int step;
};

static int threads, steps;
static struct state *now; /* whose memory the kernels find */

static int32_t next_x(int32_t x, int step) { return 2 * x + step; }
static int32_t next_z(int32_t z, const int32_t *x) { return 3 * z + x[0] + x[1]; }

static void check_step(const struct state *w) {
    int32_t x[PARTS] = {1, 2}, z = 5;
    for (int s = 1; s <= w->step; s++) {
        for (int i = 0; i < PARTS; i++) x[i] = next_x(x[i], s);
        z = next_z(z, x);
    }
    bool right = w->z == z;
    for (int i = 0; i < PARTS; i++) right = right && w->x[i] == x[i] && w->y[i] == x[i] + 7;
    if (!right) broken("each part is applied once");
}

/* ---- the code under test ---- */

static void *copy_seen(void *to, const void *from, size_t bytes) {
    if (!seen_effect()) return to;
    (memcpy)(to, from, bytes);
    return to;
}

static void copy_out(struct dev *d, void *host, const void *device, size_t bytes) {
    (void)d;
    copy_seen(host, device, bytes);
}

static void span(const void *state, int64_t part, int64_t *first, int64_t *end) {
    (void)state;
    *first = part;
    *end = part + 1;
}

static void point(void) { CLAIM_POINT("half a part"); }

static bool run_parts(const struct program *p, size_t item, int thread, int64_t first, int64_t end,
                      const struct program_step *step) {
    (void)p;
    (void)thread;
    for (int64_t i = first; i < end; i++) {
        int32_t *at = item == X ? &now->x[i] : item == Z ? &now->z : &now->y[i];
        if (seen_effect()) *at = item == Y ? HALF : *at + HALF;
        point();
        if (!seen_effect()) continue;
        *at = item == X ? next_x(*at - HALF, (int)step->step)
                        : item == Z ? next_z(*at - HALF, now->x) : now->x[i] + 7;
    }
    return true;
}

/* A program of three items over the memory of `now`. */
static struct sweeps make_sweeps(void) {
    static const struct dev_kind kind = {.copy_out = copy_out};
    static struct dev dev = {&kind};
    static tri_tensor tensor = {.spec.type = TRI_I32};
    static tri_tensor *tensors[] = {&tensor, &tensor};
    static const struct unit unit[] = {{.in = tensors, .out = tensors, .n_in = 1, .n_out = 1},
                                       {.in = tensors, .out = tensors, .n_in = 2, .n_out = 1},
                                       {.in = tensors, .out = tensors, .n_in = 1, .n_out = 1}};
    static const void *in[TASKS][2];
    static void *out[TASKS][1];
    static struct program_kernel kernel[TASKS];
    static struct program_item item[TASKS];
    static struct program p = {.dev = &dev, .item = item, .n_items = TASKS};
    static struct task task[] = {
        {X, 0, 0, PARTS, true}, {Z, 0, 0, 1, true}, {Y, 0, 0, PARTS, false}};
    static int ends[SWEEPS] = {1, TASKS};
    in[X][0] = in[Z][1] = in[Y][0] = now->x;
    out[X][0] = now->x;
    in[Z][0] = out[Z][0] = &now->z;
    out[Y][0] = now->y;
    for (int i = 0; i < TASKS; i++) {
        kernel[i] = (struct program_kernel){.kernel.span = span, .in = in[i], .out = out[i]};
        item[i] = (struct program_item){.unit = &unit[i], .by_thread = &kernel[i]};
    }
    return (struct sweeps){.p = &p, .task = task, .n_tasks = TASKS, .end = ends, .n = SWEEPS};
}

static int make(void *world, int who, int does) {
    struct state *w = now = world;
    struct thread *t = &w->thread[who];
    struct sweeps s = make_sweeps();
    struct tasks view = {.step = (uint32_t)t->step, .thread = who, .rank = who, .ranks = threads,
                         .word = w->word, .undo = &w->undo[who].undo, .base = (char *)w};
    const struct program_step step = {.step = t->step};
    int begin_at = sweep_begin(&s, t->sweep), end_at = s.end[t->sweep], from = 0;
    struct claim held = t->held;
    t->doing = does;
    if (does == DRAW) {
        int task = tasks_claim(&view, begin_at, end_at, &held);
        t->held = held;
        return task;
    }
    if (does == LOOK) return tasks_complete(w->word, begin_at, end_at, view.step, &from);
    if (does == RUN) {
        if (sweep_run(&s, t->task, &held, &view, 0, &step)) tasks_done(&view, t->task, &held);
        return 0;
    }
    tasks_recover(w->word, TASKS, t->task, &w->undo[t->task].undo, (char *)w);
    return 0;
}

static void after(void *world, int who, int did, int result) {
    struct state *w = world;
    struct thread *t = &w->thread[who];
    if (did == RECOVER) w->thread[t->task].doing = t->doing = ABSENT;
    if (did == RUN) t->doing = DRAW;
    if (did == DRAW) {
        t->doing = result < 0 ? LOOK : RUN;
        t->task = result < 0 ? 0 : result;
    }
    if (did == LOOK && !result) t->doing = DRAW;
    if (did == LOOK && result) {
        t->doing = t->sweep + 1 < SWEEPS ? DRAW : REST;
        if (++t->sweep == SWEEPS && t->step == w->step) {
            check_step(w);
            w->step++;
        }
    }
    if (t->doing != RUN) t->held = (struct claim){0};
}

static void die(void *world, int who) {
    struct thread *t = &((struct state *)world)->thread[who];
    *t = (struct thread){.doing = who < threads ? DEAD : ABSENT};
}

static void other(void *world, const struct act *a) {
    struct state *w = world;
    struct thread *t = &w->thread[a->who];
    if (a->does == DIE) kill_actor(&w->w, a->who);
    if (a->does == JOIN || a->does == WAKE) *t = (struct thread){.doing = DRAW, .step = w->step};
    if (a->does == BURY) *t = (struct thread){.doing = RECOVER, .task = a->n};
}

/* ---- what may happen ---- */

static bool is_alive(const struct thread *t) { return t->doing < ABSENT; }

/* A thread that is not late finds a task or a complete sweep, unless another is at work. */
static void check_progress(const struct state *w) {
    struct state copy = *w;
    struct sweeps s = make_sweeps();
    bool idle = false;
    for (int i = 0; i <= threads; i++) {
        const struct thread *t = &w->thread[i];
        if (w->w.logged[i] || t->doing == RUN || t->doing == DEAD || t->doing == RECOVER) return;
        if (!is_alive(t) || t->step < w->step) continue;
        int begin_at = sweep_begin(&s, t->sweep), end_at = s.end[t->sweep], from = 0;
        idle = true;
        if (tasks_wait(copy.word, begin_at, end_at, (uint32_t)t->step) ||
            tasks_complete(copy.word, begin_at, end_at, (uint32_t)t->step, &from))
            return;
    }
    if (idle) broken("idle threads find what is to be done");
}

static void offer(const void *world) {
    const struct state *w = world;
    check_progress(w);
    for (int i = 0; i < threads; i++) {
        const struct thread *t = &w->thread[i];
        if (is_alive(t)) model_call(i, t->doing);
        if (is_alive(t) && w->w.deaths) model_other(i, DIE, 0);
        if (t->doing == ABSENT && w->step <= steps) model_other(i, JOIN, 0);
        if (t->doing == REST && w->step <= steps && w->step > t->step) model_other(i, WAKE, 0);
        if (t->doing == DEAD && !is_alive(&w->thread[threads])) model_other(threads, BURY, i);
    }
    if (is_alive(&w->thread[threads])) model_call(threads, RECOVER);
    if (w->w.logged[threads] && w->w.deaths) model_other(threads, DIE, 0);
}

static void check(const void *world) { (void)world; }

static uint64_t hash(const void *world) {
    const struct state *w = world;
    uint64_t h = mix(1, (uint64_t)w->step);
    for (int i = 0; i < TASKS; i++) h = mix(h, w->word[i]);
    for (int i = 0; i < PARTS; i++) h = mix(mix(h, (uint64_t)w->x[i]), (uint64_t)w->y[i]);
    h = mix(h, (uint64_t)w->z);
    for (int i = 0; i < threads; i++) {
        h = mix(mix(h, w->undo[i].undo.of), (uint64_t)w->undo[i].undo.n);
        h = mix(mix(h, w->undo[i].undo.range[0].at), (uint64_t)w->undo[i].values[0]);
    }
    for (int i = 0; i <= threads; i++) {
        const struct thread *t = &w->thread[i];
        h = mix(h, (uint64_t)(t->doing << 12 | t->step << 8 | t->sweep << 4 | t->task));
        h = mix(h, (uint64_t)t->held.value);
    }
    return h;
}

static void print(FILE *to, const void *world, const struct act *a) {
    static const char *const what[] = {"dies", "joins", "wakes", "recovers from"};
    const struct thread *t = &((const struct state *)world)->thread[a->who];
    fprintf(to, "%s (step %d, sweep %d, task %d)",
            a->what == OTHER ? what[a->does] : doing_name[a->does], t->step, t->sweep, t->task);
}

/* ---- what is tried ---- */

static void each_part_once(void **unused) {
    (void)unused;
    static const struct {
        int threads, steps, deaths, pauses;
    } rows[] = {{1, 2, -1, 1}, {2, 1, 2, 1}, {2, 2, 1, 1}, {2, 1, 1, 2}, {3, 1, 1, 0},
                {2, 2, 2, 2}, {3, 1, 1, 1}, {3, 2, 1, 1}};
    for (size_t i = 0; i < (all() ? COUNT(rows) : 5); i++) {
        const struct protocol p = {sizeof(struct state), rows[i].threads + 1, offer, make, after,
                                   die, other, check, hash, print, 0, 0};
        struct state begin_at = {.w = {.deaths = rows[i].deaths, .pauses = rows[i].pauses},
                                 .x = {1, 2}, .z = 5, .step = 1};
        now = &begin_at;
        threads = rows[i].threads;
        steps = rows[i].steps;
        for (int k = 0; k <= threads; k++)
            begin_at.thread[k] = (struct thread){.doing = k < threads ? DRAW : ABSENT, .step = 1};
        model_check(&p, &begin_at.w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_part_once)};
    return cmocka_run_group_tests_name("tasks", tests, NULL, NULL);
}
