/* SPDX-License-Identifier: Apache-2.0
 * What a command that starts workers learns from the prices of units: the plan of --parallel auto,
 * and how fast each number of workers will be. */
#include "cli/launch_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/host.h"
#include "cli/launch.h"
#include "run/open.h"
#include "search/automatic.h"

static struct find_ask ask_of(const struct launch *l, const tri_options *o) {
    return (struct find_ask){.workers = l->automatic ? 0 : l->workers,
                             .size = launch_size(l),
                             .threads = l->threads ? l->threads : (int)o->threads,
                             .any = l->grain == 1 + GRAIN_ANY};
}

/* The run then is as if --plan had been given. */
static tri_status take(struct launch *l, tri_options *o, const char *path) {
    const struct plan_file *p = plan_read(path, true);
    o->parallel = NULL;
    o->plan = path;
    if (p && l->automatic) l->workers = (int)plan_number(p, PLAN_WORKERS);
    l->automatic = false;
    if (!p) return base_last();
    if (setenv(AUTOMATIC_ENV, path, 1)) return base_no_memory("a plan");
    tri_status status = options_take_plan(o);
    return status ? status : cli_check_launch(l, o);
}

static const char *too_many(const struct launch *l, const tri_options *o) {
    if (l->hosts)
        return "--hosts: auto searches one machine; `trireme plan find --hosts ... --save F` "
               "finds a plan for --plan F";
    if (l->given) return "a launcher such as mpirun, which has chosen the workers";
    return o->forward ? "a run that does not train" : NULL;
}

tri_status launch_find_plan(struct launch *l, struct cli_arguments *a) {
    const struct find_ask ask = ask_of(l, &a->options);
    struct cli_arguments one = *a;
    struct text path = {0};
    unsetenv(AUTOMATIC_ENV);
    if (!automatic_is_asked(&a->options)) {
        if (!l->grain) return TRI_OK;
        return base_fail(TRI_USAGE, LAUNCH_GRAIN_ALONE);
    }
    const char *what = too_many(l, &a->options);
    if (what) return base_fail(TRI_USAGE, "--parallel auto and %s", what);
    tri_graph *g = cli_network(&one, NULL);
    tri_status status = g ? automatic_find(g, &one.options, &ask, &path) : base_last();
    if (!status) status = take(l, &a->options, path.data); /* kept: options point to it */
    return status;
}

/* ---- of a program ---- */

#define WORDS_MOST 16

/* In the child. */
static void become_find(char *const *words, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    const int nothing = open("/dev/null", O_WRONLY);
    if (nothing >= 0) dup2(nothing, STDOUT_FILENO); /* the table; the plan is in its file */
    execv(LAUNCH_SELF, words);
    _exit(127);
}

/* `trireme plan find` looks for the plan in the program's process. */
static tri_status find_in_program(const struct launch *l, const char *path) {
    char workers[16], threads[16];
    int n = 0, status = 0, program = 0;
    const char *own[WORDS_MOST] = {"trireme", "plan", "find", "--grain",
                                   l->grain == 1 + GRAIN_ANY ? "any" : "keep", "--save", path};
    while (own[n]) n++;
    base_format(workers, sizeof workers, "%d", l->workers);
    base_format(threads, sizeof threads, "%d", l->threads);
    if (l->workers && !l->automatic) own[n++] = "-n", own[n++] = workers;
    else if (l->threads) own[n++] = "-n", own[n++] = "auto";
    if (l->threads) own[n++] = "--threads-per-worker", own[n++] = threads;
    own[n++] = "--";
    while (l->argv[program]) program++;
    char **words = calloc((size_t)(n + program + 1), sizeof *words);
    if (!words) return base_no_memory("a command line");
    memcpy(words, own, (size_t)n * sizeof *words);
    memcpy(words + n, l->argv, (size_t)program * sizeof *words);
    const pid_t self = getpid(), pid = fork();
    if (!pid) become_find(words, self);
    free(words);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    if (pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status)) return TRI_OK;
    const bool usage = pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == TRI_USAGE;
    return base_fail(usage ? TRI_USAGE : TRI_FAILED, "--parallel auto: no plan was found for %s",
                     l->argv[0]);
}

