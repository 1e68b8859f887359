/* SPDX-License-Identifier: Apache-2.0
 * Makes executables: their programs, their memory and what their tensors are bound to. */
#include "machine/machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/host.h"
#include "crew/group.h"
#include "machine/budget.h"

#define PAGE 4096

struct program *machine_program(const struct machine *m, int i) {
    if (i < 2) return (struct program *)(i ? &m->step : &m->pre);
    int thread = (i - 2) / 4, which = (i - 2) % 4, more = i - 2 - 4 * m->n_threads;
    if (more >= 0)
        return m->member && more < 2 * m->members ? &m->member[more / 2].own[more % 2] : NULL;
    struct machine_thread *w = &m->thread[thread];
    return which < 2 ? &w->count[which] : &w->lane[which - 2];
}

/* The graph of program i, of a thread; null: the program stays empty. */
static const tri_graph *graph_of(const struct machine *m, int i) {
    const struct compilation *c = &m->compilation;
    const tri_graph *lane[] = {c->count[0], c->count[1], c->lane[0], c->lane[1]};
    return i == 0 ? c->pre : i == 1 ? c->step : lane[(i - 2) % 4];
}

static struct machine_thread *thread_of(struct machine *m, int i) {
    return &m->thread[i < 2 ? 0 : (i - 2) / 4];
}

static bool is_of_members(const struct machine *m, int i) {
    return m->members > 1 && i >= 2 && (i - 2) % 4 >= 2;
}

/* ---- memory ---- */

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

enum memory_source machine_arena_source(const struct machine *m, int i) {
    const struct machine *lender = m->lender;
    bool suffices = lender && i < lender->n_threads &&
                    lender->thread[i].arena_bytes >= m->thread[i].arena_bytes;
    return suffices ? SOURCE_LENT : SOURCE_OWN;
}

/* Executables for other shapes of a run's steps use the first one's memory, except where the table
 * gives each its own. */
enum memory_source machine_source(const struct machine *m, enum region_number r) {
    bool each = region_rows[r].how & REGION_EACH;
    if (r == REGION_BUFFERS && m->other_shape) return SOURCE_LENT; /* at buffers_offset */
    if (m->shared && m->shared[r].bytes) return SOURCE_SHARED;
    return m->other_shape && !each ? SOURCE_LENT : SOURCE_OWN;
}

static size_t rows_bytes(const struct machine *m) {
    size_t bytes = 0;
    for (int i = 0; i < m->n_outputs; i++)
        if (!m->output[i].tensor) bytes += memory_round(base_spec_bytes(&m->output[i].spec));
    return bytes;
}

/* The first of several shapes has the batch buffers of all. */
static size_t buffers_bytes(const struct machine *m) {
    return m->all_buffer_bytes ? m->all_buffer_bytes : m->buffer_bytes * (size_t)m->n_buffers;
}

size_t machine_bytes(const struct machine *m, enum region_number r) {
    switch (r) {
    case REGION_SLOTS: return tree_bytes(&m->tree[0]);
    case REGION_SLOTS_OF_LANES: return tree_bytes(&m->tree[1]);
    case REGION_BOARD: return tree_board_bytes(&m->tree[0]);
    case REGION_BOARD_OF_LANES: return tree_board_bytes(&m->tree[1]);
    case REGION_MINE: return m->hosts > 0 ? (size_t)m->lanes : 0;
    case REGION_KEEPS: return m->hosts > 0 ? 2 * (size_t)m->lanes : 0; /* at most so many nodes */
    case REGION_PRE: return m->all_threads ? m->pre.memory.total : 0;
    case REGION_STEP: return m->all_threads ? m->step.memory.total : 0;
    case REGION_CARRIED: return m->carried_bytes;
    case REGION_REPLICAS: return memory_round(m->replica_bytes);
    case REGION_ROWS: return rows_bytes(m);
    case REGION_BUFFERS: return buffers_bytes(m);
    default: return 0;
    }
}

