/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/cpu/conv_sums.h"

static int64_t weight_of(const struct window *w) { return w->o * w->c / w->groups * w->kh * w->kw; }

static int64_t data_of(const struct window *w) {
    return w->n * (w->c * w->h * w->w + w->o * w->oh * w->ow);
}

#define PART_WORK 16e6 /* flops: a tenth of a millisecond and more */

int64_t conv_parts(const struct window *w) {
    const double work = 2.0 * (double)(w->n * w->oh * w->ow) * (double)weight_of(w);
    const int64_t parts = (int64_t)(work / PART_WORK);
    return parts < 1 ? 1 : parts < CONV_MOST_PARTS ? parts : CONV_MOST_PARTS;
}

#define PART_SAMPLES 4

int64_t conv_sample_parts(const struct window *w, int64_t parts) {
    const int64_t few = w->n / PART_SAMPLES > 2 ? w->n / PART_SAMPLES : 2;
    if (weight_of(w) > data_of(w) && parts > few) parts = few;
    return parts < w->n ? parts : w->n;
}

int64_t conv_sum_parts(const struct window *w, int64_t parts) {
    const int64_t worth = data_of(w) / weight_of(w), most = worth > 2 ? worth : 2;
    return parts < most ? parts : most;
}

static int64_t blocks_of(const struct conv_sums *s) { return s->rows / s->block; }

static int64_t common_multiple(int64_t a, int64_t b) {
    int64_t m = a;
    while (m % b) m += a;
    return m;
}

tri_status conv_sums_make(const tri_node *n, const struct pack *order, int64_t block, int64_t most,
                          struct conv_sums *s) {
    const tri_spec *w = cpu_out(n, 0);
    struct pack to;
    pack_of(n->out, &to);
    s->block = common_multiple(common_multiple(block, pack_cut(order, 0)), pack_cut(&to, 0));
    s->rows = w->shape.dim[0];
    s->row = (size_t)(cpu_out_count(n, 0) / s->rows);
    s->parts = blocks_of(s) < most ? blocks_of(s) : most;
    const char *why = copy_formats(&w->shape, s->block, w->type, &to, TRI_F32, order, &s->copy);
    return why ? base_fail(TRI_USAGE, "%s (%s): %s", n->name, n->entry->op->name, why) : TRI_OK;
}

struct cpu_range conv_sums_channels(const struct conv_sums *s, int64_t part) {
    return (struct cpu_range){blocks_of(s) * part / s->parts * s->block,
                              blocks_of(s) * (part + 1) / s->parts * s->block};
}

void conv_sums_put(const struct conv_sums *s, const tri_call *c, int64_t part, const float *sums) {
    const struct cpu_range r = conv_sums_channels(s, part);
    const int64_t first = r.begin / s->block;
    copy_several(&s->copy, (char *)c->out[0] + first * s->copy.next_to, sums,
                 r.end / s->block - first);
}

/* Sums of the elements [begin, end) over all parts, in place of the first's. */
CLONES static void add_parts(float *sum, int64_t parts, size_t each, size_t begin, size_t end) {
    const size_t run = 4096;
    for (size_t at = begin; at < end; at += run) {
        size_t stop = at + run < end ? at + run : end;
        for (int64_t p = 1; p < parts; p++) {
            const float *more = sum + (size_t)p * each;
            INDEPENDENT for (size_t i = at; i < stop; i++) sum[i] += more[i];
        }
    }
}

void conv_sums_add(const struct conv_sums *s, const tri_call *c, int64_t part, float *sums,
                   int64_t n) {
    const struct cpu_range r = conv_sums_channels(s, part);
    const size_t first = (size_t)r.begin * s->row, behind = (size_t)r.end * s->row;
    add_parts(sums, n, (size_t)s->rows * s->row, first, behind);
    conv_sums_put(s, c, part, sums + first);
}
