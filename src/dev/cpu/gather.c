/* SPDX-License-Identifier: Apache-2.0
 * Operators that look up by index: gather, its gradient, one_hot. Divided into parts by ids; the
 * gradient by rows of the table. */
#include <stdlib.h>

#include "dev/cpu/rows.h"
#include "dev/cpu/tail.h"
#include "ops/gather.h"

/* Whether `ids[i]` is a row of a table with `rows` rows; false after reporting that it is not. */
static bool check_row(const tri_call *c, int64_t i, int64_t id, int64_t rows) {
    if (id >= 0 && id < rows) return true;
    call_fail_at(c, 1, i, "id %lld is not in [0, %lld)", (long long)id, (long long)rows);
    return false;
}

/* ---- gather ---- */

/* Bytes of a table row, at least 1. */
static size_t row_bytes(const tri_spec *table) {
    return base_spec_bytes(table) / (size_t)table->shape.dim[0];
}

static int64_t gather_parts(const tri_node *n) {
    return cpu_parts(cpu_in_count(n, 1), (int64_t)row_bytes(cpu_in(n, 0)) / 4);
}

static void gather(const tri_call *c) {
    const tri_node *n = c->node;
    size_t row = row_bytes(cpu_in(n, 0));
    int64_t rows = cpu_in(n, 0)->shape.dim[0], first = tri_attr_int(n, "first");
    int64_t all = gather_all(n, rows);
    struct cpu_range r = cpu_part(c, gather_parts(n), cpu_in_count(n, 1));
    for (int64_t i = r.begin; i < r.end; i++) {
        int64_t id = cpu_index(c, 1, i);
        char *y = (char *)c->out[0] + (size_t)i * row;
        if (!check_row(c, i, id, all)) return;
        if (id >= first && id < first + rows)
            memcpy(y, (const char *)c->in[0] + (size_t)(id - first) * row, row);
        else
            memset(y, 0, row);
    }
}

static void plan_gather(const tri_node *n, struct kernel *k) { k->parts = gather_parts(n); }

/* ---- gather_grad ---- */

struct table {
    int64_t rows, width, ids, parts, most; /* the most rows of a part */
    int64_t first, all;                    /* ids count in a table of which this is a part */
    tri_type type;
};

static struct table table_of(const tri_node *n) {
    const tri_spec *y = cpu_out(n, 0);
    struct table t = {.rows = y->shape.dim[0], .ids = cpu_in_count(n, 1), .type = y->type};
    t.width = tri_shape_count(&y->shape) / t.rows;
    t.parts = cpu_parts(t.rows, t.width);
    t.first = tri_attr_int(n, "first");
    t.all = gather_all(n, t.rows);
    t.most = (t.rows + t.parts - 1) / t.parts;
    return t;
}

/* Lists the ids of every row from `begin`, in order: the first of row k is first[k], the next after
 * i is next[i]; -1 ends a list. False after reporting an id that is not a row. */
static bool list_ids(const tri_call *c, const struct table *t, struct cpu_range r, int32_t *first,
                     int32_t *next) {
    int64_t begin = t->first + r.begin;
    for (int64_t k = 0; k < r.end - r.begin; k++) first[k] = -1;
    for (int64_t i = t->ids - 1; i >= 0; i--) {
        int64_t id = cpu_index(c, 1, i);
        if (id >= begin && id < begin + r.end - r.begin) {
            next[i] = first[id - begin];
            first[id - begin] = (int32_t)i;
        }
    }
    for (int64_t i = 0; c->part == 0 && i < t->ids; i++)
        if (!check_row(c, i, cpu_index(c, 1, i), t->all)) return false;
    return true;
}

/* The sum of the rows of dy in a list, in f32, starting at zero: only -0 becomes 0. */
INLINE void add_rows(tri_type type, const void *dy, int64_t width, const int32_t *next, int32_t i,
                     float *sum, void *y) {
    const void *a = rows_in(type, dy, i * width), *b;
    const vec zero = {0};
    if (next[i] < 0) {
        EACH(width, STORE(type, y, LOAD(type, a, 0) + zero));
        return;
    }
    b = rows_in(type, dy, next[i] * width);
    EACH(width, STORE(TRI_F32, sum, (LOAD(type, a, 0) + zero) + LOAD(type, b, 0)));
    for (i = next[next[i]]; i >= 0; i = next[i]) {
        a = rows_in(type, dy, i * width);
        EACH(width, STORE(TRI_F32, sum, LOAD(TRI_F32, sum, 0) + LOAD(type, a, 0)));
    }
    if (type != TRI_F32) EACH(width, STORE(type, y, LOAD(TRI_F32, sum, 0)));
}

struct state {
    const struct tail *tail;
};

/* In a part's scratch: lists of ids, and a row as it is summed; if there is a tail, also a row as
 * it is passed on, and zeros. */
