/* SPDX-License-Identifier: Apache-2.0
 * Replicas: several members compute what one thread computes, bit for bit, however they are
 * interleaved, and although all memory becomes NaN when its tensor's life ends. FIRST=N CASES=M
 * runs the random networks from N on, ONLY=PATTERN the tests of these names, RUNS=N so many runs on
 * threads; SLOW=1 runs more of all, FEW=1 fewer members. */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/convert.h"
#include "plan/format.h"
#include "plan/fuse.h"
#include "plan/order.h"
#include "run/open.h"
#include "unit/mesh_case.h"
#include "unit/replica_world.h"

static const struct tri_fault none;

static int number(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

/* ---- subjects ---- */

/* A lane of the zoo, after one step; `run` keeps what its sources are bound to. */
struct lane {
    tri_run *run;
    struct subject s;
};

static const struct lane_case {
    const char *model, *mesh, *strategy, *unset;
    int seats, stages;
    const char *pipeline;
} lanes[] = {
    {"mlp:hidden=50", "model=2", "channels", "follow", 2, 0, NULL},
    {"mlp:hidden=64", "model=8", "channels", "follow", 8, 0, NULL},
    {"gpt2-tiny:seq=20,vocab=103,heads=4", "model=2", "megatron", "follow", 2, 0, NULL},
    {"gpt2-tiny:seq=20,vocab=103,heads=4", "model=4", "megatron-sp", "follow", 4, 0, NULL},
    {"gpt2-tiny:seq=20,vocab=103,heads=8", "model=8", "megatron", "follow", 8, 0, NULL},
    {"bert-tiny:seq=20,vocab=103,heads=4,predictions=3", "data=2,model=2", "megatron", "batch", 4,
     0, NULL},
    {"bert-tiny:seq=20,vocab=103,heads=4,predictions=3", "model=2", "megatron", "follow", 2, 0,
     NULL},
    {"resnet18:form=small,width=8", "model=2", "channels", "follow", 2, 0, NULL},
    {"resnet18:form=small,width=16", "model=2,data=2", "channels", "batch", 4, 0, NULL},
}, cut[] = {
    {"mlp:hidden=50", "model=2", "channels", "follow", 2, 2, NULL},
    {"gpt2-tiny:seq=20,vocab=103,heads=4", "model=2", "megatron", "follow", 2, 3, NULL},
    {"gpt2-tiny:seq=20,vocab=103,heads=4", "model=4", "megatron-sp", "follow", 4, 2, "zero-bubble"},
    {"resnet18:form=small,width=8", "model=2", "channels", "follow", 2, 4, NULL},
};

static void subject_free(struct subject *s) { free(s->source); }

static void lane_make(const struct lane_case *c, const char *device, struct lane *l) {
    tri_options o = {.steps = 2, .lanes = c->stages ? 4 : 1, .data = "synthetic", .threads = 1,
                     .device = device, .mesh = c->mesh, .strategy = c->strategy,
                     .unset = c->unset, .stages = c->stages, .pipeline = c->pipeline};
    l->run = tri_open(tri_model_open(c->model, 4), &o);
    if (!l->run) fail_msg("%s", tri_message());
    assert_true(tri_step(l->run));
    const struct program *p = &l->run->machine->thread->lane[0];
    l->s = (struct subject){c->model, p->g, p->dev,
                            calloc((size_t)p->g->n_tensors + 1, sizeof(void *))};
    for (size_t i = 0; i < p->g->n_nodes; i++) {
        const tri_node *n = p->g->node[i];
        if (!node_runs(n) && !node_is_literal(n)) l->s.source[n->out->id] = p->value[n->out->id];
    }
}

static void lane_free(struct lane *l) {
    subject_free(&l->s);
    assert_int_equal(tri_close(l->run), TRI_OK);
}

/* ---- interleaving ---- */

enum order { RANDOM, AHEAD, BEHIND, HELD, ORDERS };

/* One run without threads: an executor does a round whenever the order says so. */
struct play {
    struct world *w;
    const struct single *wanted;
    int *left_of; /* by item: shares that are not done */
    int *uses;    /* by tensor: shares of items that use the place of this root */
    int passed;   /* stops of the captain */
    bool broken;  /* something came too early */
};

static bool has_share(const struct program *p, size_t i, int round, int64_t e) {
    int64_t begin, end;
    if (replica_skips(p, i)) return false;
    replica_parts(&p->item[i], round, e, (int64_t)p->item[i].members * p->threads, &begin, &end);
    return begin < end;
}

static int shares_of(const struct program *p, size_t i) {
    int n = 0;
    for (int round = 1; round <= 2; round++)
        for (int64_t e = 0; e < (int64_t)p->item[i].members * p->threads; e++)
            n += has_share(p, i, round, e);
    return n;
}

/* Adds to the uses of all places of the item; one without uses becomes NaN, unless it is a
 * result. */
static void use_places(struct play *y, size_t i, int more) {
    const struct program *p = y->w->program;
    const struct unit *u = p->item[i].unit;
    for (int k = 0; k < u->n_in + u->n_out; k++) {
        const tri_tensor *t = k < u->n_in ? u->in[k] : u->out[k - u->n_in];
        int root = p->memory.root[t->id];
        if ((k < u->n_in && unit_shape_only(u, k)) || p->memory.offset[t->id] == MEMORY_OUTSIDE)
            continue;
        y->uses[root] += more;
        if (more < 0 && !y->uses[root] && p->memory.end[root] < (int)p->n_items)
            memset(y->w->memory + p->memory.offset[root], 0xff, memory_bytes(t));
    }
    if (more < 0 && !--y->left_of[i])
        memset(y->w->memory + p->memory.scratch[i], 0xff, program_scratch(p, i));
}

static bool at_stop(void *user, int member, int stop) {
    struct play *y = user;
    const struct world *w = y->w;
    size_t item = stop < w->n_stops ? w->stop[stop] : w->end;
    for (size_t i = w->begin; i < item; i++) y->broken |= y->left_of[i] > 0;
    y->broken |= member ? y->passed <= stop : y->passed != stop;
    y->passed += !member;
    world_rebind(y->w, member, stop);
    return true;
}

static bool ready(struct world *w, int e, const struct replica_run *run) {
    struct replica *r = &w->replica[e / w->threads];
    return !replica_ended(r, e % w->threads) && replica_ready(r, e % w->threads, run);
}

/* The next executor in this order; -1: none can go on. */
static int choose(struct world *w, enum order order, int held, uint64_t turn,
                  const struct replica_run *run) {
    int best = -1, n = 0;
    size_t best_round = 0;
    for (int e = 0; e < w->members * w->threads; e++) {
        if (!ready(w, e, run) || (order == HELD && e == held)) continue;
        size_t round = w->replica[e / w->threads].thread[e % w->threads].round;
        double u = random_uniform(random_key(1, 9), turn, (uint64_t)n++);
        bool better = order == RANDOM ? u * n < 1
                      : order == BEHIND ? round < best_round : round > best_round;
        if (best >= 0 && !better) continue;
        best = e;
        best_round = round;
    }
    if (best < 0 && order == HELD && ready(w, held, run)) best = held;
    return best;
}

static void play(struct world *w, const struct single *wanted, enum order order, int held,
                 uint64_t seed) {
    const struct program *p = w->program;
    struct play y = {w, wanted, calloc(p->n_items + 1, sizeof(int)),
                     calloc((size_t)p->g->n_tensors + 1, sizeof(int)), 0, false};
    struct replica_run run = {.word = w->word, .base = w->base, .queue = &w->queue,
                              .at_stop = at_stop, .user = &y};
    world_begin(w);
    for (size_t i = w->begin; i < w->end; i++) {
        y.left_of[i] = shares_of(p, i);
        use_places(&y, i, y.left_of[i]);
    }
    for (int m = 0; m < w->members; m++)
        for (int t = 0; t < w->threads; t++) replica_begin(&w->replica[m], t);
    int e;
    for (uint64_t turn = seed << 32; (e = choose(w, order, held, turn, &run)) >= 0; turn++) {
        struct replica *r = &w->replica[e / w->threads];
        struct tri_fault fault = none;
        size_t round = r->thread[e % w->threads].round;
        assert_true(replica_advance(r, e % w->threads, &run,
                                    &(struct program_step){.seed = 7, .step = 2, .fault = &fault}));
        if (round % 3) use_places(&y, round / 3, -1);
    }
    for (e = 0; e < w->members * w->threads; e++)
        if (!replica_ended(&w->replica[e / w->threads], e % w->threads))
            fail_msg("%s: executor %d of %d cannot go on", w->s->name, e, w->members * w->threads);
    const char *differs = world_differs(w, wanted);
    y.broken |= y.passed != w->n_stops + 1;
    if (y.broken || differs)
        fail_msg("%s, %d x %d, order %d, held %d: %s %s", w->s->name, w->members, w->threads,
                 (int)order, held, y.broken ? "a stop came early or not at all" : "other bits of",
                 differs ? differs : "");
    w->base += replica_span(w->replica);
    free(y.left_of);
    free(y.uses);
}

/* Scratch of different members' own items lies apart, whenever it is in use. */
static void check_scratch(const struct program *p) {
    size_t begin[MOST_MEMBERS], end[MOST_MEMBERS] = {0};
    for (int m = 0; m < p->members; m++) begin[m] = SIZE_MAX;
    for (size_t i = 0; i < p->n_items; i++) {
        size_t at = p->memory.scratch[i], to = at + program_scratch(p, i);
        int m = *p->item[i].member;
        if (p->item[i].members > 1 || at == to) continue;
        if (at < begin[m]) begin[m] = at;
        if (to > end[m]) end[m] = to;
    }
    for (int m = 0; m < p->members; m++)
        for (int o = 0; o < m; o++) assert_true(end[m] <= begin[o] || end[o] <= begin[m]);
}

static void play_all(struct world *w, const struct single *wanted) {
    for (int order = 0; order < ORDERS; order++)
        for (int k = 0; k < (order == RANDOM ? 2 : order == HELD ? w->members * w->threads : 1);
             k++)
            play(w, wanted, (enum order)order, k, (uint64_t)k);
}

/* All orders, with some stops. */
static void interleave(const struct subject *s, const struct single *wanted, int members,
                       int threads, int n_stops) {
    struct world w;
    size_t stop[MOST_STOPS];
    for (int i = 0; i < n_stops; i++) /* with an even number of members two before an item */
        stop[i] = wanted->p.n_items * (size_t)(i / (2 - members % 2) + 1) / (size_t)(n_stops + 1);
    world_make(s, members, threads, stop, n_stops, &w);
    check_scratch(w.program);
    play_all(&w, wanted);
    world_free(&w);
}

/* Leg by leg: each finds the arena full of NaN. */
static void interleave_legs(const struct subject *s, const struct single *wanted, int members,
                            int threads) {
    struct world w;
    world_make(s, members, threads, NULL, 0, &w);
    for (int leg = 0; leg < s->g->legs; leg++) {
        world_take_leg(&w, leg);
        play_all(&w, wanted);
    }
    assert_int_equal(w.end, w.program->n_items);
    world_free(&w);
}

static void single_run(const struct subject *s, struct single *o) {
    struct tri_fault fault = none;
    single_make(s, o);
    if (!program_run(&o->p, NULL,
                     &(struct program_step){.seed = 7, .step = 2, .fault = &fault}))
        fail_msg("%s: %s", s->name, fault.text);
}

static void interleaved_lanes(void **state) {
    (void)state;
    static const char *const devices[] = {"ref", "cpu"};
    bool all = getenv("SLOW"), few = getenv("FEW");
    for (size_t i = 0; i < COUNT(lanes); i++)
        for (size_t d = 0; d < COUNT(devices); d++) {
            struct lane l;
            struct single o;
            /* ref is slow */
            if (!dev_find(devices[d]) || (!d && (few || (i && !all)))) continue;
            lane_make(&lanes[i], devices[d], &l);
            single_run(&l.s, &o);
            for (int m = 1; m <= lanes[i].seats; m += m == 4 ? 4 : 1)
                for (int t = 1; t <= MOST_THREADS; t++)
                    if (m * t > 1 && m * t <= 8 &&
                        (all || (m == 2 && !few) || m == lanes[i].seats))
                        interleave(&l.s, &o, m, t, (m + t) % MOST_STOPS);
            single_free(&o);
            lane_free(&l);
        }
}

static void interleaved_legs(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(cut); i++) {
        struct lane l;
        struct single o;
        if (!dev_find("cpu")) continue;
        lane_make(&cut[i], "cpu", &l);
        single_run(&l.s, &o);
        for (int t = 1; t <= MOST_THREADS; t++) interleave_legs(&l.s, &o, cut[i].seats, t);
        single_free(&o);
        lane_free(&l);
    }
}

