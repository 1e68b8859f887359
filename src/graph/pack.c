/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/pack.h"

#include <stdio.h>
#include <stdlib.h>

int64_t pack_cut(const struct pack *p, int dim) {
    int64_t all = 1;
    for (int i = 0; i < p->blocks; i++)
        if (p->dim[i] == dim) all *= p->size[i];
    return all;
}

static const char *parse_blocks(const char *text, const tri_shape *shape, unsigned cuts,
                                struct pack *p) {
    unsigned seen = 0;
    while (*text) {
        char *end;
        int64_t size = strtoll(text, &end, 10);
        int dim = *end - 'a';
        if (end == text || *text < '1' || *text > '9' || size > INT32_MAX || dim < 0 ||
            dim >= shape->rank || p->blocks == PACK_BLOCKS)
            return "it is not of the form \"ABcd16b16a\"";
        p->dim[p->blocks] = dim;
        p->size[p->blocks++] = size;
        seen |= 1u << dim;
        text = end + 1;
    }
    for (int d = 0; d < shape->rank; d++)
        if (shape->dim[d] % pack_cut(p, d)) return "a block does not divide its dimension";
    return seen == cuts ? NULL : "capitals are the dimensions that have blocks";
}

const char *pack_parse(const char *text, const tri_shape *shape, struct pack *p) {
    unsigned seen = 0, cuts = 0;
    *p = (struct pack){.rank = shape->rank};
    for (int i = 0; i < shape->rank; i++) {
        int small = text[i] | 0x20, dim = small - 'a';
        if (!text[i] || dim < 0 || dim >= shape->rank || seen >> dim & 1)
            return "it needs a letter for each dimension";
        p->order[i] = dim;
        seen |= 1u << dim;
        if (text[i] != small) cuts |= 1u << dim;
    }
    return parse_blocks(text + shape->rank, shape, cuts, p);
}

void pack_of(const tri_tensor *t, struct pack *p) {
    const tri_shape *s = &t->spec.shape;
    if (*t->pack) {
        CHECK(!pack_parse(t->pack, s, p));
        return;
    }
    *p = (struct pack){.rank = s->rank, .blocks = t->block > 0};
    for (int d = 0; d < s->rank; d++) p->order[d] = d;
    p->dim[0] = 1;
    p->size[0] = t->block;
}

int64_t pack_place(const struct pack *p, const tri_shape *shape, const int64_t *at) {
    int64_t place = 0;
    for (int i = 0; i < p->rank; i++) {
        int d = p->order[i];
        int64_t all = pack_cut(p, d);
        place = place * (shape->dim[d] / all) + at[d] / all;
    }
    for (int i = 0; i < p->blocks; i++) {
        int64_t inner = 1; /* the product of the dimension's blocks after this one */
        for (int k = i + 1; k < p->blocks; k++)
            if (p->dim[k] == p->dim[i]) inner *= p->size[k];
        place = place * p->size[i] + at[p->dim[i]] / inner % p->size[i];
    }
    return place;
}

bool pack_print(const struct pack *p, char text[PACK_TEXT]) {
    int at = 0;
    for (int i = 0; i < p->rank; i++)
        text[at++] = (char)((pack_cut(p, p->order[i]) > 1 ? 'A' : 'a') + p->order[i]);
    text[at] = 0;
    for (int i = 0; i < p->blocks && at < PACK_TEXT; i++)
        at += snprintf(text + at, (size_t)(PACK_TEXT - at), "%lld%c", (long long)p->size[i],
                       'a' + p->dim[i]);
    return at < PACK_TEXT;
}

int pack_loops(const struct pack *p, const tri_shape *shape, struct pack_loop loop[PACK_LOOPS]) {
    struct pack_loop l = {.stride = 1};
    int64_t inside[TRI_MAX_RANK]; /* elements of a dimension in the loops further in */
    int n = 0;
    for (int d = 0; d < p->rank; d++) inside[d] = 1;
    for (int i = p->rank + p->blocks - 1; i >= 0; i--, l.stride *= l.length) {
        l.dim = i < p->rank ? p->order[i] : p->dim[i - p->rank];
        l.step = inside[l.dim];
        l.length = i < p->rank ? shape->dim[l.dim] / l.step : p->size[i - p->rank];
        inside[l.dim] *= l.length;
        if (l.length > 1) loop[n++] = l;
    }
    return n;
}

bool pack_equal(const struct pack *a, const struct pack *b, const tri_shape *shape) {
    struct pack_loop in_a[PACK_LOOPS], in_b[PACK_LOOPS];
    int n = pack_loops(a, shape, in_a);
    if (n != pack_loops(b, shape, in_b)) return false;
    while (n && in_a[n - 1].dim == in_b[n - 1].dim && in_a[n - 1].length == in_b[n - 1].length) n--;
    return n == 0;
}
