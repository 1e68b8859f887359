/* SPDX-License-Identifier: Apache-2.0
 * The boards of two legs under the model checker (model.h): forward legs hand each lane's results
 * to backward legs in slots, which are let go when the backward leg is over. Threads claim legs in
 * the order of a track, compute legs that others are late with, are paused and die; one actor
 * recovers from deaths, another clears the boards for the next step. */
#include "model.h"

#include "crew/board.c"

#define MOST_LANES 4
#define MOST_THREADS 3
#define MOST_SLOTS 16
#define NODES (2 * MOST_LANES - 1)

/* The boards: where forward and backward legs are claimed, and what is handed over. */
enum { FORWARD, BACKWARD, HANDED, BOARDS };

enum doing {
    CLAIM,
    CLAIM_READER,
    TAKE_HANDED,
    TAKE_OWN,
    PUBLISH_HANDED,
    PUBLISH,
    RELEASE, /* no slot was free: another thread may have the lane */
    RECOVER,
    CLEAR,
    IDLE,
    ABSENT,
    DEAD
};
static const char *const doing_name[] = {
    "claim",   "claim reader", "take handed", "take own", "publish handed", "publish", "release",
    "recover", "clear",       "idle",     "absent",         "dead"};

struct thread {
    int doing, step, leg, lane; /* lane, of RECOVER: the dead thread */
    int own, handed;            /* slots that it holds; -1: none. handed, of a backward leg: what
                                 * it reads */
    bool again;                 /* another thread has claimed the leg */
};

/* What a slot for what is handed over contains: 1 + the lane, for its right value; WRITING +
 * thread; or RUBBISH. */
#define WRITING 0x100
#define RUBBISH 0x200

struct state {
    struct world w;
    uint64_t cell[BOARDS * NODES + MOST_SLOTS];
    int content[MOST_SLOTS];
    struct thread thread[MOST_THREADS + 2];
    int step, clearing;
};

/* ahead: forward legs before the first backward leg; 0: backward legs are another track's. kept:
 * lanes whose results are kept. */
static struct setup {
    int lanes, threads, ahead, kept, deaths, pauses, steps;
    bool twice;
    int pause_in;
} is;
static struct lane_tree tree;
static int own_slots, handed_slots;

static struct board board_of(const struct state *w, int which) {
    struct board b;
    claim_word *all = (claim_word *)(uintptr_t)w->cell;
    bool handed = which == HANDED;
    const struct board_words words = {all, all + BOARDS * NODES + (handed ? own_slots : 0),
                                      BOARDS * NODES, handed ? handed_slots : own_slots};
    board_bind(&b, &tree, &words, which * NODES, is.threads);
    return b;
}

static bool is_alive(const struct thread *h) { return h->doing < ABSENT; }

/* Calls below look at the boards without being scheduled. */
static bool is_over_at(const struct state *w, int which, int step, int lane) {
    struct board b = board_of(w, which);
    call.watched = false;
    return board_is_over(&b, (uint32_t)step, lane);
}

static bool is_complete(const struct state *w) {
    for (int i = 0; i < is.lanes; i++)
        if (!is_over_at(w, FORWARD, w->step, i) || !is_over_at(w, BACKWARD, w->step, i))
            return false;
    return true;
}

/* ---- calls ---- */

/* Turn i of the track: a leg of a lane, as leg * lanes + lane. First some forward legs, then
 * backward and forward in turn. */
static int turn_at(int i) {
    int first = is.ahead < is.lanes ? is.ahead : is.lanes, pairs = 2 * (is.lanes - first);
    if (i < first) return i;
    i -= first;
    if (i >= pairs) return is.lanes + pairs / 2 + (i - pairs);
    return i % 2 ? first + i / 2 : is.lanes + i / 2;
}

/* The first turn of a track that nobody has claimed; -1: it waits for its forward leg, or none is
 * left. */
static int claim_turn(const struct state *w, bool reader, uint32_t step, int who) {
    struct board before = board_of(w, FORWARD);
    int first = reader ? is.lanes : 0, end = is.ahead || reader ? 2 * is.lanes : is.lanes;
    for (int i = first; i < end; i++) {
        int turn = is.ahead ? turn_at(i) : i, leg = turn / is.lanes, lane = turn % is.lanes;
        struct board b = board_of(w, leg);
        if (!board_is_free(&b, step, lane)) continue;
        if (leg == BACKWARD && !board_is_done(&before, step, lane)) return -1;
        return board_claim(&b, step, who, lane) ? turn : -1;
    }
    return -1;
}

