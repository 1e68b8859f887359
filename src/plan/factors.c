/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/factors.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A factor's number is its letter. Factors of an ellipsis are counted from its last dimension, as
 * broadcasting aligns dimensions. */

struct reader {
    const char *p;
    struct factors *f;
};

static bool bad_rule(const tri_node *n, const char *text) {
    base_fail(TRI_USAGE, "operator %s: its factor string \"%s\" does not fit %s",
              n->entry->op->name, text, n->name);
    return false;
}

/* Reads the letters of one operand, up to ',' or '-' or the end. */
static bool read_operand(struct reader *r, const tri_shape *shape, struct factor_operand *o) {
    struct factor_dim dim[TRI_MAX_RANK];
    int n = 0, ellipsis = -1;
    for (; *r->p && *r->p != ',' && *r->p != '-'; r->p++) {
        if (*r->p == ' ') continue;
        if (!strncmp(r->p, "...", 3)) {
            ellipsis = n;
            r->p += 2;
            continue;
        }
        if (n == TRI_MAX_RANK) return false;
        struct factor_dim *d = &dim[n++];
        d->n = 0;
        d->windows = *r->p == '~';
        if (d->windows) r->p++;
        bool compound = *r->p == '(';
        if (compound) r->p++;
        for (; isalpha((unsigned char)*r->p) && d->n < MAX_COMPOUND; r->p++) {
            d->f[d->n++] = (uint8_t)tolower((unsigned char)*r->p);
            if (isupper((unsigned char)*r->p)) r->f->fixed[d->f[d->n - 1]] = true;
            if (!compound) break;
        }
        if (compound ? *r->p != ')' : !d->n && *r->p != '1') return false;
        if (d->windows && d->n != 1) return false;
    }
    int missing = shape->rank - n;
    if (missing < 0 || (missing && ellipsis < 0)) return false;
    o->rank = shape->rank;
    for (int i = 0, k = 0; i < o->rank; i++) {
        if (ellipsis >= 0 && i >= ellipsis && i < ellipsis + missing)
            o->dim[i] = (struct factor_dim){
                .n = 1, .f = {(uint8_t)(FACTOR_ELLIPSIS + ellipsis + missing - i)}};
        else
            o->dim[i] = dim[k++];
    }
    return true;
}

static bool read_all(struct reader *r, const tri_node *n) {
    for (int i = 0; i < n->n_in; i++) {
        if (i && *r->p++ != ',') return false;
        if (!read_operand(r, &n->in[i]->spec.shape, &r->f->in[i])) return false;
    }
    if (r->p[0] != '-' || r->p[1] != '>') return false;
    r->p += 2;
    for (int i = 0; i < n->n_out; i++) {
        if (i && *r->p++ != ',') return false;
        if (!read_operand(r, &n->out[i].spec.shape, &r->f->out[i])) return false;
    }
    return !*r->p;
}

static void find_extents(struct factors *f, const tri_node *n) {
    for (int i = 0; i < f->n_in + f->n_out; i++) {
        const struct factor_operand *o = i < f->n_in ? &f->in[i] : &f->out[i - f->n_in];
        const tri_shape *s =
            i < f->n_in ? &n->in[i]->spec.shape : &n->out[i - f->n_in].spec.shape;
        for (int d = 0; d < o->rank; d++)
            if (o->dim[d].n == 1 && !o->dim[d].windows && s->dim[d] > f->extent[o->dim[d].f[0]])
                f->extent[o->dim[d].f[0]] = s->dim[d];
    }
}

/* The extent of a factor that has no dimension of its own, where it is the only such one. */
static bool solve_extent(struct factors *f, const struct factor_dim *d, int64_t length) {
    int unknown = -1;
    for (int i = 0; i < d->n; i++) {
        int64_t extent = f->extent[d->f[i]];
        if (extent ? length % extent != 0 : unknown >= 0) return false;
        if (extent) length /= extent;
        else unknown = i;
    }
    if (unknown >= 0) f->extent[d->f[unknown]] = length;
    return unknown >= 0;
}

static void solve_extents(struct factors *f, const tri_node *n) {
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < f->n_in + f->n_out; i++) {
            const struct factor_operand *o = i < f->n_in ? &f->in[i] : &f->out[i - f->n_in];
            const tri_shape *s =
                i < f->n_in ? &n->in[i]->spec.shape : &n->out[i - f->n_in].spec.shape;
            for (int d = 0; d < o->rank; d++)
                again |= o->dim[d].n > 1 && solve_extent(f, &o->dim[d], s->dim[d]);
        }
    }
}

