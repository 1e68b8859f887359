/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/tree.h"

#include <stdlib.h>
#include <string.h>

/* ---- making ---- */

static bool place_roots(struct tree *t) {
    const struct program *p = &t->merge[0];
    for (int i = 0; i < p->n_result; i++)
        if (p->result[i].of >= t->n_offsets) t->n_offsets = p->result[i].of + 1;
    t->offset = malloc(((size_t)t->n_offsets + 1) * sizeof *t->offset);
    if (!t->offset) return false;
    for (int i = 0; i < t->n_offsets; i++) t->offset[i] = TREE_NONE;
    t->slot_bytes = MEMORY_ALIGN; /* slots must differ even if nothing is summed */
    for (int i = 0; i < p->n_result; i++) {
        t->offset[p->result[i].of] = t->slot_bytes;
        t->slot_bytes += memory_bytes(t->g->output[i].tensor);
    }
    return true;
}

tri_status tree_make(const tri_graph *merge, const struct dev *dev, int64_t lanes, int levels,
                     int threads, int all_threads, struct tree *t) {
    *t = (struct tree){.g = merge, .all_threads = all_threads};
    t->merge = calloc((size_t)threads, sizeof *t->merge);
    tri_status status = t->merge ? lane_tree_make(lanes, levels, &t->shape)
                                 : base_no_memory("the tree");
    if (!status)
        t->n_slots = board_waiting(&t->shape, all_threads) + board_held(&t->shape, all_threads, 1);
    for (; !status && t->threads < threads; t->threads++)
        status = program_make(merge, dev, PROGRAM_OUTPUTS, 1, &t->merge[t->threads]);
    if (!status && !place_roots(t)) status = base_no_memory("the tree");
    tree_place(t, NULL, NULL);
    if (status) tree_free(t);
    return status;
}

size_t tree_bytes(const struct tree *t) { return t->slot_bytes * (size_t)t->n_slots; }

static int nodes_of(const struct tree *t) { return t->nodes ? t->nodes : t->shape.n_nodes; }
size_t tree_board_bytes(const struct tree *t) {
    return sizeof(claim_word) * ((size_t)nodes_of(t) + (size_t)t->n_slots);
}

void tree_place(struct tree *t, void *slots, void *board) {
    t->slots = slots;
    const struct board_words words = {board, board ? (claim_word *)board + nodes_of(t) : NULL,
                                      nodes_of(t), t->n_slots};
    board_bind(&t->board, &t->shape, &words, t->first, t->all_threads);
}

void tree_join(struct tree *const *t, int n) {
    int nodes = 0, slots = 0;
    size_t bytes = 0;
    for (int i = 0; i < n; i++) {
        t[i]->first = nodes;
        nodes += t[i]->shape.n_nodes;
        if (t[i]->n_slots > slots) slots = t[i]->n_slots;
        if (t[i]->slot_bytes > bytes) bytes = t[i]->slot_bytes;
    }
    for (int i = 0; i < n; i++) {
        t[i]->nodes = nodes;
        t[i]->n_slots = slots;
        t[i]->slot_bytes = bytes;
    }
}

void tree_free(struct tree *t) {
    for (int i = 0; i < t->threads; i++) program_free(&t->merge[i]);
    lane_tree_free(&t->shape);
    free(t->merge);
    free(t->offset);
    *t = (struct tree){0};
}

/* ---- binding ---- */

/* Null: this tree does not sum the tensor. */
static char *root(const struct tree *t, char *slot, int of) {
    return of < t->n_offsets && t->offset[of] != TREE_NONE ? slot + t->offset[of] : NULL;
}

static char *slot_at(const struct tree *t, int i) { return t->slots + t->slot_bytes * (size_t)i; }

static char *slot_of(struct tree *t, int node) {
    return slot_at(t, board_slot_of(&t->board, node));
}

void tree_bind_outputs(const struct tree *t, struct program *p, char *slot) {
    for (int i = 0; i < p->n_result; i++) {
        char *at = root(t, slot, p->result[i].of);
        if (at) program_bind(p, p->result[i].tensor, at);
    }
}

void tree_bind_tops(struct tree *t, struct program *p) {
    for (int i = 0; i < p->n_given; i++) {
        const struct program_port *port = &p->given[i];
        if (port->top >= t->shape.n_tops) continue;
        char *at = root(t, slot_of(t, t->shape.top[port->top]), port->of);
        if (at) program_bind(p, port->tensor, at);
    }
}

/* ---- summing ---- */

char *tree_slot(struct tree *t, const struct tree_thread *h, int lane) {
    return slot_at(t, board_take(&t->board, h->step, h->thread, lane));
}

static bool merge(struct tree *t, struct program *p, char *left, char *right, char *sum,
                  const struct program_step *step) {
    for (int i = 0; i < p->n_given; i++) {
        int of = p->given[i].of;
        program_bind(p, p->given[i].tensor, root(t, of % 2 ? right : left, of / 2));
    }
    tree_bind_outputs(t, p, sum);
    return program_run(p, NULL, step);
}

bool tree_sum(struct tree *t, const struct tree_thread *h, int node,
              const struct program_step *step) {
    for (; node >= 0; node = board_meet(&t->board, h->step, h->thread, node)) {
        const struct lane_node *n = &t->shape.node[node];
        char *left = slot_of(t, n->left), *right = slot_of(t, n->right);
        int slot = board_take(&t->board, h->step, h->thread, node);
        if (!merge(t, &t->merge[h->local], left, right, slot_at(t, slot), step)) return false;
        if (!board_publish(&t->board, h->step, h->thread, node, slot)) return true;
    }
    return true;
}

static int number_of(const struct tree *t, const char *slot) {
    return (int)((size_t)(slot - t->slots) / t->slot_bytes);
}

void tree_drop(struct tree *t, const struct tree_thread *h, int lane, const char *slot) {
    board_drop(&t->board, h->step, h->thread, lane, number_of(t, slot));
}

void tree_fail(struct tree *t, const struct tree_thread *h, int lane, const char *slot) {
    board_drop(&t->board, h->step, h->thread, lane, number_of(t, slot));
    board_fail(&t->board, h->step, h->thread, lane);
}

bool tree_publish(struct tree *t, const struct tree_thread *h, int lane, const char *slot) {
    return board_publish(&t->board, h->step, h->thread, lane, number_of(t, slot));
}

bool tree_put(struct tree *t, const struct tree_thread *h, int lane, const char *slot,
              const struct program_step *step) {
    if (!tree_publish(t, h, lane, slot)) return false;
    tree_sum(t, h, board_meet(&t->board, h->step, h->thread, lane), step);
    return true;
}
