/* SPDX-License-Identifier: Apache-2.0
 * The lane board under the model checker (model.h). Threads claim, compute, sum and publish in
 * any order, are paused and die; one actor recovers from deaths, another clears the board for
 * the next step. Steps may be of two shapes that take turns, and have a board for each of several
 * buckets. */
#ifndef BOARD_MODEL_H
#define BOARD_MODEL_H

#include "model.h"

#include "crew/board.c"

/* ---- the world ---- */

#define MOST_LANES 8
#define MOST_THREADS 3
#define MOST_SLOTS 24
#define SHAPES 2
#define BUCKETS 3
#define MOST_CELLS (SHAPES * BUCKETS * (2 * MOST_LANES - 1) + MOST_SLOTS)

/* The call that a thread is in, or will make next; the last four are none. */
enum doing {
    DRAW,
    ORPHAN,
    LOOK,
    TAKE,
    PUBLISH,
    FAIL,
    MEET,
    RECOVER,
    CLEAR,
    IDLE, /* will claim a lane, or an orphan, or see whether the step is complete, in any order */
    ABSENT,
    DEAD,
    REST, /* has seen that the step is complete */
};
static const char *const doing_name[] = {
    "draw",    "orphan", "complete", "take",   "publish", "fail", "meet",
    "recover", "clear",  "idle",     "absent", "dead",    "rest"};

struct thread {
    int doing, step;
    int node, slot;  /* node, of RECOVER: the dead thread */
    int lane, kept;  /* its slot, while the lane's early results are made and summed; else -1 */
    int left, right; /* slots of a sum's operands */
};

/* What a slot contains: 1 + the index of a node, for its right value; WRITING + thread; or
 * RUBBISH. */
#define WRITING 0x100
#define RUBBISH 0x200

/* thread: those that compute; the one that recovers; the one that clears. */
struct state {
    struct world w;
    uint64_t cell[MOST_CELLS];
    int content[MOST_SLOTS];
    struct thread thread[MOST_THREADS + 2];
    int step, clearing;
};

struct setup {
    int lanes, threads, levels;
    int deaths, pauses; /* deaths < 0: any number */
    int steps;
    bool twice;    /* idle threads compute lanes that others have claimed */
    int failing;   /* a bit for each lane that fails */
    int other;     /* lanes of even steps, which have a shape of their own; 0: all have one */
    int buckets;
};

/* How threads proceed. */
struct manner {
    enum { ANY_ORDER, DRAWS_FIRST, ORPHANS_FIRST } policy;
    bool ample;   /* slots that are enough in any order; else as many as board.h says */
    int pause_in; /* see struct protocol */
    int pause_at;
};

/* Changes that are no calls. */
enum { DIE, JOIN, WAKE, TWICE, BURY, BEGIN_CLEAR };

static struct given {
    struct setup is;
    struct manner how;
    struct lane_tree tree[SHAPES];
    int shapes, nodes, first[SHAPES]; /* nodes: of all boards */
    int slots, most_used;
} given;

static int shape_of(const struct given *m, int step) { return (step + 1) % m->shapes; }
static const struct lane_tree *tree_of(const struct given *m, int step) {
    return &m->tree[shape_of(m, step)];
}
/* A step's nodes are those of its boards: the last bucket's, where lanes are claimed, and then the
 * early ones'. */
static int nodes_of(const struct given *m, int step) {
    return m->is.buckets * tree_of(m, step)->n_nodes;
}
/* Where the nodes of a node's board begin. */
static int first_of(const struct given *m, int step, int node) {
    return node - node % tree_of(m, step)->n_nodes;
}
static const struct lane_node *node_of(const struct given *m, int step, int node) {
    return &tree_of(m, step)->node[node % tree_of(m, step)->n_nodes];
}
/* The index of a step's node among those of all boards. */
static int place_in_all(const struct given *m, int step, int node) {
    return m->first[shape_of(m, step)] + node;
}

static struct board board_of(struct given *m, const struct state *w, int step, int first) {
    struct board b;
    claim_word *all = (claim_word *)(uintptr_t)w->cell;
    const struct board_words words = {all, all + m->nodes, m->nodes, m->slots};
    board_bind(&b, tree_of(m, step), &words, place_in_all(m, step, first), m->is.threads);
    return b;
}