/* Dimensions with windows of one factor must have one length, and be inputs'. */
static bool find_windows(struct factors *f, const tri_node *n) {
    const tri_op *op = n->entry->op;
    for (int i = 0; i < f->n_in + f->n_out; i++) {
        const struct factor_operand *o = i < f->n_in ? &f->in[i] : &f->out[i - f->n_in];
        for (int d = 0; d < o->rank; d++) {
            if (!o->dim[d].windows) continue;
            if (!op->reach || !op->part || i >= f->n_in) return false;
            const int64_t length = n->in[i]->spec.shape.dim[d];
            const uint8_t factor = o->dim[d].f[0];
            tri_reach *r = &f->reach[factor];
            if (r->over && f->length[factor] != length) return false;
            op->reach(n, (char)factor, r);
            if (r->times < 1 || r->over < 1 || r->low > r->high) return false;
            f->length[factor] = length;
        }
    }
    return true;
}

static int64_t divided_down(int64_t a, int64_t b) { return a / b - (a % b < 0); }

void reach_range(const tri_reach *r, int64_t begin, int64_t end, int64_t length, int64_t *from,
                 int64_t *to) {
    *from = divided_down(begin * r->times + r->low, r->over);
    *to = divided_down((end - 1) * r->times + r->high, r->over) + 1;
    if (*from < 0) *from = 0;
    if (*to > length) *to = length;
}

static bool samplewise_rule(const tri_node *n, struct factors *f) {
    for (int i = 0; i < f->n_in + f->n_out; i++) {
        struct factor_operand *o = i < f->n_in ? &f->in[i] : &f->out[i - f->n_in];
        o->rank = i < f->n_in ? n->in[i]->spec.shape.rank : n->out[i - f->n_in].spec.shape.rank;
        if (o->rank) o->dim[0] = (struct factor_dim){.n = 1, .f = {'n'}};
        if (!o->rank && i >= f->n_in) f->fixed['n'] = true; /* depends on all samples, not a sum */
    }
    return true;
}

bool factors_of(const tri_node *n, struct factors *f) {
    const tri_op *op = n->entry->op;
    char text[1024] = "";
    memset(f, 0, sizeof *f);
    if (!op_has_factors(op)) {
        base_fail(TRI_USAGE, "operator %s has no factor string: it cannot be split", op->name);
        return false;
    }
    f->n_in = n->n_in;
    f->n_out = n->n_out;
    f->in = calloc((size_t)(n->n_in + n->n_out), sizeof *f->in);
    if (!f->in) {
        base_no_memory("a factor string");
        return false;
    }
    f->out = f->in + n->n_in;
    struct reader r = {op->factors, f};
    if (op->factor_fn) {
        op->factor_fn(n, text, sizeof text);
        r.p = text;
    }
    const char *rule = r.p;
    if (rule ? !read_all(&r, n) || !find_windows(f, n) : !samplewise_rule(n, f)) {
        factors_free(f);
        return bad_rule(n, rule ? rule : "");
    }
    find_extents(f, n);
    solve_extents(f, n);
    return true;
}

void factors_free(struct factors *f) {
    free(f->in);
    f->in = f->out = NULL;
}

/* The outermost factor of a dimension whose extent is not 1; 0: none. */
static uint8_t major(const struct factors *f, const struct factor_dim *d) {
    for (int i = 0; i + 1 < d->n; i++)
        if (f->extent[d->f[i]] != 1) return d->f[i];
    return d->n ? d->f[d->n - 1] : 0;
}

static bool contains(const struct factor_dim *d, uint8_t factor) {
    for (int i = 0; i < d->n; i++)
        if (d->f[i] == factor) return true;
    return false;
}

static bool all_outputs_have(const struct factors *f, uint8_t factor) {
    for (int i = 0; i < f->n_out; i++) {
        bool has = false;
        for (int d = 0; d < f->out[i].rank; d++) has |= contains(&f->out[i].dim[d], factor);
        if (!has) return false;
    }
    return true;
}

