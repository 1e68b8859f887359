/* SPDX-License-Identifier: Apache-2.0
 * The lane board under a model checker: every order of the hands' calls, with hands paused between any
 * two accesses of a call and killed behind any write of one, is gone through depth first over the states
 * of the shared words. A paused call is kept as the log of what its accesses have given; to go on with
 * it, it is called again and given these first. Steps may be of two shapes, which take turns.
 *
 * BOARD_ALL=1 tries larger sizes, for some minutes. */
#include "board_seen.h"

static void shake(void) {}

/* ---- the world of the model ---- */

#define MOST_LANES 8
#define MOST_HANDS 3
#define MOST_SLOTS 24
#define SHAPES 2
#define MOST_CELLS (SHAPES * (2 * MOST_LANES - 1) + MOST_SLOTS)

/* Where a hand is: in a call, or before it, but for the last four. */
enum doing {
    DRAW,
    ORPHAN,
    LOOK,
    TAKE,
    SPARE,
    PUBLISH,
    PUBLISH_FOR,
    FAIL,
    MEET,
    RECOVER,
    CLEAR,
    IDLE, /* will draw, look for an orphan or see whether the step is complete, in any order */
    ABSENT,
    DEAD,
    REST, /* has seen the step complete */
};
static const char *const doing_name[] = {
    "draw", "orphan", "complete", "take",    "spare", "publish", "publish_for", "fail",
    "meet", "recover", "clear",   "idle",    "absent", "dead",   "rest"};

struct thread {
    int doing, step;
    int node, slot;  /* RECOVER: whom */
    int left, right; /* slots of a sum's operands */
    int logged;      /* > 0: paused in its call */
};

/* Content of a slot: a node's number among those of all shapes + 1, for a value that is right; WRITING + hand. */
#define WRITING 0x100
#define RUBBISH 0x200

/* hand: those that compute; who recovers; who clears. */
struct world {
    uint64_t cell[MOST_CELLS];
    int content[MOST_SLOTS];
    struct thread thread[MOST_HANDS + 2];
    int step, clearing, deaths, pauses; /* both: how many there may be yet */
    uint64_t log[MOST_HANDS + 2][MOST_LOG];
};

struct setup {
    int lanes, threads, levels;
    int deaths, pauses; /* -1 deaths: any number */
    int steps;
    bool twice;    /* idle hands compute lanes that others have claimed */
    int failing;   /* a bit for each lane that fails */
    int strangers; /* hands without a block of lanes */
    int other;     /* lanes of even steps, which are of a shape of their own; 0: all are of one */
};

/* How hands go about it. */
struct manner {
    enum { ANY_ORDER, DRAWS_FIRST, ORPHANS_FIRST } policy;
    bool ample;   /* lanes + hands slots, and that for a lane twice: enough in any order at all; else board_slots */
    int pause_in; /* no other call is paused; DRAW: any may be */
    int pause_at; /* only before this access; 0: before any */
};

/* What happens next: to whom, and how its call ends. */
struct act {
    int who;
    int begins; /* an idle hand's call, where it is GO to DIE_IN */
    enum { GO, PAUSE, DIE_IN, DIE, JOIN, WAKE, TWICE, BURY, BEGIN_CLEAR } what;
    int n;
};

struct model {
    struct setup is;
    struct manner how;
    struct lane_tree tree[SHAPES];
    int shapes, nodes, first[SHAPES]; /* nodes: of all shapes, each behind those of the one before */
    int slots, most_used;
    uint64_t *seen; /* hashes of states; 0: none */
    uint16_t *at;   /* their depth */
    size_t n_seen, capacity;
    struct world **world; /* by depth */
    struct act *act;
    int depth, deepest, limit;
    int result, accesses, writes; /* of the last call */
    const char *what; /* is broken */
    jmp_buf out;
};
static struct model *model; /* the only one: code under test has no other way to say what it finds */

static void broken(const char *what) {
    if (!call.watched && !model) {
        fprintf(stderr, "test_board: %s does not hold\n", what);
        abort();
    }
    model->what = what;
    longjmp(model->out, 1);
}

static int shape_of(const struct model *m, int step) { return (step + 1) % m->shapes; }
static const struct lane_tree *tree_of(const struct model *m, int step) { return &m->tree[shape_of(m, step)]; }
/* A node of a step's tree among those of all shapes. */
static int place_in_all(const struct model *m, int step, int node) { return m->first[shape_of(m, step)] + node; }

