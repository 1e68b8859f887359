/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/cpu/tile.h"

#include "dev/cpu/isa.h"

#define DECLARE(isa) extern const struct tile_set tile_set_##isa;
EVERY_ISA(DECLARE)

static const struct tile_set *best(void) {
#define SET(isa) &tile_set_##isa,
    static const struct tile_set *const sets[] = {EVERY_ISA(SET)};
    return sets[isa_best()];
}

enum tile_type tile_type(tri_type t) {
    static const enum tile_type types[] = {
        [TRI_F32] = TILE_F32, [TRI_BF16] = TILE_F32, [TRI_F16] = TILE_F32, [TRI_I32] = TILE_I32,
        [TRI_I64] = TILE_I64, [TRI_U8] = TILE_U8,    [TRI_BOOL] = TILE_U8,
    };
    return types[t];
}

static const struct tile_row *row_of(const tri_node *n) {
    const struct tile_set *set = best();
    for (int i = 0; i < set->n_rows; i++)
        if (node_is(n, set->rows[i].op)) return &set->rows[i];
    return NULL;
}

bool tile_has(const tri_node *n) { return node_is(n, "cast") || row_of(n); }

tile_fn *tile_find(const tri_node *n, enum tile_form form) {
    if (node_is(n, "cast")) {
        tri_type to = cpu_out(n, 0)->type;
        int column = to == TRI_BOOL ? TILE_TYPES : (int)tile_type(to);
        return form ? NULL : best()->cast[tile_type(cpu_in(n, 0)->type)][column];
    }
    const struct tile_row *r = row_of(n);
    return r ? r->fn[tile_type(cpu_in(n, n->n_in - 1)->type)][form] : NULL;
}

void tile_params(const tri_node *n, float p[2]) {
    const struct tile_row *r = row_of(n);
    for (int i = 0; i < 2; i++)
        p[i] = r && r->attribute[i] ? (float)tri_attr_float(n, r->attribute[i]) : 0;
}

tile_fn *tile_copy(tri_type t) { return best()->copy[tile_type(t)]; }
tile_fn *tile_divide(void) { return best()->divide; }

struct tile_storage tile_storage(tri_type type) { return best()->storage[type == TRI_F16]; }
