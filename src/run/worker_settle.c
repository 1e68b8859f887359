/* SPDX-License-Identifier: Apache-2.0
 * The layout of the store. The reporter makes the store; the others check that theirs is the same,
 * and all bind their executables to it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/numa.h"
#include "crew/layout.h"
#include "data/data.h"
#include "data/pictures.h"
#include "io/sha256.h"
#include "machine/budget.h"
#include "run/evaluate.h"
#include "run/executables.h"
#include "run/loader.h"
#include "run/policy.h"
#include "run/worker_inside.h"

/* ---- the layout of the store ---- */

/* Programs in the order of the table of names. */
static const struct program *named_program(const struct machine *m, int i) {
    const struct machine_thread *w = &m->thread[0];
    const struct program *all[] = {&w->count[0], &w->count[1], &w->lane[0], &w->lane[1], &m->pre,
                                   &m->step};
    return i < (int)COUNT(all) ? all[i] : NULL;
}

static uint64_t place(uint64_t *end, uint64_t bytes) {
    uint64_t at = (*end + CREW_PAGE - 1) / CREW_PAGE * CREW_PAGE;
    *end = at + bytes;
    return at;
}

/* Offsets in the store. */
struct plan {
    uint64_t store, fills, slots[2], board[2], boards, arena[2], carried, rows[2], buffers, loads,
        tasks, undo, undo_bytes, names, audits, results, evaluation, groups, group_bytes,
        replicas, replica_bytes, end;
    int64_t n_batches;        /* 0: no evaluation is shared */
    int audit_roots, n_loads; /* n_loads 0: each process reads all samples itself */
    int n_items;
};

/* Every worker reads a sequential source completely. */
static bool shares_samples(const tri_run *run) { return !run->data || !run->data->sequential; }

static void number_items(struct worker_executable *e, const struct machine *m, struct plan *p) {
    for (int i = 0; named_program(m, i); i++) {
        e->first_name[i] = p->n_items;
        p->n_items += (int)named_program(m, i)->n_items;
    }
    int roots = m->thread[0].lane[0].n_result;
    if (roots > p->audit_roots) p->audit_roots = roots;
}

/* The memory that one step needs at a time, over all executables. */
static struct machine_sizes largest_of(const tri_run *run) {
    struct machine_sizes most = {0};
    for (int i = 0; i < run->n_executables; i++) {
        struct machine_sizes one = machine_sizes(&run->executable[i]);
        for (int k = 0; k < 2; k++)
            if (one.arena[k] > most.arena[k]) most.arena[k] = one.arena[k];
        if (one.rows > most.rows) most.rows = one.rows;
    }
    return most;
}

static int most_buckets(const tri_run *run) {
    int most = 0;
    for (int i = 0; i < run->n_executables; i++) {
        int n = run->executable[i].tree[1].buckets.n;
        if (n > most) most = n;
    }
    return most;
}

static void place_groups(const struct worker *c, const tri_run *run, struct plan *p) {
    const struct machine *m = run->executable;
    if (m->members == 1) return;
    p->group_bytes = group_bytes(m->members, m->members * c->threads, most_buckets(run));
    p->groups = place(&p->end, p->group_bytes * (uint64_t)m->replicas);
    p->replica_bytes = (m->replica_bytes + CREW_PAGE - 1) / CREW_PAGE * CREW_PAGE;
    p->replicas = place(&p->end, p->replica_bytes * (uint64_t)m->replicas);
}

static int count_boards(const tri_run *run) {
    int n = 0;
    for (int i = 0; i < run->n_executables; i++)
        for (int k = 0; k < 2; k++) n += run->executable[i].tree[k].buckets.n;
    return n;
}

