/* SPDX-License-Identifier: Apache-2.0
 * A network whose operators sleep, for stages.py: STAGES stages, each of which sleeps NAP
 * milliseconds forward, as long backward, and with WEIGHTS=1 as long again for the gradient of its
 * weights. Options are those of `trireme train`. Prints the median time of a step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <trireme.h>

#define WIDTH 4
#define STEPS 7
#define UNTIMED 2 /* first steps */

static long nap = 10;

static int number(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static int same(const tri_node *n, tri_spec *out) {
    const tri_tensor *x = tri_node_in(n, 0);
    out[0] = (tri_spec){tri_type_of(x), tri_shape_of(x)};
    return 1;
}

static void sleep_and_copy(const tri_call *call) {
    tri_shape shape = tri_shape_of(tri_node_out(call->node, 0));
    struct timespec left = {nap / 1000, nap % 1000 * 1000000};
    while (nanosleep(&left, &left)) {}
    memcpy(call->out[0], call->in[0], (size_t)tri_shape_count(&shape) * sizeof(float));
}

static tri_tensor *sleep_over(const char *name, tri_tensor *x) {
    return tri_apply(tri_graph_of(x), name, &x, 1, NULL, 0);
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    (void)n;
    dx[0] = sleep_over("nap", dy[0]);
}

static const tri_op nap_row = {.name = "nap", .inputs = 1, .infer = same, .gradient = gradient,
                               .factors = "...->...", .kernel = sleep_and_copy,
                               .examples = (const char *const[]){"f32[2,4]", NULL}};

/* Another operator, so that equal nodes are not merged. */
static const tri_op weights_row = {.name = "nap_for_weights", .inputs = 1, .infer = same,
                                   .gradient = gradient, .factors = "...->...",
                                   .kernel = sleep_and_copy,
                                   .examples = (const char *const[]){"f32[2,4]", NULL}};

/* x + w; its gradient for w sleeps. */
static void gradient_of_sum(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    (void)n;
    dx[0] = dy[0];
    dx[1] = tri_sum(sleep_over("nap_for_weights", dy[0]), TRI_SHAPE(0));
}

static void add(const tri_call *call) {
    tri_shape shape = tri_shape_of(tri_node_out(call->node, 0));
    const float *x = call->in[0], *w = call->in[1];
    for (int64_t i = 0; i < tri_shape_count(&shape); i++)
        ((float *)call->out[0])[i] = x[i] + w[i % WIDTH];
}

static const tri_op sum_row = {.name = "slow_sum", .inputs = 2, .infer = same,
                               .gradient = gradient_of_sum, .factors = "bc,c->bc", .kernel = add,
                               .examples = (const char *const[]){"f32[2,4], f32[4]", NULL}};

static tri_graph *network(int64_t batch, int stages, bool weights) {
    tri_graph *g = tri_graph_new(batch);
    tri_tensor *h = tri_input(g, "x", TRI_F32, TRI_SHAPE(batch, WIDTH));
    h = tri_add(h, tri_param(g, "first", TRI_SHAPE(WIDTH), (tri_init){TRI_NORMAL, 0, 1}));
    for (int i = 0; i < stages; i++) {
        tri_push(g, "s%d", i);
        tri_stage(g, NULL, i);
        h = sleep_over("nap", h);
        if (weights) {
            tri_tensor *w = tri_param(g, "w", TRI_SHAPE(WIDTH), (tri_init){TRI_NORMAL, 0, 1});
            h = tri_apply(g, "slow_sum", (tri_tensor *[]){h, w}, 2, NULL, 0);
        }
        tri_pop(g);
    }
    tri_loss(tri_mean(tri_mul(h, h), TRI_ALL));
    return g;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    if (tri_options_parse(&o, &argc, argv)) return TRI_USAGE;
    nap = number("NAP", 10);
    if (tri_register(&nap_row) || tri_register(&weights_row) || tri_register(&sum_row)) {
        fprintf(stderr, "%s\n", tri_message());
        return TRI_FAILED;
    }
    o.batch = o.lanes;
    o.data = "synthetic";
    o.quiet = true;
    tri_run *run = tri_open(network(o.batch, number("STAGES", 2), number("WEIGHTS", 0)), &o);
    double took[STEPS], begin = now();
    int n = 0;
    for (; n < STEPS && run && tri_step(run); n++) {
        double end = now();
        took[n] = end - begin;
        begin = end;
    }
    if (n == STEPS) {
        qsort(took + UNTIMED, STEPS - UNTIMED, sizeof *took, compare);
        printf("step %.2f ms\n", took[UNTIMED + (STEPS - UNTIMED) / 2]);
    }
    return tri_close(run);
}
