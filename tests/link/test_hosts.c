/* SPDX-License-Identifier: Apache-2.0
 * A model checker of the recovery rule: ferries over the link in process, agents and a coordinator
 * that hold and begin epochs, threads that compute and update. Every order of what may happen next
 * is tried, depth first over the states of all hosts, with a death of a host or of a ferry, or a
 * new epoch without one, between any two; for larger sizes orders are drawn. A host that has died
 * may join. Where nothing more can happen, all hosts that live have done all steps, opened them
 * alike, and have the values of one host.
 *
 * Each of three rules is taken out in a process of its own, which must find a failure. SLOW=1 tries
 * larger sizes, for some minutes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/random.h"
#define SUMS 3
#include "link/hosts.h"
#include "link/model.h"
#include "link/world.h"

enum what { NOTICES, HEARS, WORKS, MOVES, LOSES_HOST, LOSES_FERRY, JOINS, CHANGES };

/* An agent, and what the coordinator knows of its host. */
static struct agent {
    bool alive;
    struct ferry *ferry;
    struct host_message said[16]; /* HOLD and EPOCH on their way to it */
    int n_said;
    struct text report; /* of this epoch; empty: it has not come, */
    struct hosts_report reported; /* the same, without what the host has */
} agent[MOST];

static struct host host[MOST];
static struct shape shape;
static struct link_world *world;
static uint32_t epoch;
static bool member_is[MOST]; /* of the epoch */
static int teller;           /* too */
static bool notices; /* a death that the coordinator has not noticed */
static struct budget {
    int deaths, ferries, epochs; /* of hosts, of ferries; changes without either */
    int joins;
} left; /* that there may still be */

static uint64_t drawn;
static int draw(int n) { return (int)(random_u32(23, 0, drawn++) % (uint32_t)n); }

/* ---- orders ---- */

#define MOST_CHOICES 4096
static int taken[MOST_CHOICES], open_at[MOST_CHOICES], depth, used;
static uint64_t *seen;
static size_t n_seen, capacity;

/* Whether the state was seen before; it is now. */
static bool is_known(uint64_t hash) {
    if (2 * n_seen >= capacity) {
        uint64_t *old = seen;
        const size_t n = capacity;
        capacity = capacity ? 2 * capacity : 1 << 16;
        assert_non_null(seen = calloc(capacity, sizeof *seen));
        for (size_t i = n_seen = 0; i < n; i++)
            if (old[i]) is_known(old[i]);
        free(old);
    }
    hash += !hash;
    size_t at = hash & (capacity - 1);
    while (seen[at] && seen[at] != hash) at = (at + 1) & (capacity - 1);
    if (seen[at]) return true;
    seen[at] = hash;
    n_seen++;
    return false;
}

/* ---- the coordinator ---- */

static void say(int i, const struct host_message *m) {
    assert_true(agent[i].n_said < (int)COUNT(agent[i].said));
    agent[i].said[agent[i].n_said++] = *m;
}

static void hold(void) {
    const struct host_message m = {.kind = HOST_HOLD, .epoch = ++epoch};
    notices = false;
    for (int i = 0; i < shape.hosts; i++) {
        agent[i].report.size = 0;
        if (agent[i].alive) say(i, &m);
    }
}

static bool has_state(int i) { return agent[i].alive && !lacks(&host[i]); }

/* Once all have reported. */
static void begin_epoch(void) {
    const struct host_message m = {.kind = HOST_EPOCH, .epoch = epoch};
    for (int i = 0; i < shape.hosts; i++)
        if (agent[i].alive && !agent[i].report.size) return;
    for (int i = 0; !has_state(teller); i++) teller = i;
    for (int i = 0; i < shape.hosts; i++) {
        member_is[i] = agent[i].alive;
        if (!agent[i].alive) continue;
        say(i, &m);
        for (int k = 0; !has_state(i) && k < shape.hosts; k++)
            if (has_state(k)) host_learns(&host[i], &host[k], &agent[k].reported);
    }
}