tri_status launch_find_of_program(struct launch *l) {
    const tri_options none = {.batch = 0};
    struct text path = {0}, said = {0};
    const char *what = too_many(l, &none);
    if (what) return base_fail(TRI_USAGE, "--parallel auto and %s", what);
    unsetenv(AUTOMATIC_ENV);
    tri_status status = automatic_path(l->out, &path);
    if (!status) status = find_in_program(l, path.data);
    const struct plan_file *p = status ? NULL : plan_read(path.data, true);
    if (!status && !p) status = base_last();
    if (!status && setenv(AUTOMATIC_ENV, path.data, 1)) status = base_no_memory("a plan");
    if (!status) {
        l->workers = (int)plan_number(p, PLAN_WORKERS);
        l->threads = (int)plan_number(p, PLAN_THREADS);
        l->automatic = false;
        text_add(&said, "trireme: --parallel auto: %s: %d worker(s) x %d thread(s), %.4g ms a "
                 "step\n", path.data, l->workers, l->threads,
                 1e-6 * (double)plan_number(p, PLAN_PREDICTED));
        if (!said.failed) fputs(said.data, stderr);
    }
    text_free(&path);
    text_free(&said);
    return status;
}

/* ---- numbers of workers ---- */

#define SLOWER 1.02 /* a number of workers is said to be slower than one beyond that */

/* Seconds of a step; 0: not known. All prices of a run of one process must be. Of several workers
 * most must be: the few units that run there alone are priced as others of their operators. */
static double predicted(const struct cli_arguments *a, const struct crew_size *size,
                        const struct prices *p, struct price_kinds *kinds) {
    struct cli_arguments one = *a;
    struct run_price is = {0};
    run_leave_nothing(&one.options);
    one.options.threads = size->threads;
    tri_graph *g = cli_graph(&one);
    tri_run *run = g ? run_plan(g, &one.options, size->workers > 1 ? size : NULL) : NULL;
    const bool good = run && !price_check(run) && !price_run(run, p, kinds, &is);
    if (run) run_free(run);
    const bool known = 3 * is.known >= 2 * is.units && (size->workers > 1 || is.known == is.units);
    return good && known ? is.step.seconds : 0;
}

static bool has_prices(struct prices *p) {
    struct text path = {0};
    const bool has = !prices_open(p, 0, &path) && p->n;
    text_free(&path);
    return has;
}

void launch_predict(struct launch *l, const struct cli_arguments *a) {
    struct prices p = {0};
    struct price_kinds kinds = {{0}};
    struct launch settled = *l;
    launch_settle(&settled);
    const int most = settled.workers < LAUNCH_PREDICTED ? settled.workers : LAUNCH_PREDICTED - 1;
    if (l->hosts || l->given || settled.workers < 2 || !has_prices(&p)) {
        prices_free(&p);
        return;
    }
    for (int n = 1; n <= most; n = 2 * n < most || n == most ? 2 * n : most) {
        struct crew_size size = launch_size(&settled);
        if (!l->automatic && n > 1) n = settled.workers;
        size.workers = n;
        if (!l->automatic && n == 1) size.threads = l->threads ? l->threads : host_cores();
        l->predicted[n] = predicted(a, &size, &p, &kinds);
        if (l->predicted[n] > 0) continue;
        memset(l->predicted, 0, sizeof l->predicted); /* all, or none */
        break;
    }
    if (!l->automatic && settled.workers <= most && l->predicted[settled.workers] > 0 &&
        l->predicted[settled.workers] > SLOWER * l->predicted[1])
        fprintf(stderr, "trireme: -n %d: a step is predicted to take %.4g ms, %.2f times as long "
                "as with one worker: -n 1\n", settled.workers, 1e3 * l->predicted[settled.workers],
                l->predicted[settled.workers] / l->predicted[1]);
    kinds_free(&kinds);
    prices_free(&p);
}
