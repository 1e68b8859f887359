/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/cpu/copy.h"

#include "dev/cpu/cpu.h"

/* ---- preparation ---- */

static struct copy_loop take(struct walk *w, int d) {
    const struct copy_loop loop = {w->dim[d], w->stride[0][d], w->stride[1][d]};
    walk_remove(w, d);
    return loop;
}

static bool is_long(const struct walk *w, int d) { return w->dim[d] >= 4; }

/* The dimension with the smallest stride in tensor k; a long one if there is any. */
static int densest(const struct walk *w, int k) {
    int best = 0;
    for (int d = 1; d < w->rank; d++)
        if (is_long(w, d) != is_long(w, best) ? is_long(w, d)
                                              : w->stride[k][d] < w->stride[k][best])
            best = d;
    return best;
}

static bool contiguous(const struct walk *w, const int64_t size[2]) {
    const int d = w->rank - 1;
    return d >= 0 && w->stride[0][d] == size[0] && w->stride[1][d] == size[1];
}

void copy_finish(struct copy *c, tri_type to, tri_type from) {
#define SET(isa) &copy_set_##isa,
    static const struct copy_set *const sets[] = {EVERY_ISA(SET)};
    const struct copy_set *set = sets[isa_best()];
    int64_t size[] = {(int64_t)tri_type_size(to), (int64_t)tri_type_size(from)};
    const bool rounds = to != from;
    struct walk *w = &c->walk;
    walk_simplify(w);
    for (int d = 0; d < w->rank; d++)
        for (int k = 0; k < 2; k++) w->stride[k][d] *= size[k];
    c->to *= size[0];
    c->from *= size[1];
    if (!rounds && contiguous(w, size) && 8 % (size[0] * w->dim[w->rank - 1]) == 0)
        size[0] = size[1] *= w->dim[--w->rank]; /* a short row is an element */
    const bool rows = !w->rank || contiguous(w, size);
    struct copy_loops *x = &c->inner;
    x->plane = x->line = x->row = (struct copy_loop){1, size[0], size[1]};
    if (w->rank) x->row = take(w, rows || rounds ? w->rank - 1 : densest(w, 0));
    if (w->rank) x->line = take(w, rows ? w->rank - 1 : densest(w, 1));
    if (w->rank) x->plane = take(w, w->rank - 1);
    c->run = rounds ? set->rounded
             : rows ? set->rows
                    : set->elements[__builtin_ctz((unsigned)size[0])];
}

/* A loop of each format have one in common if they are of the same dimension and overlap: from the
 * larger step up to the nearer end. */
const char *copy_formats(const tri_shape *shape, int64_t rows, tri_type to_type,
                         const struct pack *to, tri_type from_type, const struct pack *from,
                         struct copy *c) {
    const int64_t next[TRI_MAX_RANK] = {rows};
    struct pack_loop loop[2][PACK_LOOPS];
    const int n = pack_loops(to, shape, loop[0]), m = pack_loops(from, shape, loop[1]);
    *c = (struct copy){.walk.n = 2};
    for (int i = n * m - 1; i >= 0; i--) {
        const struct pack_loop *of[] = {&loop[0][i / m], &loop[1][i % m]};
        int64_t step = 1, end = of[0]->dim ? INT64_MAX : rows;
        if (of[0]->dim != of[1]->dim) continue;
        for (int k = 0; k < 2; k++) {
            if (of[k]->step > step) step = of[k]->step;
            if (of[k]->step * of[k]->length < end) end = of[k]->step * of[k]->length;
        }
        if (step >= end) continue;
        if (end % step) return "one block must divide the other";
        for (int k = 0; k < 2; k++)
            c->walk.stride[k][c->walk.rank] = step / of[k]->step * of[k]->stride;
        c->walk.dim[c->walk.rank++] = end / step;
    }
    copy_finish(c, to_type, from_type);
    c->next_to = pack_place(to, shape, next) * (int64_t)tri_type_size(to_type);
    c->next_from = pack_place(from, shape, next) * (int64_t)tri_type_size(from_type);
    return NULL;
}

/* ---- running ---- */

#define GROUP 16 /* lines that stay together: a unit of the parts */

static int64_t groups_of(const struct copy *c) {
    return (c->inner.line.length + GROUP - 1) / GROUP;
}

static int64_t planes_of(const struct copy *c) {
    return walk_count(&c->walk) * c->inner.plane.length;
}

int64_t copy_parts(const struct copy *c) {
    const int64_t plane = c->inner.line.length * c->inner.row.length;
    return cpu_parts(planes_of(c) * groups_of(c), plane / groups_of(c));
}

/* Runs once for several planes of a single group, or for several groups of a plane. */
void copy_part(const struct copy *c, void *to, const void *from, int64_t part, int64_t parts) {
    const int64_t groups = groups_of(c), planes = c->inner.plane.length;
    const int64_t all = planes_of(c) * groups, begin = all * part / parts;
    int64_t left = all * (part + 1) / parts - begin;
    int64_t group = begin % groups, plane = begin / groups % planes;
    struct place p;
    walk_seek(&c->walk, begin / groups / planes, &p);
    while (left) {
        struct copy_loops x = c->inner;
        const int64_t line = group * GROUP, most = groups == 1 ? planes - plane : groups - group;
        const int64_t n = least(most, left);
        x.plane.length = groups == 1 ? n : 1;
        x.line.length = least(x.line.length - line, n * GROUP);
        c->run(x, (char *)to + c->to + p.offset[0] + plane * x.plane.to + line * x.line.to,
               (const char *)from + c->from + p.offset[1] + plane * x.plane.from +
                   line * x.line.from);
        left -= n;
        group = 0;
        plane += x.plane.length;
        if (plane < planes) continue;
        plane = 0;
        walk_next(&c->walk, c->walk.rank, &p);
    }
}

void copy_several(const struct copy *c, void *to, const void *from, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        copy_run(c, (char *)to + i * c->next_to, (const char *)from + i * c->next_from);
}