static tri_status heard(void *user, const struct host_message *m) {
    struct agent *a = user;
    if (m->kind == HOST_LOST && strstr(m->text, "sum")) fail_msg("%s", m->text);
    if (m->kind != HOST_REPORT || m->epoch != epoch) return TRI_OK;
    assert_int_equal(a->report.size, 0);
    a->reported = m->report;
    tri_status status = host_message_put(m, &a->report);
    begin_epoch();
    return status;
}

static void take_epoch(int i) {
    struct host_member member[MOST] = {{0}};
    struct host_message report[MOST] = {{0}}, m = {.kind = HOST_EPOCH, .epoch = epoch,
                                                   .teller = teller, .member = member,
                                                   .n_members = shape.hosts};
    for (int k = 0; k < shape.hosts; k++) {
        member[k] = (struct host_member){.alive = member_is[k], .weight = host_weight(k),
                                         .address = ""};
        if (!member_is[k]) continue;
        const struct text *t = &agent[k].report;
        assert_int_equal(host_message_get(t->data, t->size, &report[k]), TRI_OK);
        member[k].report = report[k].report;
    }
    if (ferry_take(agent[i].ferry, &m)) fail_msg("host %d: %s", i, tri_message());
    for (int k = 0; k < shape.hosts; k++) host_message_free(&report[k]);
}

static void hear(int i) {
    struct agent *a = &agent[i];
    const struct host_message m = a->said[0];
    memmove(a->said, a->said + 1, sizeof *a->said * (size_t)--a->n_said);
    if (m.kind == HOST_EPOCH && m.epoch == epoch && a->report.size) take_epoch(i);
    if (m.kind == HOST_HOLD && ferry_take(a->ferry, &m)) fail_msg("host %d: %s", i, tri_message());
}

/* ---- hosts ---- */

static void start_ferry(int i) {
    const struct ferry_place place = {
        .view = &host[i].view, .row = &link_local, .tell = heard, .user = &agent[i],
        .way = {.path = shape.path}, .link = {.self = i, .hosts = shape.hosts, .run = 7}};
    assert_int_equal(ferry_open(&place, &agent[i].ferry), TRI_OK);
}

static void lose_ferry(int i) {
    ferry_close(agent[i].ferry);
    agent[i].ferry = NULL;
    view_recover(&host[i].view, host[i].head->course.opened, CREW_FERRY);
    notices = true;
}

static void settle(void) {
    for (int i = 0; i < shape.hosts; i++)
        if (agent[i].alive && (ferry_work(agent[i].ferry) || ferry_wants(agent[i].ferry)))
            fail_msg("host %d: %s", i, tri_message());
}

static uint64_t state_of(int i, uint64_t h) {
    const struct agent *a = &agent[i];
    const struct crew_head *head = host[i].head;
    const struct region *r = head->layout.region;
    ADD(h, a->alive);
    if (!a->alive) return h;
    for (int k = 0; k < a->n_said; k++) {
        ADD(h, a->said[k].kind);
        ADD(h, a->said[k].epoch);
    }
    h = base_hash(a->report.data, a->report.size, h);
    const uint64_t is[] = {head->course.opened, head->course.committed, head->hosts.offered,
                           head->hosts.over, (uint64_t)head->hosts.teller, (uint64_t)host[i].at,
                           host[i].half_updated, head->hosts.enters, head->hosts.epoch,
                           (uint64_t)head->hosts.lacks, head->course.base};
    h = base_hash(is, sizeof is, h);
    ADD(h, head->course.values);
    h = base_hash(view_region(&host[i].view, REGION_VALUES, 0), r[REGION_VALUES].bytes, h);
    for (int k = 0; k < 2; k++) {
        const struct hosts_opening *o = &head->hosts.opening[k];
        ADD(h, o->step);
        ADD(h, o->begin);
        ADD(h, o->rate);
        const enum region_number board = k ? REGION_BOARD_OF_LANES : REGION_BOARD;
        h = base_hash(view_region(&host[i].view, board, 0), r[board].bytes, h);
        h = base_hash(view_region(&host[i].view, REGION_RESULTS, k), sizeof(double), h);
    }
    h = base_hash(view_region(&host[i].view, REGION_MINE, 0), r[REGION_MINE].bytes, h);
    return model_of_ferry(a->ferry, h);
}

