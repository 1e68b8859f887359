/* SPDX-License-Identifier: Apache-2.0
 * Groups (crew/group.h) and a lane board under the model checker (model.h). Workers do what
 * run/worker_replica.c does: they enter a stage; a captain claims lanes and gives orders, the
 * others of its group follow; they die, and join again; they lose their ranks, as if the number of
 * workers changed. One actor is the agent, which recovers from deaths as launch/deaths.c does;
 * another opens the next step. */
#ifndef GROUP_MODEL_H
#define GROUP_MODEL_H

#include "model.h"

#include "base/wait.h"
#include "crew/board.c"

/* ---- the accesses of the code under test; a death may follow any write ---- */

static int seen_int(const atomic_int *cell) {
    return (int)seen_value((uint64_t)atomic_load(cell));
}

static void store_int(atomic_int *cell, int value) {
    if (seen_effect()) atomic_store(cell, value);
    point_reached("store");
}

static void store_word(_Atomic uint64_t *cell, uint64_t value) {
    if (seen_effect()) atomic_store(cell, value);
    point_reached("store");
}

static bool swap_int(atomic_int *cell, int *from, int to) {
    bool now = !call.watched || call.accesses >= call.logged;
    int is = seen_int(cell), want = *from;
    if (is == want && now) atomic_store(cell, to);
    if (is == want) point_reached("swap");
    *from = is;
    return is == want;
}

static bool swap_word(_Atomic uint64_t *cell, uint64_t *from, uint64_t to) {
    bool now = !call.watched || call.accesses >= call.logged;
    uint64_t is = seen_load(cell), want = *from;
    if (is == want && now) atomic_store(cell, to);
    if (is == want) point_reached("swap");
    *from = is;
    return is == want;
}

#undef atomic_load
#undef atomic_store
#undef atomic_compare_exchange_strong
#undef atomic_compare_exchange_weak
#undef CLAIM_POINT
#define atomic_load(cell) \
    _Generic((cell), atomic_int *: seen_int, const atomic_int *: seen_int, default: seen_load)(cell)
#define atomic_store(cell, value) \
    _Generic((cell), atomic_int *: store_int, default: store_word)(cell, value)
#define atomic_compare_exchange_strong(cell, from, to) swap_int(cell, from, to)
#define atomic_compare_exchange_weak(cell, from, to) swap_word(cell, from, to)
#define CLAIM_POINT(where) ((void)0)
#define wait_wake(queue) ((void)(queue))
#include "crew/group.c"

/* ---- the world ---- */

#define MOST_WORKERS 4
#define MOST_GROUPS 2
#define MOST_ROLES 3
#define MOST_LANES 3
#define MOST_NODES (2 * MOST_LANES - 1)
#define MOST_SLOTS 12
#define GROUP_BYTES 256

/* The call that an actor is in, or will make next; from OUT on none, or any of several. */
enum doing {
    ENTER, LEAD, FIND, LEAVE, BEGIN, CLAIM, REPEAT, TAKE, GATHER, ORDER, WORK, SHARE, GIVE_UP,
    CALM, CLOSE, END, DROP, SETTLE, PUBLISH, MEET, RESIGN, WATCH, TELL, TRY, RECOVER, CLEAR,
    OUT,  /* takes part in no stage; a captain whose members are late still holds its slot */
    IN,   /* will follow, lead, or see that the stage is over */
    IDLE, /* the captain, between two lanes or sums */
    LATE, /* the captain, whose members are late with an order that was given up */
    ABSENT, DEAD, TOLD /* dead; the groups know */
};
static const char *const doing_name[] = {
    "enters", "lead", "find", "leaves", "begin", "claims", "claims again", "take",
    "waits to order", "order", "works", "share", "give up", "waits for quiet", "close", "end",
    "drops", "settles", "publish", "meet", "resigns", "watches", "tells groups of",
    "looks at", "recovers from", "clears"};
/* A call is numbered ON(doing, whom): which dead worker, or which lane. */
#define ON(doing, whom) ((doing) + 32 * (whom))

struct worker {
    int doing, step, starts; /* starts: how often it may still be started again */
    int node, slot;          /* node, of the agent: the dead worker */
    int left, right;         /* slots of a sum's operands */
    uint64_t order;          /* the last that it found or gave */
    struct group_task task;
    int roles, round;        /* roles: a bit for each that it has */
    bool leads, late;
    bool out;         /* it has no rank: it will leave after the step */
    bool again, done; /* again: the lane is another captain's; done: the order is */
};

