/* SPDX-License-Identifier: Apache-2.0
 * Batch norm and its derivative, using the loops of batch_norm_loops.h. */
#include "dev/cpu/batch_norm_loops.h"

#include <math.h>

#include "dev/cpu/tail.h"

struct state {
    const struct tail *tail; /* operators after it; null: none */
};

struct job {
    const tri_call *c;
    struct sizes z;
    const struct loops *l;
    bool backward, training;
    double eps;
};

static struct job job_of(const tri_call *c, bool backward) {
    const tri_node *n = c->node;
    struct job j = {.c = c, .backward = backward, .training = tri_attr_int(n, "training"),
                    .eps = tri_attr_float(n, "eps")};
    j.z = sizes_of(n->in[backward], backward ? cpu_in(n, 3) : cpu_out(n, 1));
    j.l = loops_of(&j.z);
    return j;
}

static int64_t place(const struct job *j, const struct part *p, int64_t i) {
    return in_blocks(&j->z) ? block_place(j->z.type, i) : vec_place(j->z.type, i, p->width);
}

/* Clears the sums and finds the centers of the differences: of x the group's first elements, of dy
 * the means. */
static void begin_group(const struct job *j, const struct part *p, int64_t unit,
                        struct numbers *n) {
    const struct part first = part_of(&j->z, unit, p->begin);
    const float *mean = (const float *)j->c->in[3] + p->group * j->z.channels + p->channel;
    for (int64_t i = 0; i < (p->width + VEC - 1) / VEC * VEC; i++) {
        n->all_sum[i] = n->all_dot[i] = 0;
        n->center[i] = n->scale[i] = n->a[i] = n->b[i] = 0;
    }
    for (int64_t i = 0; i < p->width; i++)
        n->center[place(j, p, i)] =
            j->backward ? mean[i]
                        : (float)convert_load(j->z.type, j->c->in[0], (size_t)(first.first + i));
}

static void sum_slice(const struct job *j, const struct part *p, struct numbers *n) {
    memset(n->sum, 0, (size_t)p->width * sizeof *n->sum);
    memset(n->dot, 0, (size_t)p->width * sizeof *n->dot);
    if (j->backward)
        j->l->sums(p, j->c->in[0], j->c->in[1], n);
    else if (j->training)
        j->l->moments(p, j->c->in[0], n);
}

static void add_slice(const struct part *p, const double *sum, const double *dot,
                      struct numbers *n) {
    for (int64_t i = 0; i < p->width; i++) {
        n->all_sum[i] += sum[i];
        n->all_dot[i] += dot[i];
    }
}

/* Where a slice's sums are kept between the rounds: [slice, channels], then the dots. */
static double *kept_of(const struct job *j, const struct part *p, int64_t slice, int dots) {
    return (double *)j->c->shared + (slice + dots * j->z.slices) * j->z.channels + p->channel;
}

/* Adds the sums of all slices of the group. */
static void sum_group(const struct job *j, const struct part *p, int64_t unit, struct numbers *n) {
    begin_group(j, p, unit, n);
    for (int64_t s = p->begin; s < p->end; s++) {
        if (j->z.cut) {
            add_slice(p, kept_of(j, p, s, 0), kept_of(j, p, s, 1), n);
            continue;
        }
        const struct part slice = part_of(&j->z, unit, s);
        sum_slice(j, &slice, n);
        add_slice(p, n->sum, n->dot, n);
    }
}

/* Converts the group's sums to the factors of its elements; `stores`: also stores the
 * statistics. */
