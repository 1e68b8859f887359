/* SPDX-License-Identifier: Apache-2.0
 * Groups under the model checker (group_model.h): what must hold, what may happen, which sizes. */
#include "group_model.h"

/* ---- checks of a state ---- */

static bool is_done_in(const struct state *w, int node) {
    struct claim n = node_at(w, node);
    return n.state == CLAIM_DONE && (int)n.step == w->step;
}

/* A lane or sum of the step that is published and may still be read. */
static bool is_needed(const struct state *w, int node) {
    int parent = given.tree.node[node].parent;
    return is_done_in(w, node) && (parent < 0 || !is_done_in(w, parent));
}

static bool holds(const struct claim *slot, int owner, int step, int node) {
    return slot->state == CLAIM_TAKEN && (uint32_t)step - slot->step <= 1 && slot->owner == owner &&
           slot->value == node;
}

static void check_values(const struct state *w) {
    for (int i = 0; i < given.tree.n_nodes && !w->committed; i++) {
        struct claim node = node_at(w, i), slot = slot_at(w, node.value);
        if (!is_needed(w, i)) continue;
        if (!holds(&slot, node.owner, w->step, i)) broken("a published value's slot is held");
        if (!is_right(w, node.value, i)) broken("a published value is right");
    }
}

static void check_captain(const struct state *w, int who) {
    const struct worker *h = &w->actor[who];
    struct group g = own_group(w, who);
    bool resigns = w->w.logged[who] &&
                   (h->doing == LEAVE || h->doing == SETTLE || h->doing == RESIGN);
    if (h->leads && !resigns && atomic_load(&g.shared->captain) != who + 1)
        broken("a group has one captain");
    struct claim slot = slot_at(w, h->slot < 0 ? 0 : h->slot);
    if (h->slot >= 0 && !w->w.logged[who] && !holds(&slot, who, h->step, h->node))
        broken("a captain's slot is held by it");
}

/* Who works on an order may write at any time to its slot and to the arena. */
static void check_order(const struct state *w, int who) {
    const struct worker *h = &w->actor[who];
    const struct given_order *last = &w->last[group_of_worker(who)];
    if (h->doing != WORK && h->doing != SHARE) return;
    if (last->number != h->order) broken("one order of a group is worked on at a time");
    if (memcmp(&h->task, &last->task, sizeof h->task)) broken("all know what is to be computed");
    struct claim slot = slot_at(w, h->task.slot);
    int step = (int)(h->task.stage >> 16);
    if (h->round < 2 && !holds(&slot, last->captain, step, h->task.lane))
        broken("an order's slot is held while it may be written to");
}

static bool has_reason(const struct state *w, int slot) {
    struct claim s = slot_at(w, slot), node = node_at(w, s.value);
    const struct worker *h = &w->actor[s.owner];
    if (s.owner < given.is.workers && is_alive(h) && h->slot == slot && h->node == s.value)
        return true;
    return node.state == CLAIM_DONE && node.value == slot && node.owner == s.owner &&
           is_needed(w, s.value);
}

/* Unless an actor is in a call, or dead and not recovered from, each slot is held for a reason. */
static void check_slots(const struct state *w) {
    bool quiet = !w->committed;
    for (int i = 0; i <= OPENER; i++)
        quiet = quiet && !w->w.logged[i] && w->actor[i].doing < DEAD;
    for (int i = 0; i < given.slots && quiet; i++)
        if (slot_at(w, i).state == CLAIM_TAKEN && !has_reason(w, i))
            broken("a slot that nobody needs is released");
}

static void check(const void *world) {
    const struct state *w = world;
    check_values(w);
    check_slots(w);
    for (int i = 0; i < given.is.workers; i++) {
        if (!is_alive(&w->actor[i])) continue;
        check_captain(w, i);
        check_order(w, i);
    }
}

/* ---- what may happen ---- */