static int make_one(const struct state *w, const struct thread *h, int who, int doing) {
    const uint32_t step = (uint32_t)h->step;
    struct board own = board_of(w, h->leg), handed = board_of(w, HANDED);
    struct board back = board_of(w, BACKWARD);
    struct board *const reader = &back;
    switch (doing) {
    case CLAIM:
    case CLAIM_READER: return claim_turn(w, doing == CLAIM_READER, step, who);
    case TAKE_HANDED:
        board_let_go(&handed, step, &reader, 1);
        return board_take_handed(&handed, &own, step, who, h->lane, true);
    case TAKE_OWN: return board_take(&own, step, who, h->lane);
    case PUBLISH_HANDED: return board_publish(&handed, step, who, h->lane, h->handed);
    case PUBLISH: return board_publish(&own, step, who, h->lane, h->own);
    case RELEASE:
        if (!h->again) board_release(&own, step, who, h->lane);
        return 0;
    case RECOVER:
        for (int i = 0; i < BOARDS; i++) {
            struct board b = board_of(w, i);
            board_recover(&b, step, h->lane);
        }
        return 0;
    default:
        for (int i = 0; i < BOARDS; i++) {
            struct board b = board_of(w, i);
            board_clear(&b);
        }
        return 0;
    }
}

/* What the leg has computed, just before it is published. */
static void compute(struct state *w, int who) {
    struct thread *h = &w->thread[who];
    if (h->leg == FORWARD) {
        if (w->content[h->handed] != WRITING + who)
            broken("nobody else writes into a thread's slot");
        w->content[h->handed] = h->step == w->step ? 1 + h->lane : RUBBISH;
        return;
    }
    bool lost = h->step != w->step || w->clearing || is_over_at(w, BACKWARD, h->step, h->lane);
    if (!lost && w->content[h->handed] != 1 + h->lane)
        broken("what is handed over stays until the leg that reads it is over");
}

static int make(void *world, int who, int does) {
    struct state *w = world;
    struct thread *h = &w->thread[who];
    h->doing = does;
    bool computed = does == PUBLISH_HANDED || (does == PUBLISH && h->leg == BACKWARD);
    if (!w->w.logged[who] && computed) compute(w, who);
    call.watched = true;
    return make_one(w, h, who, does);
}

static struct thread thread_that(int doing, int step, int lane) {
    return (struct thread){.doing = doing, .step = step, .lane = lane, .own = -1, .handed = -1};
}

static void begin_leg(struct state *w, struct thread *h, int turn, bool again) {
    h->leg = turn / is.lanes;
    h->lane = turn % is.lanes;
    h->again = again;
    h->doing = h->leg == FORWARD ? TAKE_HANDED : TAKE_OWN;
    struct board handed = board_of(w, HANDED);
    call.watched = false;
    if (h->leg == BACKWARD) h->handed = board_slot_of(&handed, h->lane);
}

static void after(void *world, int who, int did, int result) {
    struct state *w = world;
    struct thread *h = &w->thread[who];
    switch (did) {
    case CLAIM:
    case CLAIM_READER:
        h->doing = IDLE;
        if (result >= 0) begin_leg(w, h, result, false);
        break;
    case TAKE_HANDED:
        h->handed = result;
        h->doing = result < 0 ? RELEASE : TAKE_OWN;
        if (result >= 0) w->content[result] = WRITING + who;
        break;
    case TAKE_OWN:
        h->own = result;
        h->doing = h->leg == FORWARD ? PUBLISH_HANDED : PUBLISH;
        break;
    case PUBLISH_HANDED:
        h->handed = -1;
        h->doing = PUBLISH;
        break;
    case PUBLISH:
    case RELEASE: *h = thread_that(IDLE, h->step, 0); break;
    case RECOVER:
        w->thread[h->lane].doing = ABSENT;
        *h = thread_that(ABSENT, 0, 0);
        break;
    default:
        w->clearing = 0;
        w->step++;
        *h = thread_that(ABSENT, 0, 0);
    }
}

/* ---- what must hold ---- */

