/* SPDX-License-Identifier: Apache-2.0
 * Compares first and second derivatives of an example with finite differences. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "check/opcheck.h"

#define STEP 1e-2 /* of finite differences */
#define TRIED 128 /* at most this many elements of an input are varied, evenly spaced */

/* of: the tensors whose weighted sum is differentiated; by: what it is differentiated by. */
struct derivative {
    struct trial t;
    int order;
    tri_tensor *of[TRI_MAX_OUTPUTS], *by[MAX_INPUTS];
    int n_of, n_by, input[MAX_INPUTS];
};

static double weight(int output, int64_t k) {
    return 0.25 + random_uniform(11, (uint64_t)output, (uint64_t)k);
}

/* The scalar sum over all elements of weight * tensor. */
tri_tensor *opcheck_project(tri_graph *g, tri_tensor *const *of, int n) {
    tri_tensor *sum = NULL;
    for (int i = 0; i < n; i++) {
        int64_t count = tri_shape_count(&of[i]->spec.shape);
        float *w = calloc((size_t)count + 1, sizeof *w);
        if (!w) return NULL;
        for (int64_t k = 0; k < count; k++) w[k] = (float)weight(i, k);
        tri_tensor *c = tri_array(g, TRI_F32, of[i]->spec.shape, w);
        free(w);
        tri_tensor *part = tri_sum_(tri_mul(of[i], c), TRI_ALL, (tri_reduce_options){0});
        sum = sum ? tri_add(sum, part) : part;
    }
    return sum;
}

static double projected(const struct values *v, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int64_t k = 0; k < tri_shape_count(&v->spec[i].shape); k++)
            sum += (double)(float)weight(i, k) * v->at[i][k];
    return sum;
}

static void choose(struct derivative *d, bool all_outputs) {
    const tri_node *n = d->t.node;
    d->n_of = d->n_by = 0;
    for (int i = 0; i < n->n_out && (i == 0 || all_outputs); i++)
        if (n->out[i].spec.type == TRI_F32) d->of[d->n_of++] = &n->out[i];
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->spec.type == TRI_F32 && node_reads(n, i)) {
            d->input[d->n_by] = i;
            d->by[d->n_by++] = n->in[i];
        }
}

/* Builds the graph whose outputs are the projected tensors, then the derivatives. If an
 * operator has no derivative, that is the status of the graph. */
static tri_status differentiate(const struct example *e, int order, bool all_outputs,
                                struct derivative *d) {
    tri_status status = trial_begin(e, 1, &d->t);
    d->order = order;
    if (status) return status;
    choose(d, all_outputs);
    for (int o = 0; o < order && d->n_of && d->n_by; o++) {
        tri_tensor *dx[MAX_INPUTS];
        tri_tensor *y = opcheck_project(d->t.g, d->of, d->n_of);
        if (!y) return tri_graph_status(d->t.g) ? TRI_USAGE : base_no_memory("an example");
        tri_grad(y, d->by, d->n_by, dx);
        if (o + 1 == order) {
            if (d->t.g->status) break;
            trial_outputs(d->of, d->n_of);
            for (int i = 0; i < d->n_by; i++) {
                char name[24];
                snprintf(name, sizeof name, "d%d", i);
                tri_output(dx[i], name);
            }
        } else {
            d->n_of = d->n_by;
            memcpy(d->of, dx, sizeof *dx * (size_t)d->n_by);
        }
    }
    return tri_graph_status(d->t.g);
}

static tri_status difference_at(struct derivative *d, struct values *in, int input, int64_t k,
                                double *slope) {
    double *x = &in->at[input][k], kept = *x, sums[2];
    tri_status status = TRI_OK;
    for (int side = 0; side < 2 && !status; side++) {
        struct values out = {0};
        *x = (double)(float)(kept + (side ? STEP : -STEP));
        status = trial_run(&d->t, in, &out);
        if (!status) sums[side] = projected(&out, d->n_of);
        values_free(&out);
    }
    double width = (double)(float)(kept + STEP) - (double)(float)(kept - STEP);
    *x = kept;
    if (!status) *slope = (sums[1] - sums[0]) / width;
    return status;
}

static tri_status compare_slopes(struct derivative *d, struct values *in) {
    struct values out = {0};
    tri_status status = trial_run(&d->t, in, &out);
    for (int j = 0; j < d->n_by && !status; j++) {
        const double *dx = out.at[d->n_of + j];
        double scale = 1e-3;
        int64_t n = tri_shape_count(&d->by[j]->spec.shape);
        for (int64_t k = 0; k < n; k++) scale = fmax(scale, fabs(dx[k]));
        int64_t tried = n < TRIED ? n : TRIED;
        for (int64_t i = 0; i < tried && !status; i++) {
            int64_t k = tried > 1 ? i * (n - 1) / (tried - 1) : 0;
            double slope = 0;
            status = difference_at(d, in, d->input[j], k, &slope);
            if (!status && !(fabs(slope - dx[k]) <= 5e-3 * scale))
                status = example_differs(&d->t.e, "derivative %d by element %lld of input %d is "
                                         "%.7g, by finite differences %.7g", d->order,
                                         (long long)k, d->input[j], dx[k], slope);
        }
    }
    values_free(&out);
    return status;
}

tri_status opcheck_derivative(const struct example *e, struct values *in, int order,
                                   bool *given) {
    struct derivative d = {0};
    tri_status status = differentiate(e, order, true, &d);
    if (status && order == 1 && e->op->gradient != tri_grad_refused) {
        trial_free(&d.t); /* outputs after the first, such as statistics, may have none */
        d = (struct derivative){0};
        status = differentiate(e, order, false, &d);
    } else if (status && order == 2) {
        trial_free(&d.t);
        d = (struct derivative){0};
        status = differentiate(e, order, false, &d);
    }
    *given = !status && d.n_of && d.n_by;
    bool refused = status == TRI_USAGE && strstr(tri_message(), "has no derivative");
    if (*given) {
        status = trial_compile(&d.t, dev_find("ref"), NULL);
        if (!status) status = compare_slopes(&d, in);
    } else if (refused && (order == 2 || e->op->gradient == tri_grad_refused)) {
        status = TRI_OK;
    }
    trial_free(&d.t);
    return status;
}

