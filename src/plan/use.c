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

double split_move_bytes(const struct split *from, const struct split *to, double bytes, double k) {
    if (split_same(from, to, (int64_t)k) || from->kind == WHOLE) return 0;
    if (from->kind == PARTIAL) return bytes * (k - 1) / k * (to->kind == WHOLE ? 2 : 1);
    return bytes * (k - 1) / k / (to->kind == WHOLE ? 1 : k);
}
