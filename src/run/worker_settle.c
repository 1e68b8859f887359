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

static void at_least(struct region *r, uint64_t bytes) {
    if (bytes > r->bytes) r->bytes = bytes;
}

/* One step is computed at a time, so all executables share the memory of a step. */
static void size_executable(struct worker *c, struct worker_executable *e,
                            const struct machine *m) {
    struct region *all = c->region;
    const int buckets = m->tree[1].buckets.n;
    for (enum region_number r = 0; r < REGIONS; r++) at_least(&all[r], machine_bytes(m, r));
    at_least(&all[REGION_GROUPS], group_bytes(m->members, m->members * c->threads, buckets));
    at_least(&all[REGION_AUDIT_SUMS], sizeof(uint64_t) * (size_t)m->thread[0].lane[0].n_result);
    all[REGION_BOARDS].n += m->tree[0].buckets.n + buckets;
    for (int k = 0; k < 2; k++)
        for (int b = 0; b < m->tree[k].buckets.n; b++)
            all[REGION_PARTS].n += (int64_t)m->tree[k].bucket[b].n_parts;
    for (int i = 0; named_program(m, i); i++) {
        e->first_name[i] = (int)all[REGION_NAMES].n;
        all[REGION_NAMES].n += (int64_t)named_program(m, i)->n_items;
    }
}