static void die(void *world, int who) {
    struct worker *h = &((struct state *)world)->actor[who];
    *h = (struct worker){.doing = DEAD, .starts = h->starts, .out = h->out, .node = -1, .slot = -1};
}

static void other(void *world, const struct act *a) {
    struct state *w = world;
    struct worker *h = &w->actor[a->who];
    if (a->does == DIE) kill_actor(&w->w, a->who);
    if (a->does == COMMIT) w->committed = 1;
    if (a->does == JOIN) {
        h->doing = OUT;
        h->starts--;
    }
    if (a->does == SCALE) {
        h->out = true;
        w->leaves--;
    }
    if (a->does == REFUSE) {
        h->doing = GIVE_UP;
        w->failures--;
    }
}

#define MOST_OFFERS 16

struct offers {
    int n, does[MOST_OFFERS];
};

static void add_offer(struct offers *o, int does) { o->does[o->n++] = does; }

static void offers_of_agent(const struct state *w, struct offers *o) {
    const struct worker *h = &w->actor[AGENT];
    if (is_alive(h)) add_offer(o, ON(h->doing, h->node));
    for (int i = 0; i < given.is.workers && !is_alive(h); i++) {
        if (w->actor[i].doing == DEAD) add_offer(o, ON(TELL, i));
        if (w->actor[i].doing == TOLD) add_offer(o, ON(TRY, i));
    }
}

static void offers_of_idle(const struct state *w, int who, struct offers *o) {
    const struct worker *h = &w->actor[who];
    add_offer(o, LEAVE);
    add_offer(o, h->out ? RESIGN : CLAIM);
    if (h->out) return;
    for (int i = 0; i < given.tree.lanes && !is_over(w, h); i++) {
        struct claim node = node_at(w, i);
        if (node.state == CLAIM_TAKEN && (int)node.step == w->step && node.owner != who)
            add_offer(o, ON(REPEAT, i));
    }
}

static void offers_of_worker(const struct state *w, int who, struct offers *o) {
    const struct worker *h = &w->actor[who];
    bool open = w->step > h->step && !w->committed && !is_complete(w);
    if (h->doing < OUT) add_offer(o, h->doing);
    if (h->doing == OUT && open && !h->late && !h->out) add_offer(o, ENTER);
    if (h->late && (h->doing == OUT || h->doing == LATE)) add_offer(o, SETTLE);
    if (h->doing == LATE) add_offer(o, LEAVE);
    for (int does = LEAD; h->doing == IN && does <= LEAVE; does++) add_offer(o, does);
    if (h->doing == IDLE) offers_of_idle(w, who, o);
}

static void find_offers(const struct state *w, int who, struct offers *o) {
    o->n = 0;
    if (who < AGENT) offers_of_worker(w, who, o);
    else if (who == AGENT) offers_of_agent(w, o);
    else if (w->committed) add_offer(o, CLEAR);
}

static uint64_t hash_task(uint64_t h, const struct group_task *task) {
    h = mix(mix(h, task->stage), task->base);
    return mix(h, (uint64_t)(task->lane << 8 | task->slot));
}

static uint64_t hash_group(uint64_t h, const struct state *w, int number) {
    uint64_t word[GROUP_BYTES / sizeof(uint64_t)];
    const struct given_order *last = &w->last[number];
    memcpy(word, &w->group[number], sizeof word);
    for (size_t i = 0; i < COUNT(word); i++) h = mix(h, word[i]);
    for (int r = 0; r < given.is.roles; r++) h = mix(h, w->arena[number][r]);
    return hash_task(mix(mix(h, last->number), (uint64_t)last->captain), &last->task);
}

static uint64_t hash_actor(uint64_t h, const struct worker *a) {
    uint64_t flags = (uint64_t)(a->leads | a->late << 1 | a->again << 2 | a->done << 3 |
                                a->out << 4);
    h = mix(h, (uint64_t)a->doing | (uint64_t)a->step << 8 | (uint64_t)a->starts << 16 |
                   (uint64_t)(a->node + 1) << 24 | (uint64_t)(a->slot + 1) << 32 |
                   (uint64_t)a->left << 40 | (uint64_t)a->right << 48 | flags << 56);
    return hash_task(mix(mix(h, a->order), (uint64_t)(a->roles << 8 | a->round)), &a->task);
}