static bool provide(struct machine *m, enum region_number r) {
    enum memory_source from = machine_source(m, r);
    bool host = region_rows[r].how & REGION_HOST;
    size_t bytes = machine_bytes(m, r);
    char *at = from == SOURCE_SHARED ? region_at(m->shared, m->base, r, 0)
               : from == SOURCE_LENT ? m->lender->memory[r]
               : host                ? dev_host_allocate(bytes)
                                     : dev_allocate(m->dev, bytes);
    if (at && from == SOURCE_OWN && host)
        memset(at, 0, r == REGION_BUFFERS ? m->buffer_bytes : bytes);
    if (at && from == SOURCE_LENT && r == REGION_BUFFERS) at += m->buffers_offset;
    m->memory[r] = at;
    return at;
}

static tri_status take_regions(struct machine *m) {
    for (enum region_number r = 0; r < REGIONS; r++)
        if (machine_bytes(m, r) && !provide(m, r))
            return base_fail(TRI_FAILED, "out of memory: cannot allocate %zu bytes for %s",
                             machine_bytes(m, r), region_rows[r].what);
    return TRI_OK;
}

static void release_all(struct machine *m) {
    for (enum region_number r = 0; r < REGIONS; r++) {
        if (!m->memory[r] || machine_source(m, r) != SOURCE_OWN) continue;
        if (region_rows[r].how & REGION_HOST) dev_host_release(m->memory[r], machine_bytes(m, r));
        else dev_release(m->dev, m->memory[r], machine_bytes(m, r));
    }
    for (int i = 0; i < m->n_threads; i++)
        if (m->thread[i].arena && m->thread[i].from == SOURCE_OWN)
            dev_release(m->dev, m->thread[i].arena, m->thread[i].arena_bytes);
}

/* The first touch of a page costs more than a step's work on it, so all threads share it. */
static void touch(void *arg, int thread) {
    const struct machine *m = arg;
    size_t threads = (size_t)team_threads(m->team);
    for (int i = 0; i < m->n_threads; i++) {
        const struct machine_thread *w = &m->thread[i];
        size_t pages = w->from == SOURCE_OWN ? w->arena_bytes / PAGE : 0;
        for (size_t k = pages * (size_t)thread / threads;
             k < pages * (size_t)(thread + 1) / threads; k++)
            ((volatile char *)w->arena)[k * PAGE] = 0;
    }
}

void machine_touch(struct machine *m) {
    if (m->dev->kind->space == SPACE_HOST) team_run(m->team, touch, m);
    m->touched = true;
}

static tri_status allocate_arenas(struct machine *m) {
    for (int i = 0; i < m->n_threads; i++) {
        struct machine_thread *w = &m->thread[i];
        w->from = machine_arena_source(m, i);
        if (w->from == SOURCE_LENT) {
            w->arena = m->lender->thread[i].arena;
            continue;
        }
        w->arena = dev_allocate(m->dev, w->arena_bytes);
        if (!w->arena)
            return base_fail(TRI_FAILED, "out of memory: cannot allocate %zu bytes for "
                             "activations; a smaller --batch or more --lanes need less",
                             w->arena_bytes);
    }
    for (int i = 0; machine_program(m, i); i++) {
        struct program *p = machine_program(m, i);
        if (!p->g || is_of_members(m, i)) continue;
        void *own = thread_of(m, i)->arena, *shared = i < 2 ? m->memory[REGION_PRE + i] : NULL;
        program_place(p, shared ? shared : own, own);
    }
    return TRI_OK;
}

bool machine_is_joint(const struct machine *m) {
    return m->all_threads > m->lanes || m->members > 1;
}

/* The workers form replicas of the mesh. */
static void count_members(struct machine *m) {
    int64_t seats = mesh_seats(&m->compilation.strategies.mesh);
    int workers = m->all_threads / team_threads(m->team);
    m->members = seats < workers ? (int)seats : workers > 1 ? workers : 1;
    m->replicas = m->members > 1 ? group_count(workers, (int)seats) : 0;
}

/* Phases run one after another, so a thread's programs share one arena. With more threads than
 * lanes, all threads of a process run one lane together. */