/* Tasks and undo records come last, as their sizes are known only after the programs are placed. */
static struct plan make_plan(struct worker *c, const tri_run *run) {
    const struct machine *m = run->executable; /* trees and buffers are sized for all executables */
    const struct machine_sizes most = largest_of(run);
    struct plan p = {0};
    p.store = place(&p.end, m->store->bytes);
    p.fills = place(&p.end, store_pieces(m->store) * sizeof(claim_word));
    for (int k = 0; k < 2; k++) {
        if (!tree_board_bytes(&m->tree[k])) continue;
        p.slots[k] = place(&p.end, tree_bytes(&m->tree[k]));
        p.board[k] = place(&p.end, tree_board_bytes(&m->tree[k]));
    }
    p.boards = place(&p.end, (uint64_t)count_boards(run) * sizeof(struct crew_board));
    for (int i = 0; i < 2; i++) p.arena[i] = place(&p.end, most.arena[i]);
    p.carried = place(&p.end, m->carried_bytes);
    place_groups(c, run, &p);
    for (int i = 0; i < 2; i++) p.rows[i] = place(&p.end, most.rows);
    if (shares_samples(run)) {
        p.n_loads = loader_words(m, run->n_executables);
        p.buffers = place(&p.end, machine_buffer_bytes(m));
        p.loads = place(&p.end, (uint64_t)p.n_loads * sizeof(claim_word));
    }
    for (int i = 0; i < run->n_executables; i++)
        number_items(&c->executable[i], &run->executable[i], &p);
    p.names = place(&p.end, (uint64_t)p.n_items * CREW_NAME);
    size_t audits = crew_audit_bytes((int)m->lanes, m->tree[1].buckets.legs,
                                     worker_place_threads(c), p.audit_roots);
    p.audits = place(&p.end, c->head->size.audit > 0 ? audits : 0);
    p.results = place(&p.end, 2 * (uint64_t)m->n_outputs * sizeof(double));
    p.evaluation = place(&p.end, worker_evaluation_bytes(run, &p.n_batches));
    return p;
}

static int all_tasks(const struct worker *c) {
    int n = 0;
    for (int i = 0; i < CREW_MOST_SHAPES; i++)
        n += c->executable[i].sweeps[0].n_tasks + c->executable[i].sweeps[1].n_tasks;
    return n;
}

static void plan_tasks(const struct worker *c, struct plan *p) {
    uint64_t undo = 0;
    for (int i = 0; i < CREW_MOST_SHAPES; i++)
        for (int k = 0; k < 2; k++)
            if (c->executable[i].sweeps[k].undo_bytes > undo)
                undo = c->executable[i].sweeps[k].undo_bytes;
    p->undo_bytes = (undo + 127) / 128 * 128;
    p->tasks = place(&p->end, (uint64_t)all_tasks(c) * sizeof(claim_word));
    p->undo = place(&p->end, p->undo_bytes * (uint64_t)worker_place_threads(c));
    p->end = (p->end + CREW_PAGE - 1) / CREW_PAGE * CREW_PAGE;
}

/* Binds everything to `base`, which may be reserved addresses without memory. */
static void bind(struct worker *c, tri_run *run, const struct plan *p, char *base) {
    for (int k = 0; k < 2; k++) {
        c->shared.at[MEMORY_SLOTS + k] = base + p->slots[k];
        c->shared.at[MEMORY_BOARD + k] = base + p->board[k];
        c->shared.at[MEMORY_PRE + k] = base + p->arena[k];
        c->shared.rows[k] = base + p->rows[k];
    }
    c->shared.at[MEMORY_CARRIED] = base + p->carried;
    c->shared.replicas = base + p->replicas;
    c->shared.replica_bytes = p->replica_bytes;
    c->shared.at[MEMORY_BUFFERS] = p->n_loads ? base + p->buffers : NULL;
    for (int i = 0; i < run->n_executables; i++) run->executable[i].shared = &c->shared;
}

/* ---- the digest, which must be the same in all workers ---- */

static void add_text(struct sha256 *h, const char *text) {
    sha256_add(h, text, strlen(text) + 1);
}

static tri_status add_graphs(struct sha256 *h, const struct machine *m) {
    const tri_graph *graphs[] = {m->compilation.pre, m->compilation.step, m->compilation.lane[0],
                                 m->compilation.lane[1]};
    for (size_t i = 0; i < COUNT(graphs); i++) {
        char *text = graphs[i] ? tri_graph_print(graphs[i]) : strdup("");
        if (!text) return base_no_memory("the text of the network");
        add_text(h, text);
        free(text);
    }
    return TRI_OK;
}

