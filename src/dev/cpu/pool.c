/* SPDX-License-Identifier: Apache-2.0
 * Pooling and its derivatives, plane by plane: a plane is [h, w, block] of a tensor in the format
 * [n, c / block, h, w, block]. Blocks are processed place by place, in vectors of channels. Plain
 * planes, whose block is 1, are processed in vectors of places: for each place of the window, the
 * output places that see it inside the input are a range, over which the loops run. */
#include "dev/cpu/rows.h"
#include "ops/window.h"

/* The output places q of a row for which column q * stride - pad + k is inside the input. */
struct range {
    int64_t begin, end;
};

struct state {
    struct window w;
    tri_type type;
    int64_t block, planes, parts;
    struct range *seen; /* per place k of the window, [kw] */
    float *divisor;     /* of the average, [oh, ow] */
    double *row;        /* sums of one output row */
    /* For the maximum: one output row, rounded up, and where its windows start; the phases of a
     * padded input row that windows see, each of length `phase`. */
    int64_t rounded, phases, phase;
    float *best, *padded;
    int32_t *index, *column;
};

static struct range seen(const struct window *w, int64_t k) {
    int64_t first = w->pw - k, last = w->w - 1 + w->pw - k;
    return (struct range){first > 0 ? (first + w->sw - 1) / w->sw : 0,
                          last < 0 ? 0 : least(last / w->sw + 1, w->ow)};
}

/* ---- elements ---- */

INLINE void store_row(tri_type t, void *to, int64_t first, const float *from, int64_t n) {
    const int64_t size = t == TRI_F32 ? 4 : 2;
    void *row_to = (char *)to + first * size;
    ROW(n, STORE(t, row_to, LOAD(TRI_F32, from, 0)));
}

/* Calls the loop with a constant stride if it is 1 or 2, so that it vectorises. */
#define BY_STRIDE(stride, loop, ...)                                                        \
    do {                                                                                    \
        if ((stride) == 1)                                                                  \
            loop(__VA_ARGS__, 1);                                                           \
        else if ((stride) == 2)                                                             \
            loop(__VA_ARGS__, 2);                                                           \
        else                                                                                \
            loop(__VA_ARGS__, stride);                                                      \
    } while (0)

/* Channels of a block in vectors. */
#define EACH_VECTOR(block) for (int64_t at = 0; at < (block); at += VEC)
#define SOME(block) ((block) - at < VEC ? (block) - at : VEC)
#define GET(t, x, place) \
    (some == VEC ? vec_load(t, x, place) : vec_load_some(t, x, place, some, 0))
#define PUT(t, y, place, v) \
    (some == VEC ? vec_store(t, y, place, v) : vec_store_some(t, y, place, some, v))

static bool is_part(const struct window *w) { return w->all_h > w->h || w->all_w > w->w; }

/* ---- the maximum of vectors ---- */

/* Keeps what is larger than the best so far, or the first NaN. */
INLINE void keep_larger(vec *best, vec_u32 *index, vec x, vec_u32 place) {
    const vec b = *best;
    const vec_mask take =
        vec_either(vec_less(b, x), vec_both(vec_not(vec_equal(x, x)), vec_equal(b, b)));
    *best = vec_select(take, x, b);
    *index = (vec_u32)vec_select(take, (vec)place, (vec)*index);
}

/* ---- maximum, plain, adjacent windows of width two ---- */

#if VEC == 16
#define EVERY_SECOND(a, b, first)                                                           \
    __builtin_shufflevector(a, b, first, first + 2, first + 4, first + 6, first + 8,        \
                            first + 10, first + 12, first + 14, first + 16, first + 18,     \
                            first + 20, first + 22, first + 24, first + 26, first + 28,     \
                            first + 30)
#define ALTERNATELY(a, b, first)                                                            \
    __builtin_shufflevector(a, b, first, first + 16, first + 1, first + 17, first + 2,      \
                            first + 18, first + 3, first + 19, first + 4, first + 20,       \
                            first + 5, first + 21, first + 6, first + 22, first + 7,        \
                            first + 23)
#elif VEC == 8
#define EVERY_SECOND(a, b, first)                                                           \
    __builtin_shufflevector(a, b, first, first + 2, first + 4, first + 6, first + 8,        \
                            first + 10, first + 12, first + 14)