/* All but tasks and undo records: see make_tasks. */
static void size_regions(struct worker *c, const tri_run *run) {
    const struct machine *m = run->executable;
    struct region *all = c->region;
    const bool audits = c->head->size.audit > 0;
    regions_begin(all, &c->head->size);
    for (int i = 0; i < run->n_executables; i++)
        size_executable(c, &c->executable[i], &run->executable[i]);
    all[REGION_VALUES].bytes = m->store->bytes;
    all[REGION_FILLS].n = (int64_t)store_pieces(m->store);
    all[REGION_GROUPS].n = all[REGION_REPLICAS].n = m->replicas;
    all[REGION_AUDITS].n = audits ? m->lanes * m->tree[1].buckets.legs : 0;
    all[REGION_AUDIT_SUMS].n = audits ? m->lanes * worker_place_threads(c) : 0;
    all[REGION_RESULTS].bytes = sizeof(double) * (size_t)m->n_outputs;
    if (run->data && run->data->sequential) all[REGION_BUFFERS].bytes = 0; /* each reads it all */
    else all[REGION_LOADS].n = loader_words(m, run->n_executables);
    worker_evaluation_size(run, &all[REGION_EVALUATION]);
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

/* What is the same whatever workers and threads there are. */
tri_status worker_add_plan(struct sha256 *h, const tri_run *run) {
    char line[256];
    tri_status status = TRI_OK;
    for (int i = 0; i < run->n_executables && !status; i++) {
        const struct machine *m = &run->executable[i];
        status = add_graphs(h, m);
        base_format(line, sizeof line, "%llu %lld %lld %d %d",
                    (unsigned long long)run->options.seed, (long long)m->lanes,
                    (long long)m->batch, m->compilation.levels, m->tree[1].cut);
        add_text(h, line);
        for (int k = 0; k < 2; k++)
            if (m->tree[k].g)
                sha256_add(h, m->tree[k].buckets.of,
                           (size_t)m->tree[k].buckets.n_of * sizeof *m->tree[k].buckets.of);
        for (int b = 0; b < m->tree[1].buckets.n; b++)
            sha256_add(h, m->tree[1].bucket[b].part,
                       m->tree[1].bucket[b].n_parts * sizeof *m->tree[1].bucket[b].part);
    }
    return status;
}

static tri_status digest(const struct worker *c, const tri_run *run, uint8_t out[32]) {
    struct sha256 h;
    char hex[65], line[64];
    sha256_begin(&h);
    sha256_add(&h, c->region, sizeof c->region);
    tri_status status = worker_add_plan(&h, run);
    for (int i = 0; i < run->n_executables; i++) {
        base_format(line, sizeof line, "%d %zu", worker_all_threads(c),
                    run->executable[i].step.memory.total);
        add_text(&h, line);
    }
    sha256_end_hex(&h, hex);
    memcpy(out, hex, 32); /* half of it is enough to tell runs apart */
    return status;
}

/* ---- making and joining the store ---- */

static tri_status grow(const struct worker *c) {
    off_t head = (off_t)crew_head_bytes();
    int failed;
    do failed = posix_fallocate(c->fd, head, (off_t)c->bytes);
    while (failed == EINTR);
    if (!failed) return TRI_OK;
    return base_fail(TRI_FAILED, "cannot get %.1f MiB of shared memory for the store: %s",
                     (double)c->bytes / (1 << 20), strerror(failed));
}

static tri_status map_store(const struct worker *c) {
    off_t head = (off_t)crew_head_bytes();
    void *at = mmap(c->base, c->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, c->fd, head);
    return at != MAP_FAILED ? TRI_OK
                            : base_fail(TRI_FAILED, "cannot map the store: %s", strerror(errno));
}

static void name_items(const struct worker *c, const struct worker_executable *e,
                       const struct machine *m) {
    for (int i = 0; named_program(m, i); i++)
        for (int k = 0; k < (int)named_program(m, i)->n_items; k++)
            base_format(worker_region(c, REGION_NAMES, e->first_name[i] + k), CREW_NAME, "%s",
                        named_program(m, i)->item[k].unit->node[0]->name);
}

static void describe_trees(struct worker *c, const tri_run *run) {
    struct crew_layout *l = &c->head->layout;
    struct crew_board *all = worker_region(c, REGION_BOARDS, 0), *next = all;
    struct wire_part *part = worker_region(c, REGION_PARTS, 0), *next_part = part;
    l->n_shapes = run->n_executables;
    l->seed = run->options.seed;
    for (int i = 0; i < run->n_executables; i++) {
        const struct machine *m = &run->executable[i];
        l->shape[i].lanes = (int)m->lanes;
        l->shape[i].levels = m->compilation.levels;
        for (int k = 0; k < 2; k++) {
            const struct tree *t = &m->tree[k];
            l->shape[i].tree[k].buckets = t->buckets.n;
            l->shape[i].tree[k].boards = (int)(next - all);
            if (t->buckets.n) l->nodes[k] = t->nodes;
            l->shape[i].tree[k].rounds = t->rounds;
            l->shape[i].tree[k].apart = t->apart;
            for (int b = 0; b < t->buckets.n; b++) {
                const size_t n = t->bucket[b].n_parts;
                *next++ = tree_words(t, b, (int)(next_part - part));
                if (n) memcpy(next_part, t->bucket[b].part, n * sizeof *part);
                next_part += n;
            }
        }
    }
}

static void describe(struct worker *c, const tri_run *run) {
    struct crew_layout *l = &c->head->layout;
    const struct machine *m = run->executable;
    memcpy(l->region, c->region, sizeof l->region);
    l->store_bytes = c->bytes;
    l->lanes = (int)m->lanes;
    if (m->compilation.stages) l->legs = m->compilation.legs;
    l->schedule = m->pipeline.wish;
    l->claimers = m->n_threads > 1 ? c->threads : 1;
    l->seats = m->members > 1 ? (int)mesh_seats(&m->compilation.strategies.mesh) : 0;
    l->batch = m->batch;
    describe_trees(c, run);
    for (int i = 0; i < m->replicas; i++) {
        struct crew_group *g = worker_region(c, REGION_GROUPS, i);
        g->roles = m->members;
        g->executors = m->members * c->threads;
    }
}

static tri_status make_store(struct worker *c, tri_run *run) {
    tri_status status = map_store(c);
    if (!status) numa_spread(c->base, c->bytes); /* of the mapping, before there are pages */
    if (!status) status = grow(c);
    if (!status) status = digest(c, run, c->head->layout.digest);
    if (status) return status;
    describe(c, run);
    for (int i = 0; i < run->n_executables; i++)
        name_items(c, &c->executable[i], &run->executable[i]);
    atomic_store(&c->head->layout.published, 1);
    crew_notify(c->head);
    return TRI_OK;
}

static tri_status check_store(const struct worker *c, const tri_run *run) {
    uint8_t own[32];
    tri_status status = digest(c, run, own);
    if (status) return status;
    if (memcmp(own, c->head->layout.digest, sizeof own))
        return base_fail(TRI_USAGE, "worker %d has another network, seed or plan than the worker "
                         "that made the store: all workers must run the same program with the "
                         "same options", c->place);
    return map_store(c);
}

static bool made_or_mine(void *arg) {
    const struct worker *c = arg;
    return atomic_load(&c->head->layout.published) || worker_opens(c);
}

static tri_status join_store(struct worker *c, tri_run *run) {
    crew_wait(c->head, made_or_mine, c, &c->context[0].shared->heartbeat);
    return atomic_load(&c->head->layout.published) ? check_store(c, run) : make_store(c, run);
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
static tri_status fill_store(struct worker *c, tri_run *run) {
    struct store *s = run->executable->store;
    struct filled f = {worker_region(c, REGION_FILLS, 0), (int)c->region[REGION_FILLS].n, 0};
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
    return atomic_load(&c->head->layout.checked) || worker_opens(c);
}

/* The reporter checks that there is enough memory, before any worker has touched its own. */
static tri_status check_memory(struct worker *c, tri_run *run) {
    crew_wait(c->head, checked_or_mine, c, &c->context[0].shared->heartbeat);
    if (atomic_load(&c->head->layout.checked)) return TRI_OK;
    const struct machine *m = evaluation_machine(run);
    tri_status status = budget_check(m, &run->store, run->options.memory_limit);
    run->too_large = status != TRI_OK;
    if (status) return status;
    size_t plan = budget_with_others(m, &run->store) + budget_program(m);
    atomic_store(&c->head->layout.planned, (int64_t)plan);
    atomic_store(&c->head->layout.checked, 1);
    crew_notify(c->head);
    return TRI_OK;
}

/* ---- settling ---- */

static tri_status make_tasks(struct worker *c, struct worker_executable *e, struct machine *m) {
    const struct sweep_guard guard = {m->finite.loss, m->store->block, m->store->bytes};
    int64_t *first = &c->region[REGION_TASKS].n; /* the tasks of the executables before */
    e->copy = calloc((size_t)m->n_updates + 1, sizeof *e->copy);
    if (!e->copy) return base_no_memory("updates");
    for (int i = 0; i < m->n_updates; i++) {
        const struct run_update *u = &m->update[i];
        e->copy[i] = (struct sweep_copy){
            .value = program_value(&m->step, u->value), .target = u->target->memory,
            .bytes = base_spec_bytes(&u->target->spec),
            .condition = u->condition < 0 ? NULL : program_value(&m->step, u->condition)};
    }
    for (int k = 0; k < 2; k++) {
        struct program *p = k ? &m->step : &m->pre;
        tri_status status = !p->g ? TRI_OK
            : sweeps_make(p, k ? e->copy : NULL, k ? m->n_updates : 0, worker_all_threads(c),
                          (int)*first, k && m->finite.gated ? &guard : NULL, &e->sweeps[k]);
        if (status) return status;
        *first += e->sweeps[k].n_tasks;
        at_least(&c->region[REGION_UNDO], (e->sweeps[k].undo_bytes + 127) / 128 * 128);
    }
    return TRI_OK;
}

/* Reserves more addresses than the store can need, so that everything can be bound before the exact
 * size is known. */
static tri_status place_executables(struct worker *c, tri_run *run) {
    struct machine *m = run->executable;
    size_regions(c, run);
    c->reserved = 2 * regions_place(c->region) + ((size_t)4 << 30);
    char *reserved = mmap(NULL, c->reserved, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
        return base_fail(TRI_FAILED, "cannot reserve %zu MiB of addresses for the store: %s; "
                         "`ulimit -v` shows the limit", c->reserved >> 20, strerror(errno));
    c->base = reserved;
    for (int i = 0; i < run->n_executables; i++) {
        run->executable[i].shared = c->region;
        run->executable[i].base = c->base;
    }
    tri_status status = store_place(m->store, worker_region(c, REGION_VALUES, 0));
    if (!status) status = machine_allocate(m, &run->options);
    if (!status) status = executables_settle(run);
    for (int i = 0; i < run->n_executables && !status; i++)
        status = make_tasks(c, &c->executable[i], &run->executable[i]);
    if (status) return status; /* m may have been freed */
    m->shared_bytes = c->bytes = regions_place(c->region);
    CHECK(c->bytes <= c->reserved);
    for (int r = 0; r < REGIONS; r++)
        if (region_rows[r].how & REGION_LINE)
            m->shared_bytes -= c->region[r].bytes * (size_t)c->region[r].n;
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
        fprintf(stderr, "trireme: in a pipeline of %d stages and %lld lane%s, workers wait for "
                "about %.0f %% of the time; lanes alone (--stages 1) give the same bits without "
                "that\n",
                m->compilation.stages, (long long)m->lanes, m->lanes == 1 ? "" : "s", 100 * waits);
}

/* Another replica makes the audits. */
static tri_status check_audit(const struct worker *c, const struct machine *m) {
    int seats = (int)mesh_seats(&m->compilation.strategies.mesh);
    if (c->head->size.audit <= 0 || m->members == 1 || group_count(worker_size(c), seats) > 1)
        return TRI_OK;
    return base_fail(TRI_USAGE, "--audit needs two replicas, but up to %d workers form one of the "
                     "mesh's %d seats; -n %d forms two", seats, seats, seats + 1);
}

static tri_status make_loader(const struct worker *c, tri_run *run) {
    struct crew_head *h = c->head;
    int rank = worker_rank(c);
    const struct loader_place place = {
        .word = c->region[REGION_LOADS].n ? worker_region(c, REGION_LOADS, 0) : NULL,
        .queue = &h->data, .done = &h->course.committed, .ending = &h->course.ending,
        .mine = worker_has_hosts(c) ? worker_region(c, REGION_MINE, 0) : NULL,
        .owner = c->context->number, .from = rank < 0 ? 0 : rank, .of = h->size.most};
    return loader_make(run->loader, run, &place);
}

tri_status worker_measure(struct worker *c, tri_run *run) { return place_executables(c, run); }

tri_status worker_settle(struct worker *c, tri_run *run) {
    struct machine *m = run->executable;
    if (m->n_scalars > CREW_MOST_SCALARS)
        return base_fail(TRI_USAGE, "the network has %d scalars; with several workers there can "
                         "be %d", m->n_scalars, CREW_MOST_SCALARS);
    tri_status status = check_audit(c, m);
    if (!status) status = worker_check_hosts(c, run);
    if (!status) status = place_executables(c, run);
    if (!status) status = check_memory(c, run);
    if (!status) worker_attach(c, run->team); /* before any thread claims anything */
    if (!status) status = join_store(c, run);
    if (!status) status = fill_store(c, run);
    if (status) return status;
    for (int i = 0; i < run->n_executables; i++) {
        struct tree *t = &run->executable[i].tree[1];
        t->audit = c->region[REGION_AUDITS].n ? worker_region(c, REGION_AUDITS, 0) : NULL;
        t->audit_lanes = c->head->layout.lanes;
        if (worker_has_hosts(c)) t->tells = &c->head->event;
        machine_touch(&run->executable[i]);
    }
    c->run = run;
    c->current = c->executable;
    worker_evaluation_bind(c, run);
    if (run->data) status = make_loader(c, run);
    if (status) return status;
    if (worker_reports(c)) worker_redirect_output(c);
    const bool tells = worker_reports(c) && !atomic_load(&c->head->told.shown.notes);
    if (tells) warn_idle(c, m);
    if (tells && !run->options.quiet) warn_waiting(c, m);
    atomic_store(&c->head->course.keeps, run->options.ckpt != NULL);
    c->writes = worker_opens(c) && !crew_begun(c->head) && !c->head->hosts.joins;
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