static tri_status digest(const struct worker *c, const tri_run *run, uint8_t out[32]) {
    struct sha256 h;
    char hex[65], line[256];
    tri_status status = TRI_OK;
    int64_t batches;
    worker_evaluation_bytes(run, &batches);
    sha256_begin(&h);
    for (int i = 0; i < run->n_executables && !status; i++) {
        const struct machine *m = &run->executable[i];
        status = add_graphs(&h, m);
        base_format(line, sizeof line, "%llu %lld %lld %d %d %zu %d %lld",
                    (unsigned long long)run->options.seed, (long long)m->lanes,
                    (long long)m->batch, m->compilation.levels, worker_all_threads(c),
                    m->step.memory.total, all_tasks(c), (long long)batches);
        add_text(&h, line);
        for (int k = 0; k < 2; k++)
            if (m->tree[k].g)
                sha256_add(&h, m->tree[k].buckets.of,
                           (size_t)m->tree[k].buckets.n_of * sizeof *m->tree[k].buckets.of);
    }
    sha256_end_hex(&h, hex);
    memcpy(out, hex, 32); /* half of it is enough to tell runs apart */
    return status;
}

/* ---- making and joining the store ---- */

static tri_status grow(const struct worker *c, const struct plan *p) {
    off_t head = (off_t)crew_head_bytes();
    int failed;
    do failed = posix_fallocate(c->fd, head, (off_t)p->end);
    while (failed == EINTR);
    if (!failed) return TRI_OK;
    return base_fail(TRI_FAILED, "cannot get %.1f MiB of shared memory for the store: %s",
                     (double)p->end / (1 << 20), strerror(failed));
}

static tri_status map_store(const struct worker *c, size_t bytes) {
    off_t head = (off_t)crew_head_bytes();
    void *at = mmap(c->base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, c->fd, head);
    return at != MAP_FAILED ? TRI_OK
                            : base_fail(TRI_FAILED, "cannot map the store: %s", strerror(errno));
}

static void name_items(const struct worker_executable *e, const struct machine *m, char *names) {
    for (int i = 0; named_program(m, i); i++)
        for (size_t k = 0; k < named_program(m, i)->n_items; k++)
            base_format(names + ((size_t)e->first_name[i] + k) * CREW_NAME, CREW_NAME, "%s",
                        named_program(m, i)->item[k].unit->node[0]->name);
}

static void describe_trees(struct worker *c, const tri_run *run, const struct plan *p) {
    struct crew_layout *l = &c->head->layout;
    struct crew_board *all = (struct crew_board *)(c->base + p->boards), *next = all;
    l->n_shapes = run->n_executables;
    l->boards = p->boards;
    for (int k = 0; k < 2; k++) l->tree[k].words = p->board[k];
    for (int i = 0; i < run->n_executables; i++) {
        const struct machine *m = &run->executable[i];
        l->shape[i].lanes = (int)m->lanes;
        l->shape[i].levels = m->compilation.levels;
        for (int k = 0; k < 2; k++) {
            const struct tree *t = &m->tree[k];
            l->shape[i].tree[k].buckets = t->buckets.n;
            l->shape[i].tree[k].boards = (int)(next - all);
            if (t->buckets.n) l->tree[k].nodes = t->nodes;
            for (int b = 0; b < t->buckets.n; b++) *next++ = tree_words(t, b);
        }
    }
}

static void describe_groups(struct worker *c, const struct machine *m, const struct plan *p) {
    struct crew_layout *l = &c->head->layout;
    l->seats = (int)mesh_seats(&m->compilation.strategies.mesh);
    l->n_groups = m->replicas;
    l->groups = p->groups;
    l->group_bytes = p->group_bytes;
    for (int i = 0; i < l->n_groups; i++) {
        struct crew_group *g = crew_group(c->head, c->base, i).shared;
        g->roles = m->members;
        g->executors = m->members * c->threads;
    }
}