static bool is_new(void) {
    uint64_t h = model_of_world(world, 1);
    ADD(h, member_is);
    ADD(h, teller);
    const uint64_t is[] = {epoch, notices, (uint64_t)left.deaths, (uint64_t)left.ferries,
                           (uint64_t)left.epochs, (uint64_t)left.joins};
    h = base_hash(is, sizeof is, h);
    for (int i = 0; i < shape.hosts; i++) h = state_of(i, h);
    return !is_known(h);
}

/* ---- what may come next ---- */

struct next {
    enum what what;
    int i;
};

/* A host joins in a step, which everybody must know that may be the last to live. */
static bool may_join(int i) {
    bool known = left.joins && !agent[i].alive;
    for (int k = 0; k < shape.hosts; k++)
        known &= !has_state(k) || host[k].head->hosts.offered > shape.base;
    return known;
}

static int find_next(struct next *next) {
    int n = 0, have = 0;
    if (notices) next[n++] = (struct next){NOTICES, 0};
    for (int i = 0; i < shape.hosts; i++) {
        if (!agent[i].alive) continue;
        have += has_state(i);
        if (agent[i].n_said) next[n++] = (struct next){HEARS, i};
        if (host_may_work(&host[i])) next[n++] = (struct next){WORKS, i};
    }
    for (int i = 0, moves = world_moves(world); i < moves; i++)
        next[n++] = (struct next){MOVES, i};
    for (int i = 0; i < shape.hosts && n; i++) {
        if (may_join(i)) next[n++] = (struct next){JOINS, i};
        if (!agent[i].alive) continue;
        if (left.deaths && have > has_state(i)) next[n++] = (struct next){LOSES_HOST, i};
        if (left.ferries) next[n++] = (struct next){LOSES_FERRY, i};
    }
    if (n && left.epochs) next[n++] = (struct next){CHANGES, 0};
    return n;
}

/* With an empty store. */
static void join(int i) {
    host_reset(&host[i], true);
    agent[i].alive = true;
    start_ferry(i);
    hold();
}

static void happen(const struct next *next) {
    const int i = next->i;
    if (next->what == NOTICES || next->what == CHANGES) hold();
    else if (next->what == JOINS) join(i);
    else if (next->what == HEARS) hear(i);
    else if (next->what == WORKS) host_work(&host[i]);
    else if (next->what == MOVES) world_move(world, i);
    else lose_ferry(i);
    left.epochs -= next->what == CHANGES;
    left.joins -= next->what == JOINS;
    if (next->what == LOSES_HOST) {
        agent[i].alive = false;
        agent[i].n_said = 0;
        left.deaths--;
    } else if (next->what == LOSES_FERRY) {
        start_ferry(i);
        left.ferries--;
    }
    settle();
}

static void begin(const struct budget *may) {
    const struct shape *s = &shape;
    epoch = 0;
    teller = 0;
    left = *may;
    assert_int_equal(world_open(s->hosts, 1, &world), TRI_OK);
    world_by_itself(world, false);
    for (int i = 0; i < s->hosts; i++) {
        host_reset(&host[i], false);
        agent[i] = (struct agent){.alive = true, .report = agent[i].report};
        start_ferry(i);
    }
    hold(); /* the first epoch begins in one order */
    for (int i = 0; i < s->hosts; i++) hear(i);
    for (int i = 0; i < s->hosts; i++) hear(i);
    settle();
}

static int by_path; /* ferries that were at a step by the path that was asked for, in the end */