#define ALTERNATELY(a, b, first)                                                            \
    __builtin_shufflevector(a, b, first, first + 8, first + 1, first + 9, first + 2,        \
                            first + 10, first + 3, first + 11)
#else
#define EVERY_SECOND(a, b, first) \
    __builtin_shufflevector(a, b, first, first + 2, first + 4, first + 6)
#define ALTERNATELY(a, b, first) \
    __builtin_shufflevector(a, b, first, first + 4, first + 1, first + 5)
#endif

static bool in_pairs(const struct window *w) {
    return w->kw == 2 && w->sw == 2 && w->pw == 0 && 2 * w->ow <= w->w;
}

/* n elements of a vector: all if n is larger, none if it is below one. */
INLINE vec part_of(tri_type t, const void *x, int64_t from, int64_t n) {
    return n >= VEC ? vec_load(t, x, from) : n > 0 ? vec_load_some(t, x, from, n, 0) : (vec){0};
}

static const uint32_t twice[16] = {0,  2,  4,  6,  8,  10, 12, 14,
                                   16, 18, 20, 22, 24, 26, 28, 30};

INLINE void put_part(float *to, int64_t n, vec v) {
    if (n >= VEC)
        vec_store(TRI_F32, to, 0, v);
    else if (n > 0)
        vec_put(to, n, v);
}

INLINE void max_pairs(tri_type t, const struct state *s, const tri_call *c, int64_t plane) {
    const struct window *w = &s->w;
    int64_t to = plane * w->oh * w->ow;
    for (int64_t r = 0; r < w->oh; r++, to += w->ow) {
        struct window_span v = window_rows(w, r);
        for (int64_t q = 0; q < w->ow; q += VEC) {
            const int64_t some = least(w->ow - q, VEC), n = 2 * some;
            vec_u32 column = *(const vec_u32_at *)twice + (uint32_t)(2 * q);
            vec best = vec_set(-__builtin_inff());
            vec_u32 index = column + (uint32_t)(v.begin * w->w);
            for (int64_t y = v.begin; y < v.end; y++) {
                int64_t from = (plane * w->h + y) * w->w + 2 * q;
                vec a = part_of(t, c->in[0], from, n),
                    b = part_of(t, c->in[0], from + VEC, n - VEC);
                vec_u32 place = column + (uint32_t)(y * w->w);
                keep_larger(&best, &index, EVERY_SECOND(a, b, 0), place);
                keep_larger(&best, &index, EVERY_SECOND(a, b, 1), place + 1);
            }
            PUT(t, c->out[0], to + q, best);
            PUT(TRI_F32, c->out[1], to + q, (vec)index);
        }
    }
}

/* ---- maximum, plain, any windows ---- */

#define WIDTH 16 /* rows are rounded up to this, so that vector loops have no remainder */

/* Compares best with the places x, whose indices are first + index. */
INLINE void larger(float *best, int32_t *best_index, const float *x, const int32_t *index,
                   int32_t first, int64_t n) {
    INDEPENDENT for (int64_t i = 0; i < n; i++) {
        float v = x[i], b = best[i];
        bool take = (v > b) | ((v != v) & (b == b));
        best[i] = take ? v : b;
        best_index[i] = take ? first + index[i] : best_index[i];
    }
}

/* Every stride-th element of an input row, from `phase` of the padded row. */
INLINE void take_phase(tri_type t, float *to, const void *x, int64_t row, const struct window *w,
                       int64_t phase, int64_t stride) {
    int64_t skip = phase < w->pw ? (w->pw - phase + stride - 1) / stride : 0;
    int64_t first = phase + skip * stride - w->pw, n = (w->w - first + stride - 1) / stride;
    to += skip;
    INDEPENDENT for (int64_t i = 0; i < n; i++) to[i] = rows_get(t, x, row + first + i * stride);
}

/* One output row. Every window starts empty, at its first place; -infinity pads the input. The
 * padded input row is stored as one row per phase of the stride, so that what place k of the
 * windows sees is contiguous. */