static uint64_t hash(const void *world) {
    const struct state *w = world;
    uint64_t h = mix(1, (uint64_t)(w->failures << 16 | w->step << 8 | w->committed));
    for (size_t i = 0; i < COUNT(w->cell); i++) h = mix(h, w->cell[i]);
    for (int i = 0; i < given.slots * MOST_ROLES; i++)
        h = mix(h, w->part[i / MOST_ROLES][i % MOST_ROLES]);
    for (int i = 0; i < given.is.groups; i++) h = hash_group(h, w, i);
    for (int i = 0; i < given.is.workers; i++)
        h = mix(mix(h, w->place[i].there), (uint64_t)w->place[i].busy);
    for (int i = 0; i <= OPENER; i++) h = hash_actor(h, &w->actor[i]);
    return h;
}

/* Whether an actor's call would change anything. */
static bool goes_on(const struct state *w, int who, uint64_t before) {
    struct offers o;
    find_offers(w, who, &o);
    for (int i = 0; i < o.n; i++) {
        struct state copy = *w;
        int result = make(&copy, who, o.does[i]);
        after(&copy, who, o.does[i], result);
        if (hash(&copy) != before) return true;
    }
    return false;
}

/* If nobody goes on, the step is complete and all have left it, or all with a rank are dead. */
static void check_progress(const struct state *w) {
    uint64_t before = hash(w);
    int alive = 0, stuck = 0, ranks = 0;
    for (int i = 0; i <= OPENER; i++) {
        const struct worker *h = &w->actor[i];
        if (w->w.logged[i] || (i != AGENT && goes_on(w, i, before))) return;
        if (i < AGENT) alive += is_alive(h);
        if (i < AGENT) stuck += is_alive(h) && (h->doing != OUT || h->late);
        if (i < AGENT) ranks += is_alive(h) && !h->out;
    }
    if (goes_on(w, AGENT, before)) return;
    if (alive && !ranks && !is_complete(w)) return; /* one with a rank is started again */
    if (stuck || (alive && !is_complete(w))) broken("somebody goes on until the step is complete");
}

/* Calls of the board alone are paused in the board's own test. */
static bool is_paused(int does) {
    int doing = does % 32;
    return doing != CLAIM && doing != REPEAT && doing != TAKE && doing != PUBLISH &&
           doing != MEET && doing != CLEAR;
}

/* One worker keeps a rank. */
static bool may_lose_rank(const struct state *w, int who) {
    int others = 0;
    for (int i = 0; i < given.is.workers; i++) others += i != who && !w->actor[i].out;
    return w->leaves && others && !w->actor[who].out;
}

static void offer_changes(const struct state *w, int who) {
    const struct worker *h = &w->actor[who];
    if (may_lose_rank(w, who)) model_other(who, SCALE, 0);
    if (is_alive(h) && w->w.deaths) model_other(who, DIE, 0);
    if (h->doing == ABSENT && h->starts && !h->out && w->step <= given.is.steps)
        model_other(who, JOIN, 0);
    if (h->doing == WORK && !w->w.logged[who] && w->failures) model_other(who, REFUSE, 0);
}

static void offer(const void *world) {
    const struct state *w = world;
    check_progress(w);
    for (int i = 0; i <= OPENER; i++) {
        struct offers o;
        find_offers(w, i, &o);
        for (int k = 0; k < o.n; k++)
            model_call_of(i, o.does[k], is_paused(o.does[k]), i < AGENT);
        if (i < AGENT) offer_changes(w, i);
    }
    if (w->step < given.is.steps && !w->committed && is_complete(w)) model_other(OPENER, COMMIT, 0);
}

