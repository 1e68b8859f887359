/* SPDX-License-Identifier: Apache-2.0
 * Audits under the model checker (model.h): processes compute and publish lanes, audit each
 * other's, begin the update once no audit is pending, come late, die and join. An auditor finds
 * the checksums of the lane that counts, and no audit computes while the update changes
 * parameters. */
#include "model.h"

#include "run/worker_inside.h"

static void *value_of(void);
_Noreturn static void differs(void);
#define program_value(p, id) ((void)(id), value_of())
#define worker_fail(c, text) ((void)(text), differs())
#define crew_notify(head) ((void)(head))
#undef atomic_load
#define atomic_load(at) (int)seen_value((uint64_t)atomic_load_explicit(at, memory_order_seq_cst))
#include "run/worker_audit.c"

/* ---- the world ---- */

#define MOST_PROCESSES 3 /* of one thread each */
#define MOST_LANES 2

enum doing { IDLE, CLAIM, AUDIT, PENDING, PUBLISH, COMPARE, DROP, FORGET, COMPUTE, COMPUTE_AUDIT,
             REST, ABSENT, DEAD };
static const char *const doing_name[] = {
    "", "claims", "claims an audit", "looks for audits", "publishes", "compares", "drops",
    "forgets", "", "", "", "", ""};
enum { DIE, JOIN, COMPUTED, CANNOT, UPDATED, BURY };

struct process {
    int doing, step, lane; /* lane, of FORGET: whom */
    bool updates;          /* it has seen that nothing is pending */
    uint64_t value;        /* of the lane that it has computed */
};

struct state {
    struct world w;
    claim_word node[MOST_LANES];
    claim_word audits[MOST_LANES]; /* regions: words, then checksums */
    uint64_t sums[MOST_PROCESSES * MOST_LANES];
    struct process process[MOST_PROCESSES + 1];
    int ready; /* a bit for each process that the others count on */
    int step, compared, died;
    bool updating; /* parameters are half new */
};

static struct {
    int processes, lanes, steps;
    bool spare; /* the last process only audits */
} given;
static uint64_t value; /* of the lane that is at work */

static uint64_t right_value(int step, int lane) { return (uint64_t)(step * 16 + lane + 1); }

static bool is_alive(const struct process *p) { return p->doing != ABSENT && p->doing != DEAD; }

/* ---- the code under test ---- */

static void *value_of(void) { return &value; }

static void differs(void) { broken("both have computed the same"); }

static struct dev dev = {&(const struct dev_kind){.name = "the host"}};

static struct worker *worker_of(struct state *w, int who) {
    static struct crew_head head;
    static tri_run run;
    static struct thread_context context[1];
    static struct tree_bucket bucket;
    static int in_bucket, leg;
    static struct worker c;
    head.size.places = head.size.place_threads = given.processes;
    head.size.audit = 1;
    head.layout.lanes = MOST_LANES;
    for (int i = 0; i < given.processes; i++)
        atomic_store(&head.worker[i].state, w->ready >> i & 1 ? CREW_READY : CREW_EMPTY);
    run.machine = run.executable;
    run.machine->lanes = given.lanes;
    bucket.board.node = w->node;
    run.machine->tree[1] = (struct tree){.buckets = {.n = 1, .of = &in_bucket, .n_of = 1,
                                                     .legs = 1, .leg = &leg},
                                         .bucket = &bucket};
    context->number = who;
    c = (struct worker){.head = &head, .place = who, .threads = 1, .base = (char *)w->audits,
                        .context = context, .run = &run, .step = (uint64_t)w->process[who].step,
                        .region = {[REGION_AUDITS] = {0, sizeof(claim_word), MOST_LANES},
                                   [REGION_AUDIT_SUMS] = {sizeof w->audits, sizeof(uint64_t),
                                                          MOST_PROCESSES * MOST_LANES}}};
    return &c;
}

static int claim_lane(struct state *w, uint32_t step, int who) {
    for (int i = 0; i < given.lanes; i++) {
        struct claim c = claim_look(&w->node[i], step);
        if (c.state == CLAIM_FREE && claim_try(&w->node[i], &c, who)) return i;
    }
    return -1;
}

/* 1: the update may begin. */
static int is_over(struct state *w, const struct worker *c) {
    for (int i = 0; i < given.lanes; i++) {
        enum claim_state s = claim_look(&w->node[i], (uint32_t)c->step).state;
        if (s != CLAIM_DONE && s != CLAIM_PASSED) return 0;
    }
    return !worker_audit_pending(c);
}