static void describe(struct worker *c, const tri_run *run, const struct plan *p) {
    struct crew_layout *l = &c->head->layout;
    const struct machine *m = run->executable;
    l->store_bytes = p->end;
    l->lanes = (int)m->lanes;
    if (m->compilation.stages) l->legs = m->compilation.legs;
    l->batch = m->batch;
    l->n_items = p->n_items;
    describe_trees(c, run, p);
    l->fills = p->fills;
    l->n_fills = (int64_t)store_pieces(m->store);
    describe_groups(c, m, p);
    l->tasks = p->tasks;
    l->n_tasks = all_tasks(c);
    l->undo = p->undo;
    l->undo_bytes = p->undo_bytes;
    l->names = p->names;
    l->audits = p->audits;
    l->loads = p->loads;
    l->n_loads = p->n_loads;
    l->evaluation = p->evaluation;
    l->n_batches = p->n_batches;
    l->audit_roots = p->audit_roots;
    l->audit_legs = m->tree[1].buckets.legs;
    l->results = p->results;
    l->n_results = m->n_outputs;
}

static tri_status make_store(struct worker *c, tri_run *run, const struct plan *p) {
    tri_status status = map_store(c, p->end);
    if (!status) numa_spread(c->base, p->end); /* of the mapping, before there are pages */
    if (!status) status = grow(c, p);
    if (!status) status = digest(c, run, c->head->layout.digest);
    if (status) return status;
    describe(c, run, p);
    for (int i = 0; i < run->n_executables; i++)
        name_items(&c->executable[i], &run->executable[i], c->base + p->names);
    atomic_store(&c->head->layout.published, 1);
    crew_notify(c->head);
    return TRI_OK;
}

static tri_status check_store(const struct worker *c, const tri_run *run, const struct plan *p) {
    uint8_t own[32];
    tri_status status = digest(c, run, own);
    if (status) return status;
    if (memcmp(own, c->head->layout.digest, sizeof own) || p->end != c->head->layout.store_bytes)
        return base_fail(TRI_USAGE, "worker %d has another network, seed or plan than the worker "
                         "that made the store: all workers must run the same program with the "
                         "same options", c->place);
    return map_store(c, p->end);
}

static bool made_or_mine(void *arg) {
    const struct worker *c = arg;
    return atomic_load(&c->head->layout.published) || worker_reports(c);
}

static tri_status join_store(struct worker *c, tri_run *run, const struct plan *p) {
    crew_wait(c->head, made_or_mine, c, &c->context[0].shared->heartbeat);
    return atomic_load(&c->head->layout.published) ? check_store(c, run, p) : make_store(c, run, p);
}

struct filled {
    claim_word *word;
    int n, until; /* pieces; the first `until` are complete */
};

static bool filled_or_free(void *arg) {
    struct filled *f = arg;
    return tasks_complete(f->word, 0, f->n, 1, &f->until) || tasks_wait(f->word, 0, f->n, 1);
}

/* All workers write the initial values together, and those of a worker that died meanwhile. */
static tri_status fill_store(struct worker *c, tri_run *run, const struct plan *p) {
    struct store *s = run->executable->store;
    struct filled f = {(claim_word *)(c->base + p->fills), (int)store_pieces(s), 0};
    while (!tasks_complete(f.word, 0, f.n, 1, &f.until)) {
        tri_status status = store_fill(s, run->options.seed, run->team, f.word, c->context->number);
        if (status) return status;
        crew_notify(c->head);
        crew_wait(c->head, filled_or_free, &f, &c->context[0].shared->heartbeat);
    }
    return TRI_OK;
}

static bool checked_or_mine(void *arg) {
    const struct worker *c = arg;
    return atomic_load(&c->head->layout.checked) || worker_reports(c);
}

