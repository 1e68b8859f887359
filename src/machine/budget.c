/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/budget.h"

#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "machine/buckets.h"
#include "plan/estimates.h"

/* The program with the largest arena. */
static const struct program *largest_program(const struct machine *m) {
    const struct program *best = NULL;
    for (int i = 0; machine_program(m, i); i++) {
        const struct program *p = machine_program(m, i);
        if (p->g && (!best || p->memory.total > best->memory.total)) best = p;
    }
    return best;
}

/* Executables for other shapes of a step use the first one's, whether it is shared or not. */
static bool has(const struct machine *m, enum region_number r) {
    return !m->other_shape && machine_source(m, r) != SOURCE_LENT;
}

/* Outputs that have memory of their own: gathered ones, unless processes share them; the others
 * when an evaluation takes the arena. */
static size_t output_bytes(const struct machine *m) {
    const tri_options *o = m->compilation.options;
    bool kept = !o->forward && (o->eval_data || o->eval_source);
    size_t bytes = 0;
    for (int i = 0; i < m->n_outputs; i++)
        if (m->output[i].tensor ? kept : !m->shared) bytes += base_spec_bytes(&m->output[i].spec);
    return bytes;
}

/* A thread of a worker reads a lane's samples itself if another reader is late with them. */
static size_t late_bytes(const struct machine *m) {
    bool reads = m->shared && !m->other_shape && !m->compilation.options->forward;
    return reads ? (m->buffer_bytes / (size_t)m->lanes + 1) * (size_t)m->n_threads : 0;
}

/* All but the slots for lanes that end at the same time as others, and the batch buffers for
 * reading ahead. */
static size_t used_bytes(const struct machine *m, enum region_number r) {
    const struct tree *t = &m->tree[r == REGION_SLOTS_OF_LANES];
    return r == REGION_BUFFERS ? machine_bytes(m, r) / (size_t)m->n_buffers
                               : tree_handed_bytes(t) + tree_top_bytes(t);
}

/* What a run may never touch. Memory that processes share is taken at once. */
static size_t untouched_bytes(const struct machine *m) {
    size_t bytes = late_bytes(m);
    for (enum region_number r = 0; r < REGIONS; r++)
        if (region_rows[r].how & REGION_RESERVED && machine_source(m, r) == SOURCE_OWN)
            bytes += machine_bytes(m, r) - used_bytes(m, r);
    return bytes * (size_t)m->processes;
}

#define BARE ((size_t)16 << 20)    /* a process without graphs */
#define LEAST ((size_t)64 << 20)  /* program and libraries; large graphs need more */
#define COARSE ((size_t)8 << 20)  /* so that small differences between runs do not show */

size_t budget_program(const struct machine *m) {
    size_t bytes = BARE;
    for (const struct machine *l = m; l; l = l->previous) bytes += l->described;
    bytes = (bytes + COARSE - 1) / COARSE * COARSE;
    return (bytes > LEAST ? bytes : LEAST) * (size_t)m->processes;
}

/* As ferry/mover.c makes them. */
static size_t coded_bytes(const struct machine *m) {
    size_t largest = 0;
    for (int k = 0; k < 2; k++)
        for (int b = 0; b < m->tree[k].buckets.n; b++) {
            const struct wire_map map = tree_map(&m->tree[k], b);
            const size_t bytes =
                wire_is_plain(&map) ? 0 : wire_bytes(&map, 0, wire_blocks(&map));
            if (bytes > largest) largest = bytes;
        }
    return largest * (size_t)(WIRE_CODED + m->hosts);
}