/* ---- random networks ---- */

static void random_sources(const tri_graph *g, const struct values *in, struct subject *s) {
    s->source = calloc((size_t)g->n_tensors + 1, sizeof(void *));
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tri_node *n = g->node[i];
        if (node_runs(n) || node_is_literal(n)) continue;
        char *at = s->source[n->out->id] = calloc(1, memory_bytes(n->out));
        const char *name = source_name(n);
        for (int64_t k = 0; *name == 'i' && k < tri_shape_count(&n->out->spec.shape); k++)
            convert_store(n->out->spec.type, at, (size_t)k, in->at[atoi(name + 1)][k]);
    }
}

/* False: the case has no split. */
static bool random_case(int i, const char *device) {
    uint8_t data[160];
    struct bytes b = {data, data + sizeof data};
    struct values in = {0};
    struct single o;
    char *text = NULL;
    for (size_t k = 0; k < sizeof data; k++)
        data[k] = (uint8_t)(256 * random_uniform(random_key(1, 2), (uint64_t)i, k));
    tri_graph *g = case_network(&b), *expanded = NULL;
    if (tri_graph_status(g)) {
        tri_graph_free(g);
        return false;
    }
    case_values(g, 0, &in);
    for (int most = CASE_ASKS; most && !expanded; most -= (most + 1) / 2)
        expanded = case_expand(data, sizeof data, most, &text);
    struct subject s = {text, expanded, dev_find(device), NULL};
    if (expanded) {
        const struct target *target = s.dev->kind->target;
        const struct mesh mesh = expanded->mesh;
        expanded->in_place = i % 4 > 0;
        tri_status status = format_choose(expanded, target);
        if (!status && i % 2) status = order_for_memory(expanded);
        if (!status && target) status = fuse(expanded, target);
        assert_int_equal(status, TRI_OK);
        random_sources(expanded, &in, &s);
        single_run(&s, &o);
        int seats = (int)mesh_seats(&mesh);
        for (int m = 1; m <= seats; m++)
            for (int t = 1; t <= MOST_THREADS; t++)
                if (m * t > 1 && m * t <= 8) interleave(&s, &o, m, t, (i + m) % MOST_STOPS);
        single_free(&o);
        for (int t = 0; t < expanded->n_tensors; t++) free(s.source[t]);
        free(s.source);
    }
    values_free(&in);
    tri_graph_free(g);
    tri_graph_free(expanded);
    free(text);
    return s.g != NULL;
}