static struct claim node_at(const struct given *m, const struct state *w, int step, int node) {
    return claim_unpack(w->cell[place_in_all(m, step, node)]);
}

static struct claim slot_at(const struct given *m, const struct state *w, int slot) {
    return claim_unpack(w->cell[m->nodes + slot]);
}

static bool is_done_in(const struct given *m, const struct state *w, int step, int node) {
    struct claim n = node_at(m, w, step, node);
    return n.state == CLAIM_DONE && (int)n.step == step;
}

/* ---- checks of a state ---- */

/* A sum or lane of the step that is published and may still be read. */
static bool is_needed(const struct given *m, const struct state *w, int node) {
    int parent = node_of(m, w->step, node)->parent, first = first_of(m, w->step, node);
    return is_done_in(m, w, w->step, node) &&
           (parent < 0 || !is_done_in(m, w, w->step, first + parent));
}

static void check_values(const struct given *m, const struct state *w) {
    for (int i = 0; i < nodes_of(m, w->step); i++) {
        if (w->clearing || !is_needed(m, w, i)) continue;
        struct claim node = node_at(m, w, w->step, i), slot = slot_at(m, w, node.value);
        int place = place_in_all(m, w->step, i);
        if (slot.state != CLAIM_TAKEN || slot.step != node.step || slot.owner != node.owner ||
            slot.value != place)
            broken("a published value's slot is held for it");
        if (w->content[node.value] != place + 1) broken("a published value is right");
    }
}

static bool is_alive(const struct thread *h) { return h->doing < ABSENT; }

static bool holds(const struct given *m, const struct thread *h, int slot, int place) {
    return (h->slot == slot && place_in_all(m, h->step, h->node) == place) ||
           (h->kept == slot && place_in_all(m, h->step, h->lane) == place);
}

/* A thread that is not in a call holds its slots. */
static void check_threads(const struct given *m, const struct state *w) {
    for (int i = 0; i < 2 * m->is.threads; i++) {
        const struct thread *h = &w->thread[i / 2];
        int at = i % 2 ? h->kept : h->slot;
        if (at < 0 || !is_alive(h) || w->w.logged[i / 2]) continue;
        struct claim slot = slot_at(m, w, at);
        if (slot.state != CLAIM_TAKEN || (uint32_t)h->step - slot.step > 1 || slot.owner != i / 2 ||
            !holds(m, h, at, slot.value))
            broken("a thread's slot is held by it");
        if (w->content[at] != WRITING + i / 2) broken("nobody else writes into a thread's slot");
    }
}

static bool has_reason(const struct given *m, const struct state *w, int slot) {
    struct claim s = slot_at(m, w, slot);
    const struct thread *h = &w->thread[s.owner];
    if (s.owner < m->is.threads && is_alive(h) && holds(m, h, slot, s.value)) return true;
    int own = s.value - place_in_all(m, w->step, 0); /* else of another shape, whose step is over */
    if (own < 0 || own >= nodes_of(m, w->step)) return false;
    struct claim node = node_at(m, w, w->step, own);
    return node.state == CLAIM_DONE && node.value == slot && node.owner == s.owner &&
           node.step == s.step && is_needed(m, w, own);
}

/* Unless a thread is in a call, or dead and not recovered from, each slot is held for a reason. */
static void check_slots(struct given *m, const struct state *w) {
    int used = 0;
    bool quiet = !w->clearing;
    for (int i = 0; i < m->is.threads + 2; i++)
        quiet = quiet && !w->w.logged[i] && w->thread[i].doing != DEAD &&
                w->thread[i].doing != RECOVER;
    for (int i = 0; i < m->slots; i++) {
        if (slot_at(m, w, i).state != CLAIM_TAKEN) continue;
        used++;
        if (quiet && !has_reason(m, w, i)) broken("a slot that nobody needs is released");
    }
    if (used > m->most_used) m->most_used = used;
}

/* 0: the step is complete. 1 + the first failed lane, where all others are computed. Else -1. */
static int look_at(struct given *m, const struct state *w, int step) {
    bool complete = true;
    int n = tree_of(m, step)->n_nodes, failed = -1;
    for (int first = nodes_of(m, step) - n; first >= 0; first -= n) {
        struct board b = board_of(m, w, step, first);
        complete &= board_complete(&b, (uint32_t)step, &failed);
    }
    return complete ? 0 : failed >= 0 ? failed + 1 : -1;
}