INLINE void max_row(tri_type t, const struct state *s, const void *x, int64_t plane, int64_t r) {
    const struct window *w = &s->w;
    struct window_span v = window_rows(w, r);
    for (int64_t q = 0; q < s->rounded; q++) {
        int32_t column = s->column[q] < 0 ? 0 : s->column[q];
        s->index[q] = (int32_t)(v.begin * w->w) + column;
        s->best[q] = -__builtin_inff();
    }
    for (int64_t y = v.begin; y < v.end; y++) {
        int64_t row = (plane * w->h + y) * w->w;
        for (int64_t p = 0; p < s->phases; p++)
            BY_STRIDE(w->sw, take_phase, t, s->padded + p * s->phase, x, row, w, p);
        for (int64_t k = 0; k < w->kw; k++)
            larger(s->best, s->index, s->padded + k % w->sw * s->phase + k / w->sw, s->column,
                   (int32_t)(y * w->w + k), s->rounded);
    }
}

INLINE void max_plain(tri_type t, const struct state *s, const tri_call *c, int64_t plane) {
    const struct window *w = &s->w;
    for (int64_t r = 0; r < w->oh; r++) {
        int64_t row = (plane * w->oh + r) * w->ow;
        max_row(t, s, c->in[0], plane, r);
        store_row(t, c->out[0], row, s->best, w->ow);
        memcpy((int32_t *)c->out[1] + row, s->index, (size_t)w->ow * sizeof *s->index);
    }
}

/* ---- maximum, blocks ---- */

/* One output place: the window [top, bottom) x [left, right) of the plane that starts at `from`. */
INLINE void max_place(tri_type t, const struct state *s, const void *x, int64_t from,
                      struct window_span v, struct window_span h, int64_t at, int64_t some,
                      vec *best, vec_u32 *index) {
    const int64_t width = s->w.w;
    *best = vec_set(-__builtin_inff());
    *index = (vec_u32){0} + (uint32_t)(v.begin * width + h.begin);
    for (int64_t row = v.begin; row < v.end; row++)
        for (int64_t column = h.begin; column < h.end; column++) {
            int64_t place = row * width + column;
            keep_larger(best, index, GET(t, x, from + place * s->block + at),
                        (vec_u32){0} + (uint32_t)place);
        }
}

INLINE void max_blocks(tri_type t, const struct state *s, const tri_call *c, int64_t plane) {
    const struct window *w = &s->w;
    const int64_t from = plane * w->h * w->w * s->block;
    int64_t to = plane * w->oh * w->ow * s->block;
    for (int64_t r = 0; r < w->oh; r++)
        for (int64_t q = 0; q < w->ow; q++, to += s->block)
            EACH_VECTOR(s->block) {
                const int64_t some = SOME(s->block);
                vec best;
                vec_u32 index;
                max_place(t, s, c->in[0], from, window_rows(w, r), window_columns(w, q), at, some,
                          &best, &index);
                PUT(t, c->out[0], to + at, best);
                memcpy((int32_t *)c->out[1] + to + at, &index, (size_t)some * sizeof(int32_t));
            }
}

/* Indices of places of a part, as of the whole. */
static void count_in_whole(const struct state *s, const tri_call *c, int64_t plane) {
    const struct window *w = &s->w;
    const int64_t out = w->oh * w->ow * s->block;
    int32_t *index = (int32_t *)c->out[1] + plane * out;
    for (int64_t i = 0; i < out; i++) {
        const int64_t row = index[i] / w->w, column = index[i] % w->w;
        index[i] = (int32_t)((w->y0 + row) * w->all_w + w->x0 + column);
    }
}

static void max_plane(const struct state *s, const tri_call *c, int64_t plane) {
    if (s->block == 1 && in_pairs(&s->w))
        BY_TYPE(s->type, max_pairs, s, c, plane);
    else if (s->block == 1)
        BY_TYPE(s->type, max_plain, s, c, plane);
    else
        BY_TYPE(s->type, max_blocks, s, c, plane);
    if (is_part(&s->w)) count_in_whole(s, c, plane);
}

/* ---- the maximum's derivative ---- */

/* dx is f32: the output's plane, or scratch. */
INLINE bool add_at_index(tri_type t, const struct state *s, const tri_call *c, int64_t plane,
                         float *dx) {
    const struct window *w = &s->w;
    const int64_t in = w->all_h * w->all_w, out = w->oh * w->ow * s->block, from = plane * out;
    const int32_t *index = (const int32_t *)c->in[1] + from;
    const bool part = is_part(w);
    for (int64_t i = 0; i < out; i += s->block)
        for (int64_t k = 0; k < s->block; k++) {
            int64_t place = index[i + k];
            if (place < 0 || place >= in) {
                tri_call_fail(c, "index %d at element %lld is not below %lld", (int)place,
                              (long long)(from + i + k), (long long)in);
                return false;
            }
            if (part) {
                const int64_t row = place / w->all_w - w->y0, column = place % w->all_w - w->x0;
                if (row < 0 || row >= w->h || column < 0 || column >= w->w) continue;
                place = row * w->w + column;
            }
            dx[place * s->block + k] += rows_get(t, c->in[0], from + i + k);
        }
    return true;
}