/* The reporter checks that there is enough memory, before any worker has touched its own. */
static tri_status check_memory(struct worker *c, const tri_run *run) {
    crew_wait(c->head, checked_or_mine, c, &c->context[0].shared->heartbeat);
    if (atomic_load(&c->head->layout.checked)) return TRI_OK;
    const struct machine *m = evaluation_machine(run);
    tri_status status = budget_check(m, &run->store, run->options.memory_limit);
    if (status) return status;
    size_t plan = budget_with_others(m, &run->store) + budget_program(m);
    atomic_store(&c->head->layout.planned, (int64_t)plan);
    atomic_store(&c->head->layout.checked, 1);
    crew_notify(c->head);
    return TRI_OK;
}

/* ---- settling ---- */

/* first: the number of tasks of the executables before. */
static tri_status make_tasks(struct worker *c, struct worker_executable *e, struct machine *m,
                             int first) {
    e->copy = calloc((size_t)m->n_updates + 1, sizeof *e->copy);
    if (!e->copy) return base_no_memory("updates");
    for (int i = 0; i < m->n_updates; i++) {
        const struct run_update *u = &m->update[i];
        e->copy[i] = (struct sweep_copy){
            .value = program_value(&m->step, u->value), .target = u->target->memory,
            .bytes = base_spec_bytes(&u->target->spec),
            .condition = u->condition < 0 ? NULL : program_value(&m->step, u->condition)};
    }
    tri_status status = TRI_OK;
    const struct sweep_guard guard = {m->finite.loss, m->store->block, m->store->bytes};
    if (m->pre.g)
        status = sweeps_make(&m->pre, NULL, 0, worker_all_threads(c), first, NULL, &e->sweeps[0]);
    if (status) return status;
    return sweeps_make(&m->step, e->copy, m->n_updates, worker_all_threads(c),
                       first + e->sweeps[0].n_tasks, m->finite.gated ? &guard : NULL,
                       &e->sweeps[1]);
}

/* Reserves more addresses than the store can need, so that everything can be bound before the exact
 * size is known. */
