/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/explain.h"

void mesh_at(const struct mesh *m, int64_t i, int16_t at[MESH_MOST_AXES]) {
    for (int a = MESH_MOST_AXES; a-- > 0;) {
        int64_t size = a < m->n ? m->axis[a].size : 1;
        at[a] = (int16_t)(i % size);
        i /= size;
    }
}

/* ---- operators ---- */

void explain_split(const struct dist *d, const tri_node *n, struct text *out) {
    struct factors f;
    bool known = op_has_factors(n->entry->op) && factors_of(n, &f), any = false;
    out->failed |= op_has_factors(n->entry->op) && !known;
    for (int a = 0; a < d->mesh.n; a++) {
        const struct use *u = &d->use[n->id][a];
        if (u->kind == USE_WHOLE) continue;
        const char *name = u->kind == USE_PARTIAL ? "partial sums"
                           : known                ? factor_name(n, &f, u->factor)
                                                  : "?";
        text_add(out, "%s%s", any ? ", " : "", name);
        if (u->kind == USE_FACTOR && u->outer > 1) text_add(out, "/%lld", (long long)u->outer);
        text_add(out, "/%s", d->mesh.axis[a].name);
        any = true;
    }
    if (!any) text_add(out, "whole");
    if (known) factors_free(&f);
}

bool explain_per_lane(const tri_node *n) {
    return node_per_lane(n) || (n->entry->op->group_values && tri_attr_int(n, "training"));
}

tri_shape explain_slice(const struct dist *d, const tri_tensor *t, const struct layout *l,
                        const int16_t *at) {
    static const int16_t origin[MESH_MOST_AXES];
    struct refined r;
    struct box b;
    CHECK(layout_refine(&t->spec.shape, &l, 1, &d->mesh, &r) &&
          layout_box(&d->mesh, &r, l, at ? at : origin, &b));
    return box_shape(&r, &b, t->spec.shape.rank);
}

static size_t slice_bytes(const struct dist *d, const tri_tensor *t, const struct layout *l,
                          const int16_t *at) {
    tri_spec part = t->spec;
    part.shape = explain_slice(d, t, l, at);
    return base_spec_bytes(&part);
}

/* The channels of a block in which the target's kernels take the tensor, but not a seat's part of
 * it; 0: none. */
static int lost_block(const struct dist *d, const tri_tensor *t, const struct layout *l,
                      const struct format *wish) {
    if (wish->block < 1 || explain_slice(d, t, l, NULL).dim[1] % wish->block == 0) return 0;
    return wish->block;
}

static bool is_split(const struct dist *d, const tri_node *n) {
    for (int a = 0; a < d->mesh.n; a++)
        if (d->use[n->id][a].kind != USE_WHOLE) return true;
    return false;
}

void explain_warning(const struct dist *d, const struct target *target, const tri_node *n,
                     struct text *out) {
    struct format in[TRI_MAX_OUTPUTS] = {0}, made[TRI_MAX_OUTPUTS] = {0};
    bool gathers = false;
    int block = 0;
    if (target && target->formats && n->n_in <= (int)COUNT(in)) target->formats(n, in, made);
    for (int i = 0; i < n->n_in; i++) {
        const struct layout *need = dist_need(d, n, i);
        if (i < (int)COUNT(in) && !block) block = lost_block(d, n->in[i], need, &in[i]);
        gathers |= dist_moves(d, n->in[i], need);
    }
    if (!block) block = lost_block(d, n->out, &d->has[n->out->id], made);
    if (block)
        text_add(out, "a seat's channels are no multiple of %d, so that it leaves the fast kernels",
                 block);
    else if (!op_has_factors(n->entry->op) && !is_split(d, n))
        text_add(out, "its row does not say how it may be split: it is computed whole%s",
                 gathers ? ", and its inputs are gathered" : "");
}

/* ---- moves ---- */

const char *const move_kinds[MOVE_KINDS] = {"all-gather", "all-reduce", "reduce-scatter",
                                            "all-to-all", "halo exchange", "several kinds"};

