/* SPDX-License-Identifier: Apache-2.0
 * Compares an example split along each of its factors with the unsplit example. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/opcheck.h"
#include "plan/factors.h"

/* The dimension of which the factor is the outermost, apart from factors of extent 1. -1: the
 * operand does not have the factor; -2: another factor of the dimension is further out. */
static int leads(const struct factor_operand *o, uint8_t f, const int64_t *extent) {
    for (int d = 0; d < o->rank; d++)
        for (int i = 0; i < o->dim[d].n; i++) {
            if (o->dim[d].f[i] == f) return d;
            if (extent[o->dim[d].f[i]] != 1) {
                for (int k = i + 1; k < o->dim[d].n; k++)
                    if (o->dim[d].f[k] == f) return -2;
                break;
            }
        }
    return -1;
}

/* Copies [begin, begin + length) of dimension dim from a whole tensor to its part or, if `back`,
 * from the part to the whole. */
static void move_part(const tri_shape *whole, int dim, int64_t begin, int64_t length, double *all,
                      double *part, bool back) {
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < whole->rank; i++) {
        if (i < dim) outer *= whole->dim[i];
        if (i > dim) inner *= whole->dim[i];
    }
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < length * inner; i++) {
            double *a = &all[(o * whole->dim[dim] + begin) * inner + i];
            double *p = &part[o * length * inner + i];
            *(back ? a : p) = *(back ? p : a);
        }
}

/* Joins the partial results of a part, of n elements, with those of the parts before. */
static void join(const tri_op *op, bool first, int64_t n, double *all, const double *part) {
    for (int64_t i = 0; i < n; i++) {
        double a = all[i], b = part[i];
        double joined[] = {[TRI_PARTIAL_SUM] = a + b, [TRI_PARTIAL_MAX] = a > b || a != a ? a : b,
                           [TRI_PARTIAL_AND] = a != 0 && b != 0};
        all[i] = first ? b : joined[op->partial];
    }
}

struct halves {
    const struct example *e;
    const struct factors *f;
    const tri_node *node; /* unsplit */
    uint8_t factor;
    int64_t extent;
};

/* The attributes of a random row that say which part of its output it has. */
static void place_part(const struct halves *s, int dim, int64_t begin, int64_t share, tri_attr *a) {
    const tri_shape *y = &s->node->out->spec.shape;
    if (!strcmp(a->name, "local") || !strcmp(a->name, "whole")) a->list = *y;
    if (!strcmp(a->name, "local")) a->list.dim[dim] = y->dim[dim] / s->extent * share;
    if (strcmp(a->name, "origin")) return;
    a->list = (tri_shape){.rank = y->rank};
    a->list.dim[dim] = y->dim[dim] / s->extent * begin;
}

/* A part's attributes: shapes and what follows the factor are those of the part, divisors those of
 * the whole. */
static bool part_attrs(const struct halves *s, int64_t begin, int64_t share, struct text *out) {
    const struct op_entry *entry = s->node->entry;
    int dim = leads(&s->f->out[0], s->factor, s->f->extent), shown = 0;
    for (int i = 0; i < entry->n_attrs; i++) {
        tri_attr a = s->node->attr[i];
        a.name = entry->attr[i].name;
        if (entry->op->count && !strcmp(a.name, "count")) a.i = entry->op->count(s->node);
        if (entry->op->random && dim >= 0) place_part(s, dim, begin, share, &a);
        for (int k = 0; k < entry->n_follows; k++)
            if (entry->follow[k].attr == i && entry->follow[k].letter == s->factor)
                a.i = (int64_t[]){[FOLLOW_SIZE] = share, [FOLLOW_BEGIN] = begin,
                                  [FOLLOW_EXTENT] = s->extent}[entry->follow[k].what];
        if (entry->attr[i].kind == ATTR_SHAPE && dim >= 0)
            a.list.dim[dim] = a.list.dim[dim] / s->extent * share;
        text_add(out, "%s%s=", shown++ ? ", " : "{", a.name);
        switch (entry->attr[i].kind) {
        case ATTR_INT: text_add(out, "%lld", (long long)a.i); break;
        case ATTR_FLOAT: text_add(out, "%.17g", a.f); break;
        case ATTR_TEXT: text_add(out, "\"%s\"", a.text); break;
        case ATTR_TYPE: text_add(out, "%s", tri_type_name((tri_type)a.i)); break;
        default:
            text_add(out, "[");
            for (int k = 0; k < a.list.rank; k++)
                text_add(out, "%s%lld", k ? "," : "", (long long)a.list.dim[k]);
            text_add(out, "]");
        }
    }
    if (shown) text_add(out, "}");
    return !out->failed;
}