static bool is_over(struct given *m, const struct state *w) {
    call.watched = false;
    return w->step > m->is.steps || look_at(m, w, w->step) >= 0;
}

static int call_board(struct given *m, struct state *w, int who);

/* An idle thread finds something to do, unless another is at work. */
static void check_progress(struct given *m, const struct state *w) {
    int idle = 0;
    if (w->clearing || is_over(m, w)) return;
    for (int i = 0; i < m->is.threads + 2; i++) {
        const struct thread *h = &w->thread[i];
        if (h->doing == DEAD || h->doing == RECOVER || w->w.logged[i]) return;
        if (is_alive(h) && (h->doing != IDLE || h->step < w->step)) return;
        idle += is_alive(h);
    }
    struct state copy = *w;
    for (int i = 0; i < m->is.threads; i++)
        for (copy.thread[i].doing = DRAW; is_alive(&w->thread[i]) && copy.thread[i].doing <= ORPHAN;
             copy.thread[i].doing++)
            if (call_board(m, &copy, i) >= 0) return;
    if (idle) broken("idle threads find what is to be done");
}

/* result: as look_at gives it. */
static void check_complete(const struct given *m, const struct state *w, const struct thread *h,
                           int result) {
    if (h->step != w->step || w->clearing) return;
    for (int i = 0; i < nodes_of(m, w->step) && result == 0; i++)
        if (node_of(m, w->step, i)->top >= 0 && !is_done_in(m, w, w->step, i))
            broken("a complete step's tops are there");
    for (int i = 0; i < result; i++)
        if ((m->is.failing >> i & 1) != (i == result - 1))
            broken("the first failed lane is reported");
}

static void check_first(const struct given *m, const struct state *w, int who) {
    const struct thread *h = &w->thread[who];
    struct claim node = node_at(m, w, h->step, h->node);
    if (h->step != w->step || w->clearing) return;
    if (node.state != CLAIM_DONE || node.owner != who || node.value != h->slot)
        broken("board_publish returns true only to the thread whose result counts");
}

/* ---- what threads do ---- */

/* first: of the board's nodes. */
static int call_one(struct given *m, struct state *w, int who, int first) {
    struct thread *h = &w->thread[who];
    /* The board is cleared for the step that is opened next. */
    struct board b = board_of(m, w, h->doing == CLEAR ? h->step + 1 : h->step, first);
    uint32_t step = (uint32_t)h->step;
    int node = h->node - first;
    switch (h->doing) {
    case DRAW: return board_claim_lane(&b, step, who);
    case ORPHAN: node = board_orphan(&b, step, who); break;
    case TAKE: return board_take(&b, step, who, node);
    case PUBLISH: return board_publish(&b, step, who, node, h->slot);
    case FAIL:
        board_drop(&b, step, who, node, h->slot);
        if (first == 0) board_fail(&b, step, who, node);
        return 0;
    case MEET: node = board_meet(&b, step, who, node); break;
    case RECOVER: board_recover(&b, step, h->node); return -1;
    default: board_clear(&b); return 0;
    }
    return node < 0 ? -1 : first + node;
}

/* Of the node's board, or of all in turn. */
static int call_board(struct given *m, struct state *w, int who) {
    const struct thread *h = &w->thread[who];
    bool each = h->doing == ORPHAN || h->doing == RECOVER;
    int n = tree_of(m, h->step)->n_nodes, first = each ? 0 : first_of(m, h->step, h->node);
    if (h->doing == LOOK) return look_at(m, w, h->step);
    int result = call_one(m, w, who, first);
    for (first += n; each && result < 0 && first < nodes_of(m, h->step); first += n)
        result = call_one(m, w, who, first);
    return result;
}

/* The thread has claimed a node, and finds where the operands are. */
static void has_claimed(const struct given *m, struct state *w, struct thread *h, int node) {
    const struct lane_node *n = node_of(m, h->step, node);
    int first = first_of(m, h->step, node);
    h->node = node;
    h->doing = TAKE;
    h->left = n->left < 0 ? 0 : node_at(m, w, h->step, first + n->left).value;
    h->right = n->left < 0 ? 0 : node_at(m, w, h->step, first + n->right).value;
}

