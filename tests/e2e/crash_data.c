/* SPDX-License-Identifier: Apache-2.0
 * A user's program for test_logs.sh: learns whether the sum of four numbers is positive. With
 * TEST_SLOW=N a sample takes N microseconds; with TEST_CRASH=FILE the first worker that reads
 * sample 40 of the second epoch deletes the file and reads through a null pointer; with
 * TEST_DIE=FILE the first worker that runs the last step's callback deletes the file and is killed.
 * TEST_CALL says what the second callback does in step 5: null, abort, overflow; own: the same as
 * null, with the program's own handler. With TEST_LEFT it crashes after the run. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <trireme.h>
#include <unistd.h>

static const char *crash, *die, *call = "";
static useconds_t slow;
static int *volatile nowhere;

/* The trace must have this name. */
__attribute__((visibility("default"), noinline)) int follow_null(const int *to);
int follow_null(const int *to) { return *(const volatile int *)to + 1; }

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)seed;
    float x[4], sum = 0;
    for (int i = 0; i < 4; i++) sum += x[i] = (float)((index * 7 + i * 13) % 11 - 5) / 5;
    memcpy(out[0], x, sizeof x);
    *(int64_t *)out[1] = sum > 0;
    if (slow) usleep(slow);
    if (crash && epoch == 1 && index == 40 && !unlink(crash)) return follow_null(nowhere) + 1;
    return 0;
}

static int step(tri_run *run, void *user) {
    (void)user;
    if (die && tri_step_number(run) == tri_step_total(run) && !unlink(die)) raise(SIGKILL);
    return 0;
}

static int overflow(volatile char *above) {
    volatile char here[4096];
    here[0] = *above;
    return here[0] ? 0 : 1 + overflow(here);
}

static int fail(tri_run *run, void *user) {
    (void)user;
    if (tri_step_number(run) != 5) return 0;
    if (!strcmp(call, "null") || !strcmp(call, "own")) return follow_null(nowhere);
    if (!strcmp(call, "overflow")) return overflow(&(char){0});
    if (!strcmp(call, "abort")) abort();
    return 0;
}

static void handle(int sig) {
    (void)sig;
    static const char text[] = "the program's own handler\n";
    _exit(write(STDERR_FILENO, text, sizeof text - 1) < 0 ? 8 : 7);
}

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    o.batch = 16;
    o.no_shuffle = true;
    if (tri_options_parse(&o, &argc, argv)) return 2;
    crash = getenv("TEST_CRASH");
    die = getenv("TEST_DIE");
    if (getenv("TEST_CALL")) call = getenv("TEST_CALL");
    if (!strcmp(call, "own")) signal(SIGSEGV, handle);
    if (getenv("TEST_SLOW")) slow = (useconds_t)atoi(getenv("TEST_SLOW"));
    o.source = tri_data_new("sums", 160,
                            (const tri_field[]){{"x", TRI_F32, TRI_SHAPE(4)},
                                                {"sign", TRI_I64, TRI_SCALAR}},
                            2, fill, NULL, false);
    tri_data_concurrent(o.source);
    tri_graph *g = tri_graph_new(o.batch);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(tri_batch(g), 4));
    tri_tensor *sign = tri_input(g, "sign", TRI_I64, TRI_SHAPE(tri_batch(g)), .below = 2);
    tri_loss(tri_cross_entropy(tri_dense(x, "fc", 2), sign));
    tri_status status = tri_train(g, &o, TRI_CALLBACKS({.step = step}, {.step = fail}));
    if (getenv("TEST_LEFT")) return follow_null(nowhere);
    return (int)status;
}