static tri_status run_part(const struct halves *s, const struct values *in, int64_t begin,
                           int64_t share, struct values *sum) {
    struct example e = *s->e;
    struct values part = {0}, out = {0};
    struct text attrs = {0};
    int64_t at[MAX_INPUTS];
    tri_status status = TRI_OK;
    for (int i = 0; i < e.n; i++) {
        int dim = leads(&s->f->in[i], s->factor, s->f->extent);
        int64_t each = dim < 0 ? 0 : e.spec[i].shape.dim[dim] / s->extent, length = each * share;
        at[i] = each * begin;
        if (dim >= 0 && e.spec[i].shape.dim[dim] == 1) dim = -1; /* broadcast */
        if (dim >= 0) e.spec[i].shape.dim[dim] = length;
        double *to = values_add(&part, &e.spec[i]);
        if (!to) return base_no_memory("an example");
        if (dim >= 0)
            move_part(&s->e->spec[i].shape, dim, at[i], length, in->at[i], to, false);
        else
            memcpy(to, in->at[i], sizeof *to * (size_t)tri_shape_count(&e.spec[i].shape));
    }
    if (!part_attrs(s, begin, share, &attrs)) status = base_no_memory("an example");
    e.attrs = attrs.data ? attrs.data : "";
    if (!status) status = trial_plain(&e, dev_find("ref"), 1, 1, &part, &out);
    for (int i = 0; i < out.n && !status; i++) {
        int dim = leads(&s->f->out[i], s->factor, s->f->extent);
        const tri_shape *whole = &sum->spec[i].shape;
        if (dim < 0)
            join(e.op, !begin, tri_shape_count(whole), sum->at[i], out.at[i]);
        else
            move_part(whole, dim, begin * (whole->dim[dim] / s->extent), out.spec[i].shape.dim[dim],
                      sum->at[i], out.at[i], true);
    }
    text_free(&attrs);
    values_free(&part);
    values_free(&out);
    return status;
}

/* Groups of samples that share statistics are counted per lane. Two lanes, where the example fits,
 * give a single group more to split; the parts are single lanes. */
static int64_t lanes_of(const struct example *e) {
    struct trial t;
    if (!e->op->group_values || e->spec[0].shape.dim[0] % 2) return 1;
    bool fits = trial_begin(e, 2, &t) == TRI_OK;
    trial_free(&t);
    return fits ? 2 : 1;
}

static tri_status check_split(const struct halves *s, const struct values *in) {
    struct values whole = {0}, sum = {0};
    char what[64];
    int64_t first = (s->extent + 1) / 2;
    tri_status status = trial_plain(s->e, dev_find("ref"), s->node->graph->lanes, 1, in, &whole);
    for (int i = 0; i < whole.n && !status; i++)
        if (!values_add(&sum, &whole.spec[i])) status = base_no_memory("an example");
    if (!status) status = run_part(s, in, 0, first, &sum);
    if (!status) status = run_part(s, in, first, s->extent - first, &sum);
    snprintf(what, sizeof what, "split along factor '%c'", s->factor < 128 ? s->factor : '.');
    if (!status) status = values_compare(s->e, what, &whole, &sum, 1e-6);
    values_free(&whole);
    values_free(&sum);
    return status;
}

bool opcheck_is_part(const tri_node *n) {
    const struct op_entry *e = n->entry;
    const tri_attr *whole = e->op->random ? node_attr(n, "whole") : NULL;
    bool part = whole && whole->list.rank;
    for (int i = 0; i < e->n_follows; i++)
        part |= e->follow[i].what != FOLLOW_SIZE && n->attr[e->follow[i].attr].i;
    return part;
}

/* The factors of a dimension have as many places as it, unless it is 1 (broadcast), has windows or
 * may not be split. */
static tri_status check_operand(const struct example *e, const struct factors *f,
                                const struct factor_operand *o, const tri_shape *shape,
                                const char *what, int number) {
    const char *rule = e->op->factors;
    for (int d = 0; d < o->rank; d++) {
        int64_t places = 1;
        for (int i = 0; i < o->dim[d].n; i++)
            places *= f->fixed[o->dim[d].f[i]] ? 0 : f->extent[o->dim[d].f[i]];
        if (!places || o->dim[d].windows || shape->dim[d] == 1 || shape->dim[d] == places) continue;
        return example_differs(e, "its factors%s%s%s do not fit: dimension %d of %s %d has %lld "
                               "places, but its factors have %lld", rule ? " \"" : "",
                               rule ? rule : "", rule ? "\"" : "", d, what, number,
                               (long long)shape->dim[d], (long long)places);
    }
    return TRI_OK;
}

static tri_status check_rule(const struct example *e, const tri_node *n, const struct factors *f) {
    tri_status status = TRI_OK;
    for (int i = 0; i < f->n_in && !status; i++)
        status = check_operand(e, f, &f->in[i], &n->in[i]->spec.shape, "input", i);
    for (int i = 0; i < f->n_out && !status; i++)
        status = check_operand(e, f, &f->out[i], &n->out[i].spec.shape, "output", i);
    return status;
}

tri_status opcheck_splits(const struct example *e, const struct values *in, int *splits) {
    struct trial t;
    struct factors f;
    tri_status status = trial_begin(e, lanes_of(e), &t);
    bool rule = op_has_factors(e->op);
    if (!status && rule && !opcheck_is_part(t.node)) {
        status = factors_of(t.node, &f) ? check_rule(e, t.node, &f) : TRI_USAGE;
        for (int c = 1; c < MAX_FACTORS && !status; c++) {
            bool inside = false;
            if (f.fixed[c] || f.extent[c] < 2 || (c <= 'z' && f.reach[c].over)) continue;
            for (int i = 0; i < f.n_in; i++) inside |= leads(&f.in[i], (uint8_t)c, f.extent) == -2;
            for (int i = 0; i < f.n_out; i++)
                inside |= leads(&f.out[i], (uint8_t)c, f.extent) == -2;
            if (inside) continue;
            ++*splits;
            status = check_split(&(struct halves){e, &f, t.node, (uint8_t)c, f.extent[c]}, in);
        }
        factors_free(&f);
    }
    trial_free(&t);
    return status;
}

