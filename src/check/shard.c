/* SPDX-License-Identifier: Apache-2.0
 * Compares an example that is split along each of its factors over the seats of a mesh with the
 * unsplit example: its results and its derivatives. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check/opcheck.h"
#include "graph/target.h"
#include "plan/expand.h"
#include "plan/passes.h"

#define NOISE 1e-6
#define MOST_ELEMENTS 4096 /* larger examples are for kernels */
#define TOLERANCE 1e-5 /* where results over the split factor are summed, or the node is rebuilt */

/* Builds the example with its results and, if it has them, its derivatives as outputs. */
static tri_status build(const struct example *e, struct trial *t) {
    tri_tensor *out[2 * MAX_INPUTS], *in[MAX_INPUTS], *dx[MAX_INPUTS];
    int n = 0, n_in = 0;
    tri_status status = trial_begin(e, 1, t);
    if (status) return status;
    const tri_op *op = e->op;
    bool derivable = op->gradient != tri_grad_none && op->gradient != tri_grad_refused &&
                     t->node->out->spec.type == TRI_F32;
    for (int i = 0; i < t->node->n_out; i++) out[n++] = &t->node->out[i];
    for (int i = 0; i < t->node->n_in; i++)
        if (t->node->in[i]->spec.type == TRI_F32 && node_reads(t->node, i))
            in[n_in++] = t->node->in[i];
    if (derivable && n_in) {
        tri_tensor *y = opcheck_project(t->g, out, 1);
        if (!y) return tri_graph_status(t->g) ? TRI_USAGE : base_no_memory("an example");
        tri_grad(y, in, n_in, dx);
        for (int i = 0; i < n_in; i++) out[n++] = dx[i];
    }
    trial_outputs(out, n);
    return tri_graph_status(t->g);
}

/* Whether anything of the first n tensors is summed over the mesh, or nodes were rebuilt, so that
 * results may be rounded otherwise. */
static bool rounds(const struct dist *d, int n) {
    bool sums = d->rebuilt;
    for (int i = 0; i < n; i++)
        sums |= d->has[i].axis[0].kind == PARTIAL && d->has[i].axis[0].partial == TRI_PARTIAL_SUM;
    return sums;
}

/* Its tiles begin at the first place of a part, and parts of other channels do without it. */
static bool by_winograd(const tri_node *n) {
    const tri_attr *way = node_attr(n, "way");
    return way && way->i == WAY_WINOGRAD;
}

/* Puts the expanded graph in the place of the trial's. *split: whether the node really is. *exact:
 * how many results must have the same bits; results of the node come before its derivatives. */
static tri_status shard(struct trial *t, struct dev *dev, const char *factor, int seats,
                        bool *split, int *exact) {
    char mesh[32], ask[64];
    tri_options o = tri_options_default();
    struct strategies s = {0};
    struct dist d = {0};
    snprintf(mesh, sizeof mesh, "m=%d", seats);
    snprintf(ask, sizeof ask, "%s=m", factor);
    tri_mesh(t->g, mesh);
    tri_strategy(t->g, "example", ask);
    tri_status status = tri_graph_status(t->g);
    if (!status) status = strategies_make(t->g, &o, &s);
    if (!status) passes_choose_conv(t->g, dev->kind->target, false, true);
    if (!status) status = dist_make(t->g, NULL, &s, &d);
    if (!status) {
        *split = false;
        for (size_t i = 0; i < t->g->n_nodes; i++)
            *split |= d.use[i][0].kind != USE_WHOLE;
        const tri_node *n = t->node;
        *exact = by_winograd(n)                             ? 0
                 : !rounds(&d, t->g->n_tensors)             ? INT_MAX
                 : !rounds(&d, n->out[n->n_out - 1].id + 1) ? n->n_out
                                                            : 0;
        tri_graph *expanded = expand(&d);
        status = expanded ? TRI_OK : base_last();
        if (expanded) expanded->mesh = (struct mesh){0};
        dist_free(&d);
        tri_graph_free(t->g);
        t->g = expanded;
    }
    strategies_free(&s);
    return status;
}

static tri_status run(struct trial *t, struct dev *dev, const struct values *in,
                      struct values *out) {
    struct team *team = NULL;
    tri_status status = team_make(1, &team);
    if (!status) status = trial_compile(t, dev, team);
    if (!status) status = trial_run(t, in, out);
    machine_free(&t->machine);
    team_free(team);
    return status;
}