/* What a slot or an arena contains, by role: the tag of the lane and the order it was written for;
 * of a sum, 1 + its node; 0 before it is written. */
#define TAG(lane, group, order) ((uint64_t)(lane) + 1 + ((uint64_t)(group) + 1) * 16 + (order) * 64)
#define NODE_OF(tag) ((int)((tag) % 16) - 1)

/* The last order that a captain has begun to give. */
struct given_order {
    uint64_t number;
    int captain;
    struct group_task task;
};

/* actor: the workers, the agent, and the one that opens steps. */
struct state {
    struct world w;
    uint64_t cell[MOST_NODES + MOST_SLOTS];
    uint64_t part[MOST_SLOTS][MOST_ROLES], arena[MOST_GROUPS][MOST_ROLES];
    struct group_place place[MOST_WORKERS];
    struct {
        _Alignas(64) char bytes[GROUP_BYTES];
    } group[MOST_GROUPS];
    struct given_order last[MOST_GROUPS];
    struct worker actor[MOST_WORKERS + 2];
    int step, committed; /* committed: the step is over, the next not opened */
    int failures;        /* how many operators may still fail */
    int leaves;          /* how many workers may still lose their rank */
};

struct setup {
    int workers, groups, roles, lanes, levels;
    int deaths, starts, pauses; /* deaths < 0: any number. starts: again, of each worker */
    int steps, failures;
    int pause_in; /* only this call is paused; 0: any of groups */
};

/* Changes that are no calls. */
enum { DIE, JOIN, COMMIT, REFUSE, SCALE };

static struct given {
    struct setup is;
    struct lane_tree tree;
    int slots;
    int leaves; /* > 0: captains that find no lane wait until `watch` wakes them */
} given;

#define AGENT (given.is.workers)
#define OPENER (given.is.workers + 1)

static int group_of_worker(int who) { return group_of(who, given.is.workers, given.is.roles); }

static struct group group_in(const struct state *w, int number) {
    return (struct group){(struct crew_group *)(uintptr_t)&w->group[number], number, NULL,
                          (struct group_place *)(uintptr_t)w->place, given.is.workers};
}

static struct group own_group(const struct state *w, int who) {
    return group_in(w, group_of_worker(who));
}

static struct board board_in(const struct state *w) {
    struct board b;
    claim_word *all = (claim_word *)(uintptr_t)w->cell;
    const struct board_words words = {all, all + MOST_NODES, given.tree.n_nodes, given.slots};
    board_bind(&b, &given.tree, &words, 0, given.is.groups);
    return b;
}

static struct claim node_at(const struct state *w, int node) {
    return claim_unpack(w->cell[node]);
}

static struct claim slot_at(const struct state *w, int slot) {
    return claim_unpack(w->cell[MOST_NODES + slot]);
}

static bool is_alive(const struct worker *h) { return h->doing < ABSENT; }

/* Nobody needs the worker's work on its step any more. */
static bool is_over(const struct state *w, const struct worker *h) {
    return w->step > h->step || w->committed;
}

static bool is_complete(const struct state *w) {
    struct board b = board_in(w);
    int failed;
    return w->step > given.is.steps || board_complete(&b, (uint32_t)w->step, &failed);
}

/* ---- calls ---- */

/* Whether all roles of one order, or one sum, have written the node's value. */
static bool is_right(const struct state *w, int slot, int node) {
    bool right = NODE_OF(w->part[slot][0]) == node;
    for (int r = 1; r < given.is.roles; r++) right &= w->part[slot][r] == w->part[slot][0];
    return right;
}

static bool sees_end(const struct state *w, const struct worker *h) {
    struct board b = board_in(w);
    int failed;
    return seen_value(is_over(w, h)) || board_complete(&b, (uint32_t)h->step, &failed);
}

static int leave(struct state *w, int who) {
    struct worker *h = &w->actor[who];
    struct group g = own_group(w, who);
    if (!sees_end(w, h)) return 0;
    atomic_store(&w->place[who].there, 0);
    if (h->leads && !h->late) group_resign(&g, who);
    return 1;
}

/* Sums before new lanes. */
static int claim(struct state *w, int who) {
    struct board b = board_in(w);
    uint32_t step = (uint32_t)w->actor[who].step;
    int node = board_orphan(&b, step, who);
    return node >= 0 ? node : board_claim_lane(&b, step, who);
}

static int repeat(struct state *w, int who, int lane) {
    struct board b = board_in(w);
    int owner;
    return board_in_flight(&b, (uint32_t)w->actor[who].step, who, lane, &owner) ? lane : -1;
}