/* Finds the factor along which the inputs are split. Returns why there is none, or null. */
static const char *split_factor(const tri_node *n, const struct factors *f, const struct split *in,
                                uint8_t *factor) {
    *factor = 0;
    for (int i = 0; i < n->n_in; i++) {
        if (in[i].kind != SPLIT) continue;
        uint8_t this = major(f, &f->in[i].dim[in[i].dim]);
        if (*factor && this != *factor)
            return "its inputs have the samples in different dimensions";
        *factor = this;
    }
    for (int i = 0; i < n->n_in; i++) {
        if (in[i].kind != WHOLE) continue;
        for (int d = 0; d < f->in[i].rank; d++)
            if (contains(&f->in[i].dim[d], *factor) && n->in[i]->spec.shape.dim[d] != 1)
                return "one of its inputs has the length of the batch, but does not depend on the "
                       "data";
    }
    return NULL;
}

/* Lanes cannot split a fixed factor, one of windows, one that an attribute follows (random rows
 * know the place of their lane), or one over which results are joined by more than a sum. A row
 * with a split form may fix the samples of a lane; a single lane has them all. */
static const char *not_in_lanes(const tri_node *n, const struct factors *f, uint8_t factor) {
    const struct op_entry *e = n->entry;
    bool alone = n->graph->lanes == 1 && e->op->split_form;
    bool windows = factor <= 'z' && f->reach[factor].over;
    bool no = (f->fixed[factor] && !alone) || windows || (e->op->partial != TRI_PARTIAL_SUM &&
                                               !all_outputs_have(f, factor));
    for (int i = 0; i < e->n_follows; i++)
        no |= e->follow[i].letter == factor && e->follow[i].what == FOLLOW_BEGIN && !e->op->random;
    return no ? "it computes across the samples of the batch" : NULL;
}

static const char *carry(const tri_node *n, const struct factors *f, const struct split *in,
                         struct split *out, bool lenient) {
    uint8_t factor;
    const char *why = split_factor(n, f, in, &factor);
    if (!why) why = not_in_lanes(n, f, factor);
    if (why && !lenient) return why;
    for (int i = 0; i < n->n_out; i++) {
        out[i] = (struct split){.kind = PARTIAL};
        for (int d = 0; d < f->out[i].rank; d++) {
            if (!contains(&f->out[i].dim[d], factor)) continue;
            if (major(f, &f->out[i].dim[d]) != factor && !lenient)
                return "it moves the samples inside another dimension";
            out[i] = (struct split){.kind = SPLIT, .dim = d};
            break;
        }
    }
    return NULL;
}

const char FACTORS_NO_MEMORY[] = "memory is out";

const char *factors_carry(const tri_node *n, const struct split *in, struct split *out,
                          bool lenient) {
    struct factors f;
    if (!factors_of(n, &f)) {
        for (int i = 0; i < n->n_out; i++) out[i] = (struct split){.kind = WHOLE};
        if (base_last() == TRI_FAILED) return FACTORS_NO_MEMORY;
        return lenient ? NULL : "its row does not say how it may be split";
    }
    const char *why = carry(n, &f, in, out, lenient);
    factors_free(&f);
    return why;
}

int64_t factors_rows(const tri_node *n) {
    struct factors f;
    int64_t rows = 1;
    if (n->n_in < 2 || !factors_of(n, &f)) return 0;
    for (int d = 0; d < f.out[0].rank; d++) {
        bool column = false;
        for (int k = 0; k < f.in[1].rank && f.out[0].dim[d].n; k++)
            column |= contains(&f.in[1].dim[k], f.out[0].dim[d].f[0]);
        if (!column) rows *= n->out[0].spec.shape.dim[d];
    }
    factors_free(&f);
    return rows;
}

bool factors_rebatch(const tri_node *n, struct split out, int64_t batch, tri_graph *to,
                     tri_attr *attrs) {
    const struct op_entry *e = n->entry;
    int64_t from = n->graph->batch;
    memcpy(attrs, n->attr, sizeof *attrs * (size_t)e->n_attrs);
    for (int i = 0; i < e->n_attrs && out.kind == SPLIT && batch != from; i++) {
        if (e->attr[i].kind != ATTR_SHAPE) continue;
        int64_t *d = &attrs[i].list.dim[out.dim];
        if (*d % from) {
            graph_fail(to, TRI_USAGE, "%s: dimension %d of its shape, %lld, is not a multiple of "
                       "the batch %lld: it cannot be made for %lld sample(s)", n->name, out.dim,
                       (long long)*d, (long long)from, (long long)batch);
            return false;
        }
        *d = *d / from * batch;
    }
    return true;
}
