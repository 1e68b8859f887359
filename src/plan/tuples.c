/* SPDX-License-Identifier: Apache-2.0
 * MindSpore's tuples: "(1,2),(2,1)". An operator's device matrix has a dimension per factor, in the
 * order in which the tuples have them; left-over seats repeat, as the right-most dimension. Where
 * its dimensions begin and end are products of the first sizes, the *marks* of the operator. The
 * axes of the mesh lie between the marks of all operators, which must divide one another. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/strategy_inside.h"

/* ---- the text ---- */

struct reader {
    const struct strategy_line *l;
    const char *p;
};

static char next(struct reader *r) {
    while (*r->p == ' ' || *r->p == '\t') r->p++;
    return *r->p;
}

static bool take(struct reader *r, char c) {
    if (next(r) != c) return false;
    r->p++;
    return true;
}

static tri_status expected(const struct reader *r, const char *what) {
    return strategy_fail(r->l, "expected %s at \"%s\"; tuples are written as (1,2),(2,1), those of "
                         "outputs after ->", what, r->p);
}

struct tuple {
    int n;
    int64_t number[TRI_MAX_RANK];
};

/* "(2,4)", "(2,)" or "()", after its parenthesis has been read. */
static tri_status read_tuple(struct reader *r, struct tuple *t) {
    t->n = 0;
    while (!take(r, ')')) {
        char *end;
        errno = 0;
        int64_t value = strtoll(r->p, &end, 10);
        if (end == r->p) return expected(r, "a number or )");
        if (errno) return expected(r, "a number that is not so large");
        if (t->n == TRI_MAX_RANK)
            return strategy_fail(r->l, "a tuple has more than %d numbers", TRI_MAX_RANK);
        if (value < 1)
            return strategy_fail(r->l, "a tuple has the number %lld; a dimension has at least 1 "
                                 "part, and 1 leaves it whole", (long long)value);
        t->number[t->n++] = value;
        r->p = end;
        if (!take(r, ',')) return take(r, ')') ? TRI_OK : expected(r, ", or )");
    }
    return TRI_OK;
}

/* Tuples separated by commas, perhaps in parentheses of their own. */
static tri_status read_tuples(struct reader *r, struct tuple *t, int most, int *n) {
    tri_status status = TRI_OK;
    struct reader ahead = *r;
    bool outer = take(&ahead, '(') && take(&ahead, '(');
    if (outer) take(r, '(');
    *n = 0;
    while (!status && take(r, '(')) {
        struct tuple more;
        status = read_tuple(r, *n < most ? &t[*n] : &more);
        ++*n;
        if (!take(r, ',')) break;
    }
    if (!status && outer && !take(r, ')')) status = expected(r, ")");
    return status;
}

/* A whole text: "(1,2),(2,1)->(1,1)". Keeps as many tuples as there is room for. */
static tri_status read_text(struct reader *r, struct tuple *in, int most_in, int *n_in,
                            struct tuple *result, int most_out, int *n_out) {
    tri_status status = read_tuples(r, in, most_in, n_in);
    *n_out = 0;
    if (!status && take(r, '-'))
        status = take(r, '>') ? read_tuples(r, result, most_out, n_out) : expected(r, ">");
    if (!status && next(r))
        status = expected(r, !*n_in ? "(" : *n_out ? "a comma or the end"
                                                  : "a comma, -> or the end");
    return status;
}

tri_status tuples_parse(const struct strategy_line *l) {
    struct reader r = {l, l->text};
    int n_in, n_out;
    return read_text(&r, NULL, 0, &n_in, NULL, 0, &n_out);
}

/* ---- the device matrix ---- */

/* The outermost factor of a dimension that is longer than 1; 0: there is none. */
static uint8_t main_factor(const struct factors *f, const struct factor_dim *d) {
    for (int i = 0; i < d->n; i++)
        if (f->extent[d->f[i]] != 1) return d->f[i];
    return 0;
}

static int part_of(const struct tuples *t, uint8_t factor) {
    for (int i = 0; i < t->n; i++)
        if (t->part[i].factor == factor) return i;
    return -1;
}

struct where {
    const char *what; /* "input" or "output" */
    int operand, dim;
};