/* The last step went by the path that was asked for, if the hosts that are there now have one. */
static void check_path(int i) {
    const int is = model_path(agent[i].ferry);
    int hosts = 0;
    for (int k = 0; k < shape.hosts; k++) hosts += agent[k].alive;
    const bool allows = shape.path && hosts > 1 && path_allows((enum path)(shape.path - 1), hosts);
    if (is >= 0) assert_int_equal(is, allows ? shape.path - 1 : PATH_EXCHANGE);
    by_path += is > PATH_EXCHANGE;
}

static void check(void) {
    for (int i = 0; i < shape.hosts; i++) {
        if (!agent[i].alive) continue;
        if (!host_is_done(&host[i]))
            fail_msg("host %d of %d ends at step %d (opened %d, over %d)", i, shape.hosts,
                     (int)host[i].head->course.committed, (int)host[i].head->course.opened,
                     (int)host[i].head->hosts.over);
        host_check(&host[i]);
        check_path(i);
        for (int k = 0; k < i; k++)
            for (uint64_t step = shape.base + 1; agent[k].alive && step <= shape.steps; step++)
                assert_true(host[i].opened[step].rate == host[k].opened[step].rate);
    }
}

static void finish(void) {
    for (int i = 0; i < shape.hosts; i++) {
        ferry_close(agent[i].ferry);
        agent[i].ferry = NULL;
    }
    world_close(world);
}

/* From the begin to a state that was seen before, or to the end. */
static void one_order(const struct budget *may) {
    struct next next[256];
    begin(may);
    for (depth = 0;; depth++) {
        assert_true(depth < MOST_CHOICES);
        const int n = find_next(next);
        if (!n) check();
        if (!n || (depth >= used && !is_new())) break;
        if (depth == used) taken[used++] = 0;
        open_at[depth] = n;
        happen(&next[taken[depth]]);
    }
    finish();
}

static void all_orders(const struct shape *s, struct budget may) {
    const double began = base_seconds();
    n_seen = capacity = 0;
    used = 0;
    free(seen);
    seen = NULL;
    shape = *s;
    for (int i = 0; i < s->hosts; i++) host_make(&host[i], &shape, i, false);
    for (;;) {
        one_order(&may);
        while (used && taken[used - 1] + 1 >= open_at[used - 1]) used--;
        if (!used) break;
        taken[used - 1]++;
    }
    for (int i = 0; i < s->hosts; i++) host_free(&host[i]);
    print_message("%d hosts, %d lanes, %d steps; deaths of %d hosts, %d ferries; %d new epochs; "
                  "%d join: %zu states, %.1f s\n", s->hosts, s->lanes, (int)s->steps, may.deaths,
                  may.ferries, may.epochs, may.joins, n_seen, base_seconds() - began);
}

/* Orders that are drawn, of what has too many. Deaths are rare, more so in every other one. */
static void some_orders(const struct shape *s, struct budget may, int times) {
    struct next next[256];
    shape = *s;
    for (int i = 0; i < s->hosts; i++) host_make(&host[i], &shape, i, false);
    for (int k = 0; k < times; k++) {
        int n;
        begin(&may);
        while ((n = find_next(next))) {
            int i = draw(n);
            while (next[i].what >= LOSES_HOST && draw(k % 2 ? 30 : 5)) i = draw(n);
            happen(&next[i]);
        }
        check();
        finish();
    }
    for (int i = 0; i < s->hosts; i++) host_free(&host[i]);
}

static const struct shape two = {2, 2, 0, {1}, 1, 0, 0, 0, 0},
                          two_steps = {2, 2, 0, {1}, 2, 0, 0, 0, 0},
                          more = {3, 7, 0, {2}, 4, 0, 3, 0, 0},
                          four = {4, 9, 2, {2}, 3, 0, 1, 0, 0},
                          resumed = {3, 5, 1, {2}, 9, 6, 0, 0, 0},
                          exchanges = {4, 9, 0, {2, 3, 1}, 2, 0, 1, 0, WIRE_F32},
                          ring = {4, 9, 0, {2, 300, 1}, 2, 0, 1, 1 + PATH_RING, WIRE_FP16},
                          butterfly = {4, 9, 0, {2, 5, 1}, 3, 0, 0, 1 + PATH_BUTTERFLY, WIRE_BF16},
                          root = {3, 4, 0, {2, 3, 1}, 2, 0, 1, 1 + PATH_ROOT, WIRE_INT8};

