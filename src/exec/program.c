/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/program.h"

#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "plan/memory.h"

static bool is_literal(const tri_node *n) { return node_is(n, "constant") || node_is(n, "array"); }

static size_t aligned(const tri_tensor *t) {
    return (base_spec_bytes(&t->spec) + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN;
}

/* Constants lie in a block of the program's own, in the order of the nodes. */
static tri_status place_literals(struct program *p) {
    for (size_t i = 0; i < p->g->n_nodes; i++)
        if (is_literal(p->g->node[i])) p->constant_bytes += aligned(p->g->node[i]->out);
    if (!p->constant_bytes) return TRI_OK;
    char *host = malloc(p->constant_bytes), *to = p->dev->allocate(p->constant_bytes);
    p->constants = to;
    if (!host || !to) {
        free(host);
        return base_no_memory("constants");
    }
    size_t at = 0;
    tri_status status = TRI_OK;
    for (size_t i = 0; i < p->g->n_nodes && !status; i++) {
        const tri_node *n = p->g->node[i];
        if (!is_literal(n)) continue;
        if (node_is(n, "constant"))
            convert_store(n->out->spec.type, host + at, 0, tri_attr_float(n, "value"));
        else if (!array_values(n, host + at))
            status = base_fail(TRI_USAGE, "%s: its text does not hold %lld numbers", n->name,
                               (long long)tri_shape_count(&n->out->spec.shape));
        p->value[n->out->id] = to + at;
        at += aligned(n->out);
    }
    if (!status) p->dev->copy_in(to, host, p->constant_bytes);
    free(host);
    return status;
}

static tri_status check_supported(const struct program *p, const tri_node *n) {
    const char *why = p->dev->declines(n);
    if (!why) return TRI_OK;
    struct text t = {0};
    node_describe(n, &t);
    base_fail(TRI_USAGE, "device %s cannot run %s: %s", p->dev->name, t.data ? t.data : n->name,
              why);
    text_free(&t);
    return TRI_USAGE;
}

static tri_status make_items(struct program *p) {
    size_t pointers = 0;
    for (size_t i = 0; i < p->g->n_nodes; i++)
        pointers += (size_t)(p->g->node[i]->n_in + p->g->node[i]->n_out);
    p->item = calloc(p->g->n_nodes + 1, sizeof *p->item);
    p->pointers = calloc(pointers + 1, sizeof(void *));
    if (!p->item || !p->pointers) return base_no_memory("a program");
    void **next = p->pointers;
    for (size_t i = 0; i < p->g->n_nodes; i++) {
        const tri_node *n = p->g->node[i];
        if (!n->n_in && !n->entry->op->kernel) continue;
        struct program_item *item = &p->item[p->n_items];
        tri_status status = check_supported(p, n);
        if (!status) status = p->dev->prepare(n, &item->kernel);
        if (status) return status;
        p->n_items++;
        item->in = (const void **)next;
        item->out = next + n->n_in;
        next += n->n_in + n->n_out;
        item->call = (tri_call){.node = n, .in = item->in, .out = item->out,
                                .state = item->kernel.state};
        if (n->entry->op->random)
            item->each = tri_shape_count(&n->out->spec.shape) / p->g->batch;
    }
    return TRI_OK;
}

static tri_status plan(struct program *p, bool outside_outputs) {
    for (size_t i = 0; i < p->g->n_nodes; i++)
        if (!p->g->node[i]->n_in && !p->g->node[i]->entry->op->kernel)
            p->offset[p->g->node[i]->out->id] = MEMORY_OUTSIDE;
    for (size_t i = 0; outside_outputs && i < p->g->n_outputs; i++)
        if (p->g->output[i].name[0] == '=')
            p->offset[p->g->output[i].tensor->id] = MEMORY_OUTSIDE;
    return memory_plan(p->g, p->offset, &p->arena_bytes) ? TRI_OK
                                                         : base_no_memory("a memory plan");
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
                (struct program_port){n->out->id, (int)tri_attr_int(n, "of")};
        else if (node_is(n, "input"))
            p->input[p->n_input++] = (struct program_port){n->out->id, -1};
    }
    for (size_t i = 0; i < p->g->n_outputs; i++)
        if (p->g->output[i].name[0] == '=')
            p->result[p->n_result++] = (struct program_port){p->g->output[i].tensor->id,
                                                             atoi(p->g->output[i].name + 1)};
    return TRI_OK;
}

tri_status program_make(const tri_graph *g, const struct dev *dev, bool outside_outputs,
                        struct program *p) {
    *p = (struct program){.g = g, .dev = dev};
    p->offset = calloc((size_t)g->n_tensors + 1, sizeof *p->offset);
    p->value = calloc((size_t)g->n_tensors + 1, sizeof *p->value);
    tri_status status =
        p->offset && p->value ? plan(p, outside_outputs) : base_no_memory("a program");
    if (!status) status = place_literals(p);
    if (!status) status = make_items(p);
    if (!status) status = find_ports(p);
    if (status) program_free(p);
    return status;
}

void program_place(struct program *p, void *arena) {
    for (int i = 0; i < p->g->n_tensors; i++)
        if (p->offset[i] != MEMORY_OUTSIDE) p->value[i] = (char *)arena + p->offset[i];
}

void program_bind(struct program *p, const tri_tensor *t, void *memory) {
    p->value[t->id] = memory;
}

bool program_run(struct program *p, const struct program_step *step) {
    for (size_t i = 0; i < p->n_items; i++) {
        struct program_item *item = &p->item[i];
        const tri_node *n = item->call.node;
        for (int k = 0; k < n->n_in; k++) item->in[k] = p->value[n->in[k]->id];
        for (int k = 0; k < n->n_out; k++) item->out[k] = p->value[n->out[k].id];
        item->call.seed = step->seed;
        item->call.step = step->step;
        item->call.first = item->each * step->sample;
        item->call.fault = step->fault;
        item->kernel.run(&item->call);
        if (step->fault->failed) return false;
    }
    if (p->dev->wait) p->dev->wait();
    return true;
}

void program_free(struct program *p) {
    for (size_t i = 0; i < p->n_items; i++)
        if (p->item[i].kernel.release) p->item[i].kernel.release(p->item[i].kernel.state);
    if (p->constants) p->dev->release(p->constants, p->constant_bytes);
    free(p->item);
    free(p->pointers);
    free(p->given);
    free(p->offset);
    free(p->value);
    *p = (struct program){0};
}