static tri_status add_count(struct tuples *t, const struct mesh *m, const struct factors *f,
                            struct where w, uint8_t factor, int64_t count, int64_t length) {
    struct text legal = {0};
    tri_status status = TRI_OK;
    int i = part_of(t, factor);
    if (f->extent[factor] && f->extent[factor] < length) length = f->extent[factor];
    strategy_legal(t->node, f, count, &legal);
    if (length < count)
        status = strategy_fail_at(t->line, m, t->node, "%lld part(s) of dimension %d of %s %d are "
                                  "too many; it can have 1 to %lld", (long long)count, w.dim,
                                  w.what, w.operand, (long long)length);
    else if (count > 1 && !strategy_can_split(t->node, f, factor))
        status = strategy_fail_at(t->line, m, t->node, "dimension %d of %s %d, its factor %s, "
                                  "cannot be split; these can: %s", w.dim, w.what, w.operand,
                                  factor_name(t->node, f, factor), legal.data ? legal.data : "");
    else if (i >= 0 && t->part[i].count != count)
        status = strategy_fail_at(t->line, m, t->node, "dimension %d of %s %d is divided by %lld, "
                                  "but an earlier tuple divides its factor %s by %lld; both must "
                                  "be the same", w.dim, w.what, w.operand, (long long)count,
                                  factor_name(t->node, f, factor), (long long)t->part[i].count);
    else if (i < 0 && t->n == (int)COUNT(t->part))
        status = strategy_fail(t->line, "its operator has too many factors for tuples");
    text_free(&legal);
    if (status || i >= 0) return status;
    t->part[t->n].factor = factor;
    t->part[t->n++].count = count;
    return TRI_OK;
}

static tri_status add_tuple(struct tuples *t, const struct mesh *m, const struct factors *f,
                            const struct tuple *tuple, int input) {
    const tri_shape *s = &t->node->in[input]->spec.shape;
    tri_status status = TRI_OK;
    if (tuple->n != s->rank)
        return strategy_fail_at(t->line, m, t->node, "input %d has %d dimension(s), so its tuple "
                                "needs %d numbers, not %d", input, s->rank, s->rank, tuple->n);
    for (int d = 0; d < s->rank && !status; d++) {
        struct where w = {"input", input, d};
        uint8_t factor = main_factor(f, &f->in[input].dim[d]);
        if (s->dim[d] == 1 && tuple->number[d] == 1) continue; /* nothing to split, or broadcast */
        if (factor || tuple->number[d] > 1)
            status = add_count(t, m, f, w, factor, tuple->number[d], s->dim[d]);
    }
    return status;
}

/* A factor that only the outputs have is split as their tuple says. */
static tri_status add_output(struct tuples *t, const struct mesh *m, const struct factors *f,
                             const struct tuple *tuple, int output) {
    const tri_shape *s = &t->node->out[output].spec.shape;
    tri_status status = TRI_OK;
    if (tuple->n != s->rank)
        return strategy_fail_at(t->line, m, t->node, "output %d has %d dimension(s), so its tuple "
                                "needs %d numbers, not %d", output, s->rank, s->rank, tuple->n);
    for (int d = 0; d < s->rank && !status; d++) {
        uint8_t factor = main_factor(f, &f->out[output].dim[d]);
        bool of_input = !factor;
        for (int i = 0; i < f->n_in; i++)
            for (int k = 0; k < f->in[i].rank; k++)
                for (int j = 0; j < f->in[i].dim[k].n; j++)
                    of_input |= f->in[i].dim[k].f[j] == factor;
        t->output[output][d] = tuple->number[d];
        if (!of_input)
            status = add_count(t, m, f, (struct where){"output", output, d}, factor,
                               tuple->number[d], s->dim[d]);
    }
    return status;
}

static int64_t product(const struct tuples *t) {
    int64_t all = 1;
    for (int i = 0; i < t->n && all <= MESH_MOST_SEATS; i++) all *= t->part[i].count;
    return all;
}