/* Whether a captain that waits for others looks for work again; or resigns, as it has no rank and
 * so none of the lanes is for it. */
static int watch(struct state *w, int who) {
    struct worker *h = &w->actor[who];
    struct board b = board_in(w);
    uint32_t step = (uint32_t)h->step;
    if (sees_end(w, h) || board_has_orphan(&b, step)) return 1;
    if (seen_value(h->out)) return 1;
    for (int i = 0, owner; i < given.tree.lanes; i++)
        if (board_is_free(&b, step, i) || board_in_flight(&b, step, who, i, &owner)) return 1;
    return 0;
}

static int resign(struct state *w, int who) {
    struct group g = own_group(w, who);
    group_resign(&g, who);
    return 0;
}

/* 2: the step is over. */
static int gather(const struct state *w, int who) {
    struct group g = own_group(w, who);
    if (seen_value(is_over(w, &w->actor[who]))) return 2;
    return group_quiet(&g, who);
}

static void note_order(struct state *w, int who, const struct group_task *task) {
    struct group g = own_group(w, who);
    struct given_order *last = &w->last[g.number];
    bool watched = call.watched;
    call.watched = false;
    *last = (struct given_order){atomic_load(&g.shared->given) + 1, who, *task};
    last->task.base = largest_word(g.shared);
    call.watched = watched;
}

static int give_order(struct state *w, int who) {
    struct worker *h = &w->actor[who];
    struct group g = own_group(w, who);
    int list[MOST_WORKERS] = {who}, n = 1;
    h->task = (struct group_task){.stage = group_stage((uint64_t)h->step, g.number),
                                  .lane = h->node, .slot = h->slot};
    if (!w->w.logged[who]) note_order(w, who, &h->task);
    for (int i = 0; i < given.is.workers && n < given.is.roles; i++)
        if (i != who && atomic_load(&w->place[i].there) == h->task.stage &&
            !seen_value(w->actor[i].out))
            list[n++] = i;
    return (int)group_order(&g, who, list, n, &h->task);
}

/* Nobody needs the lane. */
static bool is_lost(const struct state *w, int who) {
    const struct worker *h = &w->actor[who];
    struct board b = board_in(w);
    return seen_value(is_over(w, h)) ||
           (h->leads && board_lost(&b, (uint32_t)h->step, who, h->node));
}

/* Rounds of a role: it writes to the arena; it reads what others wrote there, and writes to the
 * slot. At the end the captain waits for the others, then they for it. The word of role 0 is the
 * captain's. 1: goes on; -1: must not. */
static int work(struct state *w, int who) {
    const struct worker *h = &w->actor[who];
    struct group g = own_group(w, who);
    _Atomic uint64_t *word = group_words(g.shared);
    bool ends = h->round == 2 && !h->leads;
    if (!group_stands(&g, h->order) || is_lost(w, who)) return -1;
    uint64_t need = h->task.base + (uint64_t)h->round + ends;
    for (int r = 0; r < given.is.roles && h->round && (!ends || !r); r++)
        if (atomic_load(&word[r]) < need) return 0;
    return 1;
}

/* 2: without the late members. */
static int calm(const struct state *w, int who) {
    struct group g = own_group(w, who);
    if (!group_quiet(&g, who) && !is_lost(w, who)) return 0;
    return group_quiet(&g, who) ? 1 : 2;
}

static int drop(struct state *w, int who) {
    const struct worker *h = &w->actor[who];
    struct board b = board_in(w);
    if (!h->late) board_drop(&b, (uint32_t)h->step, who, h->node, h->slot);
    if (!h->again) board_release(&b, (uint32_t)h->step, who, h->node);
    return 0;
}

static int settle(struct state *w, int who) {
    const struct worker *h = &w->actor[who];
    struct group g = own_group(w, who);
    struct board b = board_in(w);
    if (!group_quiet(&g, who)) return 0;
    board_drop(&b, (uint32_t)h->step, who, h->node, h->slot);
    group_resign(&g, who);
    return 1;
}

static int tell(struct state *w, int dead) {
    group_clear(&w->place[dead]);
    for (int i = 0; i < given.is.groups; i++) {
        struct group g = group_in(w, i);
        group_died(&g, dead);
    }
    return 0;
}

static int is_followed(const struct state *w, int dead) {
    for (int i = 0; i < given.is.groups; i++) {
        struct group g = group_in(w, i);
        if (atomic_load(&g.shared->captain) == dead + 1 && !group_quiet(&g, dead)) return 1;
    }
    return 0;
}

