/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/program.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "crew/spend.h"
#include "plan/rebatch.h"

/* The values of constants are in one block, in the order of the nodes. */
static tri_status place_literals(struct program *p) {
    for (size_t i = 0; i < p->g->n_nodes; i++)
        if (node_is_literal(p->g->node[i])) p->constant_bytes += memory_bytes(p->g->node[i]->out);
    if (!p->constant_bytes) return TRI_OK;
    char *host = malloc(p->constant_bytes), *to = dev_allocate(p->dev, p->constant_bytes);
    p->constants = to;
    if (!host || !to) {
        free(host);
        return base_no_memory("constants");
    }
    size_t at = 0;
    tri_status status = TRI_OK;
    for (size_t i = 0; i < p->g->n_nodes && !status; i++) {
        const tri_node *n = p->g->node[i];
        if (!node_is_literal(n)) continue;
        if (node_is(n, "constant"))
            convert_store(n->out->spec.type, host + at, 0, tri_attr_float(n, "value"));
        else if (!array_values(n, host + at))
            status = base_fail(TRI_USAGE, "%s: its text must have %lld number(s)", n->name,
                               (long long)tri_shape_count(&n->out->spec.shape));
        p->value[n->out->id] = to + at;
        at += memory_bytes(n->out);
    }
    if (!status) dev_copy_in(p->dev, to, host, p->constant_bytes);
    free(host);
    return status;
}

static tri_status check_supported(const struct program *p, const tri_node *n) {
    const char *why = p->dev->kind->declines(n);
    if (!why) return TRI_OK;
    struct text t = {0};
    node_describe(n, &t);
    base_fail(TRI_USAGE, "device %s cannot run %s: %s", p->dev->kind->name,
              t.data ? t.data : n->name, why);
    text_free(&t);
    return TRI_USAGE;
}

/* ---- making ---- */

static size_t pointers_of(const struct program *p) {
    size_t n = 0;
    for (size_t i = 0; i < p->n_items; i++)
        n += (size_t)(p->units.unit[i].n_in + p->units.unit[i].n_out);
    return n * (size_t)p->threads;
}

static tri_status prepare(struct program *p, unsigned how, struct program_item *item,
                          void ***next) {
    const struct unit *u = item->unit;
    for (int t = 0; t < p->threads; t++) {
        struct program_kernel *k = &item->by_thread[t];
        k->kernel.threads = how & PROGRAM_UNDO ? 0 : p->threads * item->members;
        tri_status status = p->dev->kind->prepare(p->dev, u, &k->kernel);
        if (status) return status;
        k->in = (const void **)*next;
        k->out = *next + u->n_in;
        *next += u->n_in + u->n_out;
        k->call = (tri_call){.node = u->node[u->n - 1], .in = k->in, .out = k->out,
                             .state = k->kernel.state};
    }
    const struct kernel *k = &item->by_thread->kernel;
    item->parts[0] = k->parts ? k->parts : 1;
    item->parts[1] = k->then;
    item->scratch = memory_round(k->scratch);
    item->shared = memory_round(k->shared);
    return TRI_OK;
}

static tri_status find_members(struct program *p) {
    static const uint16_t first;
    uint16_t *next = p->member = calloc(p->n_items * (size_t)p->members + 1, sizeof *next);
    if (!next) return base_no_memory("a program");
    for (size_t i = 0; i < p->n_items; i++, next += p->members) {
        struct program_item *item = &p->item[i];
        const struct unit *u = item->unit;
        item->members = p->members == 1 ? 1 : mesh_members(&p->g->mesh, u->node[u->n - 1]->owner,
                                                           p->members, next);
        item->member = p->members == 1 ? &first : next;
    }
    return TRI_OK;
}