static void interleaved_networks(void **state) {
    (void)state;
    int first = number("FIRST", 0), cases = number("CASES", getenv("SLOW") ? 600 : 100), split = 0;
    for (int i = first; i < first + cases; i++) {
        if (getenv("SHOW")) fprintf(stderr, "case %d\n", i);
        split += random_case(i, i % 2 && dev_find("cpu") ? "cpu" : "ref");
    }
    if (cases > 50 && split < cases / 3) fail_msg("only %d of %d are split", split, cases);
}

/* ---- threads ---- */

/* A thread that plays executors, and what it came to. */
struct hand {
    struct world *w;
    struct replica_part part[MOST_MEMBERS * MOST_THREADS];
    int n;
    enum wait_kind kind;
    bool done;
    atomic_bool *stopped; /* set by a thread that fails */
    struct tri_fault fault;
};

static bool goes_on(void *user) {
    const struct hand *h = user;
    return !atomic_load(h->stopped);
}

static bool stops(void *user, int member, int stop) {
    const struct hand *h = user;
    world_rebind(h->w, member, stop);
    return true;
}

static void *execute(void *arg) {
    struct hand *h = arg;
    struct replica_run run = {.word = h->w->word, .base = h->w->base,
                              .queue = &h->w->queue, .kind = h->kind,
                              .go_on = goes_on, .at_stop = stops, .user = h};
    struct program_step step = {.seed = 7, .step = 2, .fault = &h->fault};
    h->done = replica_run(h->part, h->n, &run, &step);
    if (h->fault.failed) {
        atomic_store(h->stopped, true);
        wait_wake(&h->w->queue);
    }
    return NULL;
}