static tri_status place_executables(struct worker *c, tri_run *run, struct plan *p) {
    struct machine *m = run->executable;
    *p = make_plan(c, run);
    c->reserved = 2 * p->end + ((size_t)4 << 30);
    char *reserved = mmap(NULL, c->reserved, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
        return base_fail(TRI_FAILED, "cannot reserve %zu MiB of addresses for the store: %s; "
                         "`ulimit -v` shows the limit", c->reserved >> 20, strerror(errno));
    c->base = reserved;
    bind(c, run, p, reserved);
    tri_status status = store_place(m->store, reserved + p->store);
    if (!status) status = machine_allocate(m, &run->options);
    if (!status) status = executables_settle(run);
    for (int i = 0; i < run->n_executables && !status; i++)
        status = make_tasks(c, &c->executable[i], &run->executable[i], all_tasks(c));
    if (status) return status; /* m may have been freed */
    plan_tasks(c, p);
    CHECK(p->end <= c->reserved);
    m->shared_bytes = p->end - m->store->bytes - tree_bytes(&m->tree[0]) - tree_bytes(&m->tree[1]) -
                      m->replica_bytes * (size_t)m->replicas - m->carried_bytes;
    return TRI_OK;
}

/* A lane keeps one worker or replica busy at a time, and of a pipeline that computes gradients of
 * weights apart a second one. */
static void warn_idle(const struct worker *c, const struct machine *m) {
    int64_t busy = m->lanes * (m->compilation.stages &&
                               pipeline_splits_weights(m->compilation.pipeline) ? 2 : 1);
    int workers = worker_size(c), seats = m->members > 1 ? c->head->layout.seats : 1, idle = 0;
    int replicas = group_count(workers, seats);
    char form[64] = "";
    for (int rank = 0; rank < workers; rank++) idle += group_of(rank, workers, seats) >= busy;
    if (!idle) return;
    if (seats > 1)
        base_format(form, sizeof form, ", as %d replicas of %d seats,", replicas, seats);
    char advice[128] = "a lane has at least one sample, so a larger batch would use more";
    long long most = replicas < m->batch ? replicas : m->batch;
    if (most > m->lanes)
        base_format(advice, sizeof advice, "--lanes %lld would use %s (lanes are part of the plan: "
                    "changing them changes the last bits of the results)", most,
                    most == replicas ? "all" : "more");
    fprintf(stderr, "trireme: %d workers%s share %lld lane%s%s: %d of them %s idle; %s\n", workers,
            form, (long long)m->lanes, m->lanes == 1 ? "" : "s",
            m->options.lanes ? "" : ", since a batch has too little work for more to pay", idle,
            idle == 1 ? "stays" : "stay", advice);
}

static void warn_waiting(const struct worker *c, const struct machine *m) {
    const double waits = m->compilation.stages ? pipeline_idle(&m->pipeline, &m->times) : 0;
    if (waits > 0 && worker_size(c) > 1)
        fprintf(stderr, "trireme: in a pipeline of %d stages and %lld lanes, workers wait for "
                "about %.0f %% of the time; lanes alone (--stages 1) give the same bits without "
                "that\n",
                m->compilation.stages, (long long)m->lanes, 100 * waits);
}

/* Another replica makes the audits. */
static tri_status check_audit(const struct worker *c, const struct machine *m) {
    int seats = (int)mesh_seats(&m->compilation.strategies.mesh);
    if (c->head->size.audit <= 0 || m->members == 1 || group_count(worker_size(c), seats) > 1)
        return TRI_OK;
    return base_fail(TRI_USAGE, "--audit needs two replicas, but up to %d workers form one of the "
                     "mesh's %d seats; -n %d forms two", seats, seats, seats + 1);
}

static tri_status make_loader(const struct worker *c, tri_run *run, const struct plan *p) {
    struct crew_head *h = c->head;
    int rank = worker_rank(c);
    const struct loader_place place = {
        .word = p->n_loads ? (claim_word *)(c->base + p->loads) : NULL,
        .queue = &h->data, .done = &h->course.committed, .ending = &h->course.ending,
        .owner = c->context->number, .from = rank < 0 ? 0 : rank, .of = h->size.most};
    return loader_make(run->loader, run, &place);
}

tri_status worker_measure(struct worker *c, tri_run *run) {
    struct plan p;
    return place_executables(c, run, &p);
}

tri_status worker_settle(struct worker *c, tri_run *run) {
    struct machine *m = run->executable;
    struct plan p;
    if (m->n_scalars > CREW_MOST_SCALARS)
        return base_fail(TRI_USAGE, "the network has %d scalars; with several workers there can "
                         "be %d", m->n_scalars, CREW_MOST_SCALARS);
    tri_status status = check_audit(c, m);
    if (!status) status = place_executables(c, run, &p);
    if (!status) status = check_memory(c, run);
    if (!status) worker_attach(c, run->team); /* before any thread claims anything */
    if (!status) status = join_store(c, run, &p);
    if (!status) status = fill_store(c, run, &p);
    if (status) return status;
    for (int i = 0; i < run->n_executables; i++) {
        struct tree *t = &run->executable[i].tree[1];
        t->audit = c->head->size.audit > 0 ? crew_audit_word(c->head, c->base, 0, 0) : NULL;
        t->audit_lanes = c->head->layout.lanes;
        machine_touch(&run->executable[i]);
    }
    c->run = run;
    c->current = c->executable;
    c->task = (claim_word *)(c->base + p.tasks);
    worker_evaluation_bind(c, run);
    if (run->data) status = make_loader(c, run, &p);
    if (status) return status;
    if (worker_reports(c)) worker_redirect_output(c);
    if (worker_reports(c)) warn_idle(c, m);
    if (worker_reports(c) && !run->options.quiet) warn_waiting(c, m);
    atomic_store(&c->head->course.keeps, run->options.ckpt != NULL);
    c->writes = worker_reports(c) && !crew_begun(c->head);
    atomic_store(&worker_self(c)->state, CREW_READY);
    worker_log_compiled(c);
    worker_at(c, CREW_AT_CALLBACK, -1);
    return TRI_OK;
}

void worker_count_bad(struct worker *c, const tri_run *run) {
    const tri_data *all[] = {run->data, run->policy->data};
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i]) pictures_count_together(all[i], &c->head->told.bad[i]);
}
