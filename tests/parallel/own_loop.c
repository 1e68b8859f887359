/* SPDX-License-Identifier: Apache-2.0
 * A program with a loop of its own for workers.py, whose lines before and in the loop change what is trained.
 * TEST_MODE names what it does; the worker that comes first to the place where it would hurt most takes the
 * file TEST_DIE away and dies there, stops, or waits to be killed. Prints the hash of the weights. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trireme.h>
#include <unistd.h>

static const char *mode = "", *die;
static int seen = -1; /* file TEST_SEEN: what has been read of the data */

static bool is(const char *which) { return !strcmp(mode, which); }
static bool first_here(void) { return die && !unlink(die); }

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)seed;
    const int64_t which[2] = {epoch, index};
    if (seen >= 0 && write(seen, which, sizeof which) != sizeof which) return 1;
    if (is("data") && epoch == 30 && index % 32 == 20 && first_here()) raise(SIGKILL);
    if (is("stop") && epoch == 30 && index % 32 == 20 && first_here()) raise(SIGSTOP);
    if (is("deadly") && epoch == 1 && index == 40) raise(SIGKILL);
    if (is("bad") && epoch == 1 && index == 40) return 1;
    if (is("late")) { /* time for all to have lanes; the reporter does not stop */
        usleep(200);
        if (epoch > 2 && strcmp(getenv("TRIREME_WORKER"), "0") && first_here()) raise(SIGSTOP);
    }
    float x[4], sum = 0;
    for (int i = 0; i < 4; i++) sum += x[i] = (float)((index * 7 + i * 13) % 11 - 5) / 5;
    memcpy(out[0], x, sizeof x);
    *(int64_t *)out[1] = sum > 0;
    return 0;
}

static tri_graph *network(int64_t batch) {
    tri_graph *g = tri_graph_new(batch);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(batch, 4));
    tri_tensor *sign = tri_input(g, "sign", TRI_I64, TRI_SHAPE(batch), .below = 2);
    tri_tensor *loss = tri_cross_entropy(tri_dense(x, "fc", 2), sign);
    tri_loss(is("scalar") ? tri_mul(loss, tri_add_number(tri_scalar(g, "t"), 1)) : loss);
    return g;
}

/* Of two lengths, which differ in more than that: the short one alone counts labels, the long one alone uses "b". */
static tri_graph *of_length(int64_t batch, int64_t length) {
    tri_graph *g = tri_graph_new(batch);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(batch, length));
    tri_tensor *sign = tri_input(g, "sign", TRI_I64, TRI_SHAPE(batch), .below = 2);
    tri_tensor *w = tri_param(g, "w", TRI_SHAPE(4, 2), (tri_init){TRI_NORMAL, 0, 0.5});
    tri_tensor *b = tri_param(g, "b", TRI_SHAPE(2), (tri_init){TRI_CONSTANT, 0, 0});
    if (length == 4) tri_loss(tri_cross_entropy(tri_add(tri_matmul(x, w), b), sign));
    else tri_loss(tri_cross_entropy(tri_matmul(x, tri_slice(w, 0, 0, length)), sign, .ignore = true, .ignore_index = 0));
    return g;
}

static tri_graph *of_both(int64_t batch) {
    tri_graph *g = of_length(batch, 4);
    tri_shorter(g, 2, of_length(batch, 2));
    return g;
}

static int64_t length(const void *user, int64_t index) {
    (void)user;
    return 1 + index % 4;
}

static tri_data *sums(void) {
    tri_data *d = tri_data_new("sums", is("shapes") ? 150 : 160,
                               (const tri_field[]){{"x", TRI_F32, TRI_SHAPE(4)}, {"sign", TRI_I64, TRI_SCALAR}}, 2,
                               fill, NULL, false);
    tri_data_lengths(d, length);
    return d;
}

static void *stay(void *unused) {
    for (;;) pause();
    return unused;
}

static void lose_a_thread(void) {
    pthread_t other;
    if (!pthread_create(&other, NULL, stay, NULL)) pthread_exit(NULL);
}

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    o.batch = 16;
    o.no_shuffle = true;
    if (tri_options_parse(&o, &argc, argv)) return 2;
    if (getenv("TEST_MODE")) mode = getenv("TEST_MODE");
    die = getenv("TEST_DIE");
    if (getenv("TEST_SEEN")) seen = open(getenv("TEST_SEEN"), O_WRONLY | O_APPEND | O_CREAT, 0666);
    o.source = sums();
    if (is("data") || is("stop") || is("late")) tri_data_concurrent(o.source);
    if (is("shapes")) o.tail = "keep";
    tri_run *run = tri_open(is("shapes") ? of_both(o.batch) : network(o.batch), &o);
    if (!run) return tri_close(run);
    const float mine[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    if (is("write") || is("before")) tri_write(run, "fc.weight", mine, sizeof mine);
    if (is("before") && tri_rank(run) == 0 && first_here()) stay(NULL);
    while (tri_step(run)) {
        long long n = tri_step_number(run);
        if (is("scalar") && n == 3) tri_set_scalar(run, "t", 5);
        if (is("break") && n >= 20 && tri_rank(run) == 0 && first_here()) raise(SIGKILL);
        if (is("break") && n >= 20) break;
        if (is("scalar") && n == 20 && tri_rank(run) == 0 && first_here()) raise(SIGKILL);
        if ((is("write") || is("shapes")) && n >= 20 && tri_rank(run) == 1 && first_here()) raise(SIGKILL);
        if (is("thread") && n >= 20 && tri_rank(run) == 1 && first_here()) lose_a_thread();
    }
    char weights[65], state[65];
    tri_hash(run, weights, state);
    printf("weights %s\n", weights);
    tri_status status = tri_close(run);
    if (!is("second") || status) return status;
    o.source = sums();
    return tri_close(tri_open(network(o.batch), &o));
}