/* Moves the units that lead to the loss before the others; both keep their order. */
static tri_status put_loss_first(struct program *p) {
    const struct graph_output *loss = graph_output_find(p->g, "loss");
    struct units *us = &p->units;
    bool *leads = calloc((size_t)p->g->n_tensors + 1, sizeof *leads);
    bool *first = calloc(us->n + 1, sizeof *first);
    struct unit *order = calloc(us->n + 1, sizeof *order);
    bool ok = leads && first && order;
    if (ok && loss) leads[loss->tensor->id] = true;
    for (size_t i = us->n; ok && i-- > 0;) {
        const struct unit *u = &us->unit[i];
        for (int k = 0; k < u->n_out; k++) first[i] |= leads[u->out[k]->id];
        for (int k = 0; first[i] && k < u->n_in; k++) leads[u->in[k]->id] = true;
    }
    size_t n = 0;
    for (int others = 0; ok && others < 2; others++)
        for (size_t i = 0; i < us->n; i++)
            if (first[i] == !others) order[n++] = us->unit[i];
    if (ok) memcpy(us->unit, order, n * sizeof *order);
    free(leads);
    free(first);
    free(order);
    return ok ? TRI_OK : base_no_memory("a program");
}

static tri_status make_items(struct program *p, unsigned how) {
    tri_status status = units_of(p->g, &p->units);
    if (!status && how & PROGRAM_LOSS) status = put_loss_first(p);
    if (status) return status;
    p->n_items = p->units.n;
    p->item = calloc(p->n_items + 1, sizeof *p->item);
    struct program_kernel *kernels = p->blocks[0] =
        calloc(p->n_items * (size_t)p->threads + 1, sizeof *kernels);
    void **next = p->blocks[1] = calloc(pointers_of(p) + 1, sizeof *next);
    if (!p->item || !kernels || !next) return base_no_memory("a program");
    for (size_t i = 0; i < p->n_items; i++)
        p->item[i] = (struct program_item){.unit = &p->units.unit[i],
                                           .by_thread = kernels + i * (size_t)p->threads};
    status = find_members(p);
    int64_t parts_before = 0;
    for (size_t i = 0; i < p->n_items && !status; i++) {
        struct program_item *item = &p->item[i];
        const tri_node *n = item->unit->node[0];
        item->parts_before = parts_before;
        for (int k = 0; k < item->unit->n && !status; k++)
            status = check_supported(p, item->unit->node[k]);
        if (!status) status = prepare(p, how, item, &next);
        parts_before += item->parts[0] + item->parts[1];
        p->item[i + 1].parts_before = parts_before;
        p->joint |= p->threads > 1 && (item->parts[0] > 1 || item->parts[1] > 1);
        if (n->entry->op->random) {
            const tri_attr *whole = node_attr(n, "whole"); /* shape of the unsplit output */
            bool part = whole && whole->list.rank;
            const tri_shape *y = part ? &whole->list : &n->out->spec.shape;
            item->sample_elements = tri_shape_count(y) / p->g->batch;
        }
    }
    return status;
}

size_t program_scratch(const struct program *p, size_t i) {
    const struct program_item *item = &p->item[i];
    int64_t most = item->parts[0] > item->parts[1] ? item->parts[0] : item->parts[1];
    int64_t threads = (int64_t)p->threads * item->members;
    int64_t at_once = most < threads ? most : threads;
    return item->scratch * (size_t)at_once + item->shared;
}

/* The number of items up to the one that computes the loss, including it. */
static size_t items_of_loss(const struct program *p) {
    const struct graph_output *loss = graph_output_find(p->g, "loss");
    for (size_t i = p->n_items; loss && i-- > 0;)
        if (unit_out(p->item[i].unit, loss->tensor) >= 0) return i + 1;
    return 0;
}

static bool updates_in_place(const struct program *p, size_t i) {
    for (size_t k = 0; k < p->g->n_updates; k++) {
        const struct graph_update *u = &p->g->update[k];
        if (p->memory.root[u->value->id] == u->target->id &&
            unit_out(p->item[i].unit, u->value) >= 0)
            return true;
    }
    return false;
}

