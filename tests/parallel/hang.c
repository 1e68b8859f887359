/* SPDX-License-Identifier: Apache-2.0
 * A program for stalls.py with an operator that does not return: the first worker that computes it
 * in step 5 or later deletes the file TEST_HANG and stays there. TEST_MODE is "loop", which uses
 * the processor, or "sleep"; followed by "-" and the thread that stays, "first" or "other".
 * TEST_NAPS is two numbers of seconds that the operator takes in steps 5 and 8. Prints the hash of
 * the weights. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <trireme.h>
#include <unistd.h>

static const char *mode = "loop-first", *file;
static double naps[2];

static int infer(const tri_node *n, tri_spec *out) {
    const tri_tensor *x = tri_node_in(n, 0);
    out[0] = (tri_spec){tri_type_of(x), tri_shape_of(x)};
    return 1;
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    (void)n;
    dx[0] = dy[0];
}

static bool hangs_here(const tri_call *call) {
    bool wanted = (syscall(SYS_gettid) == getpid()) == (strstr(mode, "first") != NULL);
    if (file && !wanted) usleep(1000); /* leaves lanes to the thread that is to hang */
    return file && call->step >= 5 && wanted && !unlink(file);
}

static void stay(void) {
    for (volatile unsigned turn = 0;; turn++)
        if (!strncmp(mode, "sleep", 5)) pause();
}

static void kernel(const tri_call *call) {
    tri_shape shape = tri_shape_of(tri_node_out(call->node, 0));
    if (hangs_here(call)) stay();
    if (call->step == 5 || call->step == 8) usleep((useconds_t)(1e6 * naps[call->step == 8]));
    memcpy(call->out[0], call->in[0], (size_t)tri_shape_count(&shape) * sizeof(float));
}

static const tri_op row = {
    .name = "hang",
    .inputs = 1,
    .infer = infer,
    .gradient = gradient,
    .factors = "...->...",
    .examples = (const char *const[]){"f32[3,5]", NULL},
    .kernel = kernel,
};

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    o.batch = 64;
    if (tri_options_parse(&o, &argc, argv)) return TRI_USAGE;
    if (tri_register(&row)) {
        fprintf(stderr, "%s\n", tri_message());
        return TRI_FAILED;
    }
    if (getenv("TEST_MODE")) mode = getenv("TEST_MODE");
    file = getenv("TEST_HANG");
    if (getenv("TEST_NAPS") && sscanf(getenv("TEST_NAPS"), "%lf,%lf", &naps[0], &naps[1]) != 2)
        return TRI_USAGE;
    tri_graph *g = tri_graph_new(o.batch);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(o.batch, 256));
    tri_tensor *y = tri_input(g, "y", TRI_I64, TRI_SHAPE(o.batch), .below = 10);
    tri_tensor *h = tri_relu(tri_dense(x, "fc1", 256));
    h = tri_apply(g, "hang", &h, 1, NULL, 0);
    tri_loss(tri_cross_entropy(tri_dense(h, "fc2", 10), y));
    tri_run *run = tri_open(g, &o);
    while (tri_step(run)) continue;
    char weights[65], state[65];
    if (run) tri_hash(run, weights, state);
    if (run) printf("done weights=%s state=%s\n", weights, state);
    return tri_close(run);
}