static tri_status make_programs(struct machine *m) {
    int threads = team_threads(m->team);
    tri_status status = TRI_OK;
    int n = m->lanes < threads ? (int)m->lanes : threads;
    count_members(m);
    bool joint = machine_is_joint(m);
    if (joint) n = 1;
    m->thread = calloc((size_t)n, sizeof *m->thread);
    if (!m->thread) return base_no_memory("threads");
    m->n_threads = n;
    for (int i = 0; i < 2 + 4 * n && !status; i++) {
        struct program *p = machine_program(m, i);
        bool together = is_of_members(m, i);
        size_t *bytes = together ? &m->replica_bytes : &thread_of(m, i)->arena_bytes;
        if (!graph_of(m, i)) continue;
        unsigned how = PROGRAM_OUTPUTS | (i < 2 && m->all_threads ? PROGRAM_UNDO : 0);
        if (i == 1 && m->finite.gated)
            how |= PROGRAM_GATE | (m->compilation.lane[0] ? PROGRAM_LOSS : 0);
        status = program_make_member(graph_of(m, i), m->dev, how, i < 2 || joint ? threads : 1,
                                     together ? m->members : 1, p);
        if (status) break;
        bool shared = i < 2 && m->all_threads;
        *bytes = larger(*bytes, shared ? program_own_bytes(p) : p->memory.total);
    }
    if (!status && !(m->view = calloc((size_t)n, sizeof *m->view)))
        status = base_no_memory("threads");
    if (m->members > 1 && !status &&
        !(m->member = calloc((size_t)m->members, sizeof *m->member)))
        status = base_no_memory("members of replicas");
    if (m->finite.gated && !m->all_threads) {
        m->step.stop = &m->step.gate;
        m->step.n_stops = 1;
        m->step.at_stop = finite_at_gate;
        m->step.stop_arg = m;
    }
    for (int k = 0; k < 2 && !status; k++)
        if (m->compilation.merge[k]) status = machine_make_tree(m, k);
    return status;
}

tri_status machine_join(struct machine *m, int n) {
    struct tree *tree[CREW_MOST_SHAPES];
    CHECK(n <= CREW_MOST_SHAPES);
    for (int k = 0; k < 2; k++) {
        bool any = false;
        for (int i = 0; i < n; i++) any |= (tree[i] = &m[i].tree[k])->g != NULL;
        tri_status status = any ? tree_join(tree, n) : TRI_OK;
        if (status) return status;
    }
    m->all_buffer_bytes = 0;
    for (int i = 0; i < n; i++) {
        m[i].n_buffers = m->n_buffers;
        m[i].buffers_offset = m->all_buffer_bytes;
        m->all_buffer_bytes += m[i].buffer_bytes * (size_t)m->n_buffers;
        m->carried_bytes = larger(m->carried_bytes, m[i].carried_bytes);
        m->replica_bytes = larger(m->replica_bytes, m[i].replica_bytes);
    }
    for (int i = 1; i < n; i++) m[i].carried_bytes = m->carried_bytes;
    return TRI_OK;
}

static tri_status make_inputs(struct machine *m) {
    m->input = calloc((size_t)graph_count(m->whole, "input") + 1, sizeof *m->input);
    if (!m->input) return base_no_memory("inputs");
    for (size_t i = 0; i < m->whole->n_nodes; i++) {
        const tri_node *n = m->whole->node[i];
        if (!node_is(n, "input")) continue;
        struct run_input *in = &m->input[m->n_inputs++];
        size_t bytes = base_spec_bytes(&n->out->spec);
        *in = (struct run_input){.name = source_name(n), .spec = n->out->spec, .field = -1,
                                 .sample_bytes = bytes / (size_t)m->batch,
                                 .offset = m->buffer_bytes,
                                 .below = tri_attr_int(n, "below"),
                                 .used = m->compilation.cut.live[n->out->id]};
        m->buffer_bytes += memory_round(bytes);
    }
    return TRI_OK;
}

char *machine_buffer(const struct machine *m, int buffer) {
    return (char *)m->memory[REGION_BUFFERS] + (size_t)buffer * m->buffer_bytes;
}

static void find_inputs(struct machine *m) {
    for (int i = 0; i < m->n_inputs; i++) {
        m->input[i].host = machine_buffer(m, m->buffer) + m->input[i].offset;
        if (m->dev->kind->space == SPACE_HOST) m->input[i].memory = m->input[i].host;
    }
}

void machine_use_buffer(struct machine *m, int buffer) {
    if (buffer == m->buffer) return;
    m->buffer = buffer;
    find_inputs(m);
    for (int i = 0; i < 2; i++)
        if (machine_program(m, i)->g) machine_bind_rows(m, machine_program(m, i), NULL, 0);
}