/* The memory plan's region of what only item i uses. */
static int region_of(const struct program *p, size_t i) {
    return p->members == 1 || p->item[i].members > 1 ? 0 : 1 + *p->item[i].member;
}

static tri_status plan(struct program *p, unsigned how) {
    size_t early = how & PROGRAM_GATE ? items_of_loss(p) : 0;
    bool *outside = calloc((size_t)p->g->n_tensors + 1, sizeof *outside);
    struct memory_item *item = calloc(p->n_items + 1, sizeof *item);
    bool ok = outside && item;
    if (ok) memory_mark_outside(p->g, how & PROGRAM_OUTPUTS, outside);
    for (size_t i = 0; ok && i < p->n_items; i++) {
        const struct kernel *k = &p->item[i].by_thread->kernel;
        item[i] = (struct memory_item){.unit = p->item[i].unit, .scratch = program_scratch(p, i),
                                       .alias = k->alias, .state = k->state, .early = i < early,
                                       .region = region_of(p, i),
                                       .shares = how & PROGRAM_UNDO && !k->span ? NULL : k->shares};
    }
    ok = ok && memory_plan(p->g, item, p->n_items, outside, p->members == 1 ? 1 : 1 + p->members,
                           &p->memory);
    free(outside);
    free(item);
    for (p->gate = early; ok && early && p->gate < p->n_items && !updates_in_place(p, p->gate);)
        p->gate++;
    return ok ? TRI_OK : base_no_memory("a memory plan");
}

static tri_status find_ports(struct program *p) {
    p->given = calloc(2 * p->g->n_nodes + p->g->n_outputs + 1, sizeof *p->given);
    if (!p->given) return base_no_memory("a program");
    p->input = p->given + p->g->n_nodes;
    p->result = p->input + p->g->n_nodes;
    for (size_t i = 0; i < p->g->n_nodes; i++) {
        const tri_node *n = p->g->node[i];
        if (node_is(n, "given"))
            p->given[p->n_given++] =
                (struct program_port){n->out, n->out->id, (int)tri_attr_int(n, "of"),
                                      (int)tri_attr_int(n, "top")};
        else if (node_is(n, "input"))
            p->input[p->n_input++] = (struct program_port){n->out, n->out->id, -1, 0};
    }
    for (size_t i = 0; i < p->g->n_outputs; i++) {
        const struct graph_output *o = &p->g->output[i];
        if (!o->name)
            p->result[p->n_result++] = (struct program_port){o->tensor, o->tensor->id, o->of, 0};
    }
    return TRI_OK;
}

/* ---- the kernels' pointers ---- */

/* Calls `note` for every pointer of every kernel, with the tensor whose place it points to. */
static void each_pointer(struct program *p,
                         void (*note)(struct program *p, int tensor, void **at)) {
    for (size_t i = 0; i < p->n_items; i++) {
        const struct unit *u = p->item[i].unit;
        for (int t = 0; t < p->threads; t++) {
            const struct program_kernel *k = &p->item[i].by_thread[t];
            for (int j = 0; j < u->n_in; j++)
                note(p, p->memory.root[u->in[j]->id], (void **)&k->in[j]);
            for (int j = 0; j < u->n_out; j++)
                note(p, p->memory.root[u->out[j]->id], &k->out[j]);
        }
    }
}

static void count_pointer(struct program *p, int tensor, void **at) {
    (void)at;
    p->first_slot[tensor]++;
}

/* first_slot is the end of each range at first; filling from the end makes it the begin. */
static void put_pointer(struct program *p, int tensor, void **at) {
    p->slot[--p->first_slot[tensor]] = at;
}

