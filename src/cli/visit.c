/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/visit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/launch.h"
#include "data/data.h"
#include "plan/rebatch.h"
#include "run/open.h"
#include "search/automatic.h"

#define ENV "TRIREME_COMMAND_FD" /* of struct handed */

/* In memory that `trireme` and the program share. */
struct handed {
    size_t bytes;
    int64_t network; /* from 1 */
    int out;         /* the command's stdout; that of the program is its stderr */
    int error;       /* why the program could not be started; 0: it was */
    atomic_int opened; /* networks */
    atomic_int taken;  /* a process runs the command */
    atomic_int code;   /* of the command; -1: it has not ended */
    int n;        /* number of words */
    char words[]; /* cli_words; a 0 ends each */
};

static struct handed *handed; /* null: not mapped */

/* ---- in `trireme` ---- */

static tri_status hand_over(const struct cli_arguments *a) {
    size_t bytes = sizeof *handed;
    char number[16];
    int n = 0;
    for (; cli_words[n]; n++) bytes += strlen(cli_words[n]) + 1;
    int fd = memfd_create("trireme command", 0), out = fcntl(STDOUT_FILENO, F_DUPFD, 3);
    void *memory = MAP_FAILED;
    base_format(number, sizeof number, "%d", fd);
    if (fd >= 0 && out >= 0 && !ftruncate(fd, (off_t)bytes) && !setenv(ENV, number, 1))
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return base_fail(TRI_FAILED, "cannot share memory with the program: %s", strerror(errno));
    handed = memory;
    handed->bytes = bytes;
    handed->network = a->network ? a->network : 1;
    handed->out = out;
    handed->code = -1;
    handed->n = n;
    char *to = handed->words;
    for (int i = 0; i < n; i++) to = stpcpy(to, cli_words[i]) + 1;
    return TRI_OK;
}

/* In the child. */
static void become(char *const *program, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execvp(program[0], program);
    handed->error = errno;
    _exit(127);
}

/* After the program has ended: the command's exit code, or the program's, counted as shells do. */
static int outcome(const char *program, int status) {
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (handed->code >= 0) return handed->code;
    if (handed->error)
        base_fail(TRI_FAILED, "cannot run %s: %s; a MODEL goes before --", program,
                  strerror(handed->error));
    else
        base_fail(TRI_FAILED, "%s ended with exit code %d %s network %lld; it opened %d (tri_open, "
                  "tri_train)", program, code, handed->taken ? "in the command about" : "before",
                  (long long)handed->network, handed->opened);
    cli_fail();
    return code ? code : TRI_FAILED;
}

int visit_start(const struct cli_arguments *a) {
    int status;
    if (hand_over(a)) return cli_fail();
    pid_t self = getpid(), pid = fork();
    if (!pid) become(a->program, self);
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) pid = -1;
    if (pid > 0) return outcome(a->program[0], status);
    base_fail(TRI_FAILED, "cannot run %s: %s", a->program[0], strerror(errno));
    return cli_fail();
}

/* ---- in the program ---- */

const struct visit_opened *visit_opened;

bool visit_is_on(void) { return getenv(ENV) != NULL; }

static void map(void) {
    struct stat st;
    int fd = atoi(getenv(ENV));
    void *memory = fstat(fd, &st) ? MAP_FAILED
                                  : mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
                                         MAP_SHARED, fd, 0);
    handed = memory;
    if (memory != MAP_FAILED && (size_t)st.st_size > sizeof *handed &&
        handed->bytes == (size_t)st.st_size)
        return;
    base_fail(TRI_FAILED, "what `trireme` has handed over to this program is lost: the program "
              "must leave descriptor %d open, and be linked with the same version", fd);
    _exit(cli_fail());
}

static tri_options options_for(const struct command *c, const tri_options *o) {
    tri_options theirs = o ? *o : tri_options_default();
    if (automatic_is_asked(&theirs)) theirs.parallel = NULL; /* of the run alone */
    if (c->use & USE_MEMORY) return theirs; /* it counts what files and evaluations take */
    run_leave_nothing(&theirs);
    theirs.steps = theirs.epochs = 0;
    if (!data_is_fed(theirs.data)) return theirs;
    theirs.data = "synthetic";
    if (c->use & (USE_BENCH | USE_COMPARE))
        fprintf(stderr, "trireme: the program feeds its batches; unless --data is given, samples "
                "are random numbers here\n");
    return theirs;
}

/* Runs the command in this process. A worker's output is its agent's matter. */
static int command(const tri_graph *g, const tri_options *o) {
    int argc = 0;
    char *word = handed->words, **argv = NULL;
    cli_words = calloc((size_t)handed->n + 1, sizeof *cli_words);
    for (int i = 0; i < handed->n && cli_words; i++, word += strlen(word) + 1) cli_words[i] = word;
    while (cli_words && strcmp(cli_words[1 + argc], "--")) argc++;
    if (cli_words) argv = cli_copy_words(argc, cli_words + 1);
    else base_no_memory("a command line");
    if (!argv) return cli_fail();
    const struct command *c = command_find(argv[0]);
    if (!c) return cli_fail();
    struct visit_opened opened = {g, options_for(c, o), cli_words + argc + 2};
    if (opened.options.source) opened.options.source->kept = true;
    if (opened.options.eval_source) opened.options.eval_source->kept = true;
    for (int i = 1; i < argc; i++) /* workers: threads are not the program's to choose */
        if (!strcmp(argv[i], "-n") || !strncmp(argv[i], "-n=", 3)) opened.options.threads = 0;
    visit_opened = &opened;
    fflush(stdout);
    if (!cli_is_worker()) dup2(handed->out, STDOUT_FILENO);
    int code = cli_end(c->run(c, argc, argv));
    visit_opened = NULL;
    free(argv);
    return code;
}

bool visit_opens(const tri_graph *g, const tri_options *o) {
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; /* held until the process ends */
    static _Thread_local bool inside; /* the command opens runs, too */
    static int64_t opened;
    if (inside || !visit_is_on()) return false;
    pthread_mutex_lock(&one);
    if (!handed) map();
    handed->opened = (int)++opened;
    if (opened < handed->network) {
        pthread_mutex_unlock(&one);
        return true;
    }
    inside = true;
    if (cli_is_worker()) _exit(command(g, o));
    if (atomic_exchange(&handed->taken, 1)) _exit(TRI_OK); /* by another process */
    handed->code = command(g, o);
    _exit(handed->code);
}

tri_graph *visit_graph(tri_options *o) {
    const tri_options *theirs = &visit_opened->options;
    const tri_graph *g = visit_opened->g;
    bool unused = o->forward && o->batch == theirs->batch; /* a run ignores it, too */
    tri_graph *to = graph_duplicate(g, o->batch && !unused ? o->batch : g->batch);
    if (to) o->batch = to->batch;
    o->source = o->data == theirs->data ? theirs->source : NULL;
    o->eval_source = o->eval_data == theirs->eval_data ? theirs->eval_source : NULL;
    return to;
}