struct room {
    int32_t *first, *next;
    float *sum, *row, *zeros;
};

static struct room room_of(const struct table *t, void *scratch) {
    struct room r = {.first = scratch};
    r.next = r.first + t->most;
    r.sum = (float *)(r.next + t->ids);
    r.row = r.sum + t->width;
    r.zeros = r.row + t->width;
    return r;
}

static void hand_on_zeros(const struct tail *tail, const float *zeros, int64_t first, int64_t n) {
    for (int64_t some; n > 0; first += some, n -= some) {
        some = n < TAIL_PIECE ? n : TAIL_PIECE;
        tail_run(tail, zeros, first, some);
    }
}

/* Makes every row of the table once, adjacent rows without ids together: stores it, or passes it on
 * to the tail, or both. */
INLINE void scatter(tri_type type, const tri_call *c, const struct table *t) {
    const struct tail *tail = ((const struct state *)c->state)->tail;
    struct cpu_range r = cpu_part(c, t->parts, t->rows);
    const struct room room = room_of(t, c->scratch);
    const int32_t *first = room.first;
    const size_t row = (size_t)t->width * (type == TRI_F32 ? 4 : 2);
    if (!list_ids(c, t, r, room.first, room.next)) return;
    if (tail) memset(room.zeros, 0, TAIL_PIECE * sizeof(float));
    for (int64_t k = 0, end; k < r.end - r.begin; k = end) {
        char *y = c->out[0] ? (char *)c->out[0] + (size_t)(r.begin + k) * row : NULL;
        const int64_t at = (r.begin + k) * t->width;
        end = k + 1;
        if (first[k] >= 0) {
            void *made = y ? y : (void *)room.row;
            add_rows(type, c->in[0], t->width, room.next, first[k],
                     type == TRI_F32 ? made : room.sum, made);
            if (tail) tail_run(tail, made, at, t->width);
            continue;
        }
        while (end < r.end - r.begin && first[end] < 0) end++;
        if (y) memset(y, 0, (size_t)(end - k) * row);
        if (tail) hand_on_zeros(tail, room.zeros, at, (end - k) * t->width);
    }
}

static void gather_grad(const tri_call *c) {
    struct table t = table_of(c->node);
    BY_TYPE(t.type, scatter, c, &t);
}

static void plan_gather_grad(const tri_node *n, struct kernel *k) {
    struct table t = table_of(n);
    const bool tail = ((const struct state *)k->state)->tail != NULL;
    k->parts = t.parts;
    k->scratch = (size_t)(t.most + t.ids) * sizeof(int32_t) +
                 (size_t)(tail ? 2 * t.width + TAIL_PIECE : t.width) * sizeof(float);
}

static tri_status prepare_gather_grad(const tri_node *n, void **state) {
    return cpu_state(n, sizeof(struct state), state);
}

/* The tail begins anew for each row with ids, which narrow rows are not worth. */
static bool leads_gather_grad(const tri_node *n) { return table_of(n).width >= 128; }

static void follow_gather_grad(void *state, const struct tail *tail) {
    ((struct state *)state)->tail = tail;
}

/* Rows are counted in 32 bits. */
static const char *supports_gather_grad(const tri_node *n) {
    if (!type_is_float(cpu_out(n, 0)->type)) return "it adds floating-point numbers only";
    return cpu_in_count(n, 1) < INT32_MAX ? NULL : "it takes fewer than 2^31 ids";
}

/* ---- one_hot ---- */

static int64_t one_hot_parts(const tri_node *n) {
    return cpu_parts(cpu_in_count(n, 0), tri_attr_int(n, "depth"));
}

/* An index outside the range gives a row of zeros. */
static void one_hot(const tri_call *c) {
    int64_t depth = tri_attr_int(c->node, "depth"), first = tri_attr_int(c->node, "first");
    struct cpu_range r = cpu_part(c, one_hot_parts(c->node), cpu_in_count(c->node, 0));
    float *y = c->out[0];
    memset(y + r.begin * depth, 0, (size_t)((r.end - r.begin) * depth) * sizeof *y);
    for (int64_t i = r.begin; i < r.end; i++) {
        int64_t id = cpu_index(c, 0, i);
        if (id >= first && id < first + depth) y[i * depth + id - first] = 1;
    }
}

static void plan_one_hot(const tri_node *n, struct kernel *k) { k->parts = one_hot_parts(n); }

const struct dev_row FOR_ISA(cpu_gather)[] = {
    {.op = "gather", .run = gather, .plan = plan_gather},
    {.op = "gather_grad", .run = gather_grad, .plan = plan_gather_grad,
     .supports = supports_gather_grad, .prepare = prepare_gather_grad, .release = free,
     .leads = leads_gather_grad, .follow = follow_gather_grad},
    {.op = "one_hot", .run = one_hot, .plan = plan_one_hot},
    {0},
};