static tri_status make_slots(struct program *p) {
    int n = p->g->n_tensors;
    p->first_slot = calloc((size_t)n + 1, sizeof *p->first_slot);
    p->slot = calloc(pointers_of(p) + 1, sizeof *p->slot);
    if (!p->first_slot || !p->slot) return base_no_memory("a program");
    each_pointer(p, count_pointer);
    for (int i = 1; i <= n; i++) p->first_slot[i] += p->first_slot[i - 1];
    each_pointer(p, put_pointer);
    for (int i = 0; i < n; i++)
        if (p->value[i]) program_bind(p, i, p->value[i]); /* literals */
    return TRI_OK;
}

tri_status program_make(const tri_graph *g, struct dev *dev, unsigned how, int threads,
                        struct program *out) {
    return program_make_member(g, dev, how, threads, 1, out);
}

tri_status program_make_member(const tri_graph *g, struct dev *dev, unsigned how, int threads,
                               int members, struct program *p) {
    *p = (struct program){.g = g, .dev = dev, .threads = threads, .members = members};
    p->value = calloc((size_t)g->n_tensors + 1, sizeof *p->value);
    tri_status status = p->value ? place_literals(p) : base_no_memory("a program");
    if (!status) status = make_items(p, how);
    if (!status && !(p->faults = calloc((size_t)threads, sizeof *p->faults)))
        status = base_no_memory("a program");
    if (!status) status = plan(p, how);
    if (!status) status = make_slots(p);
    if (!status) status = find_ports(p);
    p->end = p->n_items;
    if (status) program_free(p);
    return status;
}

/* Where item i keeps what its parts share, and its scratch. first: the number of this member's
 * first thread among all that run the item. */
static void place_scratch(struct program *p, size_t i, char *shared, char *scratch, int first) {
    const struct program_item *item = &p->item[i];
    for (int t = 0; t < p->threads; t++) {
        tri_call *c = &item->by_thread[t].call;
        c->shared = item->shared ? shared : NULL;
        c->scratch = item->scratch && scratch
                         ? scratch + (size_t)(first + t) * item->scratch : NULL;
    }
}

static void place_tensors(struct program *p, char *arena) {
    p->arena = arena;
    for (int i = 0; i < p->g->n_tensors; i++)
        if (p->memory.root[i] == i && p->memory.offset[i] != MEMORY_OUTSIDE)
            program_bind(p, i, arena + p->memory.offset[i]);
}

void program_place(struct program *p, void *arena, void *own) {
    place_tensors(p, arena);
    for (size_t i = 0; i < p->n_items; i++) {
        char *here = (char *)arena + p->memory.scratch[i];
        place_scratch(p, i, here, own == arena ? here + p->item[i].shared : own, 0);
    }
}

size_t program_own_bytes(const struct program *p) {
    size_t most = MEMORY_ALIGN;
    for (size_t i = 0; i < p->n_items; i++) {
        size_t bytes = p->item[i].scratch * (size_t)p->threads;
        if (bytes > most) most = bytes;
    }
    return most;
}

int program_rank(const struct program *p, size_t i, int member) {
    int rank = 0;
    while (rank < p->item[i].members && p->item[i].member[rank] != member) rank++;
    return rank < p->item[i].members ? rank : -1;
}

void program_place_member(struct program *p, int member, char *arena) {
    place_tensors(p, arena);
    for (size_t i = 0; i < p->n_items; i++) {
        char *scratch = arena + p->memory.scratch[i];
        int rank = program_rank(p, i, member);
        place_scratch(p, i, scratch, scratch + p->item[i].shared, rank < 0 ? 0 : rank * p->threads);
    }
}

void program_bind(struct program *p, int tensor, void *memory) {
    p->value[tensor] = memory;
    for (int i = p->first_slot[tensor]; i < p->first_slot[tensor + 1]; i++) *p->slot[i] = memory;
}

void *program_value(const struct program *p, int tensor) {
    return p->value[p->memory.root[tensor]];
}

