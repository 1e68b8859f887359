/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/layout.h"

#include <stdlib.h>
#include <string.h>

bool split_equal(const struct split *a, const struct split *b) {
    if (a->kind != b->kind) return false;
    if (a->kind == PARTIAL) return a->partial == b->partial;
    return a->kind == WHOLE ||
           (a->dim == b->dim && a->outer == b->outer && a->extent == b->extent &&
            a->places == b->places && a->reach.times == b->reach.times &&
            a->reach.over == b->reach.over && a->reach.low == b->reach.low &&
            a->reach.high == b->reach.high);
}

bool layout_equal(const struct layout *a, const struct layout *b) {
    for (int i = 0; i < MESH_MOST_AXES; i++)
        if (!split_equal(&a->axis[i], &b->axis[i])) return false;
    return true;
}

bool split_sees_neighbours(const struct split *from, const struct split *to) {
    return from->kind == SPLIT && to->kind == SPLIT && to->reach.over && from->dim == to->dim;
}

bool split_same(const struct split *a, const struct split *b, int64_t seats) {
    return split_equal(a, b) ||
           (a->kind == SPLIT && b->kind == SPLIT && a->dim == b->dim && a->outer == b->outer &&
            !a->reach.over && !b->reach.over && a->extent % seats == 0 && b->extent % seats == 0);
}

void layout_normal(const struct mesh *m, struct layout *l) {
    const struct layout given = *l;
    for (int a = 0; a < m->n; a++) {
        int64_t seats = 1;
        for (int b = 0; b < m->n; b++)
            if (split_equal(&given.axis[a], &given.axis[b])) seats *= m->axis[b].size;
        if (m->axis[a].size == 1) l->axis[a] = (struct split){0};
        else if (given.axis[a].kind == SPLIT && given.axis[a].extent % seats == 0)
            l->axis[a].extent = seats;
    }
}

void part_range(int64_t extent, int64_t parts, int64_t i, int64_t *begin, int64_t *end) {
    int64_t each = extent / parts, more = extent % parts;
    *begin = i * each + (i < more ? i : more);
    *end = *begin + each + (i < more);
}

/* ---- refining ---- */

/* Where a dimension is cut: numbers of blocks, each of which divides the next. */
struct cuts {
    int64_t at[2 * MESH_MOST_AXES * 4 + 2];
    int n;
};

static void add_cut(struct cuts *c, int64_t at) {
    int i = c->n;
    for (int k = 0; k < c->n; k++)
        if (c->at[k] == at) return;
    if (c->n == (int)COUNT(c->at)) return;
    for (; i > 0 && c->at[i - 1] > at; i--) c->at[i] = c->at[i - 1];
    c->at[i] = at;
    c->n++;
}

/* The cuts of dimension d. Splits that cut whole blocks only leave the dimension as it is. */
static void find_cuts(const struct layout *const *layout, int n, const struct mesh *m, int d,
                      int64_t length, struct cuts *c) {
    bool inner = false;
    c->n = 0;
    add_cut(c, 1);
    add_cut(c, length);
    for (int i = 0; i < n; i++)
        for (int a = 0; a < m->n; a++) {
            const struct split *s = &layout[i]->axis[a];
            inner |= s->kind == SPLIT && s->dim == d && s->outer > 1;
        }
    for (int i = 0; inner && i < n; i++)
        for (int a = 0; a < m->n; a++) {
            const struct split *s = &layout[i]->axis[a];
            if (s->kind != SPLIT || s->dim != d || s->reach.over) continue;
            add_cut(c, s->outer);
            if (s->outer > 1 || s->extent < length) add_cut(c, s->outer * s->extent);
        }
}

bool layout_refine(const tri_shape *s, const struct layout *const *layout, int n,
                   const struct mesh *m, struct refined *out) {
    out->n = 0;
    for (int d = 0; d < s->rank; d++) {
        struct cuts c;
        find_cuts(layout, n, m, d, s->dim[d], &c);
        for (int k = 0; k + 1 < c.n || (c.n == 1 && k == 0); k++) {
            int64_t next = c.n == 1 ? 1 : c.at[k + 1];
            if (next % c.at[k] || out->n == TRI_MAX_RANK) return false;
            out->extent[out->n] = next / c.at[k];
            out->dim[out->n++] = d;
        }
    }
    for (int i = 0; i < n; i++)
        for (int a = 0; a < m->n; a++)
            if (layout[i]->axis[a].kind == SPLIT && refined_dim(out, &layout[i]->axis[a]) < 0)
                return false;
    return true;
}

