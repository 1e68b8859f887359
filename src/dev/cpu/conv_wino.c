/* SPDX-License-Identifier: Apache-2.0
 * Winograd's way for 3x3 convolutions of stride 1 and their derivative by x, F(4x4, 3x3): patches
 * of 6x6 inputs give tiles of 4x4 outputs, by 36 products of matrices where the direct way has 144
 * products of elements. A first round transforms the weight; in a second parts of the tiles are
 * done in chunks: their patches are transformed, multiplied, and what comes out is transformed
 * back, all within the caches.
 *
 * An output's sum goes over the input channels in order; so the bits depend neither on the
 * chunks nor on the parts, nor on the instructions. */
#include "dev/cpu/conv_sums.h"
#include "dev/cpu/conv_wino.h"
#include "ops/window.h"

/* Of transformed patches and products: about the second-level cache; but where the weight is large,
 * which is gone through for each chunk, up to a part of the third. */
#define CHUNK_BYTES 1200000
#define CHUNK_MOST_BYTES 16000000

struct state {
    bool back;         /* the derivative by x: the weight is turned, and its channels changed */
    struct plane from, to;
    int64_t up, left;  /* padding */
    struct tiling tiles;
    int64_t chunk, parts, weights; /* tiles of a chunk; parts of the second round, of the first */
    int64_t u, v, m; /* floats from one slice to the next: of the weight, of patches, of products */
};

/* ---- the weight ---- */

INLINE void weight_line(const vec g[3], vec out[PATCH]) {
    const vec even_a = vec_fma(vec_set(A2), g[2], g[0]), even_b = vec_fma(vec_set(B2), g[2], g[0]);
    out[0] = g[0] * vec_set(1 / N0);
    out[1] = vec_fma(vec_set(A), g[1], even_a) * vec_set(1 / NA);
    out[2] = vec_fma(vec_set(-A), g[1], even_a) * vec_set(1 / NA);
    out[3] = vec_fma(vec_set(B), g[1], even_b) * vec_set(1 / NB);
    out[4] = vec_fma(vec_set(-B), g[1], even_b) * vec_set(1 / NB);
    out[5] = g[2];
}

/* 16 x 16 channels: to[from][3][3][to's channels]. */
static void take_weight(const struct state *s, const float *weight, int64_t from, int64_t to,
                        float block[BLOCK][9][BLOCK]) {
    const int64_t inner = s->back ? s->to.channels : s->from.channels;
    for (int64_t o = 0; o < BLOCK; o++)
        for (int64_t i = 0; i < BLOCK; i++) {
            const int64_t at = s->back ? (from + i) * inner + to + o : (to + o) * inner + from + i;
            const float *w = weight + at * 9;
            for (int k = 0; k < 9; k++) block[i][s->back ? 8 - k : k][o] = w[k];
        }
}

INLINE void put_weight(const float g[9][BLOCK], int64_t lane, float *to, int64_t slice) {
    BOTH_WAYS(weight_line, 3, PATCH, *(const vec_at *)(g[3 * i + j] + lane),
              *(vec_at *)(to + (i * PATCH + j) * slice + lane) = v);
}

/* Blocks of 16 x 16 channels, into the panels of a product: [slice, to / 16, from, 16]. */
static void run_weights(const struct state *s, const tri_call *c, int64_t part) {
    float block[BLOCK][9][BLOCK];
    const int64_t columns = s->to.channels / BLOCK, all = s->from.channels / BLOCK * columns;
    for (int64_t k = all * part / s->weights; k < all * (part + 1) / s->weights; k++) {
        const int64_t from = k / columns * BLOCK, to = k % columns * BLOCK;
        take_weight(s, c->in[1], from, to, block);
        float *u = (float *)c->shared + to * s->from.channels;
        for (int64_t i = 0; i < BLOCK; i++)
            for (int64_t lane = 0; lane < BLOCK; lane += VEC)
                put_weight(block[i], lane, u + (from + i) * GEMM_PANEL, s->u);
    }
}

/* ---- products ---- */

static void multiply(const struct state *s, const float *u, const float *v, int64_t n, float *m) {
    struct gemm g = {.m = n,
                     .n = s->to.channels,
                     .k = s->from.channels,
                     .a_row = s->from.channels,
                     .a_k = 1,
                     .b_k = GEMM_PANEL,
                     .b_panel = s->from.channels * GEMM_PANEL,
                     .c_row = s->to.channels};
    for (int64_t i = 0; i < SLICES; i++) {
        g.a = v + i * s->v;
        g.b = u + i * s->u;
        g.c = m + i * s->m;
        gemm_direct(&g);
    }
}

/* ---- tiles ---- */

INLINE void tile_line(const vec m[PATCH], vec out[TILE]) {
    const vec s1 = m[1] + m[2], d1 = m[1] - m[2], s2 = m[3] + m[4], d2 = m[3] - m[4];
    out[0] = m[0] + (s1 + s2);
    out[1] = vec_fma(vec_set(A), d1, vec_set(B) * d2);
    out[2] = vec_fma(vec_set(A2), s1, vec_set(B2) * s2);
    out[3] = vec_fma(vec_set(A * A2), d1, vec_fma(vec_set(B * B2), d2, m[5]));
}