/* Adjacent pairs of columns: windows do not overlap and cover the plane. If each index is in its
 * own window, every element of dx is known at once. */
INLINE void give_pairs(tri_type t, const struct state *s, const tri_call *c, int64_t plane,
                       float *dx, bool *all_own) {
    const struct window *w = &s->w;
    int64_t from = plane * w->oh * w->ow;
    vec_u32 lost = {0};
    for (int64_t r = 0; r < w->oh; r++, from += w->ow)
        for (int64_t q = 0; q < w->ow; q += VEC) {
            const int64_t some = least(w->ow - q, VEC), n = 2 * some;
            const vec_u32 pairs = *(const vec_u32_at *)twice, column = pairs + (uint32_t)(2 * q);
            vec d = GET(t, c->in[0], from + q);
            vec_u32 index = (vec_u32)GET(TRI_F32, c->in[1], from + q), found = {0};
            for (int64_t y = r * w->sh; y < r * w->sh + w->kh; y++) {
                vec_u32 place = column + (uint32_t)(y * w->w);
                vec_u32 even = (vec_u32)(index == place), odd = (vec_u32)(index == place + 1);
                vec a = (vec)((vec_u32)d & even) + 0, b = (vec)((vec_u32)d & odd) + 0;
                float *to = dx + y * w->w + 2 * q;
                put_part(to, n, ALTERNATELY(a, b, 0));
                put_part(to + VEC, n - VEC, ALTERNATELY(a, b, VEC / 2));
                found |= even | odd;
            }
            lost |= ~found & (vec_u32)(pairs < (uint32_t)n);
        }
    *all_own = true;
    for (int i = 0; i < VEC; i++) *all_own &= !lost[i];
}

static bool gives_pairs(const struct state *s) {
    const struct window *w = &s->w;
    return s->block == 1 && !is_part(w) && in_pairs(w) && w->w == 2 * w->ow && w->sh == w->kh &&
           w->ph == 0 && w->h == w->oh * w->kh;
}

static void clear(const struct state *s, float *dx) {
    memset(dx, 0, (size_t)(s->w.h * s->w.w * s->block) * sizeof *dx);
}

static void max_dx_plane(const struct state *s, const tri_call *c, int64_t plane, float *dx) {
    bool done = false;
    if (gives_pairs(s)) BY_TYPE(s->type, give_pairs, s, c, plane, dx, &done);
    if (done) return;
    clear(s, dx);
    BY_TYPE(s->type, add_at_index, s, c, plane, dx);
}

/* ---- average ---- */

INLINE void add_from(tri_type t, double *sum, const void *x, int64_t from, int64_t n,
                     int64_t stride) {
    INDEPENDENT for (int64_t i = 0; i < n; i++)
        sum[i] += (double)rows_get(t, x, from + i * stride);
}

INLINE void avg_plain(tri_type t, const struct state *s, const tri_call *c, int64_t plane) {
    const struct window *w = &s->w;
    for (int64_t r = 0; r < w->oh; r++) {
        struct window_span v = window_rows(w, r);
        for (int64_t q = 0; q < w->ow; q++) s->row[q] = 0;
        for (int64_t row = v.begin; row < v.end; row++)
            for (int64_t k = 0; k < w->kw; k++) {
                struct range q = s->seen[k];
                int64_t from = (plane * w->h + row) * w->w + q.begin * w->sw - w->pw + k;
                BY_STRIDE(w->sw, add_from, t, s->row + q.begin, c->in[0], from, q.end - q.begin);
            }
        for (int64_t q = 0; q < w->ow; q++)
            s->best[q] = (float)(s->row[q] / (double)s->divisor[r * w->ow + q]);
        store_row(t, c->out[0], (plane * w->oh + r) * w->ow, s->best, w->ow);
    }
}