int refined_dim(const struct refined *r, const struct split *s) {
    int64_t before = 1;
    for (int i = 0; i < r->n; i++) {
        if (r->dim[i] != s->dim) continue;
        if (s->reach.over) return i + 1 < r->n && r->dim[i + 1] == s->dim ? -1 : i;
        if (before == s->outer && r->extent[i] % s->extent == 0) return i;
        before *= r->extent[i];
    }
    return -1;
}

/* ---- boxes ---- */

struct box refined_all(const struct refined *r) {
    struct box all = {{0}, {0}};
    for (int i = 0; i < r->n; i++) all.end[i] = r->extent[i];
    return all;
}

bool layout_narrow(const struct mesh *m, const struct refined *r, const struct split *s, int axis,
                   int64_t at, struct box *box) {
    int i = refined_dim(r, s);
    int64_t unit = r->extent[i] / s->extent, from = box->begin[i], length = box->end[i] - from;
    int64_t begin, end;
    if (length % unit) return false;
    part_range(length / unit, m->axis[axis].size, at, &begin, &end);
    box->begin[i] = from + begin * unit;
    box->end[i] = from + end * unit;
    return begin < end;
}

/* What the seat's part of the windows concerns; the parts of all axes that divide them. */
static bool see_windows(const struct mesh *m, const struct refined *r, const struct layout *l,
                        int axis, const int16_t *at, struct box *box) {
    const struct split *s = &l->axis[axis];
    int64_t unit = s->places / s->extent, begin = 0, end = s->extent, b, e;
    int i = refined_dim(r, s);
    for (int a = 0; a < m->n; a++) {
        if (!split_equal(s, &l->axis[a])) continue;
        part_range(end - begin, m->axis[a].size, at[a], &b, &e);
        end = begin + e;
        begin += b;
    }
    if (begin >= end) return false;
    reach_range(&s->reach, begin * unit, end * unit, r->extent[i], &box->begin[i], &box->end[i]);
    return box->begin[i] < box->end[i];
}

bool layout_box(const struct mesh *m, const struct refined *r, const struct layout *l,
                const int16_t *at, struct box *out) {
    *out = refined_all(r);
    for (int a = 0; a < m->n; a++) {
        const struct split *s = &l->axis[a];
        if (s->kind != SPLIT) continue;
        if (!(s->reach.over ? see_windows(m, r, l, a, at, out)
                            : layout_narrow(m, r, s, a, at[a], out)))
            return false;
    }
    return true;
}

tri_shape box_shape(const struct refined *r, const struct box *b, int rank) {
    tri_shape s = {.rank = rank};
    for (int d = 0; d < rank; d++) s.dim[d] = 1;
    for (int i = 0; i < r->n; i++) s.dim[r->dim[i]] *= b->end[i] - b->begin[i];
    return s;
}

/* ---- text ---- */

void layout_text(const struct mesh *m, const struct layout *l, int rank, struct text *out) {
    static const char *const how[] = {[TRI_PARTIAL_SUM] = "sum", [TRI_PARTIAL_MAX] = "max",
                                      [TRI_PARTIAL_AND] = "and"};
    text_add(out, "(");
    for (int d = 0; d < rank; d++) {
        bool any = false;
        text_add(out, "%s", d ? "," : "");
        for (int a = 0; a < m->n; a++) {
            const struct split *s = &l->axis[a];
            if (s->kind != SPLIT || s->dim != d) continue;
            text_add(out, "%s%s", any ? "." : "", m->axis[a].name);
            if (s->outer > 1) text_add(out, "/%lld", (long long)s->outer);
            if (s->reach.over) text_add(out, "~");
            any = true;
        }
        if (!any) text_add(out, "-");
    }
    text_add(out, ")");
    for (int a = 0; a < m->n; a++)
        if (l->axis[a].kind == PARTIAL)
            text_add(out, " partial %s over %s", how[l->axis[a].partial], m->axis[a].name);
}