static void settle_forward(const struct job *j, const struct part *p, bool stores,
                           struct numbers *n) {
    const tri_call *c = j->c;
    const int64_t row = p->group * j->z.channels + p->channel;
    const double unbias = j->training ? p->count / (p->count - 1) : 1;
    for (int64_t i = 0; i < p->width; i++) {
        const int64_t k = place(j, p, i);
        double mean = (double)((const float *)c->in[3])[p->channel + i];
        double var = (double)((const float *)c->in[4])[p->channel + i];
        if (j->training) {
            double d = n->all_sum[k] / p->count, v = n->all_dot[k] / p->count - d * d;
            mean = (double)n->center[k] + d;
            var = v < 0 ? 0 : v;
        }
        n->center[k] = (float)mean;
        double scale = (double)((const float *)c->in[1])[p->channel + i] / sqrt(var + j->eps);
        double beta = (double)((const float *)c->in[2])[p->channel + i];
        n->scale[k] = (float)scale;
        n->a[k] = (float)(beta + ((double)n->center[k] - mean) * scale);
        if (!stores) continue;
        ((float *)c->out[1])[row + i] = n->center[k];
        ((float *)c->out[2])[row + i] = (float)var;
        ((float *)c->out[3])[row + i] = (float)(var * unbias);
    }
}

static void settle_backward(const struct job *j, const struct part *p, struct numbers *n) {
    const float *gamma = (const float *)j->c->in[2] + p->channel;
    const float *var = (const float *)j->c->in[4] + p->group * j->z.channels + p->channel;
    for (int64_t i = 0; i < p->width; i++) {
        const int64_t k = place(j, p, i);
        double rstd = 1 / sqrt((double)var[i] + j->eps);
        n->dgamma[i] += n->all_dot[k] * rstd;
        n->dbeta[i] += n->all_sum[k];
        n->scale[k] = (float)((double)gamma[i] * rstd);
        n->a[k] = j->training ? (float)(n->all_sum[k] / p->count) : 0;
        n->b[k] = j->training ? (float)(n->all_dot[k] * rstd * rstd / p->count) : 0;
    }
}

/* Computes y, as a whole or, if there is a tail, piece by piece. */
static void hand_on(const struct job *j, const struct part *p, const struct numbers *n) {
    const struct tail *tail = ((const struct state *)j->c->state)->tail;
    const tri_call *c = j->c;
    if (!tail) {
        j->l->normalise(p, c->in[0], c->out[0], n);
        return;
    }
    const int64_t size = (int64_t)tri_type_size(j->z.type), rows = TAIL_PIECE / p->width;
    for (int64_t r = 0; r < p->rows; r += rows) {
        struct part piece = *p;
        const int64_t at = AT(p, r);
        piece.first = 0;
        piece.rows = rows < p->rows - r ? rows : p->rows - r;
        char *y = c->out[0] ? (char *)c->out[0] + at * size
                            : (char *)c->scratch + sizeof(struct numbers);
        j->l->normalise(&piece, (const char *)c->in[0] + at * size, y, n);
        tail_run(tail, y, at, piece.rows * p->width);
    }
}

/* Computes slice s of the unit; its group's sums are complete. */
static void apply(const struct job *j, int64_t unit, int64_t s, const struct numbers *n) {
    const struct part p = part_of(&j->z, unit, s);
    if (j->backward)
        j->l->derive(&p, j->c->in[0], j->c->in[1], j->c->out[0], n);
    else
        hand_on(j, &p, n);
}

/* Slices begin to end of a unit, after the sums of their groups. The part with a group's first
 * slice stores its statistics; the part with the unit's first slice goes through all groups and
 * stores the derivatives of gamma and beta. */
static void run_slices(const struct job *j, int64_t unit, int64_t begin, int64_t end) {
    struct numbers *n = j->c->scratch;
    const bool stores = j->backward && begin == 0;
    const struct part first = part_of(&j->z, unit, 0);
    for (int64_t i = 0; i < first.width; i++) n->dgamma[i] = n->dbeta[i] = 0;
    for (int64_t s = begin, at = begin; at < (stores ? j->z.slices : end);) {
        const struct part p = part_of(&j->z, unit, at);
        sum_group(j, &p, unit, n);
        if (j->backward)
            settle_backward(j, &p, n);
        else
            settle_forward(j, &p, p.begin >= begin, n);
        const int64_t stop = least(p.end, end);
        for (int64_t i = stop; i > s; i--) apply(j, unit, i - 1, n);
        s = most(s, stop);
        at = p.end;
    }
    for (int64_t i = 0; stores && i < first.width; i++) {
        ((float *)j->c->out[1])[first.channel + i] = (float)n->dgamma[i];
        ((float *)j->c->out[2])[first.channel + i] = (float)n->dbeta[i];
    }
}