INLINE void avg_blocks(tri_type t, const struct state *s, const tri_call *c, int64_t plane) {
    const struct window *w = &s->w;
    const int64_t from = plane * w->h * w->w * s->block;
    int64_t to = plane * w->oh * w->ow * s->block;
    for (int64_t r = 0; r < w->oh; r++)
        for (int64_t q = 0; q < w->ow; q++, to += s->block) {
            struct window_span v = window_rows(w, r), h = window_columns(w, q);
            const double divisor = (double)s->divisor[r * w->ow + q];
            EACH_VECTOR(s->block) {
                const int64_t some = SOME(s->block);
                double sum[VEC] = {0};
                vec mean;
                for (int64_t row = v.begin; row < v.end; row++)
                    for (int64_t column = h.begin; column < h.end; column++) {
                        vec x = GET(t, c->in[0], from + (row * w->w + column) * s->block + at);
                        for (int i = 0; i < VEC; i++) sum[i] += (double)x[i];
                    }
                for (int i = 0; i < VEC; i++) mean[i] = (float)(sum[i] / divisor);
                PUT(t, c->out[0], to + at, mean);
            }
        }
}

static void avg_plane(const struct state *s, const tri_call *c, int64_t plane) {
    if (s->block == 1)
        BY_TYPE(s->type, avg_plain, s, c, plane);
    else
        BY_TYPE(s->type, avg_blocks, s, c, plane);
}

/* ---- the average's derivative ---- */

INLINE void add_to(float *dx, const float *d, int64_t n, int64_t stride) {
    INDEPENDENT for (int64_t i = 0; i < n; i++) dx[i * stride] += d[i];
}

INLINE void avg_dx_plain(tri_type t, const struct state *s, const tri_call *c, int64_t plane,
                         float *to) {
    const struct window *w = &s->w;
    for (int64_t r = 0; r < w->oh; r++) {
        struct window_span v = window_rows(w, r);
        int64_t first = (plane * w->oh + r) * w->ow;
        for (int64_t q = 0; q < w->ow; q++)
            s->best[q] = rows_get(t, c->in[0], first + q) / s->divisor[r * w->ow + q];
        for (int64_t row = v.begin; row < v.end; row++)
            for (int64_t k = 0; k < w->kw; k++) {
                struct range q = s->seen[k];
                float *dx = to + row * w->w + q.begin * w->sw - w->pw + k;
                BY_STRIDE(w->sw, add_to, dx, s->best + q.begin, q.end - q.begin);
            }
    }
}

/* In the order of the plain format: for each row of the window its places, for each of these the
 * output's places. */
INLINE void avg_dx_blocks(tri_type t, const struct state *s, const tri_call *c, int64_t plane,
                          float *dx) {
    const struct window *w = &s->w;
    const int64_t from = plane * w->oh * w->ow * s->block;
    for (int64_t r = 0; r < w->oh; r++) {
        struct window_span v = window_rows(w, r);
        for (int64_t row = v.begin; row < v.end; row++)
            for (int64_t k = 0; k < w->kw; k++)
                for (int64_t q = s->seen[k].begin; q < s->seen[k].end; q++) {
                    const float divisor = s->divisor[r * w->ow + q];
                    float *to = dx + (row * w->w + q * w->sw - w->pw + k) * s->block;
                    EACH_VECTOR(s->block) {
                        const int64_t some = SOME(s->block);
                        vec d = GET(t, c->in[0], from + (r * w->ow + q) * s->block + at) / divisor;
                        PUT(TRI_F32, to, at, GET(TRI_F32, to, at) + d);
                    }
                }
    }
}

static void avg_dx_plane(const struct state *s, const tri_call *c, int64_t plane, float *dx) {
    clear(s, dx);
    if (s->block == 1)
        BY_TYPE(s->type, avg_dx_plain, s, c, plane, dx);
    else
        BY_TYPE(s->type, avg_dx_blocks, s, c, plane, dx);
}

/* ---- kernels ---- */

static void run_planes(const tri_call *c,
                       void (*plane)(const struct state *s, const tri_call *c, int64_t plane)) {
    const struct state *s = c->state;
    struct cpu_range r = cpu_part(c, s->parts, s->planes);
    for (int64_t p = r.begin; p < r.end; p++) plane(s, c, p);
}

static void max_pool(const tri_call *c) { run_planes(c, max_plane); }
static void avg_pool(const tri_call *c) { run_planes(c, avg_plane); }

