/* SPDX-License-Identifier: Apache-2.0
 * A program with its own loop, for workers.py, whose code before and in the loop changes the
 * training. TEST_MODE says what it does; the first worker that reaches the most delicate place
 * deletes the file TEST_DIE and dies there, stops, or waits to be killed. If workers are to die
 * repeatedly, the file has a byte for each time. Prints the hash of the weights. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trireme.h>
#include <unistd.h>

static const char *mode = "", *die;
static int seen = -1; /* file TEST_SEEN: the samples that were read */

static bool is(const char *which) { return !strcmp(mode, which); }
static bool first_here(void) { return die && !unlink(die); }

/* Removes a byte from the file, if it has any. */
static bool once_more(void) {
    int fd = die ? open(die, O_RDWR) : -1;
    off_t n = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    bool more = n > 0 && !ftruncate(fd, n - 1);
    if (fd >= 0) close(fd);
    return more;
}

/* Allocates memory until there is none, up to a limit. */
static void hog(void) {
    for (int i = 0; i < 512; i++) {
        char *more = malloc(1 << 20);
        if (more) memset(more, 1, 1 << 20);
    }
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)seed;
    const int64_t which[2] = {epoch, index};
    if (seen >= 0 && write(seen, which, sizeof which) != sizeof which) return 1;
    if (is("data") && epoch == 30 && index % 32 == 20 && first_here()) raise(SIGKILL);
    if (is("stop") && epoch == 30 && index % 32 == 20 && first_here()) raise(SIGSTOP);
    if (is("deadly") && epoch == 1 && index == 40) abort();
    if (is("killed") && epoch == 1 && index == 40 && once_more()) raise(SIGKILL);
    if (is("hog") && epoch == 1 && index == 40 && once_more()) hog();
    if (is("bad") && epoch == 1 && index == 40) return 1;
    if (is("late")) { /* time for all workers to get lanes; the reporter does not stop */
        usleep(200);
        if (epoch > 2 && strcmp(getenv("TRIREME_WORKER"), "0") && first_here()) raise(SIGSTOP);
    }
    float x[4], sum = 0;
    for (int i = 0; i < 4; i++) sum += x[i] = (float)((index * 7 + i * 13) % 11 - 5) / 5;
    memcpy(out[0], x, sizeof x);
    *(int64_t *)out[1] = sum > 0;
    return 0;
}

/* ---- an operator that fails in lane 0 of step 13 ---- */

static int infer_same(const tri_node *n, tri_spec *out) {
    out[0] = (tri_spec){TRI_F32, tri_shape_of(tri_node_in(n, 0))};
    return 1;
}

static void pass_on(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    (void)n;
    dx[0] = dy[0];
}

static void *stay(void *unused) {
    for (;;) pause();
    return unused;
}

static void lose_a_thread(void) {
    pthread_t other;
    if (!pthread_create(&other, NULL, stay, NULL)) pthread_exit(NULL);
}

static void befall(const tri_call *call) {
    tri_shape shape = tri_shape_of(tri_node_out(call->node, 0));
    memcpy(call->out[0], call->in[0], sizeof(float) * (size_t)tri_shape_count(&shape));
    bool here = call->step == 13 && !call->first;
    if (is("hang") && here)
        for (;;) usleep(1000);
    if (is("gone") && here) lose_a_thread();
    if (is("lane") && here && once_more()) raise(SIGKILL);
    if (is("stops") && here && once_more()) raise(SIGSTOP);
}

static const tri_op befallen = {.name = "befallen", .inputs = 1, .infer = infer_same,
                                .gradient = pass_on, .factors = "...->...",
                                .kernel = befall, .random = true, /* so that `first` is set */
                                .examples = (const char *const[]){"f32[3]", NULL}};

/* ---- networks ---- */

#define METRICS 100