static void print(FILE *to, const void *world, const struct act *a) {
    static const char *const what[] = {"dies", "joins", "commits", "fails", "loses its rank"};
    const struct worker *h = &((const struct state *)world)->actor[a->who];
    fprintf(to, "%s", a->what == OTHER ? what[a->does] : doing_name[a->does % 32]);
    if (a->what != OTHER && a->does >= 32) fprintf(to, " %d", a->does / 32);
    fprintf(to, " (node %d, slot %d, order %d, step %d)", h->node, h->slot, (int)h->order, h->step);
}

/* ---- all of it ---- */

/* leaves: so many workers may lose their ranks, but not all. */
static void search_scaled(const struct setup *is, size_t n, int leaves) {
    for (; n; n--, is++) {
        struct protocol p = {sizeof(struct state), is->workers + 2, offer, make, after, die, other,
                             check, hash, print, is->pause_in, 0};
        struct state begin = {.w = {.deaths = is->deaths, .pauses = is->pauses}, .step = 1,
                              .failures = is->failures, .leaves = leaves};
        given = (struct given){.is = *is, .leaves = leaves};
        assert_int_equal(lane_tree_make(is->lanes, is->levels, &given.tree), TRI_OK);
        given.slots = board_waiting(&given.tree, is->groups) +
                      board_held(&given.tree, is->groups, 1, true);
        assert_int_equal(group_count(is->workers, is->roles), is->groups);
        assert_true(given.slots <= MOST_SLOTS && is->lanes <= MOST_LANES);
        assert_true(group_bytes(is->roles, is->roles, 0) <= GROUP_BYTES);
        for (int i = 0; i < is->groups; i++) {
            struct group g = group_in(&begin, i);
            g.shared->roles = g.shared->executors = is->roles;
        }
        for (int i = 0; i < is->workers + 2; i++)
            begin.actor[i] = (struct worker){.doing = i < is->workers ? OUT : ABSENT,
                                             .starts = is->starts, .node = -1, .slot = -1};
        if (getenv("BOARD_SAY"))
            fprintf(stderr,
                    "%d workers in %d groups, %d roles, %d lanes, %d levels, %d deaths, %d starts, "
                    "%d pauses, %d steps, %d failures, %d slots: ",
                    is->workers, is->groups, is->roles, is->lanes, is->levels, is->deaths,
                    is->starts, is->pauses, is->steps, is->failures, given.slots);
        model_check(&p, &begin.w);
        lane_tree_free(&given.tree);
    }
}

static void search_all(const struct setup *is, size_t n) { search_scaled(is, n, 0); }

/* A group dies down to one worker or none, and grows again; orders are given up. */
static void one_group(void **state) {
    (void)state;
    static const struct setup few[] = {
        /* workers, groups, roles, lanes, levels, deaths, starts, pauses, steps, failures,
         * pause_in */
        {1, 1, 2, 2, 0, -1, 2, 1, 1, 1, 0}, {2, 1, 2, 1, 0, 2, 1, 1, 1, 0, 0},
        {2, 1, 2, 1, 0, -1, 1, 0, 1, 0, 0}, {2, 1, 2, 1, 0, 1, 1, 2, 1, 1, 0},
        {2, 1, 2, 3, 0, 1, 1, 0, 1, 0, 0},  {2, 1, 3, 1, 0, 1, 1, 1, 1, 1, 0},
        {3, 1, 3, 1, 0, 1, 1, 1, 1, 0, 0}};
    static const struct setup more[] = {
        {2, 1, 2, 2, 0, 1, 1, 1, 1, 1, 0},
        {2, 1, 2, 1, 0, -1, 2, 0, 1, 0, 0}, {2, 1, 2, 1, 0, 2, 1, 2, 1, 1, 0},
        {2, 1, 2, 2, 0, 2, 1, 1, 1, 1, 0},  {2, 1, 3, 2, 0, 1, 1, 2, 1, 1, 0},
        {3, 1, 3, 1, 0, 2, 1, 0, 1, 1, 0},  {3, 1, 3, 1, 0, 1, 0, 2, 1, 0, 0},
        {3, 1, 3, 2, 1, 1, 0, 1, 1, 1, 0},  {3, 1, 3, 2, 1, 1, 1, 0, 1, 1, 0}};
    search_all(few, COUNT(few));
    if (all()) search_all(more, COUNT(more));
}