static int make(void *world, int who, int does) {
    static tri_node node = {.name = (char *)"lane"};
    static tri_tensor tensor = {.spec = {.type = TRI_I64}, .node = &node};
    static struct program_port result = {.is = &tensor};
    static struct program program = {.dev = &dev, .n_result = 1, .result = &result};
    struct state *w = world;
    int leg;
    struct process *p = &w->process[who];
    struct worker *c = who < given.processes ? worker_of(w, who) : NULL;
    const struct claim held = {.step = (uint32_t)p->step, .owner = who};
    const struct tree_lane l = {.tree = c ? &c->run->machine->tree[1] : NULL, .lane = p->lane,
                                .who.thread = who, .p = &program};
    p->doing = does;
    value = p->value;
    switch (does) {
    case CLAIM: return claim_lane(w, (uint32_t)p->step, who);
    case AUDIT: return worker_audit_claim(c, who, &leg);
    case PENDING: return is_over(w, c);
    case PUBLISH:
        worker_audit_note(c, &l, 0);
        return claim_publish(&w->node[p->lane], &held, CLAIM_DONE, who, 0);
    case COMPARE: worker_audit_compare(c, &l, 0); return 0;
    case DROP: worker_audit_drop(c, &l); return 0;
    default:
        claim_forget(w->node, given.lanes, p->lane);
        claim_forget(w->audits, given.lanes, p->lane);
        return 0;
    }
}

static void after(void *world, int who, int did, int result) {
    struct state *w = world;
    struct process *p = &w->process[who];
    p->doing = IDLE;
    if ((did == CLAIM || did == AUDIT) && result >= 0) {
        p->doing = did == CLAIM ? COMPUTE : COMPUTE_AUDIT;
        p->lane = result;
        if (did == AUDIT && claim_read(&w->node[result]).owner == who)
            broken("a lane is audited by another process");
        return;
    }
    if (did == COMPARE && p->step == w->step) w->compared |= 1 << p->lane;
    if (did == FORGET) w->process[p->lane].doing = p->doing = ABSENT;
    if (did == PENDING && result) {
        p->doing = p->step == w->step && !w->updating ? IDLE : REST;
        p->updates = p->doing == IDLE;
        if (p->updates && !w->died && w->compared != (1 << given.lanes) - 1)
            broken("all lanes are audited before the update");
        if (p->updates) w->updating = true;
    }
    p->lane = 0;
    p->value = 0;
}

static void die(void *world, int who) {
    struct state *w = world;
    struct process *p = &w->process[who];
    bool updates = p->updates;
    *p = (struct process){.doing = who < given.processes ? DEAD : ABSENT, .updates = updates};
    w->died = 1;
}

static void other(void *world, const struct act *a) {
    struct state *w = world;
    struct process *p = &w->process[a->who];
    if (a->does == DIE) kill_actor(&w->w, a->who);
    if (a->does == JOIN) {
        *p = (struct process){.doing = IDLE, .step = w->step};
        w->ready |= 1 << a->who;
    }
    if (a->does == BURY) {
        *p = (struct process){.doing = FORGET, .lane = a->n};
        w->ready &= ~(1 << a->n);
    }
    if (a->does == COMPUTED) {
        bool right = p->step == w->step && !w->updating;
        p->value = right ? right_value(p->step, p->lane) : 0;
        p->doing = p->doing == COMPUTE ? PUBLISH : COMPARE;
    }
    if (a->does == CANNOT) p->doing = DROP;
    if (a->does == UPDATED) {
        w->updating = false;
        w->compared = 0;
        w->step++;
        for (int i = 0; i < given.processes; i++) w->process[i].updates = false;
    }
}

/* ---- what may happen ---- */

static void offer_process(const struct state *w, int who) {
    const struct process *p = &w->process[who];
    bool open = w->step <= given.steps;
    if (p->doing == IDLE) {
        if (!given.spare || who + 1 < given.processes) model_call(who, CLAIM);
        model_call(who, AUDIT);
        model_call(who, PENDING);
    } else if (p->doing < COMPUTE) {
        model_call(who, p->doing);
    }
    if (p->doing == COMPUTE || p->doing == COMPUTE_AUDIT) model_other(who, COMPUTED, 0);
    if (p->doing == COMPUTE_AUDIT) model_other(who, CANNOT, 0);
    if (is_alive(p) && w->w.deaths) model_other(who, DIE, 0);
    if (open && (p->doing == ABSENT || (is_alive(p) && p->step < w->step && p->doing == REST)))
        model_other(who, JOIN, 0);
    if (p->doing == DEAD && w->process[given.processes].doing == ABSENT)
        model_other(given.processes, BURY, who);
}

