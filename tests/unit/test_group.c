/* SPDX-License-Identifier: Apache-2.0
 * Groups under the model checker: what may happen, and which sizes (group_model.h). */
#include "group_model.h"

static void die(void *world, int who) {
    struct worker *h = &((struct state *)world)->actor[who];
    *h = (struct worker){.doing = DEAD, .starts = h->starts, .node = -1, .slot = -1};
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
    if (a->does == REFUSE) {
        h->doing = GIVE_UP;
        w->failures--;
    }
}

/* ---- what may happen ---- */

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
    add_offer(o, CLAIM);
    add_offer(o, LEAVE);
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
    if (h->doing == OUT && open) add_offer(o, ENTER);
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
    uint64_t flags = (uint64_t)(a->leads | a->again << 1 | a->done << 2);
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

/* If nobody goes on, the step is complete and all have left it, or all are dead. */
static void check_progress(const struct state *w) {
    uint64_t before = hash(w);
    int alive = 0, stuck = 0;
    for (int i = 0; i <= OPENER; i++) {
        if (w->w.logged[i] || (i != AGENT && goes_on(w, i, before))) return;
        if (i < AGENT) alive += is_alive(&w->actor[i]);
        if (i < AGENT) stuck += is_alive(&w->actor[i]) && w->actor[i].doing != OUT;
    }
    if (goes_on(w, AGENT, before)) return;
    if (stuck || (alive && !is_complete(w))) broken("somebody goes on until the step is complete");
}

/* Calls of the board alone are paused in the board's own test. */
static bool is_paused(int does) {
    int doing = does % 32;
    return doing != CLAIM && doing != REPEAT && doing != TAKE && doing != PUBLISH &&
           doing != MEET && doing != CLEAR;
}

static void offer_changes(const struct state *w, int who) {
    const struct worker *h = &w->actor[who];
    if (is_alive(h) && w->w.deaths) model_other(who, DIE, 0);
    if (h->doing == ABSENT && h->starts && w->step <= given.is.steps) model_other(who, JOIN, 0);
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
    static const char *const what[] = {"dies", "joins", "commits", "fails"};
    const struct worker *h = &((const struct state *)world)->actor[a->who];
    fprintf(to, "%s", a->what == OTHER ? what[a->does] : doing_name[a->does % 32]);
    if (a->what != OTHER && a->does >= 32) fprintf(to, " %d", a->does / 32);
    fprintf(to, " (node %d, slot %d, order %d, step %d)", h->node, h->slot, (int)h->order, h->step);
}

/* ---- all of it ---- */

static void search_all(const struct setup *is, size_t n) {
    for (; n; n--, is++) {
        struct protocol p = {sizeof(struct state), is->workers + 2, offer, make, after, die, other,
                             check, hash, print, is->pause_in, 0};
        struct state begin = {.w = {.deaths = is->deaths, .pauses = is->pauses}, .step = 1,
                              .failures = is->failures};
        given = (struct given){.is = *is};
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

/* A group dies down to one worker or none, and grows again; orders are given up. */
static void one_group(void **state) {
    (void)state;
    static const struct setup few[] = {
        /* workers, groups, roles, lanes, levels, deaths, starts, pauses, steps, failures,
         * pause_in */
        {1, 1, 2, 2, 0, -1, 2, 1, 1, 1, 0}, {2, 1, 2, 1, 0, 2, 1, 1, 1, 0, 0},
        {2, 1, 2, 1, 0, -1, 1, 0, 1, 0, 0}, {2, 1, 2, 1, 0, 1, 1, 2, 1, 1, 0},
        {2, 1, 2, 2, 0, 1, 1, 1, 1, 1, 0},  {2, 1, 2, 3, 0, 1, 1, 0, 1, 0, 0},
        {2, 1, 3, 1, 0, 1, 1, 1, 1, 1, 0},  {3, 1, 3, 1, 0, 1, 1, 1, 1, 0, 0}};
    static const struct setup more[] = {
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_group), cmocka_unit_test(late_agent),
                                       cmocka_unit_test(two_groups), cmocka_unit_test(stages)};
    return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