/* What the thread has computed. A late one may find rubbish as operands; nobody uses its sum. */
static void compute(const struct given *m, struct state *w, int who) {
    struct thread *h = &w->thread[who];
    const struct lane_node *n = node_of(m, h->step, h->node);
    int place = place_in_all(m, h->step, first_of(m, h->step, h->node));
    if (w->content[h->slot] != WRITING + who) broken("nobody else writes into a thread's slot");
    bool right = n->left < 0 || (w->content[h->left] == place + n->left + 1 &&
                                 w->content[h->right] == place + n->right + 1);
    if (!right && h->step == w->step && !w->clearing) broken("operands stay until they are summed");
    w->content[h->slot] = right ? place_in_all(m, h->step, h->node) + 1 : RUBBISH;
}

static bool fails(const struct given *m, const struct thread *h) {
    return node_of(m, h->step, h->node)->left < 0 &&
           m->is.failing >> (h->node - first_of(m, h->step, h->node)) & 1;
}

static void after_take(struct given *m, struct state *w, int who, int slot) {
    struct thread *h = &w->thread[who];
    int n = tree_of(m, h->step)->n_nodes;
    w->content[slot] = WRITING + who;
    if (h->node < tree_of(m, h->step)->lanes && m->is.buckets > 1) {
        h->lane = h->node;
        h->kept = slot;
        h->node += n;
        return;
    }
    h->slot = slot;
    h->doing = h->node < n && fails(m, h) ? FAIL : PUBLISH;
}

/* If the thread has made early results of a lane, it goes on with the lane. */
static void next_part(const struct given *m, struct thread *h, bool failed) {
    int next = first_of(m, h->step, h->node) + tree_of(m, h->step)->n_nodes;
    bool early = !failed && next < nodes_of(m, h->step);
    h->left = h->right = 0;
    h->doing = IDLE;
    if (h->kept < 0) return;
    h->doing = early ? TAKE : PUBLISH;
    h->node = h->lane + (early ? next : 0);
    if (early) return;
    if (fails(m, h)) h->doing = FAIL;
    h->slot = h->kept;
    h->kept = -1;
    h->lane = 0;
}

static void after(void *world, int who, int did, int result) {
    struct given *m = &given;
    struct state *w = world;
    struct thread *h = &w->thread[who];
    if (did == TAKE) {
        after_take(m, w, who, result);
    } else if (did == PUBLISH || did == FAIL) {
        if (did == PUBLISH && result) check_first(m, w, who);
        h->slot = -1;
        if (did == PUBLISH && result) h->doing = MEET;
        else next_part(m, h, did == FAIL);
    } else if (did == LOOK) {
        check_complete(m, w, h, result);
        h->doing = result >= 0 ? REST : IDLE;
    } else if (did == RECOVER) {
        w->thread[h->node].doing = ABSENT;
        h->doing = ABSENT;
    } else if (did == CLEAR) {
        w->clearing = 0;
        w->step++;
        h->doing = ABSENT;
    } else if (result >= 0) {
        has_claimed(m, w, h, result);
    } else {
        next_part(m, h, false);
    }
    if (h->doing >= IDLE) h->node = h->left = h->right = 0;
}

static int make(void *world, int who, int does) {
    struct state *w = world;
    struct thread *h = &w->thread[who];
    h->doing = does;
    if (!w->w.logged[who] && does == PUBLISH) compute(&given, w, who);
    return call_board(&given, w, who);
}

static struct thread thread_that(int doing, int step, int node) {
    return (struct thread){.doing = doing, .step = step, .node = node, .slot = -1, .kept = -1};
}

static void die(void *world, int who) {
    struct state *w = world;
    w->thread[who] = thread_that(who < given.is.threads ? DEAD : ABSENT, 0, 0);
}

static void other(void *world, const struct act *a) {
    struct state *w = world;
    struct thread *h = &w->thread[a->who];
    if (a->does == DIE) kill_actor(&w->w, a->who);
    if (a->does == JOIN || a->does == WAKE) *h = thread_that(IDLE, w->step, 0);
    if (a->does == TWICE) {
        h->node = a->n;
        h->doing = TAKE;
    }
    if (a->does == BURY) *h = thread_that(RECOVER, w->step, a->n);
    if (a->does == BEGIN_CLEAR) {
        *h = thread_that(CLEAR, w->step, 0);
        w->clearing = 1;
    }
}