struct budget budget_of(const struct machine *m, const struct store *store) {
    struct budget b = {.carried = has(m, REGION_CARRIED) ? m->carried_bytes : 0,
                       .untouched = untouched_bytes(m)};
    for (size_t i = 0; i < store->n; i++) {
        const struct stored *e = &store->entry[i];
        *(e->of_optimizer ? &b.optimizer : e->param ? &b.parameters : &b.states) +=
            stored_bytes(e);
        if (estimate_is(e->name)) b.estimates += stored_bytes(e);
    }
    for (int i = 0; i < m->n_threads; i++)
        if (machine_arena_source(m, i) == SOURCE_OWN) b.arena += m->thread[i].arena_bytes;
    for (int i = 0; machine_program(m, i); i++) b.arena += machine_program(m, i)->constant_bytes;
    if (!m->other_shape) b.replicas = machine_bytes(m, REGION_REPLICAS) * (size_t)m->replicas;
    const struct program *p = largest_program(m);
    if (p && p->n_items) b.scratch = program_scratch(p, (size_t)p->memory.peak_item);
    for (int k = 0; k < 2; k++)
        if (has(m, REGION_SLOTS + (enum region_number)k))
            b.lane_sums += tree_bytes(&m->tree[k]) - tree_handed_bytes(&m->tree[k]);
    if (has(m, REGION_SLOTS_OF_LANES))
        b.handed = tree_handed_bytes(&m->tree[1]);
    b.shared = m->shared_bytes;
    if (machine_source(m, REGION_BUFFERS) == SOURCE_OWN)
        b.data += machine_bytes(m, REGION_BUFFERS);
    b.data += output_bytes(m) + late_bytes(m);
    b.held = m->held * (size_t)m->processes;
    b.data += m->held;
    const tri_options *o = m->compilation.options;
    if (o->ckpt || (o->load && o->ckpt_key)) b.copy = b.parameters + b.states;
    if (o->ckpt) b.copy += b.optimizer;
    if (m->hosts > 0 && !m->other_shape) b.coded = coded_bytes(m);
    b.arena *= (size_t)m->processes;
    b.data *= (size_t)m->processes;
    b.program = budget_program(m);
    b.total = b.parameters + b.states + b.optimizer + b.arena + b.replicas + b.lane_sums +
              b.handed + b.carried + b.data + b.copy + b.coded + b.shared;
    return b;
}

/* ---- the tensors at the peak ---- */

static int largest_first(const void *a, const void *b) {
    const tri_tensor *x = *(const tri_tensor *const *)a, *y = *(const tri_tensor *const *)b;
    size_t p = memory_bytes(x), q = memory_bytes(y);
    return p != q ? (p > q ? -1 : 1) : x->id - y->id;
}

size_t budget_peak(const struct machine *m, const tri_tensor **out, size_t most) {
    const struct program *p = largest_program(m);
    const tri_tensor **live = p ? calloc((size_t)p->g->n_tensors + 1, sizeof *live) : NULL;
    size_t n = 0;
    if (!live) return 0;
    for (size_t i = 0; i < p->n_items; i++)
        for (int k = 0; k < p->item[i].unit->n_out; k++) {
            const tri_tensor *t = p->item[i].unit->out[k];
            if (p->memory.root[t->id] == t->id && p->memory.offset[t->id] != MEMORY_OUTSIDE &&
                p->memory.begin[t->id] <= p->memory.peak_item &&
                p->memory.end[t->id] >= p->memory.peak_item)
                live[n++] = t;
        }
    qsort(live, n, sizeof *live, largest_first);
    for (size_t i = 0; i < n && i < most; i++) out[i] = live[i];
    free(live);
    return n;
}

/* ---- seats of a mesh ---- */

/* How the seat's bytes change before each item. Unsigned arithmetic wraps around, so these may be
 * negative numbers. */