void program_free(struct program *p) {
    for (size_t i = 0; p->blocks[0] && i < p->n_items * (size_t)p->threads; i++) {
        struct kernel *k = &((struct program_kernel *)p->blocks[0])[i].kernel;
        if (k->release) k->release(k->state);
    }
    if (p->constants) dev_release(p->dev, p->constants, p->constant_bytes);
    memory_plan_free(&p->memory);
    units_free(&p->units);
    free(p->item);
    free(p->blocks[0]);
    free(p->blocks[1]);
    free(p->member);
    free(p->given);
    free(p->value);
    free(p->slot);
    free(p->first_slot);
    free(p->faults);
    *p = (struct program){0};
}

/* ---- running ---- */

/* Adds the sample, or else the element, to a fault that names a tensor. */
static void locate(struct tri_fault *fault, const struct program_step *step) {
    if (!fault->node) return;
    int64_t sample = rebatch_sample(fault->node->in[fault->input], fault->element);
    if (sample >= 0)
        fault->sample = step->sample + sample + 1;
    else
        fault_add(fault, ", at element %lld", (long long)fault->element);
    fault->node = NULL;
}

static void run_item(const struct program *p, size_t i, int thread, int64_t first_part,
                     int64_t end_part, const struct program_step *step, struct tri_fault *fault) {
    const struct program_item *item = &p->item[i];
    struct program_kernel *k = &item->by_thread[thread];
    k->call.seed = step->seed;
    k->call.step = step->step;
    k->call.first = item->sample_elements * step->sample;
    k->call.sample = step->sample;
    k->call.fault = fault;
    for (int64_t part = first_part; part < end_part && !fault->failed; part++) {
        k->call.part = part;
        k->kernel.run(&k->call);
    }
    if (fault->failed) locate(fault, step);
    if (spend_is_recorded() && p->g->first_item && spend_recorder())
        spend_operator(p->g->first_item - 1 + (int)i, !first_part);
}

/* Waits until the device has finished this thread's work: others may then read the results. */
static void wait_for_device(const struct program *p) {
    dev_wait(p->dev);
}

/* One run by several threads. Each thread takes a block of an item's parts, so that a part of one
 * unit finds in its core's cache what the same part of the unit before left there. An item begins
 * when all items before it are done; `done` counts the finished parts of all items. */
struct joint_run {
    struct program *p;
    struct team *team;
    const struct program_step *step;
    _Atomic int64_t done;
    atomic_int passed; /* stops */
    atomic_bool failed;
    enum spent on; /* what its threads do */
    struct program_fault *faults;
};

static void stop_all(struct joint_run *r) {
    atomic_store(&r->failed, true);
    team_wake(r->team);
}

struct stop_wanted {
    struct joint_run *run;
    int stops;
};

struct parts_wanted {
    struct joint_run *run;
    int64_t parts;
};

static bool are_done(void *arg) {
    const struct parts_wanted *w = arg;
    return atomic_load(&w->run->done) >= w->parts || atomic_load(&w->run->failed);
}

/* Waits until so many parts are done. False: the run is stopped. */
static bool wait_for(struct joint_run *r, int64_t parts) {
    struct parts_wanted w = {r, parts};
    team_wait(r->team, are_done, &w);
    return atomic_load(&r->done) >= parts;
}

void program_share(int64_t parts, int64_t t, int64_t n, int64_t *begin, int64_t *end) {
    *begin = parts * t / n;
    *end = parts * (t + 1) / n;
    if (parts < n) { /* one each, so that a single part is always thread 0's */
        *begin = t < parts ? t : parts;
        *end = t < parts ? t + 1 : parts;
    }
}

/* Runs the thread's share of one round of an item: of `parts` parts from `first` on, once `before`
 * parts of the program are done. False: the run is stopped. */