/* While the update runs any living process may end it; a task of it that is lost is done by
 * another. */
static void offer(const void *world) {
    const struct state *w = world;
    int recoverer = given.processes;
    for (int i = 0; i < given.processes; i++) offer_process(w, i);
    if (w->updating) model_other(0, UPDATED, 0);
    if (w->process[recoverer].doing == FORGET) model_call(recoverer, FORGET);
    if (w->w.logged[recoverer] && w->w.deaths) model_other(recoverer, DIE, 0);
}

/* Checksums of published lanes are right. Idle processes find a lane, an audit, or that nothing
 * is pending. */
static void check(const void *world) {
    struct state copy = *(const struct state *)world, *w = &copy;
    bool quiet = !w->updating && w->step <= given.steps, any = false, all_done = true;
    for (int i = 0; i <= given.processes; i++) {
        const struct process *p = &w->process[i];
        quiet = quiet && !w->w.logged[i] && (p->doing == ABSENT || p->doing == IDLE) &&
                (p->doing == ABSENT || p->step == w->step);
        any = any || (i < given.processes && p->doing == IDLE);
    }
    for (int i = 0; i < given.lanes; i++) {
        struct claim c = claim_look(&w->node[i], (uint32_t)w->step);
        uint64_t sum = right_value(w->step, i);
        all_done = all_done && c.state == CLAIM_DONE;
        if (c.state == CLAIM_DONE && !w->updating &&
            w->sums[c.owner * MOST_LANES + i] != sum_bytes(&dev, (char *)&sum, sizeof sum))
            broken("a published lane's checksums are right");
    }
    if (!quiet || !any || !all_done) return;
    for (int i = 0; i < given.processes; i++) {
        struct worker *c = worker_of(w, i);
        if (w->process[i].doing == IDLE && (worker_audit_waits(c) || !worker_audit_pending(c)))
            return;
    }
    broken("idle processes find what is to be done");
}

static uint64_t hash(const void *world) {
    const struct state *w = world;
    uint64_t h = mix(1, (uint64_t)(w->step << 16 | w->compared << 12 | w->ready << 4 |
                                   w->died << 1 | w->updating));
    for (int i = 0; i < given.lanes; i++) h = mix(mix(h, w->node[i]), w->audits[i]);
    for (int i = 0; i < given.processes * MOST_LANES; i++) h = mix(h, w->sums[i]);
    for (int i = 0; i <= given.processes; i++) {
        const struct process *p = &w->process[i];
        h = mix(h, (uint64_t)(p->doing << 12 | p->step << 8 | p->lane << 4 | p->updates));
        h = mix(h, p->value);
    }
    return h;
}

static void print(FILE *to, const void *world, const struct act *a) {
    static const char *const what[] = {"dies", "joins", "computes", "cannot compute", "updates",
                                       "recovers from"};
    const struct state *w = world;
    const struct process *p = &w->process[a->who];
    fprintf(to, "%s (step %d, open %d, lane %d)",
            a->what == OTHER ? what[a->does] : doing_name[a->does], p->step, w->step, p->lane);
}

/* ---- what is tried ---- */

static void audited(void **unused) {
    (void)unused;
    static const struct {
        int processes, lanes, steps, deaths, pauses;
        bool spare;
    } rows[] = {{2, 1, 2, 1, 1, false}, {2, 2, 1, 1, 0, false}, {2, 1, 2, 1, 1, true},
                {2, 2, 2, 0, 1, false}, {3, 1, 1, 1, 0, true},
                {2, 1, 2, 2, 1, false}, {2, 2, 2, 1, 1, false}, {3, 1, 2, 1, 1, true}};
    for (size_t i = 0; i < (all() ? COUNT(rows) : 5); i++) {
        const struct protocol p = {sizeof(struct state), rows[i].processes + 1, offer, make, after,
                                   die, other, check, hash, print, 0, 0};
        struct state begin = {.w = {.deaths = rows[i].deaths, .pauses = rows[i].pauses}, .step = 1};
        given.processes = rows[i].processes;
        given.lanes = rows[i].lanes;
        given.steps = rows[i].steps;
        given.spare = rows[i].spare;
        begin.ready = (1 << given.processes) - 1;
        for (int k = 0; k <= given.processes; k++)
            begin.process[k] =
                (struct process){.doing = k < given.processes ? IDLE : ABSENT, .step = 1};
        model_check(&p, &begin.w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(audited)};
    return cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