/* Runs by so many threads; how many of them have finished. *faults: how many have failed. */
static int run_all(struct world *w, int hands, bool spin, int *faults) {
    pthread_t thread[MOST_MEMBERS * MOST_THREADS];
    struct hand hand[MOST_MEMBERS * MOST_THREADS] = {0};
    atomic_bool stopped = false;
    int done = 0, n = w->members * w->threads;
    world_begin(w);
    for (int e = 0; e < n; e++) {
        struct hand *h = &hand[e % hands];
        h->part[h->n++] = (struct replica_part){&w->replica[e / w->threads], e % w->threads};
    }
    for (int i = 0; i < hands; i++) {
        hand[i].w = w;
        hand[i].kind = spin ? WAIT_TOGETHER : WAIT_CROWDED;
        hand[i].stopped = &stopped;
        assert_int_equal(pthread_create(&thread[i], NULL, execute, &hand[i]), 0);
    }
    *faults = 0;
    for (int i = 0; i < hands; i++) {
        pthread_join(thread[i], NULL);
        done += hand[i].done;
        *faults += hand[i].fault.failed;
    }
    w->base += replica_span(w->replica);
    return done;
}

static void threads_of_members(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(lanes); i++) {
        struct lane l;
        struct single o;
        int runs = strstr(lanes[i].model, "resnet") ? 5 : getenv("SLOW") ? 200 : 10, faults;
        lane_make(&lanes[i], NULL, &l);
        single_run(&l.s, &o);
        for (int k = 0; k < 3; k++) {
            struct world w;
            int members = k ? lanes[i].seats : 2, threads = 1 + k / 2;
            size_t stop[] = {o.p.n_items / 3, o.p.n_items / 2};
            if (members * threads > 8) continue;
            world_make(&l.s, members, threads, stop, 2, &w);
            for (int r = 0; r < number("RUNS", runs); r++) {
                int hands = r % 3 < 2 ? members * threads : 1 + r / 3 % (members * threads);
                assert_int_equal(run_all(&w, hands, r % 2, &faults), hands);
                if (world_differs(&w, &o))
                    fail_msg("%s, %d x %d: other bits of %s in run %d", lanes[i].model, members,
                             threads, world_differs(&w, &o), r);
            }
            world_free(&w);
        }
        single_free(&o);
        lane_free(&l);
    }
}

