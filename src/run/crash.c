/* SPDX-License-Identifier: Apache-2.0
 * All that `handle` calls is safe in a signal handler: no allocation, no stdio, and no locks except
 * the dynamic loader's, which backtrace takes at the end. */
#include "run/crash.h"

#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/line.h"
#include "run/executor.h"
#include "run/loader.h"

#define STACK ((size_t)128 << 10)
#define FRAMES 64
#define MOST_RUNS 8 /* that reports can name */
#define PATIENCE 10 /* seconds for the trace, which may wait for a lock that the crash left held */

static const struct {
    int number;
    const char *name;
} signals[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"},
               {SIGABRT, "SIGABRT"}, {SIGSYS, "SIGSYS"}, {SIGTRAP, "SIGTRAP"}};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* for crash_begin and crash_end */
static struct {
    tri_run *_Atomic run[MOST_RUNS];
    int runs;
    pid_t pid;         /* installed the handlers: its forks do not belong to the run */
    atomic_int thread; /* the one that crashed first; 0: none */
    volatile sig_atomic_t signal; /* that it dies of */
    bool installed[COUNT(signals)];
    struct sigaction before[COUNT(signals)];
} crash;

static pid_t self(void) { return (pid_t)syscall(SYS_gettid); }

/* ---- what the thread was doing ---- */

static int thread_of(const struct crash *c, pid_t number) {
    int n = atomic_load(&c->n);
    if (n && atomic_load(&c->caller.number) == number) return 0;
    for (int t = 1; t < n; t++)
        if (atomic_load(&c->others[t - 1].number) == number) return t;
    return -1;
}

/* Finds the run that this thread works for. If there are several, it prefers one that is not idle,
 * as a callback of one run may use another. */
static struct crash_scene look_around(pid_t me) {
    struct crash_scene found = {.thread = -1, .at = -1, .part = -1, .worker = -1};
    for (int i = 0; i < MOST_RUNS; i++) {
        struct crash_scene s = {
            .run = atomic_load(&crash.run[i]), .at = -1, .part = -1, .worker = -1};
        if (!s.run) continue;
        s.thread = thread_of(s.run->crash, me);
        if (s.thread >= 0) s.run->executor->look(s.run, &s);
        else s.reads = loader_at(s.run->loader, me, &s.step, &s.part);
        if (s.reads) s.at = CREW_AT_DATA;
        bool idle = s.at == CREW_AT_REST || (s.at == CREW_AT_CALLBACK && s.part < 0);
        if (!found.run || found.at < 0 || (s.at >= 0 && !idle)) found = s;
    }
    return found;
}

const char *crash_signal_name(int sig) {
    const char *name = "?";
    for (size_t i = 0; i < COUNT(signals); i++)
        if (signals[i].number == sig) name = signals[i].name;
    return name;
}

/* ---- the report ---- */

bool crash_is_sent(const siginfo_t *info) {
    return info->si_code <= 0 && info->si_pid != getpid();
}

void crash_address(struct line *l, int sig, const siginfo_t *info, const char *before) {
    if (sig == SIGABRT || info->si_code <= 0) return;
    line_add(l, before);
    line_number(l, (uint64_t)(uintptr_t)info->si_addr, 16, 1);
}

/* The first line of the report. */
static void describe(struct line *l, const struct crash_scene *s, int sig, const siginfo_t *info) {
    const char *at = s->at >= 0 ? crew_at_name((enum crew_at)s->at) : "a thread of the program";
    if (s->at == CREW_AT_CALLBACK && s->part < 0) at = "between two steps";
    line_add(l, "trireme: ");
    if (s->worker >= 0) {
        line_add(l, "worker ");
        line_signed(l, s->worker);
        line_add(l, ", ");
    }
    if (s->seated) {
        line_add(l, "replica ");
        line_signed(l, s->seats.replica);
        line_add(l, s->seats.first < s->seats.last ? ", seats " : ", seat ");
        line_signed(l, s->seats.first);
        if (s->seats.first < s->seats.last) line_add(l, "-");
        if (s->seats.first < s->seats.last) line_signed(l, s->seats.last);
        line_add(l, ", ");
    }
    if (s->step > 0) {
        line_add(l, "step ");
        line_signed(l, s->step);
        line_add(l, ", ");
    }
    line_add(l, at);
    if (s->part >= 0) {
        line_add(l, " ");
        line_signed(l, s->part);
    }
    if (s->has_leg) {
        const char kind[] = {' ', legs_letter(s->leg.kind), 0};
        line_add(l, kind);
        line_signed(l, s->leg.stage);
    }
    if (s->item) {
        line_add(l, ", operator ");
        line_name(l, s->item, CREW_NAME);
    }
    line_add(l, ": ");
    line_add(l, crash_signal_name(sig));
    if (crash_is_sent(info)) {
        line_add(l, ", sent by process ");
        line_signed(l, info->si_pid);
    } else {
        crash_address(l, sig, info, " at address 0x");
    }
    line_add(l, "; the calls, latest first:");
    l->text[l->n++] = '\n';
}

void crash_put(int fd, const char *text, size_t n) {
    if (fd >= 0 && write(fd, text, n) < 0) return; /* it dies anyway */
}

/* The trace takes too long: the process dies of the signal without it. */
static void too_late(int sig) {
    sigset_t set;
    (void)sig;
    signal(crash.signal, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, crash.signal);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(crash.signal);
}

static void limit_time(void) {
    sigset_t set;
    signal(SIGALRM, too_late);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    alarm(PATIENCE);
}