/* The agent is late with an order that a dead worker had a role in: others work on the next. */
static void late_agent(void **state) {
    (void)state;
    static const struct setup is = {3, 1, 3, 2, 1, 1, 0, 1, 1, 1, ON(TELL, 1)};
    search_all(&is, 1);
}

/* A captain computes a lane again that the other group is slow with. */
static void two_groups(void **state) {
    (void)state;
    static const struct setup few[] = {{2, 2, 1, 1, 0, 0, 0, 0, 1, 2, 0},
                                       {2, 2, 1, 2, 0, 1, 0, 0, 1, 0, 0},
                                       {3, 2, 2, 1, 0, 1, 1, 0, 1, 0, 0},
                                       {3, 2, 2, 1, 0, 0, 0, 1, 1, 0, 0}};
    static const struct setup more[] = {{3, 2, 2, 1, 0, 1, 0, 1, 1, 0, 0},
                                        {3, 2, 2, 2, 1, 1, 0, 0, 1, 0, 0},
                                        {3, 2, 2, 2, 0, 1, 0, 0, 1, 0, 0},
                                        {4, 2, 2, 1, 0, 1, 0, 0, 1, 0, 0}};
    search_all(few, COUNT(few));
    if (all()) search_all(more, COUNT(more));
}

/* Captains and followers are late for a stage that is over. */
static void stages(void **state) {
    (void)state;
    static const struct setup few[] = {{2, 1, 2, 1, 0, 1, 1, 1, 2, 0, 0},
                                       {2, 2, 1, 1, 0, 1, 1, 0, 2, 0, 0},
                                       {3, 2, 2, 1, 0, 0, 0, 0, 2, 0, 0}};
    static const struct setup more[] = {{2, 1, 2, 1, 0, 1, 1, 1, 2, 1, 0},
                                        {2, 1, 2, 2, 0, 1, 1, 1, 2, 0, 0},
                                        {3, 2, 2, 1, 0, 0, 0, 1, 2, 0, 0},
                                        {3, 2, 2, 1, 0, 1, 0, 0, 2, 0, 0},
                                        {3, 1, 3, 1, 0, 1, 1, 0, 2, 0, 0}};
    search_all(few, COUNT(few));
    if (all()) search_all(more, COUNT(more));
}

/* Workers lose their ranks in mid-step, also captains: with a lane, without, and while another dies
 * and is started again. */
static void scaled(void **state) {
    (void)state;
    static const struct setup few[] = {{2, 1, 2, 1, 0, 1, 1, 0, 1, 0, 0},
                                       {3, 2, 2, 1, 0, 1, 0, 0, 1, 0, 0}};
    static const struct setup more[] = {{2, 1, 2, 1, 0, 2, 2, 1, 1, 1, 0},
                                        {2, 1, 2, 2, 0, 1, 1, 0, 1, 1, 0},
                                        {2, 1, 2, 2, 0, 1, 1, 1, 2, 0, 0},
                                        {3, 1, 3, 1, 0, 1, 1, 0, 1, 1, 0},
                                        {3, 2, 2, 1, 0, 1, 1, 0, 1, 0, 0},
                                        {3, 2, 2, 2, 0, 0, 0, 0, 1, 0, 0}};
    search_scaled(few, COUNT(few), 1);
    if (all()) search_scaled(more, COUNT(more), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_group), cmocka_unit_test(late_agent),
                                       cmocka_unit_test(two_groups), cmocka_unit_test(stages),
                                       cmocka_unit_test(scaled)};
    return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
