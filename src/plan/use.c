/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/use.h"

#include "plan/layout.h"

struct split split_dim(const tri_shape *shape, int dim) {
    if (dim < 0) return (struct split){.kind = WHOLE};
    return (struct split){.kind = SPLIT, .dim = dim, .outer = 1, .extent = shape->dim[dim]};
}

struct split split_plain(const struct split *s, const tri_shape *shape) {
    return s->reach.over ? split_dim(shape, s->dim) : *s;
}

struct split operand_split(const struct factors *f, const struct factor_operand *o,
                           const tri_shape *s, const struct use *u) {
    for (int d = 0; d < o->rank; d++) {
        int64_t before = 1;
        for (int i = 0; i < o->dim[d].n; i++) {
            uint8_t factor = o->dim[d].f[i];
            struct split split = {.kind = SPLIT, .dim = d, .outer = before * u->outer,
                                  .extent = u->extent};
            if (o->dim[d].windows) {
                split.reach = f->reach[factor];
                split.places = f->extent[factor];
            }
            if (factor == u->factor) return s->dim[d] == 1 ? (struct split){.kind = WHOLE} : split;
            before *= f->extent[factor];
        }
    }
    return (struct split){.kind = WHOLE};
}

bool use_of_split(const struct factors *f, const struct factor_operand *o,
                  const struct split *s, struct use *u) {
    int64_t before = 1;
    if (s->kind != SPLIT) return false;
    if (o->dim[s->dim].windows) {
        uint8_t factor = o->dim[s->dim].f[0];
        *u = (struct use){USE_FACTOR, factor, 1, f->extent[factor]};
        return s->outer == 1 && u->extent > 1;
    }
    for (int i = 0; i < o->dim[s->dim].n; i++) {
        uint8_t factor = o->dim[s->dim].f[i];
        int64_t extent = f->extent[factor], outer = s->outer / before;
        bool fits = s->outer % before == 0 && outer * s->extent <= extent &&
                    extent % (outer * s->extent) == 0;
        if (extent > 1 && fits) {
            *u = (struct use){USE_FACTOR, factor, outer, s->extent};
            return true;
        }
        if (extent < 1) return false;
        before *= extent;
    }
    return false;
}

bool operand_has(const struct factor_operand *o, uint8_t factor) {
    for (int d = 0; d < o->rank; d++)
        for (int i = 0; i < o->dim[d].n; i++)
            if (o->dim[d].f[i] == factor) return true;
    return false;
}

bool operand_sees(const struct factor_operand *o, uint8_t factor) {
    for (int d = 0; d < o->rank; d++)
        if (o->dim[d].windows && o->dim[d].f[0] == factor) return true;
    return false;
}

bool windows_exist(const struct factors *f, uint8_t factor, int64_t parts) {
    int64_t begin, end, from, to;
    for (int64_t i = 0; i < parts; i++) {
        part_range(f->extent[factor], parts, i, &begin, &end);
        if (begin == end) return false;
        reach_range(&f->reach[factor], begin, end, f->length[factor], &from, &to);
        if (from >= to) return false;
    }
    return true;
}

struct split use_result(const tri_node *n, const struct factors *f, const struct use *u,
                        int output) {
    if (u->kind == USE_WHOLE) return (struct split){.kind = WHOLE};
    if (u->kind == USE_PARTIAL) return (struct split){.kind = PARTIAL};
    if (!operand_has(&f->out[output], u->factor))
        return (struct split){.kind = PARTIAL, .partial = (int)n->entry->op->partial};
    return operand_split(f, &f->out[output], &n->out[output].spec.shape, u);
}

/* ---- which are possible ---- */

/* Whether an operand consists of parts of the factor. One that has the factor, but length 1 there
 * (statistics of all samples), does not, unless it is broadcast ("..."). */
static bool operand_fits(const struct factors *f, const struct factor_operand *o,
                         const tri_shape *s, const struct use *u, int64_t seats) {
    struct split split = operand_split(f, o, s, u);
    if (operand_sees(o, u->factor)) return windows_exist(f, u->factor, seats);
    if (split.kind == SPLIT) return s->dim[split.dim] % (split.outer * split.extent) == 0;
    return u->factor >= FACTOR_ELLIPSIS || !operand_has(o, u->factor);
}

static bool parts_fit(const tri_node *n, const struct factors *f, const struct use *u,
                      int64_t seats) {
    const tri_op *op = n->entry->op;
    bool fits = (!op->follows && !op->part) || u->outer == 1; /* attributes state one range */
    for (int i = 0; i < n->n_out && fits; i++) {
        const tri_spec *spec = &n->out[i].spec;
        bool lacks = !operand_has(&f->out[i], u->factor);
        if (lacks && spec->type == TRI_BOOL) fits = op->partial == TRI_PARTIAL_AND;
        if (!lacks)
            fits = operand_fits(f, &f->out[i], &spec->shape, u, seats) &&
                   operand_split(f, &f->out[i], &spec->shape, u).kind == SPLIT;
    }
    for (int i = 0; i < n->n_in && fits; i++)
        fits = operand_fits(f, &f->in[i], &n->in[i]->spec.shape, u, seats);
    return fits;
}

bool use_shares(const struct use *a, const struct use *b) {
    return a->kind == USE_FACTOR && b->kind == USE_FACTOR && a->factor == b->factor;
}

bool use_agrees(const struct use *a, const struct use *b) {
    return !use_shares(a, b) || (a->outer == b->outer && a->extent == b->extent);
}

bool use_knows_place(const tri_node *n) {
    return !n->entry->op->random || n->entry->op->follows || node_attr(n, "whole");
}

bool use_fits(const tri_node *n, const struct factors *f, const struct use *u, int64_t seats) {
    return u->factor && u->extent >= seats && parts_fit(n, f, u, seats) && !f->fixed[u->factor] &&
           use_knows_place(n);
}

bool use_needs_form(const tri_node *n, const struct factors *f, const struct use *u) {
    return n->entry->op->split_form && f->fixed[u->factor];
}

bool use_adds_up(const tri_node *n, int partial, int reads, int at) {
    const tri_op *op = n->entry->op;
    const tri_type from = n->n_in ? n->in[0]->spec.type : TRI_F32, to = n->out->spec.type;
    if (!partial || !(from == to || (type_is_float(from) && to == TRI_F32))) return false;
    if (op->linear == TRI_LINEAR_JOINTLY) return partial == reads;
    bool smaller = at >= 0 && tri_shape_count(&n->out->spec.shape) <=
                                  tri_shape_count(&n->in[at]->spec.shape);
    if (partial != 1 || !smaller || op->precision == TRI_PRECISION_LOW) return false;
    return op->linear == TRI_LINEAR_EACH || (op->linear == TRI_LINEAR_FIRST && at == 0);
}

/* ---- moves ---- */

double split_move_bytes(const struct split *from, const struct split *to, double bytes, double k) {
    if (split_same(from, to, (int64_t)k) || from->kind == WHOLE) return 0;
    if (from->kind == PARTIAL) return bytes * (k - 1) / k * (to->kind == WHOLE ? 2 : 1);
    return bytes * (k - 1) / k / (to->kind == WHOLE ? 1 : k);
}