/* An item that fails stops its executors; the others leave. The next run is right again. */
static void a_fault_stops_all(void **state) {
    (void)state;
    struct lane l;
    struct single o;
    struct world w;
    lane_make(&lanes[2], NULL, &l);
    single_run(&l.s, &o);
    world_make(&l.s, 2, 2, NULL, 0, &w);
    int64_t *words, kept;
    assert_true(o.p.n_input > 0);
    words = l.s.source[o.p.input->tensor];
    kept = *words;
    for (int r = 0; r < 20; r++) {
        int faults;
        *words = 1 << 20;
        assert_true(run_all(&w, 4 - r % 3, r % 2, &faults) < 4 - r % 3);
        assert_true(faults > 0);
        *words = kept;
        assert_int_equal(run_all(&w, 4, r % 2, &faults), 4);
        assert_null(world_differs(&w, &o));
    }
    world_free(&w);
    single_free(&o);
    lane_free(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interleaved_networks),
        cmocka_unit_test(interleaved_lanes),
        cmocka_unit_test(interleaved_legs),
        cmocka_unit_test(threads_of_members),
        cmocka_unit_test(a_fault_stops_all),
    };
    cmocka_set_test_filter(getenv("ONLY"));
    return cmocka_run_group_tests_name("replica", tests, NULL, NULL);
}
