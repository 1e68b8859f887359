/* SPDX-License-Identifier: Apache-2.0
 * The programs of a step put together: memory, bindings, and the step itself. */
#include <stdlib.h>
#include <string.h>

#include "exec/run.h"
#include "plan/memory.h"

static size_t aligned(const tri_spec *spec) {
    return (base_spec_bytes(spec) + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN;
}

/* ---- making ---- */

struct program *machine_program(struct machine *m, int i) {
    struct program *all[] = {&m->pre, &m->step, &m->count[0], &m->count[1], &m->lane[0],
                             &m->lane[1]};
    return i < (int)COUNT(all) ? all[i] : NULL;
}

static tri_status make_programs(struct machine *m) {
    struct compilation *c = &m->compilation;
    const tri_graph *graphs[] = {c->pre, c->step, c->count[0], c->count[1], c->lane[0],
                                 c->lane[1]};
    tri_status status = TRI_OK;
    for (int i = 0; machine_program(m, i) && !status; i++) {
        if (!graphs[i]) continue;
        status = program_make(graphs[i], m->dev, true, 1, machine_program(m, i));
        if (!status && machine_program(m, i)->memory.total > m->arena_bytes)
            m->arena_bytes = machine_program(m, i)->memory.total;
    }
    for (int k = 0; k < 2 && !status; k++)
        if (c->merge[k]) status = tree_make(c->merge[k], m->dev, m->lanes, &m->tree[k]);
    if (status) return status;
    /* The phases run one after the other: one arena serves them all. */
    m->arena = m->dev->allocate(m->arena_bytes);
    if (!m->arena)
        return base_fail(TRI_FAILED, "out of memory for %zu bytes of activations; a smaller "
                         "--batch or more --lanes need less", m->arena_bytes);
    for (int i = 0; machine_program(m, i); i++)
        if (machine_program(m, i)->g) program_place(machine_program(m, i), m->arena);
    return TRI_OK;
}

static int count_nodes(const tri_graph *g, const char *op) {
    int n = 0;
    for (size_t i = 0; i < g->n_nodes; i++) n += node_is(g->node[i], op);
    return n;
}

static tri_status make_inputs(struct machine *m) {
    m->input = calloc((size_t)count_nodes(m->whole, "input") + 1, sizeof *m->input);
    if (!m->input) return base_no_memory("inputs");
    for (size_t i = 0; i < m->whole->n_nodes; i++) {
        const tri_node *n = m->whole->node[i];
        if (!node_is(n, "input")) continue;
        struct run_input *in = &m->input[m->n_inputs++];
        size_t bytes = base_spec_bytes(&n->out->spec);
        *in = (struct run_input){.name = source_name(n), .spec = n->out->spec, .field = -1,
                                 .sample_bytes = bytes / (size_t)m->batch,
                                 .below = tri_attr_int(n, "below")};
        in->memory = m->dev->allocate(bytes);
        in->host = m->dev->space == SPACE_HOST ? in->memory : malloc(bytes);
        if (!in->memory || !in->host) return base_no_memory("a batch of data");
        memset(in->host, 0, bytes);
    }
    return TRI_OK;
}

static tri_status make_scalars(struct machine *m) {
    int n = count_nodes(m->whole, "scalar");
    m->scalar = calloc((size_t)n + 1, sizeof *m->scalar);
    m->scalars = m->dev->allocate(sizeof(float) * (size_t)(n + 1));
    if (!m->scalar || !m->scalars) return base_no_memory("scalars");
    for (size_t i = 0; i < m->whole->n_nodes; i++)
        if (node_is(m->whole->node[i], "scalar")) {
            m->scalar[m->n_scalars].name = source_name(m->whole->node[i]);
            m->scalar[m->n_scalars].memory = (float *)m->scalars + m->n_scalars;
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
        if (m->compilation.cut.layout[o->tensor->id].dim)
            return base_fail(TRI_USAGE, "output \"%s\": with %lld lanes the samples must be its "
                             "dimension 0; --lanes 1 keeps the batch whole", o->name,
                             (long long)m->lanes);
        out->owned = out->memory = m->dev->allocate(base_spec_bytes(&out->spec));
        if (!out->owned) return base_no_memory("outputs");
    }
    return TRI_OK;
}

/* The results of pre outlive the arena's reuse by the lanes. */
static tri_status make_carried(struct machine *m) {
    const tri_graph *g = m->compilation.pre;
    if (!g) return TRI_OK;
    for (size_t i = 0; i < g->n_outputs; i++)
        m->carried_bytes += aligned(&g->output[i].tensor->spec);
    m->carried = m->dev->allocate(m->carried_bytes);
    if (!m->carried) return base_no_memory("what is computed before the lanes");
    char *at = m->carried;
    for (size_t i = 0; i < g->n_outputs; i++) {
        const tri_tensor *t = g->output[i].tensor;
        int id = atoi(g->output[i].name + 1);
        program_bind(&m->pre, t, at);
        for (int k = 0; machine_program(m, k); k++) {
            struct program *p = machine_program(m, k);
            for (size_t j = 0; p->g && p != &m->pre && j < p->g->n_nodes; j++)
                if (node_is(p->g->node[j], "given") && tri_attr_int(p->g->node[j], "of") == id)
                    program_bind(p, p->g->node[j]->out, at);
        }
        at += aligned(&t->spec);
    }
    return TRI_OK;
}

/* Lanes take their rows of the batch: those from sample `first` on. */
static void bind_rows(struct machine *m, struct program *p, int64_t first) {
    for (int i = 0; i < p->n_input; i++) {
        const struct run_input *in = &m->input[p->input[i].of];
        p->value[p->input[i].tensor] = (char *)in->memory + (size_t)first * in->sample_bytes;
    }
}

static void bind_sources(struct machine *m, const struct store *store, struct program *p) {
    for (size_t i = 0; i < p->g->n_nodes; i++) {
        const tri_node *n = p->g->node[i];
        if (node_is_stored(n)) {
            program_bind(p, n->out, store_find(store, source_name(n))->memory);
        } else if (node_is(n, "scalar")) {
            for (int k = 0; k < m->n_scalars; k++)
                if (!strcmp(m->scalar[k].name, source_name(n)))
                    program_bind(p, n->out, m->scalar[k].memory);
        }
    }
    for (size_t i = 0, k = 0; i < p->g->n_nodes; i++)
        if (node_is(p->g->node[i], "input"))
            p->input[k++].of = (int)(machine_input(m, source_name(p->g->node[i])) - m->input);
    bind_rows(m, p, 0);
}

static tri_status make_updates(struct machine *m, const struct store *store) {
    const tri_graph *g = m->compilation.step;
    m->update = calloc(g->n_updates + 1, sizeof *m->update);
    if (!m->update) return base_no_memory("updates");
    for (size_t i = 0; i < g->n_updates; i++)
        m->update[m->n_updates++] = (struct run_update){
            .target = store_find(store, source_name(g->update[i].target->node)),
            .value = g->update[i].value->id,
            .condition = g->update[i].condition ? g->update[i].condition->id : -1};
    return TRI_OK;
}

tri_status machine_make(tri_graph *model, const tri_options *o, const struct dev *dev,
                        struct store *store, struct machine *m) {
    *m = (struct machine){.dev = dev, .compiled = true};
    m->compilation = (struct compilation){.options = o, .model = model};
    tri_status status = passes_run(&m->compilation, NULL);
    m->whole = m->compilation.whole;
    m->lanes = m->compilation.lanes;
    m->batch = m->whole ? m->whole->batch : 0;
    if (!status && !store->entry) status = store_make(model, dev, o->seed, store);
    if (!status) status = make_programs(m);
    if (!status) status = make_inputs(m);
    if (!status) status = make_scalars(m);
    if (!status) status = make_outputs(m);
    if (!status) status = make_carried(m);
    if (!status) status = make_updates(m, store);
    for (int i = 0; machine_program(m, i) && !status; i++)
        if (machine_program(m, i)->g) bind_sources(m, store, machine_program(m, i));
    if (status) machine_free(m);
    return status;
}

void machine_free(struct machine *m) {
    if (!m->compiled) return;
    for (int i = 0; machine_program(m, i); i++)
        if (machine_program(m, i)->g) program_free(machine_program(m, i));
    for (int k = 0; k < 2; k++)
        if (m->tree[k].g) tree_free(&m->tree[k]);
    for (int i = 0; i < m->n_inputs; i++) {
        struct run_input *in = &m->input[i];
        if (in->host != in->memory) free(in->host);
        if (in->memory) m->dev->release(in->memory, base_spec_bytes(&in->spec));
    }
    for (int i = 0; i < m->n_outputs; i++)
        if (m->output[i].owned)
            m->dev->release(m->output[i].owned, base_spec_bytes(&m->output[i].spec));
    if (m->arena) m->dev->release(m->arena, m->arena_bytes);
    if (m->carried) m->dev->release(m->carried, m->carried_bytes);
    if (m->scalars) m->dev->release(m->scalars, sizeof(float) * (size_t)(m->n_scalars + 1));
    free(m->input);
    free(m->output);
    free(m->scalar);
    free(m->update);
    passes_free(&m->compilation);
    *m = (struct machine){0};
}

/* ---- one step ---- */

/* What a lane gives of outputs that are split over the samples goes behind what the lanes before
 * it gave: rows of samples, or of groups of them. */
static void collect_rows(struct machine *m, const struct program *p) {
    for (int i = 0; i < m->n_outputs; i++) {
        struct run_output *o = &m->output[i];
        if (!o->owned) continue;
        const tri_tensor *t = graph_output_find(p->g, o->name)->tensor;
        size_t bytes = base_spec_bytes(&t->spec);
        m->dev->copy((char *)o->owned + o->filled, program_value(p, t->id), bytes);
        o->filled += bytes;
    }
}

/* Runs a phase for every lane and sums what they yield; the sums are bound where they are used. */
static bool run_lanes_of(struct machine *m, int k, struct program *sizes,
                         struct program_step *step) {
    struct tree *tree = &m->tree[k];
    tree_begin(tree);
    for (int i = 0; i < m->n_outputs; i++) m->output[i].filled = 0;
    for (int64_t i = 0; i < m->lanes; i++) {
        int64_t first = lane_first(m->batch, m->lanes, i);
        int64_t samples = lane_samples(m->batch, m->lanes, i);
        struct program *p = &sizes[samples == m->compilation.samples[0] ? 0 : 1];
        char *slot = tree_slot(tree);
        step->sample = first;
        bind_rows(m, p, first);
        tree_bind_outputs(tree, p, slot);
        if (!program_run(p, NULL, step)) return false;
        if (k == 1) collect_rows(m, p);
        if (!tree_put(tree, slot, step)) return false;
    }
    step->sample = 0;
    char *sums = tree_end(tree, step);
    if (!sums) return false;
    for (int i = 0; machine_program(m, i); i++)
        if (machine_program(m, i)->g) tree_bind_givens(tree, machine_program(m, i), sums);
    return true;
}

static void apply_updates(struct machine *m) {
    for (int i = 0; i < m->n_updates; i++) {
        const struct run_update *u = &m->update[i];
        bool go = true;
        if (u->condition >= 0) m->dev->copy_out(&go, program_value(&m->step, u->condition), sizeof go);
        if (go && program_value(&m->step, u->value) != u->target->memory)
            m->dev->copy(u->target->memory, program_value(&m->step, u->value),
                         base_spec_bytes(&u->target->spec));
    }
}

bool machine_step(struct machine *m, uint64_t seed, int64_t number, struct tri_fault *fault) {
    struct program_step step = {.seed = seed, .step = number, .fault = fault};
    const struct compilation *c = &m->compilation;
    for (int i = 0; i < m->n_scalars; i++)
        m->dev->copy_in(m->scalar[i].memory, &m->scalar[i].value, sizeof(float));
    if (c->count[0] && !run_lanes_of(m, 0, m->count, &step)) return false;
    if (c->pre && !program_run(&m->pre, NULL, &step)) return false;
    if (c->lane[0] && !run_lanes_of(m, 1, m->lane, &step)) return false;
    if (!program_run(&m->step, NULL, &step)) return false;
    for (int i = 0; i < m->n_outputs; i++)
        if (m->output[i].tensor) m->output[i].memory = program_value(&m->step, m->output[i].tensor->id);
    apply_updates(m);
    return true;
}

struct run_output *machine_output(const struct machine *m, const char *name) {
    for (int i = 0; name && i < m->n_outputs; i++)
        if (!strcmp(m->output[i].name, name)) return &m->output[i];
    return NULL;
}

struct run_input *machine_input(const struct machine *m, const char *name) {
    for (int i = 0; name && i < m->n_inputs; i++)
        if (!strcmp(m->input[i].name, name)) return &m->input[i];
    return NULL;
}