static bool run_round(struct joint_run *r, size_t i, int thread, int64_t first, int64_t parts,
                      int64_t before) {
    struct program *p = r->p;
    struct tri_fault *fault = &r->faults[thread].fault;
    int64_t begin, end;
    program_share(parts, thread, p->threads, &begin, &end);
    if (begin == end) return true;
    if (!wait_for(r, before)) return false;
    run_item(p, i, thread, first + begin, first + end, r->step, fault);
    if (fault->failed) {
        r->faults[thread].item = i;
        stop_all(r);
        return false;
    }
    wait_for_device(p);
    int64_t done = atomic_fetch_add(&r->done, end - begin) + end - begin;
    if (done == before + parts) team_wake(r->team); /* threads wait only for whole rounds */
    return true;
}

static bool has_passed(void *arg) {
    const struct stop_wanted *w = arg;
    return atomic_load(&w->run->passed) >= w->stops || atomic_load(&w->run->failed);
}

/* Thread 0 makes the calls for the stops before item i; the others wait. *next: the first stop that
 * is not passed. False: the run is stopped. */
static bool pass_stops(struct joint_run *r, size_t i, int thread, int *next) {
    const struct program *p = r->p;
    int first = *next;
    while (*next < p->n_stops && p->stop[*next] == i) ++*next;
    if (*next == first) return true;
    struct stop_wanted w = {r, *next};
    if (thread) {
        team_wait(r->team, has_passed, &w);
        return !atomic_load(&r->failed);
    }
    bool go = wait_for(r, p->item[i].parts_before);
    for (int k = first; k < *next && go; k++) go = p->at_stop(p->stop_arg, k);
    if (!go) stop_all(r);
    else atomic_store(&r->passed, *next);
    team_wake(r->team);
    return go;
}

static void run_share(void *arg, int thread) {
    struct joint_run *r = arg;
    int stop = 0;
    spend(r->on);
    for (size_t i = r->p->begin; i <= r->p->end; i++) {
        const struct program_item *item = &r->p->item[i];
        int64_t first = item->parts[0];
        if (!pass_stops(r, i, thread, &stop) || i == r->p->end) return;
        if (!thread && r->p->before && !r->p->before(r->p->user, r->p, i)) {
            stop_all(r);
            return;
        }
        if (!run_round(r, i, thread, 0, first, item->parts_before) ||
            !run_round(r, i, thread, first, item->parts[1], item->parts_before + first))
            return;
    }
}

static bool run_jointly(struct program *p, struct team *team, const struct program_step *step) {
    struct joint_run r = {.p = p, .team = team, .step = step, .on = spent_now(),
                          .faults = p->faults,
                          .done = p->item[p->begin].parts_before};
    for (int t = 0; t < p->threads; t++) r.faults[t].fault.failed = false;
    team_run(team, run_share, &r);
    const struct tri_fault *first = NULL;
    size_t item = p->n_items;
    for (int t = 0; t < p->threads; t++)
        if (r.faults[t].fault.failed && r.faults[t].item < item) {
            item = r.faults[t].item;
            first = &r.faults[t].fault;
        }
    if (first) *step->fault = *first;
    return !atomic_load(&r.failed);
}

bool program_run_parts(const struct program *p, size_t i, int thread, int64_t first, int64_t end,
                       const struct program_step *step) {
    run_item(p, i, thread, first, end, step, step->fault);
    wait_for_device(p);
    return !step->fault->failed;
}

bool program_run(struct program *p, struct team *team, const struct program_step *step) {
    if (p->joint && team) return run_jointly(p, team, step);
    int stop = 0;
    for (size_t i = p->begin; i <= p->end; i++) {
        for (; stop < p->n_stops && p->stop[stop] == i; stop++) {
            wait_for_device(p);
            if (!p->at_stop(p->stop_arg, stop)) return false;
        }
        if (i == p->end) break;
        if (p->before && !p->before(p->user, p, i)) return false;
        run_item(p, i, 0, 0, p->item[i].parts[0] + p->item[i].parts[1], step, step->fault);
        if (step->fault->failed) return false;
        if (p->watch) p->watch(p, i);
    }
    wait_for_device(p);
    return true;
}