/* ---- what may happen ---- */

/* Claims lanes first, or orphans first, or does anything in any order. */
static bool may_begin(struct given *m, const struct state *w, int who, int call_of) {
    int before = m->how.policy == DRAWS_FIRST ? DRAW : ORPHAN;
    if (m->how.policy == ANY_ORDER || call_of == before || call_of == LOOK) return true;
    struct state copy = *w;
    copy.thread[who].doing = before;
    call.watched = false;
    return call_board(m, &copy, who) < 0;
}

static void offer_idle(struct given *m, const struct state *w, int who) {
    const struct lane_tree *t = tree_of(m, w->step);
    for (int c = DRAW; c <= LOOK; c++)
        if (may_begin(m, w, who, c)) model_call(who, c);
    for (int i = 0; i < t->lanes && m->is.twice && w->thread[who].step == w->step; i++) {
        struct claim node = node_at(m, w, w->step, i);
        if (node.state == CLAIM_TAKEN && (int)node.step == w->step && node.owner != who)
            model_other(who, TWICE, i);
    }
}

static void offer_thread(struct given *m, const struct state *w, int who) {
    const struct thread *h = &w->thread[who];
    bool open = w->step <= m->is.steps;
    if (h->doing == IDLE) offer_idle(m, w, who);
    else if (is_alive(h)) model_call(who, h->doing);
    if (h->doing == PUBLISH && h->kept >= 0 && !w->w.logged[who] && fails(m, h))
        model_call(who, FAIL);
    if (is_alive(h) && w->w.deaths != 0) model_other(who, DIE, 0);
    if (h->doing == ABSENT && open) model_other(who, JOIN, 0);
    if (h->doing == REST && open && w->step > h->step) model_other(who, WAKE, 0);
}

static void offer_helper(const struct state *w, int who) {
    const struct thread *h = &w->thread[who];
    if (!is_alive(h)) return;
    model_call(who, h->doing);
    if (w->w.logged[who] && w->w.deaths != 0) model_other(who, DIE, 0);
}

static void offer(const void *world) {
    struct given *m = &given;
    const struct state *w = world;
    int recoverer = m->is.threads, clearer = recoverer + 1;
    check_progress(m, w);
    for (int i = 0; i < m->is.threads; i++) offer_thread(m, w, i);
    offer_helper(w, recoverer);
    offer_helper(w, clearer);
    for (int i = 0; i < m->is.threads; i++)
        if (w->thread[i].doing == DEAD && !is_alive(&w->thread[recoverer]))
            model_other(recoverer, BURY, i);
    if (!m->is.failing && w->step <= m->is.steps && !is_alive(&w->thread[clearer]) &&
        is_over(m, w))
        model_other(clearer, BEGIN_CLEAR, 0);
}

static void check(const void *world) {
    check_values(&given, world);
    check_threads(&given, world);
    check_slots(&given, world);
}

/* ---- states ---- */

/* Which slots are taken matters only to a thread that is paused in a call: `as` numbers them by
 * what they hold, so that states that differ only in the slots' numbers are one. */
static bool number_slots(const struct given *m, const struct state *w, int as[MOST_SLOTS]) {
    bool paused = false;
    for (int i = 0; i < m->is.threads + 2; i++) paused = paused || w->w.logged[i];
    for (int i = 0; i < m->slots; i++) {
        struct claim s = slot_at(m, w, i);
        as[i] = paused ? i : 0;
        for (int k = 0; k < m->slots && !paused; k++) {
            struct claim o = slot_at(m, w, k);
            uint64_t mine = s.state == CLAIM_FREE ? 0 : s.seen;
            uint64_t other = o.state == CLAIM_FREE ? 0 : o.seen;
            as[i] += other > mine || (other == mine && k < i);
        }
    }
    return paused;
}