static struct board board_of(struct model *m, struct world *w, int step) {
    struct board b;
    board_bind_shape(&b, tree_of(m, step), place_in_all(m, step, 0), m->nodes, m->slots, w->cell);
    return b;
}

static struct claim node_at(const struct model *m, const struct world *w, int step, int node) {
    return unpack(w->cell[place_in_all(m, step, node)]);
}

static struct claim slot_at(const struct model *m, const struct world *w, int slot) {
    return unpack(w->cell[m->nodes + slot]);
}

static bool is_done_in(const struct model *m, const struct world *w, int step, int node) {
    struct claim n = node_at(m, w, step, node);
    return n.state == CLAIM_DONE && (int)n.step == step;
}

/* ---- checks of a state ---- */

/* A sum or lane of the step that is there and may still be read. */
static bool is_needed(const struct model *m, const struct world *w, int node) {
    int parent = tree_of(m, w->step)->node[node].parent;
    return is_done_in(m, w, w->step, node) && (parent < 0 || !is_done_in(m, w, w->step, parent));
}

static void check_values(const struct model *m, const struct world *w) {
    for (int i = 0; i < tree_of(m, w->step)->n_nodes; i++) {
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

/* A hand outside of calls, or in one that has not written yet, holds its slot. */
static void check_hands(const struct model *m, const struct world *w) {
    for (int i = 0; i < m->is.threads; i++) {
        const struct thread *h = &w->thread[i];
        if (h->slot < 0 || !is_alive(h) || h->logged) continue;
        struct claim slot = slot_at(m, w, h->slot);
        if (slot.state != CLAIM_TAKEN || (int)slot.step != h->step || slot.owner != i ||
            slot.value != place_in_all(m, h->step, h->node))
            broken("a hand's slot is held by it");
        if (w->content[h->slot] != WRITING + i) broken("nobody else writes into a hand's slot");
    }
}

static bool has_reason(const struct model *m, const struct world *w, int slot) {
    struct claim s = slot_at(m, w, slot);
    const struct thread *h = &w->thread[s.owner];
    if (s.owner < m->is.threads && is_alive(h) && h->slot == slot && place_in_all(m, h->step, h->node) == s.value)
        return true;
    int own = s.value - place_in_all(m, w->step, 0); /* else it is another shape's, of a step that is over */
    if (own < 0 || own >= tree_of(m, w->step)->n_nodes) return false;
    struct claim node = node_at(m, w, w->step, own);
    return node.state == CLAIM_DONE && node.value == slot && node.owner == s.owner &&
           node.step == s.step && is_needed(m, w, own);
}

/* Where nobody is within a call, or dead and not recovered from, each slot is held for a reason. */
static void check_slots(struct model *m, const struct world *w) {
    int used = 0;
    bool quiet = !w->clearing;
    for (int i = 0; i < m->is.threads + 2; i++)
        quiet = quiet && !w->thread[i].logged && w->thread[i].doing != DEAD && w->thread[i].doing != RECOVER;
    for (int i = 0; i < m->slots; i++) {
        if (slot_at(m, w, i).state != CLAIM_TAKEN) continue;
        used++;
        if (quiet && !has_reason(m, w, i)) broken("what nobody needs is given back");
    }
    if (used > m->most_used) m->most_used = used;
}

static bool is_over(struct model *m, struct world *w) {
    struct board b = board_of(m, w, w->step);
    int failed;
    call.watched = false;
    return w->step > m->is.steps || board_complete(&b, (uint32_t)w->step, &failed) || failed >= 0;
}

static int call_board(struct model *m, struct world *w, int who);

/* Some hand that is idle must find something, unless another is at work. */
static void check_progress(struct model *m, const struct world *w) {
    struct world copy = *w;
    int idle = 0;
    if (w->clearing || is_over(m, &copy)) return;
    for (int i = 0; i < m->is.threads + 2; i++) {
        const struct thread *h = &w->thread[i];
        if (h->doing == DEAD || h->doing == RECOVER || h->logged) return;
        if (is_alive(h) && (h->doing != IDLE || h->step < w->step)) return;
        idle += is_alive(h);
    }
    for (int i = 0; i < m->is.threads; i++)
        for (copy.thread[i].doing = DRAW; is_alive(&w->thread[i]) && copy.thread[i].doing <= ORPHAN;
             copy.thread[i].doing++)
            if (call_board(m, &copy, i) >= 0) return;
    if (idle) broken("idle hands find what is to be done");
}

/* result: as call_board gives it of LOOK. */
static void check_complete(const struct model *m, const struct world *w, const struct thread *h,
                           int result) {
    if (h->step != w->step || w->clearing) return;
    const struct lane_tree *t = tree_of(m, w->step);
    for (int i = 0; i < t->n_tops && result == 0; i++)
        if (!is_done_in(m, w, w->step, t->top[i])) broken("a complete step's tops are there");
    for (int i = 0; i < result; i++)
        if ((m->is.failing >> i & 1) != (i == result - 1)) broken("the first failed lane is told");
}

/* ---- what hands do ---- */

static int call_board(struct model *m, struct world *w, int who) {
    struct thread *h = &w->thread[who];
    struct board b = board_of(m, w, h->doing == CLEAR ? h->step + 1 : h->step); /* who opens a step clears for it */
    uint32_t step = (uint32_t)h->step;
    int failed, rank = who < m->is.strangers ? -1 : who - m->is.strangers;
    switch (h->doing) {
    case DRAW: return board_draw(&b, step, who, rank, m->is.threads - m->is.strangers);
    case ORPHAN: return board_orphan(&b, step, who);
    case LOOK: return board_complete(&b, step, &failed) ? 0 : failed >= 0 ? failed + 1 : -1;
    case TAKE: return board_take(&b, step, who, h->node);
    case SPARE: return board_spare(&b, step, who, h->node);
    case PUBLISH: return board_publish(&b, step, who, h->node, h->slot);
    case PUBLISH_FOR: return board_publish_for(&b, step, who, h->node, h->slot);
    case FAIL:
        board_drop(&b, step, who, h->node, h->slot);
        board_fail(&b, step, who, h->node);
        return 0;
    case MEET: return board_meet(&b, step, who, h->node);
    case RECOVER: board_recover(&b, step, h->node); return 0;
    default: board_clear(&b); return 0;
    }
}

/* The hand has claimed a node, and finds where the operands are. */
static void has_claimed(const struct model *m, struct world *w, struct thread *h, int node) {
    const struct lane_node *n = &tree_of(m, h->step)->node[node];
    h->node = node;
    h->doing = TAKE;
    h->left = n->left < 0 ? 0 : node_at(m, w, h->step, n->left).value;
    h->right = n->left < 0 ? 0 : node_at(m, w, h->step, n->right).value;
}

/* What the hand has computed by now. Who is behind may find rubbish, and nobody wants it. */
static void compute(const struct model *m, struct world *w, int who) {
    struct thread *h = &w->thread[who];
    const struct lane_node *n = &tree_of(m, h->step)->node[h->node];
    if (w->content[h->slot] != WRITING + who) broken("nobody else writes into a hand's slot");
    bool right = n->left < 0 || (w->content[h->left] == place_in_all(m, h->step, n->left) + 1 &&
                                 w->content[h->right] == place_in_all(m, h->step, n->right) + 1);
    if (!right && h->step == w->step && !w->clearing) broken("operands stay until they are summed");
    w->content[h->slot] = right ? place_in_all(m, h->step, h->node) + 1 : RUBBISH;
}

static void after_take(struct model *m, struct world *w, int who, int slot) {
    struct thread *h = &w->thread[who];
    h->slot = slot;
    h->doing = h->doing == SPARE ? PUBLISH_FOR : PUBLISH;
    if (h->node < tree_of(m, h->step)->lanes && m->is.failing >> h->node & 1) h->doing = FAIL;
    w->content[slot] = WRITING + who;
}

static void after(struct model *m, struct world *w, int who, int result) {
    struct thread *h = &w->thread[who];
    int did = h->doing;
    if (did == TAKE || (did == SPARE && result >= 0)) {
        after_take(m, w, who, result);
    } else if (did == PUBLISH || did == PUBLISH_FOR || did == FAIL) {
        h->slot = -1;
        h->doing = did != FAIL && result ? MEET : IDLE;
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
    } else if (did != SPARE && result >= 0) {
        has_claimed(m, w, h, result);
    } else {
        h->doing = IDLE;
    }
    if (h->doing >= IDLE) h->node = h->left = h->right = 0;
}

static enum ending make_call(struct model *m, struct world *w, int who, int pause, int die) {
    struct thread *h = &w->thread[who];
    if (!h->logged && (h->doing == PUBLISH || h->doing == PUBLISH_FOR)) compute(m, w, who);
    call = (struct call){.watched = true, .log = w->log[who], .logged = h->logged, .pause = pause,
                         .die = die};
    enum ending how = (enum ending)setjmp(call.out);
    if (how == RETURNED) m->result = call_board(m, w, who);
    call.watched = false;
    m->accesses = call.accesses;
    m->writes = call.writes;
    return how;
}

static void die(const struct model *m, struct world *w, int who) {
    struct thread *h = &w->thread[who];
    *h = (struct thread){.doing = who < m->is.threads ? DEAD : ABSENT, .slot = -1};
    if (w->deaths > 0) w->deaths--;
}

/* ---- what may happen ---- */

static void go(struct model *m, struct world *w, const struct act *a) {
    struct thread *h = &w->thread[a->who];
    if (h->doing == IDLE) h->doing = a->begins;
    enum ending how = make_call(m, w, a->who, a->what == PAUSE ? a->n : 0,
                                a->what == DIE_IN ? a->n : 0);
    h->logged = how == PAUSED ? m->accesses : 0;
    if (how == PAUSED) w->pauses--;
    if (how == DIED) die(m, w, a->who);
    if (how == RETURNED) after(m, w, a->who, m->result);
}

static void apply(struct model *m, struct world *w, const struct act *a) {
    struct thread *h = &w->thread[a->who];
    if (a->what <= DIE_IN) go(m, w, a);
    if (a->what == DIE) die(m, w, a->who);
    if (a->what == JOIN || a->what == WAKE)
        *h = (struct thread){.doing = IDLE, .step = w->step, .slot = -1};
    if (a->what == TWICE) {
        h->node = a->n;
        h->doing = SPARE;
    }
    if (a->what == BURY)
        *h = (struct thread){.doing = RECOVER, .step = w->step, .node = a->n, .slot = -1};
    if (a->what == BEGIN_CLEAR) {
        *h = (struct thread){.doing = CLEAR, .step = w->step, .slot = -1};
        w->clearing = 1;
    }
}

static void explore(struct model *m);

static void follow(struct model *m, const struct act *act) {
    int d = m->depth;
    m->act[d] = *act;
    memcpy(m->world[d + 1], m->world[d], sizeof(struct world));
    apply(m, m->world[d + 1], act);
    int accesses = m->accesses, writes = m->writes;
    m->depth++;
    explore(m);
    m->depth--;
    m->accesses = accesses;
    m->writes = writes;
}

/* A call: to its end, to a pause before each access, to a death behind each write. */
static void try_call(struct model *m, int who, int begins) {
    const struct world *w = m->world[m->depth];
    int logged = w->thread[who].logged;
    follow(m, &(struct act){who, begins, GO, 0});
    int accesses = m->accesses, writes = m->writes;
    int at = m->how.pause_at;
    bool pauses = w->pauses > 0 && (!m->how.pause_in || m->how.pause_in == begins);
    for (int k = at ? at : logged + 1; pauses && k < accesses && (!at || k == at); k++)
        follow(m, &(struct act){who, begins, PAUSE, k});
    for (int n = 1; w->deaths != 0 && n <= writes; n++)
        follow(m, &(struct act){who, begins, DIE_IN, n});
}

/* Draws first, sums what others left first, or does anything in any order. */
static bool may_begin(struct model *m, int who, int call_of) {
    struct world copy = *m->world[m->depth];
    int other = m->how.policy == DRAWS_FIRST ? DRAW : ORPHAN;
    if (m->how.policy == ANY_ORDER || call_of == other || call_of == LOOK) return true;
    copy.thread[who].doing = other;
    call.watched = false;
    return call_board(m, &copy, who) < 0;
}

static void try_idle(struct model *m, int who) {
    const struct world *w = m->world[m->depth];
    for (int c = DRAW; c <= LOOK; c++)
        if (may_begin(m, who, c)) try_call(m, who, c);
    for (int i = 0; i < tree_of(m, w->step)->lanes && m->is.twice && w->thread[who].step == w->step; i++) {
        struct claim node = node_at(m, w, w->step, i);
        if (node.state == CLAIM_TAKEN && (int)node.step == w->step && node.owner != who)
            follow(m, &(struct act){who, 0, TWICE, i});
    }
}

static void try_hand(struct model *m, int who) {
    const struct world *w = m->world[m->depth];
    const struct thread *h = &w->thread[who];
    bool open = w->step <= m->is.steps;
    if (h->doing == IDLE) try_idle(m, who);
    else if (is_alive(h)) try_call(m, who, h->doing);
    if (is_alive(h) && w->deaths != 0) follow(m, &(struct act){who, 0, DIE, 0});
    if (h->doing == ABSENT && open) follow(m, &(struct act){who, 0, JOIN, 0});
    if (h->doing == REST && open && w->step > h->step) follow(m, &(struct act){who, 0, WAKE, 0});
}

static void try_keeper(struct model *m, int who) {
    const struct thread *h = &m->world[m->depth]->thread[who];
    if (!is_alive(h)) return;
    try_call(m, who, h->doing);
    if (h->logged && m->world[m->depth]->deaths != 0) follow(m, &(struct act){who, 0, DIE, 0});
}

static bool is_seen(struct model *m, const struct world *w);
static void make_level(struct model *m, int depth);

static void explore(struct model *m) {
    struct world *w = m->world[m->depth];
    int checkpointer = m->is.threads, clearer = checkpointer + 1;
    check_values(m, w);
    check_hands(m, w);
    check_slots(m, w);
    if (m->depth >= m->limit || is_seen(m, w)) return;
    check_progress(m, w);
    make_level(m, m->depth + 1);
    for (int i = 0; i < m->is.threads; i++) try_hand(m, i);
    try_keeper(m, checkpointer);
    try_keeper(m, clearer);
    for (int i = 0; i < m->is.threads; i++)
        if (w->thread[i].doing == DEAD && !is_alive(&w->thread[checkpointer]))
            follow(m, &(struct act){checkpointer, 0, BURY, i});
    if (!m->is.failing && w->step <= m->is.steps && !is_alive(&w->thread[clearer]) && is_over(m, w))
        follow(m, &(struct act){clearer, 0, BEGIN_CLEAR, 0});
}

/* ---- states that were seen, and the way to one ---- */


/* Which slots are taken matters to nobody but who is paused in a call: `as` numbers them by what they
 * hold, so that states that differ in the slots' numbers alone are one. */
static bool number_slots(const struct model *m, const struct world *w, int as[MOST_SLOTS]) {
    bool paused = false;
    for (int i = 0; i < m->is.threads + 2; i++) paused = paused || w->thread[i].logged;
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

static uint64_t hash_of(const struct model *m, const struct world *w) {
    uint64_t h = mix((uint64_t)(w->step << 8 | w->clearing),
                     (uint64_t)(w->deaths + 1) << 8 | (uint64_t)w->pauses);
    int as[MOST_SLOTS], content[MOST_SLOTS];
    uint64_t slot[MOST_SLOTS];
    bool paused = number_slots(m, w, as);
    for (int i = 0; i < m->slots; i++) {
        bool used = slot_at(m, w, i).state != CLAIM_FREE;
        slot[as[i]] = used ? w->cell[m->nodes + i] : 0;
        content[as[i]] = used ? w->content[i] : 0;
    }
    for (int i = 0; i < m->nodes; i++) {
        struct claim n = unpack(w->cell[i]);
        struct claim s = slot_at(m, w, n.value);
        bool there = s.state == CLAIM_TAKEN && s.step == n.step && s.owner == n.owner && s.value == i;
        if (n.state == CLAIM_DONE && !paused) n.value = there ? as[n.value] : MOST_SLOTS;
        h = mix(h, pack(n.step, n.state, n.owner, n.value));
    }
    for (int i = 0; i < m->slots; i++) h = mix(mix(h, slot[i]), (uint64_t)content[i]);
    for (int i = 0; i < m->is.threads + 2; i++) {
        const struct thread *a = &w->thread[i];
        int at = a->slot < 0 ? 0 : as[a->slot] + 1;
        h = mix(h, (uint64_t)(a->doing << 16 | a->step << 8 | a->logged));
        h = mix(h, (uint64_t)(a->node << 24 | at << 16 | as[a->left] << 8 | as[a->right]));
        for (int k = 0; k < a->logged; k++) h = mix(h, w->log[i][k]);
    }
    return h ? h : 1;
}

static size_t place_of(const struct model *m, uint64_t hash) {
    size_t i = (size_t)(hash >> 20) & (m->capacity - 1);
    while (m->seen[i] && m->seen[i] != hash) i = (i + 1) & (m->capacity - 1);
    return i;
}

static void grow_seen(struct model *m) {
    struct model old = *m;
    m->capacity = old.capacity ? 2 * old.capacity : 1 << 16;
    m->seen = calloc(m->capacity, sizeof *m->seen);
    m->at = calloc(m->capacity, sizeof *m->at);
    assert_true(m->seen && m->at);
    for (size_t i = 0; i < old.capacity; i++) {
        if (!old.seen[i]) continue;
        size_t to = place_of(m, old.seen[i]);
        m->seen[to] = old.seen[i];
        m->at[to] = old.at[i];
    }
    free(old.seen);
    free(old.at);
}

/* With a limit, a state that is reached by a shorter way is gone through again. */
static bool is_seen(struct model *m, const struct world *w) {
    if (2 * m->n_seen >= m->capacity) grow_seen(m);
    uint64_t hash = hash_of(m, w);
    size_t i = place_of(m, hash);
    if (m->seen[i] && (m->limit == INT32_MAX || m->at[i] <= m->depth)) return true;
    m->n_seen += !m->seen[i];
    m->seen[i] = hash;
    m->at[i] = (uint16_t)m->depth;
    return false;
}

static void make_level(struct model *m, int depth) {
    if (depth < m->deepest) return;
    m->world = realloc(m->world, (size_t)(depth + 1) * sizeof *m->world);
    m->act = realloc(m->act, (size_t)(depth + 1) * sizeof *m->act);
    assert_true(m->world && m->act);
    m->world[depth] = calloc(1, sizeof **m->world);
    assert_non_null(m->world[depth]);
    m->deepest = depth + 1;
}

static void free_model(struct model *m) {
    for (int i = 0; i < m->deepest; i++) free(m->world[i]);
    free(m->world);
    free(m->act);
    free(m->seen);
    free(m->at);
    for (int i = 0; i < m->shapes; i++) lane_tree_free(&m->tree[i]);
    *m = (struct model){0};
}

/* The same slots serve all shapes. */
static void make_trees(struct model *m) {
    const int lanes[SHAPES] = {m->is.lanes, m->is.other};
    for (; m->shapes < SHAPES && lanes[m->shapes]; m->shapes++) {
        struct lane_tree *t = &m->tree[m->shapes];
        assert_int_equal(lane_tree_make(lanes[m->shapes], m->is.levels, t), TRI_OK);
        int slots = m->how.ample ? t->lanes + m->is.threads + 1 : board_slots(t, m->is.threads);
        if (slots > m->slots) m->slots = slots;
        m->first[m->shapes] = m->nodes;
        m->nodes += t->n_nodes;
        assert_true(t->lanes <= MOST_LANES);
    }
}

static void start(struct model *m, const struct setup *is, const struct manner *how, int limit) {
    *m = (struct model){.is = *is, .how = *how, .limit = limit};
    make_trees(m);
    assert_true(is->threads <= MOST_HANDS && m->slots <= MOST_SLOTS);
    make_level(m, 0);
    struct world *w = m->world[0];
    w->step = 1;
    w->deaths = is->deaths;
    w->pauses = is->pauses;
    for (int i = 0; i < is->threads + 2; i++)
        w->thread[i] = (struct thread){.doing = i < is->threads ? IDLE : ABSENT,
                                   .step = 1, .slot = -1};
}

static void print_way(struct model *m) {
    static const char *const what[] = {"", "pauses before access", "dies behind write", "dies", "joins",
                                       "wakes", "computes again lane", "recovers", "clears"};
    fprintf(stderr, "%d lanes, %d in even steps, %d hands, %d levels, %d slots: not so: %s\n", m->is.lanes,
            m->is.other ? m->is.other : m->is.lanes, m->is.threads, m->is.levels, m->slots, m->what);
    for (int i = 0; i <= m->depth && i < m->limit; i++) {
        const struct act *a = &m->act[i];
        const struct thread *h = &m->world[i]->thread[a->who];
        fprintf(stderr, "  hand %d: %s(node %d, slot %d, step %d) %s %d\n", a->who,
                doing_name[h->doing == IDLE ? a->begins : h->doing], h->node, h->slot, h->step,
                what[a->what], a->n);
    }
}

/* False: something is broken; which is printed with the way to it. */
static bool search(struct model *m, const struct setup *is, const struct manner *how, int limit) {
    model = m;
    start(m, is, how, limit);
    if (!setjmp(m->out)) {
        explore(m);
        return true;
    }
    call.watched = false;
    return false;
}

/* The most slots that were used at once, of how many there were. */
static int holds(const struct setup *is, const struct manner *how, int *slots, size_t *states) {
    static struct model m; /* not on the stack: it is left by longjmp */
    if (!search(&m, is, how, INT32_MAX)) {
        bool found = false;
        fprintf(stderr, "broken; looking for the shortest way\n");
        for (int limit = 4; !found && limit <= 60; limit++) {
            free_model(&m);
            found = !search(&m, is, how, limit);
        }
        print_way(&m);
        fail();
    }
    int most = m.most_used;
    *slots = m.slots;
    *states += m.n_seen;
    free_model(&m);
    return most;
}

/* ---- what is gone through ---- */

static void search_all(const struct setup *is, size_t n, const struct manner *how) {
    static size_t states;
    claim_point = point_reached;
    for (; n; n--, is++) {
        int slots, most = holds(is, how, &slots, &states);
        if (most > slots) fail_msg("%d slots used, %d counted on", most, slots);
        if (getenv("BOARD_SAY"))
            fprintf(stderr, "%d lanes (%d in even steps), %d hands, %d levels, %d deaths, %d pauses, %d steps: "
                    "%d of %d slots; %zu states so far\n", is->lanes, is->other ? is->other : is->lanes, is->threads, is->levels,
                    is->deaths, is->pauses, is->steps, most, slots, states);
    }
}

/* The protocol, whatever order hands do things in. */
static void any_order(void **state) {
    (void)state;
    static const struct manner how = {ANY_ORDER, true, 0, 0};
    static const struct setup few[] = {
        /* lanes, hands, levels, deaths, pauses, steps, twice, failing, strangers, other */
        {1, 2, 0, 1, 2, 2, true, 0, 0, 0},  {2, 1, 0, -1, 2, 2, false, 0, 0, 0},
        {2, 2, 0, 1, 1, 2, false, 0, 0, 0}, {2, 2, 0, 1, 1, 1, true, 0, 0, 0},
        {2, 2, 1, 1, 1, 1, true, 0, 0, 0},  {2, 3, 0, 0, 0, 2, true, 0, 0, 0},
        {2, 2, 0, 0, 2, 2, false, 0, 0, 0}, {3, 2, 0, -1, 0, 2, false, 0, 0, 0},
        {3, 2, 1, 1, 1, 1, false, 0, 0, 0}, {3, 2, 0, 1, 0, 1, true, 0, 1, 0},
        {3, 3, 0, 1, 0, 1, false, 0, 0, 0}, {4, 2, 0, 2, 0, 1, false, 0, 0, 0},
        {5, 2, 0, 1, 0, 1, false, 0, 1, 0}, {6, 2, 1, 1, 0, 1, false, 0, 0, 0},
        {8, 1, 2, -1, 1, 1, false, 0, 0, 0}};
    static const struct setup more[] = {
        {1, 2, 0, 2, 2, 2, true, 0, 0, 0},  {2, 2, 0, 2, 1, 2, true, 0, 0, 0},
        {2, 2, 0, 2, 2, 2, false, 0, 0, 0}, {2, 2, 0, 1, 2, 1, true, 0, 0, 0},
        {2, 3, 0, 1, 0, 2, true, 0, 0, 0},  {2, 3, 0, 1, 1, 1, false, 0, 1, 0},
        {3, 2, 0, 1, 1, 1, true, 0, 0, 0},  {3, 2, 0, 0, 2, 1, false, 0, 0, 0},
        {3, 3, 0, 0, 1, 1, false, 0, 0, 0}, {4, 2, 0, 1, 1, 1, false, 0, 0, 0},
        {4, 3, 0, 0, 0, 1, false, 0, 0, 0}, {6, 2, 0, 2, 0, 1, false, 0, 0, 0},
        {8, 2, 1, 1, 0, 1, false, 0, 0, 0}, {8, 1, 0, -1, 2, 2, false, 0, 0, 0}};
    search_all(few, COUNT(few), &how);
    if (all()) search_all(more, COUNT(more), &how);
}

/* Hands come late to a step that is over: one with a lane that another had computed too, one with the
 * operands of the last sum to give back, while a third has begun the next step. */
static void late(void **state) {
    (void)state;
    static const struct manner how = {DRAWS_FIRST, true, PUBLISH, 1}, any = {DRAWS_FIRST, true, 0, 0};
    static const struct setup is = {2, 3, 0, 0, 1, 2, true, 0, 0, 0};
    search_all(&is, 1, all() ? &any : &how);
}

/* Steps of two shapes take turns: hands come late to a step of the other, or of their own when another was between;
 * who is dead is recovered from with the board of the step that is open. */
static void shapes(void **state) {
    (void)state;
    static const struct manner any = {ANY_ORDER, true, 0, 0}, late = {DRAWS_FIRST, true, PUBLISH, 1};
    static const struct setup few[] = {
        {1, 2, 0, 1, 1, 3, false, 0, 0, 2}, {1, 2, 0, 1, 0, 3, true, 0, 0, 2}, {2, 1, 0, -1, 1, 3, false, 0, 0, 3},
        {2, 2, 0, 1, 1, 2, false, 0, 0, 1}, {2, 2, 0, 1, 0, 3, false, 0, 0, 2}, {3, 2, 1, 1, 0, 2, false, 0, 0, 2},
        {1, 2, 0, 1, 0, 2, true, 0, 1, 3}};
    static const struct setup last[] = {{2, 3, 0, 0, 1, 2, true, 0, 0, 1}};
    static const struct setup more[] = {
        {1, 2, 0, 1, 1, 3, true, 0, 0, 2},  {1, 2, 0, 2, 2, 3, true, 0, 0, 1},  {2, 2, 0, 1, 1, 3, false, 0, 0, 2},
        {1, 2, 0, 2, 1, 4, false, 0, 0, 2}, {3, 2, 0, 1, 1, 2, false, 0, 0, 2}, {2, 3, 0, 1, 0, 2, false, 0, 0, 3},
        {4, 2, 1, 1, 0, 2, false, 0, 0, 3}, {1, 2, 0, 1, 0, 2, true, 0, 1, 5}};
    static const struct setup more_late[] = {{1, 3, 0, 0, 1, 3, true, 0, 0, 2}};
    search_all(few, COUNT(few), &any);
    search_all(last, COUNT(last), &late);
    if (!all()) return;
    search_all(more, COUNT(more), &any);
    search_all(more_late, COUNT(more_late), &late);
}

static void failing(void **state) {
    (void)state;
    static const struct manner how = {ANY_ORDER, true, 0, 0};
    static const struct setup few[] = {
        {1, 2, 0, 1, 1, 1, true, 1, 0, 0},  {2, 2, 0, 1, 1, 1, true, 2, 0, 0},
        {3, 2, 0, 1, 1, 1, false, 6, 0, 0}, {4, 2, 0, 1, 0, 1, true, 5, 0, 0}};
    search_all(few, COUNT(few), &how);
}

/* board_slots are enough where hands first sum what others have left, then draw. */
static void enough_slots(void **state) {
    (void)state;
    static const struct manner how = {ORPHANS_FIRST, false, 0, 0};
    static const int most[2][MOST_HANDS] = {{8, 6, 3}, {8, 8, 4}};
    for (int threads = 1; threads <= MOST_HANDS; threads++)
        for (int lanes = 1; lanes <= most[all()][threads - 1]; lanes++)
            for (int levels = 0; levels <= 2; levels++) {
                struct setup is = {.lanes = lanes, .threads = threads, .levels = levels, .steps = 1};
                is.deaths = threads == 1 ? -1 : lanes < 6 || all();
                is.pauses = threads == 1 ? 2 : threads == 2 && lanes < (all() ? 5 : 4);
                search_all(&is, 1, &how);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_order), cmocka_unit_test(late),
                                       cmocka_unit_test(shapes), cmocka_unit_test(failing),
                                       cmocka_unit_test(enough_slots)};
    return cmocka_run_group_tests_name("board", tests, NULL, NULL);
}