static void seat_changes(const struct program *p, const int16_t *at, const struct touched *span,
                         size_t *change) {
    const struct memory_plan *plan = &p->memory;
    for (size_t i = 0; i < p->n_items; i++) {
        const struct unit *u = p->item[i].unit;
        for (int k = 0; k < u->n_out; k++) {
            const tri_tensor *t = u->out[k];
            if (plan->root[t->id] != t->id || plan->offset[t->id] == MEMORY_OUTSIDE ||
                !mesh_takes_part(t->node->owner, at))
                continue;
            change[plan->begin[t->id]] += memory_bytes(t);
            change[plan->end[t->id] + 1] -= memory_bytes(t);
        }
        if (!mesh_takes_part(u->node[u->n - 1]->owner, at)) continue;
        change[i] += program_scratch(p, i);
        change[i + 1] -= program_scratch(p, i);
    }
    for (int r = 0; r < p->n_result; r++) {
        const tri_tensor *t = p->result[r].is;
        if (!program_hands_over(p, r) || !mesh_takes_part(t->node->owner, at)) continue;
        change[span[r].first] += memory_bytes(t);
        change[span[r].last + 1] -= memory_bytes(t);
    }
}

size_t budget_seat(const struct machine *m, const int16_t *at) {
    const struct program *p = NULL;
    for (int i = 0; machine_program(m, i) && !p; i++)
        if (m->compilation.lane[0] && machine_program(m, i)->g == m->compilation.lane[0])
            p = machine_program(m, i);
    if (!p) return 0;
    size_t *change = calloc(p->n_items + 2, sizeof *change), live = 0, most = 0;
    struct touched *span = buckets_spans(p);
    if (change && span) seat_changes(p, at, span, change);
    else most = SIZE_MAX;
    for (size_t i = 0; i < p->n_items && most != SIZE_MAX; i++) {
        live += change[i];
        if (live > most) most = live;
    }
    free(change);
    free(span);
    return most;
}

/* ---- limits ---- */

static void least(size_t *limit, size_t value, const char **whose, const char *name) {
    if (!value || value >= *limit) return;
    *limit = value;
    *whose = name;
}

size_t budget_limit(int64_t asked, size_t held, const char **whose) {
    size_t limit = SIZE_MAX;
    struct host h;
    host_read("", &h);
    size_t available = (size_t)h.available;
    *whose = "";
    least(&limit, available ? available + held : 0, whose, "the machine's available memory");
    least(&limit, (size_t)h.limit, whose, "the limit of the cgroup");
    least(&limit, asked > 0 ? (size_t)asked : 0, whose, "--memory-limit");
    return limit;
}

/* Adds all executables that exist at the same time. *held: bytes that they have taken already. */
static size_t with_others(const struct machine *m, const struct store *store, size_t *held) {
    const struct budget b = budget_of(m, store);
    size_t total = b.total;
    *held = 0;
    for (const struct machine *l = m->previous; l; l = l->previous) {
        struct budget more = budget_of(l, store);
        size_t bytes = more.total - more.parameters - more.states - more.optimizer - more.copy;
        total += bytes;
        if (l->touched) *held += bytes;
    }
    if (m->previous && m->previous->touched) *held += b.parameters + b.states + b.optimizer;
    return total;
}

size_t budget_with_others(const struct machine *m, const struct store *store) {
    size_t held;
    return with_others(m, store, &held);
}

struct verdict budget_verdict(const struct machine *m, const struct store *store, int64_t asked) {
    size_t held;
    struct verdict v;
    v.needs = with_others(m, store, &held) + budget_program(m);
    v.limit = budget_limit(asked, held + m->held, &v.whose); /* the data is open already */
    v.fits = v.needs <= v.limit;
    return v;
}

/* ---- words ---- */

static size_t mib(size_t bytes) { return (bytes >> 20) + (bytes % (1 << 20) != 0); }

void budget_mib(size_t bytes, struct text *out) {
    const size_t n = mib(bytes);
    if (n < 1000) text_add(out, "%zu", n);
    else text_add(out, "%zu,%03zu", n / 1000, n % 1000); /* up to 999 TiB */
}

void budget_tell(const struct verdict *v, struct text *out) {
    const size_t whole = v->limit >> 20 << 20;
    text_add(out, v->fits ? "fits: " : "does not fit: ");
    budget_mib(v->needs, out);
    if (*v->whose) text_add(out, " of ");
    if (*v->whose) budget_mib(v->fits && whole < v->needs ? v->limit : whole, out);
    text_add(out, " MiB%s%s", *v->whose ? ", " : "", v->whose);
}