/* Draws what comes next, but nothing is lost and nobody joins; at most so many times. Returns how
 * many there were. */
static int play(uint64_t seed, int most) {
    struct next next[256];
    int n = 0;
    drawn = seed;
    for (; n < most; n++) {
        const int all = find_next(next);
        int usual = 0;
        while (usual < all && next[usual].what < LOSES_HOST) usual++;
        if (!usual) break;
        happen(&next[draw(usual)]);
    }
    return n;
}

/* Then one host or ferry is lost, and perhaps a host joins. */
static void lose_at(uint64_t seed, int moment, enum what what, int who) {
    struct next next[256];
    int n;
    begin(&(struct budget){0});
    play(seed, moment);
    left = (struct budget){.deaths = what == LOSES_HOST, .ferries = what == LOSES_FERRY};
    happen(&(struct next){what, who});
    left.joins = what == LOSES_HOST;
    while ((n = find_next(next))) {
        int i = draw(n);
        while (next[i].what >= LOSES_HOST && draw(5)) i = draw(n);
        happen(&next[i]);
    }
    check();
    finish();
}

/* In an order that is drawn, each host and each ferry is lost at each moment. */
static void lose_at_all(const struct shape *s, uint64_t seed, int stride) {
    int runs = 0;
    shape = *s;
    by_path = 0;
    for (int i = 0; i < s->hosts; i++) host_make(&host[i], &shape, i, false);
    begin(&(struct budget){0});
    const int moments = play(seed, INT_MAX);
    check();
    finish();
    for (int m = (int)(seed % (uint64_t)stride); m < moments; m += stride)
        for (int who = 0; who < s->hosts; who++, runs += 2) {
            lose_at(seed, m, LOSES_HOST, who);
            lose_at(seed, m, LOSES_FERRY, who);
        }
    for (int i = 0; i < s->hosts; i++) host_free(&host[i]);
    assert_true(s->path < 2 || by_path > s->hosts);
    print_message("# %s, %s, %d hosts: %d moments, %d losses, %d steps by path\n",
                  path_words[s->path], wire_names[s->format], s->hosts, moments,
                  runs, by_path);
}

static void every_moment(void **state) {
    const int stride = getenv("SLOW") ? 1 : getenv("FEW") ? 29 : 11;
    uint64_t seed = 0;
    (void)state;
    for (int path = PATH_EXCHANGE; path < PATHS; path++)
        for (int format = WIRE_F32; format <= WIRE_PACK; format++)
            for (int hosts = 2; hosts < 4; hosts++) {
                const bool estimates = format == WIRE_TOPK;
                const struct shape s = {hosts, 2 * hosts + 1, estimates ? 2 : 0, {2, 700}, 3, 0, 0,
                                        path + 1, (enum wire_format)format};
                if (!path_allows((enum path)path, hosts)) continue;
                if (estimates && path != PATH_EXCHANGE) continue;
                for (int times = stride == 1 ? 4 : 1; times; times--)
                    lose_at_all(&s, ++seed, stride);
            }
}

/* The path in a step that was opened for all three hosts, of which some are alive. */
static enum path path_of(const bool *alive) {
    struct schedule_hosts hosts = {.n = 3};
    struct schedule s = {0};
    struct hosts_opening o = {.step = 1, .hosts = 3};
    for (int i = 0; i < 3; i++) hosts.weight[i] = hosts.alive[i] = alive[i];
    hosts_deal(&host[0].view.tree[0][1], -1, 3, (int[]){1, 1, 1}, o.begin);
    const struct schedule_way way = {.path = shape.path};
    assert_int_equal(schedule_make(&host[0].view, &hosts, &way, &o, NULL, &s), TRI_OK);
    const enum path is = s.phase[1].path[0];
    schedule_free(&s);
    return is;
}