static tri_status check_product(const struct tuples *t, const struct mesh *m) {
    int64_t seats = mesh_seats(m), all = product(t), nearest = 1;
    if (!m->n || seats % all == 0) return TRI_OK;
    for (int64_t i = 1; i <= seats && i <= all; i++)
        if (seats % i == 0) nearest = i;
    return strategy_fail_at(t->line, m, t->node, "its tuples make %s%lld parts, but the mesh has "
                            "%lld seats, which they must divide; %lld would", all > MESH_MOST_SEATS
                            ? "at least " : "", (long long)all, (long long)seats,
                            (long long)nearest);
}

tri_status tuples_read(const struct strategy_line *l, const struct mesh *m, const tri_node *n,
                       const struct factors *f, struct tuples *out) {
    struct reader r = {l, l->text};
    struct tuple *in = calloc((size_t)n->n_in + 1, sizeof *in), result[TRI_MAX_OUTPUTS];
    int n_in, n_out;
    if (!in) return base_no_memory("tuples");
    *out = (struct tuples){.line = l, .node = n};
    tri_status status = read_text(&r, in, n->n_in, &n_in, result, n->n_out, &n_out);
    if (!status && n_in != n->n_in)
        status = strategy_fail_at(l, m, n, "it has %d input(s), so it needs %d tuple(s), not %d",
                                  n->n_in, n->n_in, n_in);
    if (!status && n_out > n->n_out)
        status = strategy_fail_at(l, m, n, "it has %d output(s), but there are %d tuples after ->",
                                  n->n_out, n_out);
    for (int i = 0; i < n->n_in && !status; i++) status = add_tuple(out, m, f, &in[i], i);
    for (int i = 0; i < n_out && !status; i++) status = add_output(out, m, f, &result[i], i);
    out->n_outputs = n_out;
    free(in);
    return status ? status : check_product(out, m);
}

/* ---- the axes ---- */

struct mark {
    int64_t at;
    const struct tuples *by; /* null: the mesh */
};

#define MOST_MARKS 64

/* Adds a mark in its place, unless it is there. False: there are too many. */
static bool add_mark(struct mark *mark, int *n, struct mark more) {
    int i = *n;
    for (int k = 0; k < *n; k++)
        if (mark[k].at == more.at) return true;
    if (*n == MOST_MARKS) return false;
    for (; i > 0 && mark[i - 1].at > more.at; i--) mark[i] = mark[i - 1];
    mark[i] = more;
    ++*n;
    return true;
}

static void describe(const struct tuples *t, struct text *out) {
    node_describe(t->node, out);
    text_add(out, " (%s)", t->line->from);
}

static tri_status no_refinement(struct mark a, struct mark b, int64_t seats) {
    struct text first = {0}, second = {0};
    describe(a.by, &first);
    describe(b.by, &second);
    base_fail(TRI_USAGE, "no mesh of %lld seats suits the tuples of both %s and %s: one begins "
              "with %lld part(s), the other with %lld, and neither number divides the other; give "
              "them the same order of parts", (long long)seats, first.data ? first.data : "",
              second.data ? second.data : "", (long long)a.at, (long long)b.at);
    text_free(&first);
    text_free(&second);
    return TRI_USAGE;
}

static tri_status no_axis_there(struct mark b, const struct mesh *m) {
    return strategy_fail_at(b.by->line, m, b.by->node, "its tuples begin with %lld part(s), but "
                            "the first axes of the mesh do not make so many; write tuples whose "
                            "numbers are products of axes that follow one another",
                            (long long)b.at);
}