static size_t forward_of(const struct machine *m, const struct store *store, bool forward) {
    size_t bytes = 0;
    for (; m->previous; m = m->previous)
        if (m->options.forward == forward)
            bytes += budget_with_others(m, store) - budget_with_others(m->previous, store);
    return bytes;
}

size_t budget_parts(const struct machine *m, const struct store *store,
                    struct budget_part out[BUDGET_PARTS]) {
    const struct machine *first = m;
    while (first->previous) first = first->previous;
    const struct budget b = budget_of(first, store);
    const bool several = first->shared;
    const size_t held = b.held;
    const struct budget_part all[BUDGET_PARTS] = {
        {b.parameters, "parameters", ""},
        {b.states, "states of the network", ""},
        {b.optimizer - b.estimates, "optimizer state", ""},
        {b.estimates, "estimates of gradients", ": one for each sum that --wire topk rounds"},
        {b.arena, "activations", ": with gradients and scratch, of all threads"},
        {b.replicas, "replicas' activations", ": the same, of workers that share a lane"},
        {b.lane_sums, first->lanes > 1 ? "sums of lanes" : "gradients",
         first->lanes > 1 ? ""
         : several        ? ": all kept until the update, since a worker may die before"
                          : ": all kept until the update"},
        {b.handed, "stash", ": kept between the legs of the pipeline"},
        {b.carried, "weights in other forms", ": casts and packed ones, made before the lanes"},
        {b.data - held, several ? "outputs" : "data",
         several ? "" : ": inputs of two steps, and outputs"},
        {held, "the source of the data", ": what it and the order of samples hold"},
        {b.copy, "the copy of the store", ": for checkpoints, or as large as a sealed file"},
        {b.coded, "buffers of the ferry", ": for sums that --wire codes"},
        {b.shared, "shared", ": boards, samples, undo records, the step's activations"},
        {forward_of(m, store, false), "steps of other shapes", ": more activations"},
        {forward_of(m, store, true), "evaluations", ": inputs, outputs, more activations"},
    };
    size_t n = 0;
    for (size_t i = 0; i < BUDGET_PARTS; i++)
        if (all[i].bytes) out[n++] = all[i];
    return n;
}

static int most_first(const void *a, const void *b) {
    const struct budget_part *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes > y->bytes ? -1 : 1) : strcmp(x->what, y->what);
}

void budget_tell_most(const struct machine *m, const struct store *store, struct text *out) {
    struct budget_part part[BUDGET_PARTS + 1];
    const size_t program = budget_program(m), all = budget_with_others(m, store) + program;
    size_t n = budget_parts(m, store, part);
    part[n++] = (struct budget_part){program, "the program itself", ""};
    qsort(part, n, sizeof *part, most_first);
    for (size_t i = 0; i < n && (!i || part[i].bytes > all / 10); i++) {
        text_add(out, "%s%s: ", i ? ", " : "", part[i].what);
        budget_mib(part[i].bytes, out);
    }
    text_add(out, " MiB");
}

tri_status budget_check(const struct machine *m, const struct store *store, int64_t asked) {
    const struct verdict v = budget_verdict(m, store, asked);
    const tri_tensor *largest;
    char spec[SPEC_TEXT];
    struct text t = {0};
    if (v.fits) return TRI_OK;
    budget_tell(&v, &t);
    text_add(&t, ": ");
    budget_tell_most(m, store, &t);
    while (m->previous) m = m->previous;
    if (budget_peak(m, &largest, 1)) {
        text_add(&t, "; the largest tensor, %s of %s: ", base_spec_text(&largest->spec, spec),
                 largest->node->name);
        budget_mib(memory_bytes(largest), &t);
    }
    tri_status status = t.failed ? base_no_memory("the plan of memory")
                                 : base_fail(TRI_USAGE, "%s", t.data);
    text_free(&t);
    return status;
}