static tri_graph *network(int64_t batch) {
    tri_graph *g = tri_graph_new(batch);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(batch, 4));
    x = tri_apply(g, "befallen", &x, 1, NULL, 0);
    tri_tensor *sign = tri_input(g, "sign", TRI_I64, TRI_SHAPE(batch), .below = 2);
    tri_tensor *loss = tri_cross_entropy(tri_dense(x, "fc", 2), sign);
    for (int i = 0; i < METRICS && is("results"); i++) {
        char name[80];
        snprintf(name, sizeof name, "%072d", i);
        tri_metric(tri_scale(loss, i + 1), name);
    }
    tri_loss(is("scalar") ? tri_mul(loss, tri_add_number(tri_scalar(g, "t"), 1)) : loss);
    return g;
}

/* Networks for two lengths that differ in more than that: only the short one counts labels, only
 * the long one uses "b". */
static tri_graph *of_length(int64_t batch, int64_t length) {
    tri_graph *g = tri_graph_new(batch);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(batch, length));
    tri_tensor *sign = tri_input(g, "sign", TRI_I64, TRI_SHAPE(batch), .below = 2);
    tri_tensor *w = tri_param(g, "w", TRI_SHAPE(4, 2), (tri_init){TRI_NORMAL, 0, 0.5});
    tri_tensor *b = tri_param(g, "b", TRI_SHAPE(2), (tri_init){TRI_CONSTANT, 0, 0});
    if (length == 4) tri_loss(tri_cross_entropy(tri_add(tri_matmul(x, w), b), sign));
    else
        tri_loss(tri_cross_entropy(tri_matmul(x, tri_slice(w, 0, 0, length)), sign, .ignore = true,
                                   .ignore_index = 0));
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
    tri_data *d = tri_data_new(
        "sums", is("shapes") ? 150 : 160,
        (const tri_field[]){{"x", TRI_F32, TRI_SHAPE(4)}, {"sign", TRI_I64, TRI_SCALAR}}, 2, fill,
        NULL, is("sequential"));
    tri_data_lengths(d, length);
    return d;
}

/* For a run that is fed: ranks 0 and 1 die once each at four places of the loop, each time in
 * another step, so that the reporter dies too; the program sets the rate from step 100 to 700. The
 * loop ends early, after step TEST_UNTIL. */
#define FED_BATCH 16

static void die_at(const tri_run *run, int point) {
    char path[4200];
    int64_t n = tri_step_number(run);
    int which = 2 * point + tri_rank(run);
    if (!die || n < 100 * (which + 1) || n % 8 != which) return;
    snprintf(path, sizeof path, "%s-%d", die, which);
    if (!unlink(path)) raise(SIGKILL);
}

static void feed_all(tri_run *run) {
    static float x[FED_BATCH][4];
    static int64_t sign[FED_BATCH];
    int64_t n = tri_step_number(run);
    for (int64_t i = 0; i < FED_BATCH; i++)
        fill(NULL, n * FED_BATCH + i, 0, 0, (void *[]){x[i], &sign[i]});
    if (is("wrong") && n == 30) sign[7] = 2;
    die_at(run, 0);
    tri_feed(run, "x", x, sizeof x);
    die_at(run, 1);
    if (!is("unfed") || n != 30) tri_feed(run, "sign", sign, sizeof sign);
    die_at(run, 2);
    if (n == 100) tri_set_scalar(run, "lr", 0.03);
    if (n == 700) tri_set_scalar(run, "lr", NAN);
    die_at(run, 3);
}

static void feed_and_step(tri_run *run) {
    const char *until = getenv("TEST_UNTIL");
    do feed_all(run);
    while (tri_step(run) && !(until && tri_step_number(run) >= atoi(until)));
}

struct opening {
    tri_options o;
    tri_run *run;
};

static void *open_run(void *arg) {
    struct opening *a = arg;
    a->run = tri_open(is("shapes") ? of_both(a->o.batch) : network(a->o.batch), &a->o);
    return a;
}

static void *make_step(void *run) { return tri_step(run) ? run : NULL; }

