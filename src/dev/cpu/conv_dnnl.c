/* SPDX-License-Identifier: Apache-2.0
 * Convolution and its derivatives, by oneDNN. Forward and dx are cut into parts along the samples,
 * of which each is a convolution of its own. So is dw, whose parts give sums of their samples, in
 * f32 and in the order that the library likes; a second round adds these, always from the first
 * part to the last, and brings them into the plain order. */
#include <stdlib.h>

#include "dev/cpu/conv_own.h"
#include "dev/cpu/conv_sums.h"
#include "dev/cpu/dnnl_glue.h"
#include "graph/pack.h"

struct state {
    enum dnnl_convolution kind;
    int64_t samples, parts;
    struct dnnl_job *job[2];   /* for samples / parts of them, and for one more */
    size_t in[2], out;         /* bytes of one sample; 0: not split */
    struct conv_sums sums;     /* of dw's second round; its parts are 0 if there is none */
};

/* ---- how many parts ---- */

static int64_t parts_of(enum dnnl_convolution kind, const struct window *w) {
    const int64_t parts = conv_parts(w);
    if (kind == CONVOLUTION_DW) return least(conv_sum_parts(w, parts), w->n);
    return conv_sample_parts(w, parts);
}

/* ---- preparation ---- */

static void release(void *state) {
    struct state *s = state;
    for (int i = 0; i < 2; i++) dnnl_glue_release(s->job[i]);
    free(s);
}

/* Jobs for both sizes of a part. */
static tri_status make_jobs(const tri_node *n, const struct window *w, struct state *s,
                            struct pack *order) {
    tri_status status = TRI_OK;
    for (int i = 0; i < 2 && !status; i++) {
        struct window part = *w;
        part.n = w->n / s->parts + i;
        if (i && w->n % s->parts == 0) break;
        status = order ? dnnl_glue_partial_dw(n, &part, order, &s->job[i])
                       : dnnl_glue_convolution(n, s->kind, &part, &s->job[i]);
    }
    return status;
}

static tri_status make(const tri_node *n, const struct window *w, struct state *s) {
    struct pack order;
    s->parts = parts_of(s->kind, w);
    if (s->kind != CONVOLUTION_DW || s->parts == 1) return make_jobs(n, w, s, NULL);
    tri_status status = make_jobs(n, w, s, &order);
    return status ? status : conv_sums_make(n, &order, 1, CONV_MOST_PARTS, &s->sums);
}

static tri_status prepare(const tri_node *n, enum dnnl_convolution kind, void **state) {
    struct window w;
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    CHECK(window_of(n, &w));
    struct state *s = *state;
    s->kind = kind;
    s->samples = w.n;
    s->in[0] = base_spec_bytes(cpu_in(n, 0)) / (size_t)w.n;
    if (kind == CONVOLUTION_DW)
        s->in[1] = base_spec_bytes(cpu_in(n, 1)) / (size_t)w.n;
    else
        s->out = base_spec_bytes(cpu_out(n, 0)) / (size_t)w.n;
    status = make(n, &w, s);
    if (status) release(s);
    return status;
}

static tri_status prepare_y(const tri_node *n, void **state) {
    return prepare(n, CONVOLUTION, state);
}
static tri_status prepare_dx(const tri_node *n, void **state) {
    return prepare(n, CONVOLUTION_DX, state);
}
static tri_status prepare_dw(const tri_node *n, void **state) {
    return prepare(n, CONVOLUTION_DW, state);
}

static void plan(const tri_node *n, struct kernel *k) {
    const struct state *s = k->state;
    for (int i = 0; i < 2; i++)
        if (s->job[i] && dnnl_glue_scratch(s->job[i]) > k->scratch)
            k->scratch = dnnl_glue_scratch(s->job[i]);
    k->parts = s->parts;
    k->then = s->sums.parts;
    if (k->then) k->shared = (size_t)(s->parts * cpu_out_count(n, 0)) * sizeof(float);
}

/* ---- running ---- */

static void run(const tri_call *c) {
    const struct state *s = c->state;
    if (c->part >= s->parts) {
        conv_sums_add(&s->sums, c, c->part - s->parts, c->shared, s->parts);
        return;
    }
    int64_t begin = s->samples * c->part / s->parts;
    int64_t end = s->samples * (c->part + 1) / s->parts;
    const void *in[3];
    void *out[] = {(char *)c->out[0] + (size_t)begin * s->out};
    for (int i = 0; i < c->node->n_in; i++)
        in[i] = (const char *)c->in[i] + (i < 2 ? (size_t)begin * s->in[i] : 0);
    if (s->sums.parts)
        out[0] = (float *)c->shared + (size_t)(c->part * s->sums.rows) * s->sums.row;
    tri_call inner = *c;
    inner.in = in;
    inner.out = out;
    dnnl_glue_run(s->job[end - begin > s->samples / s->parts], &inner);
}

/* ---- how tensors lie ---- */

static void formats(const tri_node *n, enum dnnl_convolution kind, struct format *in,
                    struct format *out) {
    struct window w = conv_lane(n);
    w.n /= parts_of(kind, &w);
    if (!cpu_dnnl_supports(n)) dnnl_glue_formats(n, kind, &w, in, out);
}

static void formats_y(const tri_node *n, struct format *in, struct format *out) {
    formats(n, CONVOLUTION, in, out);
}
static void formats_dx(const tri_node *n, struct format *in, struct format *out) {
    formats(n, CONVOLUTION_DX, in, out);
}
static void formats_dw(const tri_node *n, struct format *in, struct format *out) {
    formats(n, CONVOLUTION_DW, in, out);
}

#define ROW(name, how)                                                                      \
    {.op = name, .run = run, .supports = cpu_dnnl_supports, .prepare = prepare_##how,       \
     .release = release, .plan = plan, .formats = formats_##how, .any_order = true},

const struct dev_row cpu_conv_dnnl[] = {
    ROW("conv2d", y) ROW("conv2d_dx", dx) ROW("conv2d_dw", dw)
    {0},
};