/* The items that parts divide: units; or their slices, unit after unit. */
static int64_t items_of(const struct sizes *z) { return z->cut ? z->units * z->slices : z->units; }

static int64_t parts_of(const struct sizes *z) {
    return cpu_parts(items_of(z), z->samples * z->places * z->channels / items_of(z));
}

static void sum_items(const struct job *j, struct cpu_range r) {
    struct numbers *n = j->c->scratch;
    for (int64_t item = r.begin; item < r.end; item++) {
        const int64_t slice = item % j->z.slices;
        const struct part p = part_of(&j->z, item / j->z.slices, slice);
        begin_group(j, &p, item / j->z.slices, n);
        sum_slice(j, &p, n);
        memcpy(kept_of(j, &p, slice, 0), n->sum, (size_t)p.width * sizeof *n->sum);
        memcpy(kept_of(j, &p, slice, 1), n->dot, (size_t)p.width * sizeof *n->dot);
    }
}

static void run(const tri_call *c, bool backward) {
    const struct job j = job_of(c, backward);
    const int64_t parts = parts_of(&j.z), items = items_of(&j.z);
    const int64_t me = c->part % parts, slices = j.z.cut ? j.z.slices : 1;
    const struct cpu_range r = {items * me / parts, items * (me + 1) / parts};
    if (j.z.cut && c->part < parts) {
        sum_items(&j, r);
        return;
    }
    for (int64_t item = r.begin, end; item < r.end; item = end) {
        const int64_t unit = item / slices, first = unit * slices;
        end = first + slices < r.end ? first + slices : r.end;
        if (j.z.cut)
            run_slices(&j, unit, item - first, end - first);
        else
            run_slices(&j, unit, 0, j.z.slices);
    }
}

static void batch_norm(const tri_call *c) { run(c, false); }
static void batch_norm_dx(const tri_call *c) { run(c, true); }

/* dx may replace dy: by then all sums that use an element are complete. */
static bool shares(const void *state, int out, int in) {
    (void)state;
    return out == 0 && in == 0;
}

static void plan_for(const struct sizes *z, struct kernel *k) {
    k->parts = parts_of(z);
    k->scratch = sizeof(struct numbers);
    if (!z->cut) return;
    k->then = k->parts;
    k->shared = (size_t)(2 * z->slices * z->channels) * sizeof(double);
}

static void plan(const tri_node *n, struct kernel *k) {
    struct sizes z = sizes_of(n->in[0], cpu_out(n, 1));
    const struct tail *tail = ((const struct state *)k->state)->tail;
    plan_for(&z, k);
    if (tail && !tail_stores(tail)) k->scratch += TAIL_PIECE * sizeof(float);
}

static tri_status prepare(const tri_node *n, void **state) {
    return cpu_state(n, sizeof(struct state), state);
}

/* Its pieces are contiguous rows. */
static bool leads(const tri_node *n) {
    struct sizes z = sizes_of(n->in[0], cpu_out(n, 1));
    return z.places > 1 && z.width == z.block && z.places * z.width >= 64;
}

static void follow(void *state, const struct tail *tail) {
    ((struct state *)state)->tail = tail;
}

static void plan_dx(const tri_node *n, struct kernel *k) {
    struct sizes z = sizes_of(n->in[1], cpu_in(n, 3));
    plan_for(&z, k);
    k->shares = shares;
}

const struct dev_row FOR_ISA(cpu_batch_norm)[] = {
    {.op = "batch_norm", .run = batch_norm, .prepare = prepare, .release = free, .plan = plan,
     .leads = leads, .follow = follow, .formats = cpu_same_format},
    {.op = "batch_norm_dx", .run = batch_norm_dx, .plan = plan_dx, .formats = cpu_same_format},
    {0},
};