static void check_handed(const struct state *w) {
    struct board b = board_of(w, HANDED);
    call.watched = false;
    for (int lane = 0; lane < is.lanes && !w->clearing; lane++) {
        struct claim node = look(&b, (uint32_t)w->step, lane);
        if (node.state != CLAIM_DONE || is_over_at(w, BACKWARD, w->step, lane)) continue;
        struct claim slot = claim_read(&b.slot[node.value]);
        if (!is_result(&node, node.value, &slot) || w->content[node.value] != 1 + lane)
            broken("what is handed over is right, and its slot held, while it may be read");
    }
}

/* Threads that do nothing find something to do, and a slot for it, unless another is at work. */
static void check_progress(const struct state *w) {
    bool any = false;
    if (w->clearing || w->step > is.steps || is_complete(w)) return;
    for (int i = 0; i < is.threads + 2; i++) {
        const struct thread *h = &w->thread[i];
        if (h->doing == DEAD || h->doing == RECOVER || w->w.logged[i]) return;
        if (is_alive(h) && (h->doing != IDLE || h->step < w->step)) return;
        any |= is_alive(h);
    }
    for (int i = 0; i < 2 * is.threads && any; i++) {
        struct state copy = *w;
        struct thread *h = &copy.thread[i / 2];
        call.watched = false;
        if (!is_alive(h) || (i % 2 && is.ahead)) continue;
        int turn = make_one(&copy, h, i / 2, i % 2 ? CLAIM_READER : CLAIM);
        if (turn < 0) continue;
        begin_leg(&copy, h, turn, false);
        if (h->leg == BACKWARD || make_one(&copy, h, i / 2, TAKE_HANDED) >= 0) return;
    }
    if (any) broken("threads that do nothing find what is to be done, and a free slot");
}

static void check(const void *world) {
    const struct state *w = world;
    check_handed(w);
    check_progress(w);
}

/* ---- what may happen ---- */

enum { DIE, JOIN, WAKE, TWICE, BURY, BEGIN_CLEAR };

static void die(void *world, int who) {
    struct state *w = world;
    w->thread[who] = thread_that(who < is.threads ? DEAD : ABSENT, 0, 0);
}

static void other(void *world, const struct act *a) {
    struct state *w = world;
    struct thread *h = &w->thread[a->who];
    if (a->does == DIE) kill_actor(&w->w, a->who);
    if (a->does == JOIN || a->does == WAKE) *h = thread_that(IDLE, w->step, 0);
    if (a->does == TWICE) begin_leg(w, h, a->n, true);
    if (a->does == BURY) *h = thread_that(RECOVER, w->step, a->n);
    if (a->does == BEGIN_CLEAR) {
        *h = thread_that(CLEAR, w->step, 0);
        w->clearing = 1;
    }
}

static void offer_twice(const struct state *w, int who) {
    for (int leg = FORWARD; leg <= BACKWARD; leg++)
        for (int lane = 0; lane < is.lanes; lane++) {
            struct board b = board_of(w, leg);
            call.watched = false;
            struct claim c = look(&b, (uint32_t)w->step, lane);
            if (c.state == CLAIM_TAKEN && c.owner != who)
                model_other(who, TWICE, leg * is.lanes + lane);
        }
}

static void offer(const void *world) {
    const struct state *w = world;
    int recoverer = is.threads, clearer = recoverer + 1;
    for (int i = 0; i < is.threads; i++) {
        const struct thread *h = &w->thread[i];
        bool open = w->step <= is.steps;
        if (h->doing == IDLE && h->step == w->step && !w->clearing) {
            model_call(i, CLAIM);
            if (!is.ahead) model_call(i, CLAIM_READER);
            if (is.twice) offer_twice(w, i);
        } else if (is_alive(h) && h->doing != IDLE) {
            model_call(i, h->doing);
        }
        if (is_alive(h) && w->w.deaths != 0) model_other(i, DIE, 0);
        if (h->doing == ABSENT && open) model_other(i, JOIN, 0);
        if (h->doing == IDLE && open && h->step < w->step) model_other(i, WAKE, 0);
    }
    for (int i = recoverer; i <= clearer; i++)
        if (is_alive(&w->thread[i])) model_call_of(i, w->thread[i].doing, true, false);
    for (int i = 0; i < is.threads; i++)
        if (w->thread[i].doing == DEAD && !is_alive(&w->thread[recoverer]))
            model_other(recoverer, BURY, i);
    if (w->step <= is.steps && !is_alive(&w->thread[clearer]) && is_complete(w))
        model_other(clearer, BEGIN_CLEAR, 0);
}