static tri_status allocate_inputs(struct machine *m) {
    for (int i = 0; i < m->n_inputs && m->dev->kind->space != SPACE_HOST; i++) {
        m->input[i].memory = dev_allocate(m->dev, base_spec_bytes(&m->input[i].spec));
        if (!m->input[i].memory) return base_no_memory("a batch of data");
    }
    find_inputs(m);
    return TRI_OK;
}

/* Set here and not by the user; see tri_optimizer.gradients_sum. */
static bool is_lanes(const struct run_scalar *s) { return !strcmp(s->name, "lanes"); }

void machine_copy_scalars(struct machine *m, const struct machine *from) {
    for (int i = 0; m != from && i < m->n_scalars; i++) {
        const struct run_scalar *s = machine_scalar(from, m->scalar[i].name);
        if (s && !is_lanes(s)) m->scalar[i].value = s->value;
    }
}

static tri_status make_scalars(struct machine *m) {
    int n = graph_count(m->whole, "scalar");
    m->scalar = calloc((size_t)n + 1, sizeof *m->scalar);
    m->scalars = dev_allocate(m->dev, sizeof(float) * (size_t)(n + 1));
    if (!m->scalar || !m->scalars) return base_no_memory("scalars");
    for (size_t i = 0; i < m->whole->n_nodes; i++)
        if (node_is(m->whole->node[i], "scalar")) {
            m->scalar[m->n_scalars].name = source_name(m->whole->node[i]);
            m->scalar[m->n_scalars].memory = (float *)m->scalars + m->n_scalars;
            if (is_lanes(&m->scalar[m->n_scalars])) m->scalar[m->n_scalars].value = (float)m->lanes;
            if (!strcmp(m->scalar[m->n_scalars].name, "samples"))
                m->scalar[m->n_scalars].value = (float)m->batch;
            m->n_scalars++;
        }
    return TRI_OK;
}

static tri_status make_outputs(struct machine *m) {
    const tri_graph *w = m->whole;
    m->output = calloc(w->n_outputs + 1, sizeof *m->output);
    if (!m->output) return base_no_memory("outputs");
    for (size_t i = 0; i < w->n_outputs; i++) {
        const struct graph_output *o = &w->output[i];
        struct run_output *out = &m->output[m->n_outputs++];
        *out = (struct run_output){.name = o->name, .spec = o->tensor->spec, .metric = o->metric};
        const struct graph_output *here = graph_output_find(m->compilation.step, o->name);
        out->tensor = here ? here->tensor : NULL;
        if (out->tensor) continue;
        if (m->compilation.cut.split[o->tensor->id].dim && m->lanes > 1)
            return base_fail(TRI_USAGE, "output \"%s\": with %lld lanes, dimension 0 must be the "
                             "samples; --lanes 1 does not divide the batch", o->name,
                             (long long)m->lanes);
        for (int k = 0; k < m->compilation.n_sizes; k++)
            out->lane_bytes[k] = base_spec_bytes(
                &graph_output_find(m->compilation.lane[k], o->name)->tensor->spec);
    }
    return TRI_OK;
}

void machine_place_rows(struct machine *m, char *at) {
    for (int i = 0; i < m->n_outputs; i++) {
        struct run_output *out = &m->output[i];
        if (out->tensor) continue;
        out->memory = at;
        at += memory_round(base_spec_bytes(&out->spec));
    }
}

tri_status machine_keep_outputs(struct machine *m) {
    for (int i = 0; i < m->n_outputs; i++) {
        struct run_output *out = &m->output[i];
        size_t bytes = base_spec_bytes(&out->spec);
        if (!out->tensor || !out->memory || out->memory == out->owned) continue;
        if (!out->owned && !(out->owned = dev_allocate(m->dev, bytes)))
            return base_no_memory("outputs");
        dev_copy(m->dev, out->owned, out->memory, bytes);
        out->memory = out->owned;
    }
    return TRI_OK;
}

static void plan_carried(struct machine *m) {
    const tri_graph *g = m->compilation.pre;
    for (size_t i = 0; g && i < g->n_outputs; i++)
        m->carried_bytes += memory_bytes(g->output[i].tensor);
}

static void bind_givens(struct program *p, int of, void *memory) {
    for (int i = 0; i < p->n_given; i++)
        if (p->given[i].of == of) program_bind(p, p->given[i].tensor, memory);
}