/* In a thread that then ends. */
static void *elsewhere(void *(*what)(void *), void *arg) {
    pthread_t other;
    void *result = NULL;
    if (!pthread_create(&other, NULL, what, arg)) pthread_join(other, &result);
    return result;
}

static void own_handler(int sig) { (void)sig; }

/* The handlers of the signals that an open run changes. */
static void print_signals(const char *when) {
    static const struct {
        int number;
        const char *name;
    } signals[] = {{SIGPIPE, "PIPE"}, {SIGSEGV, "SEGV"}, {SIGHUP, "HUP"}, {SIGINT, "INT"}};
    printf("%s:", when);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction now;
        sigaction(signals[i].number, NULL, &now);
        printf(" %s=%s", signals[i].name,
               now.sa_handler == SIG_DFL       ? "default"
               : now.sa_handler == SIG_IGN     ? "ignored"
               : now.sa_handler == own_handler ? "own"
                                               : "library");
    }
    printf("\n");
}

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    o.batch = 16;
    o.no_shuffle = true;
    if (tri_options_parse(&o, &argc, argv)) return 2;
    if (getenv("TEST_MODE")) mode = getenv("TEST_MODE");
    die = getenv("TEST_DIE");
    if (getenv("TEST_SEEN")) seen = open(getenv("TEST_SEEN"), O_WRONLY | O_APPEND | O_CREAT, 0666);
    if (is("early") && once_more()) raise(SIGKILL);
    if (is("never")) abort();
    if (tri_register(&befallen)) return 2;
    const bool fed = is("fed") || is("unfed") || is("wrong");
    if (fed) o.data = "feed";
    else o.source = sums();
    if (is("data") || is("stop") || is("late")) tri_data_concurrent(o.source);
    if (is("shapes")) o.tail = "keep";
    const char *pipe = getenv("TEST_PIPE"); /* how the program handles SIGPIPE */
    if (pipe) signal(SIGPIPE, !strcmp(pipe, "own") ? own_handler : SIG_IGN);
    if (is("signals")) print_signals("before");
    struct opening opening = {.o = o};
    if (is("opener")) elsewhere(open_run, &opening);
    else open_run(&opening);
    tri_run *run = opening.run;
    if (!run) return tri_close(run);
    const float mine[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    if (is("write") || is("before")) tri_write(run, "fc.weight", mine, sizeof mine);
    if (is("before") && tri_rank(run) == 0 && first_here()) stay(NULL);
    if (fed) feed_and_step(run);
    while (!fed && (is("stepper") ? elsewhere(make_step, run) != NULL : tri_step(run))) {
        long long n = tri_step_number(run);
        if (is("signals") && n == 1) print_signals("open");
        if (is("print")) printf("step %lld\n", n);
        if (is("scalar") && n == 3) tri_set_scalar(run, "t", 5);
        if (is("break") && n >= 20 && tri_rank(run) == 0 && first_here()) raise(SIGKILL);
        if (is("break") && n >= 20) break;
        if (is("scalar") && n == 20 && tri_rank(run) == 0 && first_here()) raise(SIGKILL);
        if ((is("write") || is("shapes")) && n >= 20 && tri_rank(run) == 1 && first_here())
            raise(SIGKILL);
        if (is("thread") && n >= 20 && tri_rank(run) == 1 && first_here()) lose_a_thread();
    }
    for (int i = 0; i < METRICS && is("results"); i++) {
        char name[80];
        snprintf(name, sizeof name, "%072d", i);
        printf("%d %a\n", i, tri_value(run, name));
    }
    if (is("ranks"))
        printf("rank %d of %d, host %d of %d\n", tri_rank(run), tri_size(run), tri_host(run),
               tri_hosts(run));
    char weights[65], state[65];
    tri_hash(run, weights, state);
    printf("weights %s\n", weights);
    tri_status status = tri_close(run);
    if (is("signals")) print_signals("closed");
    if (!is("second") || status) return status;
    o.source = sums();
    return tri_close(tri_open(network(o.batch), &o));
}