static void no_path_for_lanes_of_the_dead(void **state) {
    (void)state;
    shape = (struct shape){3, 7, 0, {2}, 1, 0, 0, 1 + PATH_RING, WIRE_F32};
    host_make(&host[0], &shape, 0, false);
    assert_int_equal(path_of((bool[]){true, true, true}), PATH_RING);
    assert_int_equal(path_of((bool[]){true, true, false}), PATH_EXCHANGE);
    host_free(&host[0]);
}

static void every_order(void **state) {
    (void)state;
    all_orders(&two, (struct budget){.deaths = 1});
    if (!getenv("SLOW")) return;
    all_orders(&two, (struct budget){.epochs = 1});
    all_orders(&two, (struct budget){.ferries = 1});
    all_orders(&two, (struct budget){.deaths = 1, .joins = 1});
    all_orders(&two_steps, (struct budget){.deaths = 1});
    for (int path = PATH_RING; path < PATHS; path++) {
        const struct shape by = {2, 2, 0, {300}, 1, 0, 0, 1 + path, WIRE_INT8};
        all_orders(&by, (struct budget){.deaths = 1});
        all_orders(&by, (struct budget){.ferries = 1});
    }
}

static void drawn_orders(void **state) {
    const int times = getenv("SLOW") ? 10000 : 300;
    (void)state;
    some_orders(&two_steps, (struct budget){2, 2, 2, 2}, times);
    some_orders(&more, (struct budget){2, 2, 2, 2}, times);
    some_orders(&four, (struct budget){2, 2, 2, 2}, times);
    some_orders(&resumed, (struct budget){1, 1, 1, 1}, times);
    some_orders(&exchanges, (struct budget){3, 1, 3, 0}, times);
    some_orders(&ring, (struct budget){3, 1, 3, 0}, times);
    some_orders(&butterfly, (struct budget){2, 2, 2, 2}, times);
    some_orders(&root, (struct budget){2, 1, 3, 0}, times);
}

/* Where its lack can do harm. */
static void without_a_rule(void **state) {
    (void)state;
    const bool old = taken_out == OLD_EPOCHS;
    all_orders(taken_out == UNTIL_ACKNOWLEDGED ? &two_steps : &two,
               (struct budget){.deaths = !old, .epochs = old});
}

/* Each in a process of its own, which aborts or fails; status 0 is that it found nothing. */
static void each_rule_is_needed(void **state) {
    static const char *const rules[] = {"RULE=1", "RULE=2", "RULE=3"};
    (void)state;
    for (int i = 0; i < (int)COUNT(rules); i++) {
        int status;
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
            char *const arg[] = {"test_hosts", NULL};
            char *const env[] = {(char *)(uintptr_t)rules[i], NULL};
            const int nowhere = open("/dev/null", O_WRONLY);
            dup2(nowhere, 1);
            dup2(nowhere, 2);
            alarm(60); /* it stands still, or there is too much to try */
            execve("/proc/self/exe", arg, env);
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!status || (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM))
            fail_msg("nothing fails with %s", rules[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_order),
                                       cmocka_unit_test(drawn_orders),
                                       cmocka_unit_test(every_moment),
                                       cmocka_unit_test(no_path_for_lanes_of_the_dead),
                                       cmocka_unit_test(each_rule_is_needed)};
    const struct CMUnitTest one[] = {cmocka_unit_test(without_a_rule)};
    const char *rule = getenv("RULE");
    taken_out = rule ? (unsigned)atoi(rule) : NO_RULE;
    model_keeps_sessions = taken_out == OLD_EPOCHS;
    return rule ? cmocka_run_group_tests(one, NULL, NULL)
                : cmocka_run_group_tests(tests, NULL, NULL);
}