static uint64_t hash(const void *world) {
    const struct state *w = world;
    uint64_t h = mix((uint64_t)w->step, (uint64_t)w->clearing);
    for (size_t i = 0; i < COUNT(w->cell); i++) h = mix(h, w->cell[i]);
    for (int i = 0; i < MOST_SLOTS; i++) h = mix(h, (uint64_t)w->content[i]);
    for (int i = 0; i < is.threads + 2; i++) {
        const struct thread *t = &w->thread[i];
        const int all[] = {t->doing, t->step, t->leg, t->lane, t->own, t->handed, t->again};
        for (size_t k = 0; k < COUNT(all); k++) h = mix(h, (uint64_t)(all[k] + 1));
    }
    return h;
}

static void print(FILE *to, const void *world, const struct act *a) {
    static const char *const others[] = {"dies", "joins", "wakes", "computes again", "buries",
                                         "begins to clear"};
    const struct state *w = world;
    const struct thread *h = &w->thread[a->who];
    if (a->what == OTHER) fprintf(to, "%s (%d)", others[a->does], a->n);
    else fprintf(to, "%s, leg %d, lane %d", doing_name[a->does], h->leg, h->lane);
}

static void search_one(const struct setup *setup) {
    struct state begin = {.step = 1};
    is = *setup;
    own_slots = 2 * is.lanes + is.threads;
    handed_slots = is.kept + 1; /* as src/machine/tree.c counts them */
    assert_true(own_slots + handed_slots <= MOST_SLOTS);
    assert_int_equal(lane_tree_make(is.lanes, 16, &tree), TRI_OK);
    begin.w.deaths = is.deaths;
    begin.w.pauses = is.pauses;
    for (int i = 0; i < is.threads + 2; i++)
        begin.thread[i] = thread_that(i < is.threads ? IDLE : ABSENT, 1, 0);
    const struct protocol protocol = {
        .bytes = sizeof begin, .actors = is.threads + 2, .offer = offer, .call = make,
        .after = after, .die = die, .other = other, .check = check, .hash = hash, .print = print,
        .pause_in = is.pause_in};
    model_check(&protocol, &begin.w);
    lane_tree_free(&tree);
}

static void any_order(void **state) {
    (void)state;
    static const struct setup few[] = {
        /* lanes, threads, ahead, kept, deaths, pauses, steps, twice, pause in */
        {2, 1, 1, 1, -1, 1, 1, false, 0}, {2, 1, 2, 2, 1, 1, 2, false, 0},
        {3, 1, 2, 2, -1, 0, 1, false, 0}, {1, 2, 1, 1, 1, 1, 1, true, 0},
        {2, 2, 1, 1, 1, 0, 1, true, 0},   {2, 2, 1, 1, 0, 1, 1, true, 0},
        {3, 2, 1, 1, 1, 0, 1, false, 0},  {2, 2, 1, 1, 1, 0, 2, false, 0},
        {2, 2, 2, 2, 0, 1, 1, true, PUBLISH}, {2, 2, 0, 1, 1, 0, 1, false, 0},
        {3, 2, 0, 1, 1, 0, 1, false, 0},  {3, 2, 0, 2, 1, 0, 1, false, 0},
        {2, 2, 0, 1, 0, 0, 1, true, 0}};
    static const struct setup more[] = {
        {2, 2, 2, 2, 1, 0, 1, true, 0},
        {2, 2, 1, 1, 1, 1, 1, true, 0},  {3, 2, 2, 2, 1, 0, 1, true, 0},
        {2, 2, 2, 2, 1, 0, 2, true, 0},  {2, 3, 2, 2, 0, 0, 1, true, 0},
        {4, 2, 2, 2, 0, 0, 1, true, 0},  {2, 2, 1, 1, 2, 0, 1, false, 0},
        {3, 3, 2, 2, 1, 0, 1, false, 0}, {3, 2, 2, 2, 0, 0, 1, true, 0},
        {3, 3, 0, 2, 1, 0, 1, false, 0}, {3, 2, 0, 1, 2, 0, 1, false, 0}};
    for (size_t i = 0; i < COUNT(few); i++) search_one(&few[i]);
    for (size_t i = 0; i < COUNT(more) && all(); i++) search_one(&more[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_order)};
    return cmocka_run_group_tests_name("legs", tests, NULL, NULL);
}