INLINE void put(const struct plane *p, float *plane, int64_t row, int64_t column, int64_t lane,
                bool blocks, vec v) {
    float *to = plane + (row * p->w + column) * p->place;
    if (blocks)
        *(vec_at *)(to + lane) = v;
    else
        for (int i = 0; i < VEC; i++) to[(lane + i) * p->channel] = v[i];
}

/* bias: of the block's channels; nullable. */
INLINE void tile_any(const struct state *s, const float *m, const float *bias, float *plane,
                     int64_t row, int64_t column, const bool blocks) {
    const struct plane *p = &s->to;
    for (int64_t lane = 0; lane < BLOCK; lane += VEC)
        BOTH_WAYS(tile_line, PATCH, TILE, *(const vec_at *)(m + (i * PATCH + j) * s->m + lane),
                  if (row + i < p->h && column + j < p->w)
                      put(p, plane, row + i, column + j, lane, blocks,
                          bias ? v + *(const vec_at *)(bias + lane) : v));
}

static void tiles(const struct state *s, const float *m, const float *bias, int64_t first,
                  int64_t n, float *all) {
    for (int64_t k = 0; k < n; k++) {
        const struct at at = tile_at(&s->tiles, first + k);
        for (int64_t c = 0; c < s->to.channels; c += BLOCK) {
            float *plane = all + (at.sample * s->to.channels + c) * s->to.h * s->to.w;
            const float *from = m + k * s->to.channels + c;
            const float *add = bias ? bias + c : NULL;
            if (s->to.place == 1)
                tile_any(s, from, add, plane, at.row, at.column, false);
            else
                tile_any(s, from, add, plane, at.row, at.column, true);
        }
    }
}

static void run(const tri_call *c) {
    const struct state *s = c->state;
    if (c->part < s->weights) {
        run_weights(s, c, c->part);
        return;
    }
    const int64_t part = c->part - s->weights;
    float *v = c->scratch, *m = v + SLICES * s->v;
    const float *bias = !s->back && c->node->n_in > 2 ? c->in[2] : NULL;
    const int64_t end = s->tiles.all * (part + 1) / s->parts;
    for (int64_t at = s->tiles.all * part / s->parts, n; at < end; at += n) {
        n = end - at < s->chunk ? end - at : s->chunk;
        patches(&s->from, &s->tiles, s->up, s->left, c->in[0], at, n, v, s->v);
        multiply(s, c->shared, v, n, m);
        tiles(s, m, bias, at, n, c->out[0]);
    }
}

/* ---- preparation ---- */

static struct plane plane_of(const tri_tensor *t) {
    const tri_shape *s = &t->spec.shape;
    struct plane p = {s->dim[1], s->dim[2], s->dim[3], 1, s->dim[2] * s->dim[3]};
    if (t->block) p.place = BLOCK;
    return p;
}

static tri_status prepare(const tri_node *n, void **state) {
    struct window w;
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    CHECK(window_of(n, &w));
    struct state *s = *state;
    s->back = node_is(n, "conv2d_dx");
    s->from = plane_of(n->in[0]);
    s->to = plane_of(n->out);
    s->up = s->back ? 2 - w.ph : w.ph;
    s->left = s->back ? 2 - w.pw : w.pw;
    s->tiles = tiling_of(w.n, s->to.h, s->to.w);
    const int64_t tile = SLICES * (s->from.channels + s->to.channels) * (int64_t)sizeof(float);
    const int64_t enough = CHUNK_BYTES / tile, most = CHUNK_MOST_BYTES / tile,
                  worth = s->from.channels / 4;
    s->chunk = least(least(worth > enough ? worth : enough, most), (s->tiles.all + 1) / 2);
    s->chunk = least((s->chunk + GEMM_GROUP - 1) / GEMM_GROUP * GEMM_GROUP, s->tiles.all);
    s->parts = least(CONV_MOST_PARTS, (s->tiles.all + s->chunk - 1) / s->chunk);
    s->weights = least(CONV_MOST_PARTS, s->from.channels / BLOCK);
    s->u = gemm_packed(s->to.channels, s->from.channels) + UNEVEN;
    s->v = s->chunk * s->from.channels + UNEVEN;
    s->m = s->chunk * s->to.channels + UNEVEN;
    return TRI_OK;
}

static void plan(const tri_node *n, struct kernel *k) {
    const struct state *s = k->state;
    (void)n;
    k->parts = s->weights;
    k->then = s->parts;
    k->scratch = (size_t)(SLICES * (s->v + s->m)) * sizeof(float);
    k->shared = (size_t)(SLICES * s->u) * sizeof(float);
}

static void formats(const tri_node *n, struct format *in, struct format *out) {
    (void)n;
    in[0].block = out[0].block = BLOCK;
}

#define ENTRY(name) \
    { .op = name, .run = run, .prepare = prepare, .release = free, .plan = plan, \
      .formats = formats }

const struct dev_row FOR_ISA(cpu_conv_wino)[] = {ENTRY("conv2d"), ENTRY("conv2d_dx"), {0}};