tri_status tuples_refine(const struct tuples *all, size_t n, struct mesh *m) {
    struct mark mark[MOST_MARKS] = {{1, NULL}};
    int marks = 1;
    bool given = m->n > 1 || (m->n && *m->axis[0].name);
    int64_t seats = mesh_seats(m), at = 1;
    for (int i = 0; i < m->n; i++)
        add_mark(mark, &marks, (struct mark){at *= m->axis[i].size, NULL});
    for (size_t i = 0; i < n; i++) {
        at = 1;
        for (int k = 0; k < all[i].n; k++) {
            struct mark more = {at *= all[i].part[k].count, &all[i]};
            int before = marks;
            if (!add_mark(mark, &marks, more)) return base_fail(TRI_USAGE, "too many tuples");
            if (given && marks > before) return no_axis_there(more, m);
        }
    }
    if (given) return TRI_OK;
    if (marks - 1 > MESH_MOST_AXES)
        return base_fail(TRI_USAGE, "the tuples of all operators need a mesh with %d axes; there "
                         "can be %d", marks - 1, MESH_MOST_AXES);
    for (int i = 1; i < marks; i++)
        if (mark[i].at % mark[i - 1].at) return no_refinement(mark[i - 1], mark[i], seats);
    *m = (struct mesh){.n = marks > 1 ? marks - 1 : 1};
    for (int i = 0; i < m->n; i++) {
        snprintf(m->axis[i].name, sizeof m->axis[i].name, "%d", i);
        m->axis[i].size = marks > 1 ? mark[i + 1].at / mark[i].at : 1;
    }
    return TRI_OK;
}

void tuples_axes(const struct tuples *t, int i, const struct mesh *m, bool axes[MESH_MOST_AXES]) {
    int64_t from = 1, at = 1;
    for (int k = 0; k < i; k++) from *= t->part[k].count;
    int64_t to = from * t->part[i].count;
    for (int k = 0; k < m->n; k++) {
        axes[k] = m->axis[k].size > 1 && at >= from && at * m->axis[k].size <= to;
        at *= m->axis[k].size;
    }
}

/* The axes over which output k is a partial sum. */
static int64_t summed_axes(const struct tuples *t, int k, const struct factors *f,
                           const struct mesh *m, bool sum[MESH_MOST_AXES]) {
    int64_t parts = 1;
    memset(sum, 0, sizeof *sum * MESH_MOST_AXES);
    for (int i = 0; i < t->n; i++) {
        bool axes[MESH_MOST_AXES], in_output = false;
        for (int d = 0; d < f->out[k].rank; d++)
            for (int j = 0; j < f->out[k].dim[d].n; j++)
                in_output |= f->out[k].dim[d].f[j] == t->part[i].factor;
        if (in_output) continue;
        tuples_axes(t, i, m, axes);
        for (int a = 0; a < m->n; a++) sum[a] |= axes[a];
        parts *= t->part[i].count;
    }
    return parts;
}

/* `here`: the parts that the inputs make; `with_sum`: if it takes those of the sum too; or 0. */
static tri_status refuse_output(const struct tuples *t, const struct mesh *m, int k, int d,
                                int64_t here, int64_t with_sum) {
    char more[64] = "", sum[64] = "";
    if (here > 1) base_format(more, sizeof more, " or %lld", (long long)here);
    if (with_sum)
        base_format(sum, sizeof sum, " or %lld (with the parts of the sum)", (long long)with_sum);
    return strategy_fail_at(t->line, m, t->node, "%lld part(s) of dimension %d of output %d; its "
                            "inputs allow 1 (whole)%s%s", (long long)t->output[k][d], d, k, more,
                            sum);
}

tri_status tuples_output(const struct tuples *t, int k, const struct factors *f,
                         const struct mesh *m, int dim[MESH_MOST_AXES]) {
    bool sum[MESH_MOST_AXES], taken = false;
    int64_t summed = summed_axes(t, k, f, m, sum);
    for (int a = 0; a < MESH_MOST_AXES; a++) dim[a] = -1;
    for (int d = 0; d < f->out[k].rank; d++) {
        bool axes[MESH_MOST_AXES] = {false};
        int i = part_of(t, main_factor(f, &f->out[k].dim[d]));
        int64_t here = i < 0 ? 1 : t->part[i].count, wanted = t->output[k][d];
        int64_t length = t->node->out[k].spec.shape.dim[d];
        bool with_sum = wanted == here * summed && summed > 1 && !taken && wanted <= length;
        if (i >= 0 && wanted > 1) tuples_axes(t, i, m, axes);
        if (wanted != 1 && wanted != here && !with_sum)
            return refuse_output(t, m, k, d, here, summed > 1 && !taken ? here * summed : 0);
        for (int a = 0; a < m->n; a++)
            if ((axes[a] && wanted > 1) || (with_sum && wanted != here && sum[a])) dim[a] = d;
        taken |= with_sum && wanted != here;
    }
    return TRI_OK;
}