/* Results of pre are outside the arena, which the lanes use next. */
static void place_carried(struct machine *m) {
    const tri_graph *g = m->compilation.pre;
    char *at = m->memory[REGION_CARRIED];
    for (size_t i = 0; g && i < g->n_outputs; at += memory_bytes(g->output[i++].tensor))
        program_bind(&m->pre, g->output[i].tensor->id, at);
}

static void bind_carried(struct machine *m, struct program *p) {
    const tri_graph *g = m->compilation.pre;
    char *at = m->memory[REGION_CARRIED];
    for (size_t i = 0; g && i < g->n_outputs; at += memory_bytes(g->output[i++].tensor))
        bind_givens(p, g->output[i].of, at);
}

void machine_bind_rows(const struct machine *m, struct program *p, char *buffer, int64_t first) {
    for (int i = 0; i < p->n_input; i++) {
        const struct run_input *in = &m->input[p->input[i].of];
        char *rows = buffer ? buffer + in->offset : in->memory;
        program_bind(p, p->input[i].tensor, rows + (size_t)first * in->sample_bytes);
    }
}

static void bind_sources(struct machine *m, struct program *p) {
    for (size_t i = 0; i < p->g->n_nodes; i++) {
        const tri_node *n = p->g->node[i];
        if (node_is_stored(n)) {
            program_bind(p, n->out->id, store_find(m->store, source_name(n))->memory);
        } else if (node_is(n, "view")) {
            char *at = store_find(m->store, tri_attr_text(n, "name"))->memory;
            size_t first = (size_t)tri_attr_int(n, "first");
            program_bind(p, n->out->id, at + first * tri_type_size(n->out->spec.type));
        } else if (node_is(n, "scalar")) {
            for (int k = 0; k < m->n_scalars; k++)
                if (!strcmp(m->scalar[k].name, source_name(n)))
                    program_bind(p, n->out->id, m->scalar[k].memory);
        }
    }
    for (size_t i = 0, k = 0; i < p->g->n_nodes; i++)
        if (node_is(p->g->node[i], "input"))
            p->input[k++].of = (int)(machine_input(m, source_name(p->g->node[i])) - m->input);
    machine_bind_rows(m, p, NULL, 0);
}

void machine_bind(struct machine *m, struct program *p) {
    bind_sources(m, p);
    if (p != &m->pre) bind_carried(m, p);
}

/* Updates whose value is not in the target's place. */
static tri_status make_updates(struct machine *m) {
    const tri_graph *g = m->compilation.step;
    m->update = calloc(g->n_updates + 1, sizeof *m->update);
    if (!m->update) return base_no_memory("updates");
    for (size_t i = 0; i < g->n_updates; i++) {
        const struct graph_update *u = &g->update[i];
        if (m->step.memory.root[u->value->id] == m->step.memory.root[u->target->id]) continue;
        m->update[m->n_updates++] = (struct run_update){
            .target = store_find(m->store, source_name(u->target->node)),
            .value = u->value->id,
            .condition = u->condition ? u->condition->id : -1};
    }
    return TRI_OK;
}

tri_status machine_plan(tri_graph *model, const tri_options *o, const struct machine_place *place,
                        struct machine *m) {
    const size_t heap = host_heap();
    *m = (struct machine){.dev = place->dev, .team = place->team, .store = place->store,
                          .lender = place->lender,
                          .previous = place->previous ? place->previous : place->lender,
                          .other_shape = place->other_shape, .all_threads = place->all_threads,
                          .hosts = place->hosts, .weight = place->weight, .paths = place->paths,
                          .auditors = place->auditors,
                          .processes = place->processes ? place->processes : 1, .compiled = true};
    m->options = *o;
    m->compilation = (struct compilation){.options = &m->options, .model = model,
                                          .all_threads = place->all_threads,
                                          .hosts = place->hosts, .sums_whole = place->paths,
                                          .given_levels = place->levels,
                                          .apart = place->apart,
                                          .target = place->dev->kind->target};
    tri_status status = passes_run(&m->compilation, NULL);
    m->whole = m->compilation.whole;
    m->lanes = m->compilation.lanes;
    m->batch = m->whole ? m->whole->batch : 0;
    if (!status && !m->store->entry) status = store_list(model, m->whole, m->dev, m->store);
    if (!status) finite_find(m);
    if (!status) status = make_programs(m);
    if (!status) status = make_inputs(m);
    if (!status) status = make_outputs(m);
    if (!status) plan_carried(m);
    m->n_buffers = o->forward || o->data_threads < 0 ? 1 : MACHINE_BUFFERS;
    const size_t now = host_heap();
    m->described = now > heap ? now - heap : 0;
    if (status) machine_free(m);
    return status;
}