static int recover(struct state *w, int dead) {
    struct board b = board_in(w);
    board_recover(&b, (uint32_t)w->actor[AGENT].step, dead);
    for (int i = 0; i < given.is.groups; i++) {
        struct group g = group_in(w, i);
        group_forget(&g, dead);
    }
    return 0;
}

static int call_group(struct state *w, int who) {
    struct worker *h = &w->actor[who];
    struct group g = own_group(w, who);
    uint64_t stage = group_stage((uint64_t)h->step, g.number);
    switch (h->doing) {
    case ENTER: atomic_store(&w->place[who].there, stage); return 0;
    case LEAD: return !seen_value(h->out) && group_lead(&g, who);
    case FIND: return (int)group_find(&g, who, stage);
    case BEGIN: return group_begin(&g, who, h->order, &h->task);
    case GIVE_UP: group_give_up(&g, h->order); return 0;
    case CLOSE: group_close(&g, who); return 0;
    default: group_end(&g, who); return 0;
    }
}

/* A sum that a late worker makes may have rubbish as operands; nobody uses it. */
static void add(struct state *w, const struct worker *h) {
    const struct lane_node *n = &given.tree.node[h->node];
    bool right = is_right(w, h->left, n->left) && is_right(w, h->right, n->right);
    if (!right && !is_over(w, h)) broken("operands stay until they are summed");
    for (int r = 0; r < given.is.roles; r++)
        w->part[h->slot][r] = right ? (uint64_t)h->node + 1 : 0;
}

static int make(void *world, int who, int does) {
    struct state *w = world;
    struct worker *h = &w->actor[who];
    struct board b = board_in(w);
    bool begins = !w->w.logged[who];
    int whom = does / 32;
    h->doing = does % 32;
    if (begins && (h->doing == ENTER || who >= AGENT)) h->step = w->step;
    if (begins && who == AGENT) h->node = whom;
    uint32_t step = (uint32_t)h->step;
    switch (h->doing) {
    case LEAVE: return leave(w, who);
    case CLAIM: return claim(w, who);
    case REPEAT: return repeat(w, who, whom);
    case TAKE: return board_take(&b, step, who, h->node);
    case GATHER: return gather(w, who);
    case ORDER: return give_order(w, who);
    case WORK: return work(w, who);
    case SHARE: return 0;
    case CALM: return calm(w, who);
    case DROP: return drop(w, who);
    case SETTLE: return settle(w, who);
    case PUBLISH:
        if (begins && given.tree.node[h->node].left >= 0) add(w, h);
        if (begins && h->node < given.tree.lanes && !is_right(w, h->slot, h->node))
            broken("all roles of an order have written what is published");
        return board_publish(&b, step, who, h->node, h->slot);
    case MEET: return board_meet(&b, step, who, h->node);
    case RESIGN: return resign(w, who);
    case WATCH: return watch(w, who);
    case TELL: return tell(w, whom);
    case TRY: return is_followed(w, whom);
    case RECOVER: return recover(w, whom);
    case CLEAR: board_clear(&b); return 0;
    default: return call_group(w, who);
    }
}

/* ---- what follows from them ---- */

/* Has nothing to do, but its place in the stage. */
static void rest(struct worker *h, int doing) {
    *h = (struct worker){.doing = doing, .step = h->step, .starts = h->starts, .order = h->order,
                         .leads = h->leads && doing != OUT, .out = h->out, .node = -1,
                         .slot = -1};
}

static void has_claimed(struct state *w, struct worker *h, int node) {
    const struct lane_node *n = &given.tree.node[node];
    h->doing = TAKE;
    h->node = node;
    h->left = n->left < 0 ? 0 : node_at(w, n->left).value;
    h->right = n->left < 0 ? 0 : node_at(w, n->right).value;
}

/* Begins to work on the order. */
static void has_roles(struct state *w, int who) {
    struct worker *h = &w->actor[who];
    struct group g = own_group(w, who);
    h->doing = WORK;
    if (h->task.stage != group_stage((uint64_t)h->step, g.number))
        broken("who works on an order takes part in its stage");
    for (int r = 0; r < given.is.roles; r++)
        if (atomic_load(&g.shared->role[r]) == who) h->roles |= 1 << r;
    if (!h->roles) broken("who works on an order has a role in it");
}