static uint64_t hash(const void *world) {
    const struct given *m = &given;
    const struct state *w = world;
    uint64_t h = mix(1, (uint64_t)(w->step << 8 | w->clearing));
    int as[MOST_SLOTS], content[MOST_SLOTS];
    uint64_t slot[MOST_SLOTS];
    bool paused = number_slots(m, w, as);
    for (int i = 0; i < m->slots; i++) {
        bool used = slot_at(m, w, i).state != CLAIM_FREE;
        slot[as[i]] = used ? w->cell[m->nodes + i] : 0;
        content[as[i]] = used ? w->content[i] : 0;
    }
    for (int i = 0; i < m->nodes; i++) {
        struct claim n = claim_unpack(w->cell[i]);
        struct claim s = slot_at(m, w, n.value);
        bool there =
            s.state == CLAIM_TAKEN && s.step == n.step && s.owner == n.owner && s.value == i;
        if (n.state == CLAIM_DONE && !paused) n.value = there ? as[n.value] : MOST_SLOTS;
        h = mix(h, pack(n.step, n.state, n.owner, n.value));
    }
    for (int i = 0; i < m->slots; i++) h = mix(mix(h, slot[i]), (uint64_t)content[i]);
    for (int i = 0; i < m->is.threads + 2; i++) {
        const struct thread *a = &w->thread[i];
        int at = a->slot < 0 ? 0 : as[a->slot] + 1, kept = a->kept < 0 ? 0 : as[a->kept] + 1;
        h = mix(h, (uint64_t)(a->doing << 24 | a->step << 16 | a->lane << 8 | kept));
        h = mix(h, (uint64_t)(a->node << 24 | at << 16 | as[a->left] << 8 | as[a->right]));
    }
    return h;
}

/* The same slots serve all shapes. */
static void make_trees(struct given *m) {
    const int lanes[SHAPES] = {m->is.lanes, m->is.other};
    for (; m->shapes < SHAPES && lanes[m->shapes]; m->shapes++) {
        struct lane_tree *t = &m->tree[m->shapes];
        assert_int_equal(lane_tree_make(lanes[m->shapes], m->is.levels, t), TRI_OK);
        int n = m->is.threads, k = m->is.buckets;
        int open = k < 2 ? k : 2;
        int enough = k * board_waiting(t, n) + board_held(t, n, open, true);
        int slots = m->how.ample ? k * t->lanes + 2 * open * n + 1 : enough;
        if (slots > m->slots) m->slots = slots;
        m->first[m->shapes] = m->nodes;
        m->nodes += k * t->n_nodes;
        assert_true(t->lanes <= MOST_LANES && k >= 1 && k <= BUCKETS);
    }
}

static void print(FILE *to, const void *world, const struct act *a) {
    static const char *const what[] = {"dies",          "joins", "wakes", "computes again lane",
                                       "recovers from", "clears"};
    const struct thread *h = &((const struct state *)world)->thread[a->who];
    fprintf(to, "%s (node %d, slot %d, step %d)",
            a->what == OTHER ? what[a->does] : doing_name[a->does], h->node, h->slot, h->step);
}

/* ---- all of it ---- */

static void search_all(const struct setup *is, size_t n, const struct manner *how) {
    for (; n; n--, is++) {
        struct protocol p = {sizeof(struct state), is->threads + 2, offer, make, after, die, other,
                             check, hash, print, how->pause_in, how->pause_at};
        struct state begin = {.w = {.deaths = is->deaths, .pauses = is->pauses}, .step = 1};
        given = (struct given){.is = *is, .how = *how};
        make_trees(&given);
        assert_true(is->threads <= MOST_THREADS && given.slots <= MOST_SLOTS);
        for (int i = 0; i < is->threads + 2; i++)
            begin.thread[i] = thread_that(i < is->threads ? IDLE : ABSENT, 1, 0);
        if (getenv("BOARD_SAY"))
            fprintf(stderr,
                    "%d lanes (%d in even steps), %d buckets, %d threads, %d levels, %d deaths, "
                    "%d pauses, %d steps: ",
                    is->lanes, is->other ? is->other : is->lanes, is->buckets, is->threads,
                    is->levels, is->deaths, is->pauses, is->steps);
        model_check(&p, &begin.w);
        if (given.most_used > given.slots)
            fail_msg("%d slots used, %d planned", given.most_used, given.slots);
        for (int i = 0; i < given.shapes; i++) lane_tree_free(&given.tree[i]);
    }
}

#endif
