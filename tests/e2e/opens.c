/* SPDX-License-Identifier: Apache-2.0
 * A user's program for test_visit.sh. It prints a line, and then
 *     opens train MODEL [options]   trains; a callback and the exit leave files
 *     opens second MODEL [options]  the same after a network of its own, whose weights it saves
 *     opens ordered                 trains on samples that can be read only in order
 *     opens lost MODEL              the same as train, after all descriptors have been closed
 *     opens crash                   is killed */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trireme.h>
#include <unistd.h>

static void leave(const char *path) {
    FILE *f = fopen(path, "w");
    if (f) fclose(f);
}

static void at_exit(void) { leave("exited"); }

static int step(tri_run *run, void *user) {
    (void)run, (void)user;
    leave("called");
    return 0;
}

static tri_status train(tri_graph *g, const tri_options *o) {
    return tri_train(g, o, TRI_CALLBACKS({.step = step},
                                         tri_saver(.directory = "ckpt", .prefix = "opens")));
}

static tri_status first(void) {
    float weight[4];
    tri_graph *g = tri_graph_new(4);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(4, 4));
    tri_loss(tri_mean(tri_mul(tri_dense(x, "fc", 1), tri_dense(x, "other", 1)), TRI_ALL));
    tri_run *run = tri_open(g, &(tri_options){.save = "first", .out = "first.out", .quiet = true});
    while (tri_step(run)) leave("stepped");
    if (run && !tri_save(run, "first.hand") && !tri_load(run, "first.hand") &&
        !tri_read(run, "fc.weight", weight, sizeof weight))
        printf("first %g\n", (double)weight[0]);
    return tri_close(run);
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)epoch, (void)seed;
    for (int i = 0; i < 4; i++) ((float *)out[0])[i] = (float)(index % 7 - i);
    return 0;
}

static tri_status ordered(tri_options *o) {
    tri_graph *g = tri_graph_new(8);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(8, 4));
    tri_tensor *y = tri_dense(x, "fc", 4);
    tri_loss(tri_mse(y, x));
    o->source = tri_data_new("in order", 64, (tri_field[]){{"x", TRI_F32, TRI_SHAPE(4)}}, 1, fill,
                             NULL, true);
    o->no_shuffle = true;
    return train(g, o);
}

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    if (tri_options_parse(&o, &argc, argv) || argc < 2) return TRI_USAGE;
    puts("the program's own line");
    atexit(at_exit);
    if (!strcmp(argv[1], "crash")) raise(SIGKILL);
    if (!strcmp(argv[1], "ordered")) return ordered(&o);
    if (!strcmp(argv[1], "lost"))
        for (int fd = 3; fd < 100; fd++) close(fd);
    if (!strcmp(argv[1], "second") && first()) return TRI_FAILED;
    return argc < 3 ? TRI_USAGE : train(tri_model_open(argv[2], o.batch), &o);
}