/* Sums for a plane of dx are in f32, and stored at the end. */
static void run_dx(const tri_call *c, void (*plane)(const struct state *s, const tri_call *c,
                   int64_t plane, float *dx)) {
    const struct state *s = c->state;
    const int64_t size = s->w.h * s->w.w * s->block;
    struct cpu_range r = cpu_part(c, s->parts, s->planes);
    for (int64_t p = r.begin; p < r.end; p++) {
        float *dx = s->type == TRI_F32 ? (float *)c->out[0] + p * size : c->scratch;
        plane(s, c, p, dx);
        if (s->type != TRI_F32) BY_TYPE(s->type, store_row, c->out[0], p * size, dx, size);
    }
}

static void max_pool_dx(const tri_call *c) { run_dx(c, max_dx_plane); }
static void avg_pool_dx(const tri_call *c) { run_dx(c, avg_dx_plane); }

/* ---- preparation ---- */

static void release(void *state) {
    struct state *s = state;
    void *owned[] = {s->seen, s->divisor, s->row, s->best, s->index, s->column, s->padded};
    for (size_t i = 0; i < COUNT(owned); i++) free(owned[i]);
    free(s);
}

static tri_status prepare(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    struct state *s = *state;
    CHECK(window_of(n, &s->w));
    const struct window *w = &s->w;
    /* Of two tensors, the one without places may be plain while the other has blocks. */
    int block = n->out->block ? n->out->block : n->in[0]->block;
    s->block = block ? block : 1;
    s->type = n->out->spec.type;
    s->planes = w->n * w->c / s->block;
    s->parts = cpu_parts(s->planes, (w->h * w->w + w->oh * w->ow) * s->block);
    s->rounded = (w->ow + WIDTH - 1) / WIDTH * WIDTH;
    s->phases = least(w->sw, w->kw);
    s->phase = s->rounded + w->kw / w->sw + (w->pw + w->w) / w->sw + 1;
    s->seen = malloc((size_t)w->kw * sizeof *s->seen);
    s->divisor = malloc((size_t)(w->oh * w->ow) * sizeof *s->divisor);
    s->row = malloc((size_t)w->ow * sizeof *s->row);
    s->best = malloc((size_t)s->rounded * sizeof *s->best);
    s->index = malloc((size_t)s->rounded * sizeof *s->index);
    s->column = malloc((size_t)s->rounded * sizeof *s->column);
    s->padded = malloc((size_t)(s->phase * s->phases) * sizeof *s->padded);
    if (!s->seen || !s->divisor || !s->row || !s->best || !s->index || !s->column ||
        !s->padded) {
        release(s);
        return base_no_memory(n->name);
    }
    for (int64_t k = 0; k < w->kw; k++) s->seen[k] = seen(w, k);
    for (int64_t i = 0; i < w->oh * w->ow; i++)
        s->divisor[i] = (float)window_divisor(w, i / w->ow, i % w->ow);
    for (int64_t q = 0; q < s->rounded; q++) s->column[q] = (int32_t)(q * w->sw - w->pw);
    for (int64_t i = 0; i < s->phase * s->phases; i++) s->padded[i] = -__builtin_inff();
    return TRI_OK;
}

static void plan(const tri_node *n, struct kernel *k) {
    const struct state *s = k->state;
    (void)n;
    k->parts = s->parts;
}

static void plan_dx(const tri_node *n, struct kernel *k) {
    const struct state *s = k->state;
    plan(n, k);
    if (s->type != TRI_F32) k->scratch = (size_t)(s->w.h * s->w.w * s->block) * sizeof(float);
}

const struct dev_row FOR_ISA(cpu_pool)[] = {
    {.op = "max_pool", .run = max_pool, .prepare = prepare, .release = release, .plan = plan,
     .formats = cpu_same_format},
    {.op = "max_pool_dx", .run = max_pool_dx, .prepare = prepare, .release = release,
     .plan = plan_dx, .formats = cpu_same_format},
    {.op = "avg_pool", .run = avg_pool, .prepare = prepare, .release = release, .plan = plan,
     .formats = cpu_same_format},
    {.op = "avg_pool_dx", .run = avg_pool_dx, .prepare = prepare, .release = release,
     .plan = plan_dx, .formats = cpu_same_format},
    {0},
};