/* Errors of rounding are relative to the inputs. */
static double tolerance(const struct values *in) {
    double most = 1;
    for (int i = 0; i < in->n; i++) {
        int64_t n = type_is_float(in->spec[i].type) ? tri_shape_count(&in->spec[i].shape) : 0;
        for (int64_t k = 0; k < n; k++)
            if (isfinite(in->at[i][k])) most = fmax(most, fabs(in->at[i][k]));
    }
    return TOLERANCE * most;
}

/* Kernels of 16-bit types may round by the shape of a part. */
static bool in_f32(const struct values *in) {
    bool f32 = true;
    for (int i = 0; i < in->n; i++)
        f32 &= in->spec[i].type != TRI_BF16 && in->spec[i].type != TRI_F16;
    return f32;
}

/* Results that are nothing but rounding errors, as some derivatives, become 0. */
static void drop_noise(struct values *v) {
    for (int i = 0; i < v->n; i++) {
        double most = 0;
        int64_t n = tri_shape_count(&v->spec[i].shape);
        for (int64_t k = 0; k < n; k++) most = fmax(most, fabs(v->at[i][k]));
        for (int64_t k = 0; k < n && most < NOISE; k++) v->at[i][k] = 0;
    }
}

static tri_status first_same(const struct example *e, const char *what, const struct values *a,
                             const struct values *b, int n) {
    struct values first[2] = {*a, *b};
    for (int i = 0; i < 2; i++)
        if (first[i].n > n) first[i].n = n;
    return values_same(e, what, &first[0], &first[1]);
}

static tri_status check_factor(const struct example *e, struct dev *dev, const struct values *in,
                               const struct values plain[2], const char *factor, bool fixed,
                               int64_t extent, int seats, int *shards) {
    struct trial t;
    struct values out = {0};
    bool split = false;
    int exact = 0;
    char what[96];
    tri_status status = build(e, &t);
    snprintf(what, sizeof what, "split along %s over %d seats", factor, seats);
    if (!status) status = shard(&t, dev, factor, seats, &split, &exact);
    /* A form frees some of the row's fixed factors, not all. */
    if (status == TRI_USAGE && fixed) {
        trial_free(&t);
        return TRI_OK;
    }
    if (!status && !split) status = example_differs(e, "%s: it is not split", what);
    if (!status) status = run(&t, dev, in, &out);
    /* Reductions drop dimensions of length 1, and then may add in another order. */
    if (extent < 2 * seats) exact = 0;
    if (!status && in_f32(in)) status = first_same(e, what, &plain[0], &out, exact);
    if (!status && exact < out.n) {
        drop_noise(&out);
        status = values_compare(e, what, &plain[1], &out, tolerance(in));
    }
    *shards += !status;
    trial_free(&t);
    values_free(&out);
    return status;
}

tri_status opcheck_shards(const struct example *e, struct dev *dev, const struct values *in,
                          int *shards) {
    struct trial t;
    struct factors f;
    struct values plain[2] = {{0}}; /* the second without noise */
    const tri_op *op = e->op;
    int64_t elements = 0;
    for (int i = 0; i < e->n; i++) elements += tri_shape_count(&e->spec[i].shape);
    if (!op_has_factors(op) || elements > MOST_ELEMENTS) return TRI_OK;
    tri_status status = build(e, &t);
    const tri_node *n = t.node;
    if (!status && opcheck_is_part(n)) {
        trial_free(&t);
        return TRI_OK;
    }
    if (!status && !factors_of(n, &f)) status = base_last();
    if (!status) {
        char name[MAX_FACTORS][32] = {{0}};
        int64_t extent[MAX_FACTORS] = {0};
        bool fixed[MAX_FACTORS];
        memcpy(fixed, f.fixed, sizeof fixed);
        for (int c = 1; c < MAX_FACTORS; c++) {
            if (f.extent[c] < 2 || (f.fixed[c] && !op->split_form)) continue;
            extent[c] = f.extent[c];
            snprintf(name[c], sizeof name[c], "%s", factor_name(n, &f, (uint8_t)c));
        }
        factors_free(&f);
        for (int i = 0; i < 2 && !status; i++) status = run(&t, dev, in, &plain[i]);
        if (!status) drop_noise(&plain[1]);
        for (int c = 1; c < MAX_FACTORS; c++)
            for (int seats = 2; seats <= 4 && seats <= extent[c] && !status; seats++)
                status = check_factor(e, dev, in, plain, name[c], fixed[c], extent[c], seats,
                                      shards);
    }
    trial_free(&t);
    for (int i = 0; i < 2; i++) values_free(&plain[i]);
    return status;
}