static void share(struct state *w, int who) {
    struct worker *h = &w->actor[who];
    struct group g = own_group(w, who);
    uint64_t tag = TAG(h->task.lane, g.number, h->order), *arena = w->arena[g.number];
    for (int r = 0; r < given.is.roles; r++) {
        if (!(h->roles >> r & 1)) continue;
        for (int k = 0; k < given.is.roles && h->round == 1; k++)
            if (arena[k] != tag) broken("the arena has what this order's roles have written");
        if (h->round == 0) arena[r] = tag;
        if (h->round == 1) w->part[h->task.slot][r] = tag;
        atomic_store(&group_words(g.shared)[r], h->task.base + (uint64_t)h->round + 1);
    }
    h->done = h->round++ == 2;
    h->doing = h->done ? CLOSE : WORK;
}

static void after_take(struct state *w, struct worker *h, int slot) {
    h->slot = slot;
    h->doing = given.tree.node[h->node].left < 0 ? GATHER : PUBLISH;
    memset(w->part[slot], 0, sizeof w->part[slot]);
}

static void after_publish(struct state *w, int who, bool first) {
    struct worker *h = &w->actor[who];
    struct claim node = node_at(w, h->node);
    if (first && !is_over(w, h) && (node.state != CLAIM_DONE || node.owner != who))
        broken("board_publish returns true only to the worker whose result counts");
    h->slot = -1;
    if (first) h->doing = MEET;
    else rest(h, IDLE);
}

static void after_settle(struct state *w, int who, bool settled) {
    struct worker *h = &w->actor[who];
    bool in = atomic_load(&w->place[who].there);
    h->doing = in ? LATE : OUT;
    h->leads = h->leads && !settled;
    if (settled) rest(h, in ? IN : OUT);
}

/* A follower has what it needs for its part. */
static bool follows(const struct worker *h) { return h->round == 2 && !h->leads; }

static void after_agent(struct state *w, int did, int result) {
    struct worker *h = &w->actor[AGENT], *dead = &w->actor[h->node];
    h->doing = did == TRY && !result ? RECOVER : ABSENT;
    if (did == TELL) dead->doing = TOLD;
    if (did == RECOVER) dead->doing = ABSENT;
    if (h->doing == ABSENT) rest(h, ABSENT);
    h->step = 0;
}

static void after_clear(struct state *w) {
    w->step++;
    w->committed = 0;
    rest(&w->actor[OPENER], ABSENT);
    w->actor[OPENER].step = 0;
}

static void after(void *world, int who, int does, int result) {
    struct state *w = world;
    struct worker *h = &w->actor[who];
    switch (does % 32) {
    case ENTER: case END: rest(h, IN); break;
    case LEAD:
        h->leads = result;
        rest(h, result ? IDLE : IN);
        break;
    case FIND:
        rest(h, IN);
        if (!result || (uint64_t)result == h->order) break;
        h->order = (uint64_t)result;
        h->doing = BEGIN;
        break;
    case LEAVE:
        if (h->late) h->doing = result ? OUT : LATE;
        else rest(h, result ? OUT : h->leads ? IDLE : IN);
        break;
    case BEGIN:
        if (result) has_roles(w, who);
        else rest(h, IN);
        break;
    case CLAIM: case REPEAT: case MEET:
        h->again = does % 32 == REPEAT;
        if (result < 0) rest(h, given.leaves && does % 32 == CLAIM ? WATCH : IDLE);
        else has_claimed(w, h, result);
        break;
    case WATCH: h->doing = result ? IDLE : WATCH; break;
    case RESIGN:
        h->leads = false;
        rest(h, IN);
        break;
    case TAKE: after_take(w, h, result); break;
    case GATHER: h->doing = result == 2 ? DROP : result ? ORDER : GATHER; break;
    case ORDER:
        h->order = (uint64_t)result;
        has_roles(w, who);
        break;
    case WORK:
        h->doing = result < 0 ? GIVE_UP : !result ? WORK : follows(h) ? END : SHARE;
        break;
    case SHARE: share(w, who); break;
    case GIVE_UP: h->doing = h->leads ? CALM : END; break;
    case CALM:
        h->late = result == 2;
        h->doing = result ? CLOSE : CALM;
        break;
    case CLOSE: h->doing = h->done ? PUBLISH : DROP; break;
    case DROP:
        if (h->late) h->doing = LATE;
        else rest(h, IDLE);
        break;
    case SETTLE: after_settle(w, who, result); break;
    case PUBLISH: after_publish(w, who, result); break;
    case CLEAR: after_clear(w); break;
    default: after_agent(w, does % 32, result);
    }
}
#endif