tri_status machine_allocate(struct machine *m, const tri_options *o) {
    tri_status status = TRI_OK;
    if (!m->store->block) {
        status = store_place(m->store, NULL);
        if (!status) status = store_fill(m->store, o->seed, m->team, NULL, 0);
    }
    if (!status) status = take_regions(m);
    if (!status) status = allocate_arenas(m);
    for (int k = 0; k < 2 && !status; k++) {
        tree_bind(&m->tree[k], m->memory[REGION_SLOTS + k], m->memory[REGION_BOARD + k]);
        m->tree[k].values = m->store->block;
        if (m->hosts > 0)
            tree_bind_hosts(&m->tree[k], m->memory[REGION_MINE],
                            region_at(m->shared, m->base, REGION_KEEPS, k));
    }
    if (!status) status = allocate_inputs(m);
    if (!status && !m->shared) machine_place_rows(m, m->memory[REGION_ROWS]);
    if (!status) place_carried(m);
    if (!status) status = make_scalars(m);
    if (!status) status = make_updates(m);
    for (int i = 0; machine_program(m, i) && !status; i++)
        if (machine_program(m, i)->g) machine_bind(m, machine_program(m, i));
    if (!status && !m->shared) machine_touch(m);
    if (status) machine_free(m);
    return status;
}

tri_status machine_make(tri_graph *model, const tri_options *o, const struct machine_place *place,
                        struct machine *m) {
    tri_status status = machine_plan(model, o, place, m);
    return status ? status : machine_allocate(m, o);
}

void machine_free(struct machine *m) {
    if (!m->compiled) return;
    machine_free_members(m);
    for (int i = 0; machine_program(m, i); i++)
        if (machine_program(m, i)->g) program_free(machine_program(m, i));
    for (int i = 0; i < m->n_inputs && m->dev->kind->space != SPACE_HOST; i++)
        if (m->input[i].memory)
            dev_release(m->dev, m->input[i].memory, base_spec_bytes(&m->input[i].spec));
    for (int i = 0; i < m->n_outputs; i++)
        if (m->output[i].owned)
            dev_release(m->dev, m->output[i].owned, base_spec_bytes(&m->output[i].spec));
    release_all(m);
    for (int k = 0; k < 2; k++) tree_free(&m->tree[k]);
    pipeline_free(&m->pipeline);
    pipeline_times_free(&m->times);
    free(m->view);
    free(m->thread);
    free(m->member);
    if (m->scalars) dev_release(m->dev, m->scalars, sizeof(float) * (size_t)(m->n_scalars + 1));
    free(m->input);
    free(m->output);
    free(m->scalar);
    free(m->update);
    passes_free(&m->compilation);
    *m = (struct machine){0};
}

/* ---- looking up ---- */

struct run_output *machine_output(const struct machine *m, const char *name) {
    for (int i = 0; name && i < m->n_outputs; i++)
        if (!strcmp(m->output[i].name, name)) return &m->output[i];
    return NULL;
}

struct run_scalar *machine_scalar(const struct machine *m, const char *name) {
    for (int i = 0; name && i < m->n_scalars; i++)
        if (!strcmp(m->scalar[i].name, name)) return &m->scalar[i];
    return NULL;
}

struct run_input *machine_input(const struct machine *m, const char *name) {
    for (int i = 0; name && i < m->n_inputs; i++)
        if (!strcmp(m->input[i].name, name)) return &m->input[i];
    return NULL;
}

double machine_value(const struct machine *m, const struct run_output *o) {
    if (m->shared && o && !o->spec.shape.rank) return o->value;
    return machine_scalar_now(m, o);
}

double machine_scalar_now(const struct machine *m, const struct run_output *o) {
    char raw[8];
    if (!o || !o->memory || o->spec.shape.rank) return NAN;
    dev_copy_out(m->dev, raw, o->memory, base_spec_bytes(&o->spec));
    return convert_load(o->spec.type, raw, 0);
}