enum move_kind move_kind(const struct mesh *m, const struct move *move) {
    enum move_kind kind = MOVE_KINDS;
    for (int a = 0; a < m->n; a++) {
        const struct split *f = &move->from.axis[a], *t = &move->to.axis[a];
        if (f->kind == WHOLE || split_equal(f, t)) continue;
        enum move_kind its = f->kind == PARTIAL
                                 ? (t->kind == WHOLE ? MOVE_ALL_REDUCE : MOVE_REDUCE_SCATTER)
                             : t->kind == WHOLE            ? MOVE_ALL_GATHER
                             : split_sees_neighbours(f, t) ? MOVE_HALO
                                                           : MOVE_ALL_TO_ALL;
        kind = kind == MOVE_KINDS || kind == its ? its : MOVE_MIXED;
    }
    CHECK(kind != MOVE_KINDS);
    return kind;
}

const tri_tensor *explain_tensor(const struct dist *d, const struct move *m) {
    if (m->node >= 0) return d->g->node[m->node]->in[m->input];
    size_t i = 0;
    while (d->g->output[i].tensor->id != m->tensor) i++;
    return d->g->output[i].tensor;
}

enum move_when move_when(const struct dist *d, const struct move *m) {
    if (m->node < 0) return MOVE_TO_STORE;
    return d->g->node[m->node]->backward ? MOVE_BACKWARD : MOVE_FORWARD;
}

struct move_sums explain_sums(const struct dist *d) {
    struct move_sums s = {0};
    for (size_t i = 0; i < d->n_moves; i++) {
        const struct move *m = &d->move[i];
        enum move_when when = move_when(d, m);
        enum move_kind kind = move_kind(&d->mesh, m);
        s.of[when][kind].n++;
        s.of[when][kind].bytes += (double)m->bytes;
        s.all[when].n++;
        s.all[when].bytes += (double)m->bytes;
    }
    return s;
}

/* ---- seats ---- */

bool explain_taken_apart(const struct dist *d, const tri_tensor *t) {
    for (size_t i = (size_t)t->node->id; i < d->g->n_nodes; i++) {
        const tri_node *n = d->g->node[i];
        for (int k = 0; k < n->n_in; k++)
            for (int a = 0; a < d->mesh.n && n->in[k] == t && node_reads(n, k); a++)
                if (dist_need(d, n, k)->axis[a].kind == SPLIT) return true;
    }
    return false;
}

/* What the seat reads of the tensor. `from`: the first node that could read it. */
static size_t bytes_read(const struct dist *d, const tri_tensor *t, size_t from,
                         const int16_t *at) {
    const struct layout *seen[4];
    size_t n = 0, bytes = 0, all = base_spec_bytes(&t->spec);
    for (size_t i = from; i < d->g->n_nodes && bytes < all; i++) {
        const tri_node *reader = d->g->node[i];
        for (int k = 0; k < reader->n_in; k++) {
            const struct layout *need = dist_need(d, reader, k);
            bool known = reader->in[k] != t || !node_reads(reader, k);
            for (size_t s = 0; s < n && !known; s++) known = layout_equal(seen[s], need);
            if (known) continue;
            bytes += slice_bytes(d, t, need, at);
            if (n < COUNT(seen)) seen[n++] = need;
        }
    }
    return bytes < all ? bytes : all;
}

struct seat_bytes explain_seat(const struct dist *d, const int16_t *at) {
    struct seat_bytes b = {0};
    for (size_t i = 0; i < d->g->n_nodes; i++) {
        const tri_node *n = d->g->node[i];
        if (!n->n_in) {
            *(node_is_param(n)        ? &b.params
              : node_is_stored(n)     ? &b.states
              : node_is(n, "given")   ? &b.given
                                      : &b.data) += bytes_read(d, n->out, i + 1, at);
            continue;
        }
        for (int k = 0; k < n->n_out; k++)
            b.computed += slice_bytes(d, &n->out[k], &d->has[n->out[k].id], at);
    }
    for (size_t i = 0; i < d->g->n_outputs; i++) {
        const tri_tensor *t = d->g->output[i].tensor;
        b.results += slice_bytes(d, t, &d->has[t->id], at);
    }
    return b;
}
