/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/cpu/tail.h"

#include "dev/cpu/chain.h"

struct tail {
    const struct unit *unit;
    const tri_node *node; /* the head */
    struct kernel head;
    struct chain *chain;
    struct chain_io io;   /* of the current part */
    bool stores;
    size_t spare;         /* bytes of scratch for outputs of the head that nobody uses */
    int *in, *out;        /* per input and output of the head: that of the unit; -1: none */
    const void **inputs;
    void **outputs;
};

/* The only node that cannot be a member of a chain; null if there is none or more than one. */
static const tri_node *head_of(const tri_node *const *node, int n) {
    const tri_node *head = NULL;
    for (int i = 0; i < n; i++) {
        if (chain_takes(node[i])) continue;
        if (head) return NULL;
        head = node[i];
    }
    return head;
}

/* A member uses only output 0 of the head; the head uses nothing of a member. */
static bool joined(const tri_node *head, const tri_node *member) {
    for (int i = 0; i < member->n_in; i++)
        if (member->in[i]->node == head && member->in[i]->index) return false;
    for (int i = 0; i < head->n_in; i++)
        if (head->in[i]->node == member) return false;
    return true;
}

bool tail_fits(const tri_node *const *node, int n) {
    const tri_node *member[UNIT_MOST], *head = head_of(node, n);
    int members = 0;
    if (!head || n > UNIT_MOST || !cpu_leads(head)) return false;
    for (int i = 0; i < n; i++) {
        if (node[i] == head) continue;
        if (!joined(head, node[i])) return false;
        member[members++] = node[i];
    }
    return chain_fits(member, members, head->out);
}

/* ---- running ---- */

bool tail_stores(const struct tail *t) { return t->stores; }

void tail_run(const struct tail *t, const void *made, int64_t first, int64_t n) {
    struct chain_io io = t->io;
    io.made = made;
    io.made_first = first;
    chain_run(t->chain, &io, first, n);
}

static size_t spare_bytes(const tri_node *head, int i) {
    return (base_spec_bytes(cpu_out(head, i)) + 63) / 64 * 64;
}

static void run(const tri_call *c) {
    struct tail *t = c->state;
    char *spare = c->scratch;
    tri_call inner = *c;
    for (int i = 0; i < t->node->n_in; i++) t->inputs[i] = c->in[t->in[i]];
    for (int i = 0; i < t->node->n_out; i++) {
        t->outputs[i] = t->out[i] >= 0 ? c->out[t->out[i]] : i ? spare : NULL;
        if (i && t->out[i] < 0) spare += spare_bytes(t->node, i);
    }
    t->io = (struct chain_io){.in = c->in, .out = c->out};
    inner.node = t->node;
    inner.state = t->head.state;
    inner.in = t->inputs;
    inner.out = t->outputs;
    if (t->spare) inner.scratch = spare;
    t->head.run(&inner);
}

/* ---- preparation ---- */

/* Other parts of the head may still need what it reads. */
static bool shares(const void *state, int out, int in) {
    const struct tail *t = state;
    for (int i = 0; i < t->node->n_in; i++)
        if (t->in[i] == in && node_reads(t->node, i)) return false;
    return t->unit->out[out]->node != t->node && chain_shares(t->chain, out, in);
}

static void release(void *state) {
    struct tail *t = state;
    if (t->head.release) t->head.release(t->head.state);
    free(t->chain);
    free(t->in);
    free(t->inputs);
    free(t->outputs);
    free(t);
}

static tri_status find_places(struct tail *t) {
    const tri_node *head = t->node;
    int n_in = head->n_in, n_out = head->n_out;
    t->in = calloc((size_t)(n_in + n_out), sizeof *t->in);
    t->inputs = calloc((size_t)n_in, sizeof *t->inputs);
    t->outputs = calloc((size_t)n_out, sizeof *t->outputs);
    if (!t->in || !t->inputs || !t->outputs) return base_no_memory(head->name);
    t->out = t->in + n_in;
    for (int i = 0; i < n_in; i++) t->in[i] = unit_in(t->unit, head->in[i]);
    for (int i = 0; i < n_out; i++) {
        t->out[i] = unit_out(t->unit, &head->out[i]);
        if (i && t->out[i] < 0) t->spare += spare_bytes(head, i);
    }
    t->stores = t->out[0] >= 0;
    return TRI_OK;
}

tri_status tail_unit(const struct unit *u, struct kernel *out) {
    struct tail *t = calloc(1, sizeof *t);
    if (!t) return base_no_memory(u->node[0]->name);
    t->unit = u;
    t->node = head_of((const tri_node *const *)u->node, u->n);
    t->head.threads = out->threads;
    tri_status status = find_places(t);
    if (!status) status = chain_make(u, t->node, t->node->out, &t->chain);
    if (!status) status = cpu_prepare_head(t->node, t, &t->head);
    if (status) {
        release(t);
        return status;
    }
    *out = t->head;
    out->run = run;
    out->state = t;
    out->release = release;
    out->shares = shares;
    out->scratch += t->spare;
    return TRI_OK;
}