static void report(int sig, const siginfo_t *info) {
    struct line line = {.n = 0};
    void *frame[FRAMES];
    struct crash_scene s = look_around(self());
    int to[2] = {STDERR_FILENO, -1};
    if (s.run) s.run->executor->crashed(s.run, &s, sig, info, to);
    describe(&line, &s, sig, info);
    for (size_t i = 0; i < COUNT(to); i++) crash_put(to[i], line.text, line.n);
    limit_time();
    int n = backtrace(frame, FRAMES);
    for (size_t i = 0; i < COUNT(to); i++)
        if (to[i] >= 0) backtrace_symbols_fd(frame, n, to[i]);
    if (s.run) s.run->executor->traced(s.run, sig);
}

/* The signal is blocked in here: raised again, it arrives after this returns. A fault in here kills
 * the process at once. */
static void handle(int sig, siginfo_t *info, void *context) {
    int none = 0, me = self();
    (void)context;
    if (getpid() != crash.pid) {
        signal(sig, SIG_DFL);
        raise(sig);
        return;
    }
    if (!atomic_load(&crash.thread)) crash.signal = sig;
    if (atomic_compare_exchange_strong(&crash.thread, &none, me))
        report(sig, info);
    else if (none != me)
        for (;;) pause(); /* the first one ends the process */
    signal(sig, SIG_DFL);
    raise(sig);
}

/* ---- what the run does ---- */

void crash_note(struct crash *c, enum crew_at at, int part) {
    atomic_store_explicit(&c->at, (int)at, memory_order_relaxed);
    atomic_store_explicit(&c->part, part, memory_order_relaxed);
}

void crash_note_step(struct crash *c, int64_t step) {
    atomic_store_explicit(&c->step, step, memory_order_relaxed);
}

void crash_look(const tri_run *run, struct crash_scene *s) {
    s->at = atomic_load(&run->crash->at);
    s->part = atomic_load(&run->crash->part);
    s->step = atomic_load(&run->crash->step);
}

void crash_found(const tri_run *run, struct crash_scene *s, int sig, const siginfo_t *info,
                 int to[2]) {
    (void)run, (void)s, (void)sig, (void)info, (void)to;
}

void crash_traced(const tri_run *run, int sig) { (void)run, (void)sig; }

/* ---- threads ---- */

void crash_thread_begin(struct crash_thread *t) {
    stack_t now;
    atomic_store(&t->number, self());
    if (sigaltstack(NULL, &now) || !(now.ss_flags & SS_DISABLE)) return; /* it has a stack */
    t->stack = malloc(STACK);
    if (t->stack) sigaltstack(&(stack_t){.ss_sp = t->stack, .ss_size = STACK}, NULL);
}

/* If another thread calls this, the stack stays, as its thread still uses it. */
void crash_thread_end(struct crash_thread *t) {
    if (atomic_exchange(&t->number, 0) != self()) return;
    if (t->stack) sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
    free(t->stack);
    t->stack = NULL;
}

static void join_team(void *arg, int thread) {
    struct crash *c = ((tri_run *)arg)->crash;
    if (thread) crash_thread_begin(&c->others[thread - 1]);
}

static void leave_team(void *arg, int thread) {
    struct crash *c = ((tri_run *)arg)->crash;
    crash_thread_end(thread ? &c->others[thread - 1] : &c->caller);
}

void crash_add_team(tri_run *run) {
    struct crash *c = run->crash;
    int n = team_threads(run->team);
    if (n > 1) c->others = calloc((size_t)n - 1, sizeof *c->others);
    if (!c->others) return; /* reports of their crashes lack what they were doing */
    team_run(run->team, join_team, run);
    atomic_store(&c->n, n);
}

void crash_unblock(sigset_t *set) {
    for (size_t i = 0; i < COUNT(signals); i++) sigdelset(set, signals[i].number);
}

/* ---- handlers ---- */

static void install(void) {
    struct sigaction ours = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    void *frame[1];
    sigemptyset(&ours.sa_mask);
    backtrace(frame, 1); /* loads its library, which a handler must not do */
    for (size_t i = 0; i < COUNT(signals); i++) {
        struct sigaction *before = &crash.before[i];
        if (sigaction(signals[i].number, NULL, before)) continue;
        if ((before->sa_flags & SA_SIGINFO) || before->sa_handler != SIG_DFL) continue;
        crash.installed[i] = !sigaction(signals[i].number, &ours, NULL);
    }
}

static void restore(void) {
    struct sigaction now;
    for (size_t i = 0; i < COUNT(signals); i++) {
        bool ours = crash.installed[i] && !sigaction(signals[i].number, NULL, &now) &&
                    (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handle;
        if (ours) sigaction(signals[i].number, &crash.before[i], NULL);
        crash.installed[i] = false;
    }
}

void crash_begin(tri_run *run) {
    pthread_mutex_lock(&mutex);
    crash_thread_begin(&run->crash->caller);
    atomic_store(&run->crash->part, -1);
    atomic_store(&run->crash->n, 1);
    for (int i = 0; i < MOST_RUNS; i++) {
        tri_run *none = NULL;
        if (atomic_compare_exchange_strong(&crash.run[i], &none, run)) break;
    }
    crash.pid = getpid();
    if (!crash.runs++) install();
    pthread_mutex_unlock(&mutex);
}

void crash_end(tri_run *run) {
    struct crash *c = run->crash;
    if (!atomic_load(&c->n)) return;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < MOST_RUNS; i++) {
        tri_run *mine = run;
        atomic_compare_exchange_strong(&crash.run[i], &mine, NULL);
    }
    if (!--crash.runs) restore();
    pthread_mutex_unlock(&mutex);
    team_run(c->others ? run->team : NULL, leave_team, run);
    atomic_store(&c->n, 0);
    free(c->others);
    c->others = NULL;
}
