/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/cpu/walk.h"

#include <string.h>

struct walk walk_over(const tri_shape *shape, int n) {
    struct walk w = {.rank = shape->rank, .n = n};
    for (int d = 0; d < w.rank; d++) w.dim[d] = shape->dim[d];
    return w;
}

/* Splits dimension 1: the blocks in its place, and after all others the channels of a block. */
static void split_channels(int64_t *of_dim, int rank, int64_t outer, int64_t inner) {
    of_dim[1] = outer;
    of_dim[rank] = inner;
}

struct walk walk_of(const tri_tensor *t, int n) {
    struct walk w = walk_over(&t->spec.shape, n);
    if (!t->block) return w;
    split_channels(w.dim, w.rank, w.dim[1] / t->block, t->block);
    w.rank++;
    return w;
}

void walk_operand(struct walk *w, int k, const tri_tensor *in, const tri_tensor *to) {
    const tri_shape *s = &to->spec.shape, *mine = &in->spec.shape;
    struct walk plain = {.rank = s->rank};
    CHECK(!in->block || (in->block == to->block && mine->rank == s->rank));
    if (!in->block) {
        walk_broadcast(&plain, k, mine);
        if (to->block)
            split_channels(plain.stride[k], s->rank, plain.stride[k][1] * to->block,
                           plain.stride[k][1]);
    } else {
        int64_t stride = in->block;
        for (int d = s->rank - 1; d >= 0; d--) {
            plain.stride[k][d] = mine->dim[d] == 1 ? 0 : stride;
            stride *= d == 1 ? mine->dim[d] / in->block : mine->dim[d];
        }
        plain.stride[k][s->rank] = 1;
    }
    memcpy(w->stride[k], plain.stride[k], sizeof plain.stride[k]);
}

void walk_broadcast(struct walk *w, int k, const tri_shape *shape) {
    int64_t stride = 1;
    for (int d = w->rank - 1, s = shape->rank - 1; d >= 0; d--, s--) {
        int64_t length = s >= 0 ? shape->dim[s] : 1;
        w->stride[k][d] = length == 1 ? 0 : stride;
        stride *= length;
    }
}

void walk_reduced(struct walk *w, int k, unsigned mask) {
    int64_t stride = 1;
    for (int d = w->rank - 1; d >= 0; d--) {
        bool gone = mask >> d & 1;
        w->stride[k][d] = gone ? 0 : stride;
        if (!gone) stride *= w->dim[d];
    }
}

void walk_dense(struct walk *w, int k) { walk_reduced(w, k, 0); }

static void move(struct walk *w, int to, int from) {
    w->dim[to] = w->dim[from];
    for (int k = 0; k < w->n; k++) w->stride[k][to] = w->stride[k][from];
}

/* In every tensor, dimension `outer` continues where `inner` ends. */
static bool joins(const struct walk *w, int outer, int inner) {
    for (int k = 0; k < w->n; k++)
        if (w->stride[k][outer] != w->stride[k][inner] * w->dim[inner]) return false;
    return true;
}

void walk_simplify(struct walk *w) {
    int rank = 0;
    for (int d = 0; d < w->rank; d++) {
        if (w->dim[d] == 1) continue;
        if (rank && joins(w, rank - 1, d)) {
            int64_t before = w->dim[rank - 1];
            move(w, rank - 1, d);
            w->dim[rank - 1] *= before;
        } else {
            move(w, rank++, d);
        }
    }
    w->rank = rank;
}

bool walk_is_dense(const struct walk *w, int k) {
    int64_t stride = 1;
    for (int d = w->rank - 1; d >= 0; d--) {
        if (w->stride[k][d] != stride) return false;
        stride *= w->dim[d];
    }
    return true;
}

int64_t walk_count(const struct walk *w) {
    int64_t count = 1;
    for (int d = 0; d < w->rank; d++) count *= w->dim[d];
    return count;
}

void walk_remove(struct walk *w, int d) {
    for (w->rank--; d < w->rank; d++) move(w, d, d + 1);
}

void walk_seek(const struct walk *w, int64_t number, struct place *p) {
    *p = (struct place){0};
    for (int d = w->rank - 1; d >= 0; d--) {
        p->index[d] = number % w->dim[d];
        number /= w->dim[d];
        for (int k = 0; k < w->n; k++) p->offset[k] += p->index[d] * w->stride[k][d];
    }
}
