/* SPDX-License-Identifier: Apache-2.0
 * What `handle` calls is safe in a signal handler: no allocation, no stdio, no locks but the
 * dynamic loader's, which backtrace takes last. */
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

#include "run/worker.h"

#define STACK ((size_t)128 << 10)
#define FRAMES 64
#define MOST_RUNS 8 /* that a report can be about; of more, none is named */
#define PATIENCE 10 /* seconds for the trace, which may meet locks that the crash has left taken */

static const struct {
    int number;
    const char *name;
} signals[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"},
               {SIGABRT, "SIGABRT"}, {SIGSYS, "SIGSYS"}, {SIGTRAP, "SIGTRAP"}};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of who begins and ends */
static struct {
    tri_run *_Atomic run[MOST_RUNS];
    int runs;
    pid_t pid;         /* that has installed the handlers: a fork of it is none of the run's */
    atomic_int thread; /* that has crashed; 0: none */
    volatile sig_atomic_t signal; /* of which it dies */
    int out, user;     /* a worker's: worker-K.out, and the user's stderr; -1: none */
    bool installed[COUNT(signals)];
    struct sigaction before[COUNT(signals)];
} crash = {.out = -1, .user = -1};

static pid_t self(void) { return (pid_t)syscall(SYS_gettid); }

/* ---- text ---- */

struct line {
    char text[1024];
    size_t n;
};

static void add(struct line *l, const char *s) {
    while (*s && l->n < sizeof l->text - 2) l->text[l->n++] = *s++;
}

static void add_number(struct line *l, uint64_t value, unsigned base, int digits) {
    char text[24], *p = text + sizeof text;
    *--p = 0;
    for (; value || digits > 0; value /= base, digits--) *--p = "0123456789abcdef"[value % base];
    add(l, p);
}

static void add_signed(struct line *l, int64_t value) {
    if (value < 0) add(l, "-");
    add_number(l, value < 0 ? -(uint64_t)value : (uint64_t)value, 10, 1);
}

/* A name of the user's, of at most CREW_NAME bytes; it may be cut within a character. */
static void add_name(struct line *l, const char *s) {
    for (int i = 0; i < CREW_NAME && s[i]; i++) {
        char one[2] = {(unsigned char)s[i] < 0x20 || (unsigned char)s[i] > 0x7e ? '?' : s[i], 0};
        if (*one == '"' || *one == '\\') add(l, "\\");
        add(l, one);
    }
}

/* Gregorian, of days since 1970, by counting years from March on. */
static void add_date(struct line *l, int64_t days) {
    int64_t z = days + 719468, era = z / 146097, d = z % 146097;
    int64_t year = (d - d / 1460 + d / 36524 - d / 146096) / 365;
    int64_t day = d - (365 * year + year / 4 - year / 100), m = (5 * day + 2) / 153;
    int64_t month = m < 10 ? m + 3 : m - 9;
    add_number(l, (uint64_t)(year + 400 * era + (month <= 2)), 10, 4);
    add(l, "-");
    add_number(l, (uint64_t)month, 10, 2);
    add(l, "-");
    add_number(l, (uint64_t)(day - (153 * m + 2) / 5 + 1), 10, 2);
}

static void add_time(struct line *l) {
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t second = (uint64_t)now.tv_sec % 86400;
    add(l, "{\"time\":\"");
    add_date(l, now.tv_sec / 86400);
    add(l, "T");
    add_number(l, second / 3600, 10, 2);
    add(l, ":");
    add_number(l, second / 60 % 60, 10, 2);
    add(l, ":");
    add_number(l, second % 60, 10, 2);
    add(l, ".");
    add_number(l, (uint64_t)now.tv_nsec / 1000000, 10, 3);
    add(l, "Z\"");
}

static void add_field(struct line *l, const char *name, int64_t value) {
    add(l, ",\"");
    add(l, name);
    add(l, "\":");
    add_signed(l, value);
}

static void add_text(struct line *l, const char *name, const char *value) {
    add(l, ",\"");
    add(l, name);
    add(l, "\":\"");
    add_name(l, value);
    add(l, "\"");
}

/* ---- what it was at ---- */

struct scene {
    const tri_run *run; /* null: not known */
    int thread;         /* of its team; -1: none */
    int64_t step;       /* 0: none */
    int at;             /* of worker_at; -1: not known */
    int part;           /* of `at`: callback, lane or batch; -1: none */
    int item;           /* in a worker's table of names; -1: none */
    bool reads;         /* a thread that reads ahead: `part` is a lane */
};

static int thread_of(const struct crash *c, pid_t number) {
    int n = atomic_load(&c->n);
    if (n && atomic_load(&c->caller.number) == number) return 0;
    for (int t = 1; t < n; t++)
        if (atomic_load(&c->others[t - 1].number) == number) return t;
    return -1;
}

static void look_at_hand(struct scene *s) {
    const tri_run *run = s->run;
    const struct crew_thread *h = run->worker ? run->worker->context[s->thread].shared : NULL;
    if (run->worker && !h) s->thread = -1; /* a thread of a team that is no hand yet */
    if (s->thread < 0) return;
    s->at = atomic_load(h ? &h->at : &run->crash.at);
    s->part = atomic_load(h ? &h->lane : &run->crash.part);
    s->step = h ? (int64_t)atomic_load(&h->step) : atomic_load(&run->crash.step);
    s->item = h && (s->at == CREW_AT_LANE || s->at == CREW_AT_UPDATE) ? atomic_load(&h->item) : -1;
}

/* The run that this thread works for. Where it has several, the one that is at something: a
 * callback may use another run. */
static struct scene look_around(pid_t me) {
    struct scene found = {.thread = -1, .at = -1, .part = -1, .item = -1};
    for (int i = 0; i < MOST_RUNS; i++) {
        struct scene s = {.run = atomic_load(&crash.run[i]), .at = -1, .part = -1, .item = -1};
        if (!s.run) continue;
        s.thread = thread_of(&s.run->crash, me);
        if (s.thread >= 0) look_at_hand(&s);
        else s.reads = loader_at(&s.run->loader, me, &s.step, &s.part);
        if (s.reads) s.at = CREW_AT_DATA;
        bool idle = s.at == CREW_AT_REST || (s.at == CREW_AT_CALLBACK && s.part < 0);
        if (!found.run || found.at < 0 || (s.at >= 0 && !idle)) found = s;
    }
    return found;
}

static const char *operator_name(const struct scene *s) {
    const struct worker *c = s->run ? s->run->worker : NULL;
    if (!c || !c->run || !c->head->names || s->item < 0 || s->item >= c->head->n_items) return NULL;
    return c->base + c->head->names + (size_t)s->item * CREW_NAME;
}

static const char *signal_name(int sig) {
    const char *name = "?";
    for (size_t i = 0; i < COUNT(signals); i++)
        if (signals[i].number == sig) name = signals[i].name;
    return name;
}

/* ---- the report ---- */

static bool is_sent(const siginfo_t *info) {
    return info->si_code <= 0 && info->si_pid != getpid();
}

static bool has_address(int sig, const siginfo_t *info) {
    return sig != SIGABRT && info->si_code > 0;
}

static void add_address(struct line *l, const siginfo_t *info) {
    add(l, "0x");
    add_number(l, (uint64_t)(uintptr_t)info->si_addr, 16, 1);
}

/* For worker-K.log. */
static void describe_json(struct line *l, const struct scene *s, int sig, const siginfo_t *info) {
    static const char *const part[CREW_ATS] = {
        [CREW_AT_DATA] = "lane",         [CREW_AT_LANE] = "lane",      [CREW_AT_SUM] = "lane",
        [CREW_AT_CALLBACK] = "callback", [CREW_AT_EVALUATE] = "batch",
    };
    const char *item = operator_name(s);
    add_time(l);
    add(l, ",\"level\":\"error\",\"event\":\"crash\"");
    add_field(l, "worker", s->run->worker->place);
    if (s->at >= 0) add_field(l, "step", s->step);
    if (s->at >= 0 && s->part >= 0 && part[s->at]) add_field(l, part[s->at], s->part);
    add_text(l, "at", s->at >= 0 ? crew_at_name((enum worker_at)s->at) : "a thread of the program");
    if (item) add_text(l, "operator", item);
    add_text(l, "signal", signal_name(sig));
    add_field(l, "pid", getpid());
    if (has_address(sig, info)) {
        add(l, ",\"address\":\"");
        add_address(l, info);
        add(l, "\"");
    }
    add(l, "}");
    l->text[l->n++] = '\n';
}

/* For people. */
static void describe(struct line *l, const struct scene *s, int sig, const siginfo_t *info) {
    const char *item = operator_name(s);
    const char *at = s->at >= 0 ? crew_at_name((enum worker_at)s->at) : "a thread of the program";
    if (s->at == CREW_AT_CALLBACK && s->part < 0) at = "between two steps";
    add(l, "trireme: ");
    if (s->run && s->run->worker) {
        add(l, "worker ");
        add_signed(l, s->run->worker->place);
        add(l, ", ");
    }
    if (s->step > 0) {
        add(l, "step ");
        add_signed(l, s->step);
        add(l, ", ");
    }
    add(l, at);
    if (s->part >= 0) {
        add(l, " ");
        add_signed(l, s->part);
    }
    if (item) {
        add(l, ", operator ");
        add_name(l, item);
    }
    add(l, ": ");
    add(l, signal_name(sig));
    if (is_sent(info)) {
        add(l, ", sent by process ");
        add_signed(l, info->si_pid);
    } else if (has_address(sig, info)) {
        add(l, " at address ");
        add_address(l, info);
    }
    add(l, "; the calls, latest first:");
    l->text[l->n++] = '\n';
}

static void put(int fd, const char *text, size_t n) {
    if (fd >= 0 && write(fd, text, n) < 0) return; /* it dies anyway */
}

/* The trace takes too long: the process dies of what it would have died of without it. */
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

/* What the agent reports about the death. */
static void note_for_agent(const struct worker *c, const struct scene *s, const siginfo_t *info) {
    struct crew_worker *w = worker_self(c);
    if (is_sent(info)) atomic_store(&w->sender, info->si_pid ? info->si_pid : -1);
    if (s->reads) {
        atomic_store(&w->reads_step, (uint32_t)s->step);
        atomic_store(&w->reads_lane, 1 + s->part);
    } else if (s->thread >= 0) {
        atomic_store(&w->crashed, 1 + (int)(c->context[s->thread].shared - c->head->thread));
    }
}

/* The first of all workers that crashes at a place reports it to the user. */
static bool is_news(struct crew_head *h, const struct scene *s, int sig) {
    const int place[] = {sig, s->at, s->part, s->item};
    uint64_t told = base_hash(place, sizeof place, 0);
    return atomic_exchange(&h->crash_told, told) != told;
}

static void report(int sig, const siginfo_t *info) {
    struct line json = {.n = 0}, line = {.n = 0};
    void *frame[FRAMES];
    struct scene s = look_around(self());
    struct worker *c = s.run ? s.run->worker : NULL;
    int to[2] = {c ? crash.out : STDERR_FILENO, -1};
    if (c) note_for_agent(c, &s, info);
    if (c && (crash.out < 0 || (!is_sent(info) && is_news(c->head, &s, sig)))) to[1] = crash.user;
    if (c) describe_json(&json, &s, sig, info);
    if (c) put(c->log.log.fd, json.text, json.n);
    describe(&line, &s, sig, info);
    for (size_t i = 0; i < COUNT(to); i++) put(to[i], line.text, line.n);
    limit_time();
    int n = backtrace(frame, FRAMES);
    for (size_t i = 0; i < COUNT(to); i++)
        if (to[i] >= 0) backtrace_symbols_fd(frame, n, to[i]);
    if (c && crash.out >= 0) atomic_store(&worker_self(c)->traced, sig);
}

/* The signal is blocked in here: raised again, it comes once this returns. A fault in here kills at
 * once. */
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

/* ---- threads ---- */

void crash_thread_begin(struct crash_thread *t) {
    stack_t now;
    atomic_store(&t->number, self());
    if (sigaltstack(NULL, &now) || !(now.ss_flags & SS_DISABLE)) return; /* it has one */
    t->stack = malloc(STACK);
    if (t->stack) sigaltstack(&(stack_t){.ss_sp = t->stack, .ss_size = STACK}, NULL);
}

/* Where another thread ends it, the stack stays: it is still that thread's. */
void crash_thread_end(struct crash_thread *t) {
    if (atomic_exchange(&t->number, 0) != self()) return;
    if (t->stack) sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
    free(t->stack);
    t->stack = NULL;
}

static void join_team(void *arg, int thread) {
    struct crash *c = &((tri_run *)arg)->crash;
    if (thread) crash_thread_begin(&c->others[thread - 1]);
}

static void leave_team(void *arg, int thread) {
    struct crash *c = &((tri_run *)arg)->crash;
    crash_thread_end(thread ? &c->others[thread - 1] : &c->caller);
}

void crash_add_team(tri_run *run) {
    struct crash *c = &run->crash;
    int n = team_threads(run->team);
    if (n > 1) c->others = calloc((size_t)n - 1, sizeof *c->others);
    if (!c->others) return; /* reports of their crashes lack what they computed */
    team_run(run->team, join_team, run);
    atomic_store(&c->n, n);
}

void crash_unblock(sigset_t *set) {
    for (size_t i = 0; i < COUNT(signals); i++) sigdelset(set, signals[i].number);
}

/* ---- where it stands ---- */

static void open_output(const struct worker *c) {
    const char *fds = getenv(CREW_ENV_OUTPUT);
    char path[sizeof c->head->out + 32];
    int out;
    if (!fds || sscanf(fds, "%d,%d", &out, &crash.user) != 2) crash.user = STDERR_FILENO;
    if (!*c->head->out) return;
    base_format(path, sizeof path, "%s/worker-%d.out", c->head->out, c->place);
    crash.out = base_open(path, O_WRONLY | O_CREAT | O_APPEND, NULL);
}

static void install(void) {
    struct sigaction ours = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    void *frame[1];
    sigemptyset(&ours.sa_mask);
    backtrace(frame, 1); /* loads what it needs, which a handler must not */
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
        bool stands = crash.installed[i] && !sigaction(signals[i].number, NULL, &now) &&
                      (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handle;
        if (stands) sigaction(signals[i].number, &crash.before[i], NULL);
        crash.installed[i] = false;
    }
}

void crash_begin(tri_run *run) {
    pthread_mutex_lock(&mutex);
    crash_thread_begin(&run->crash.caller);
    atomic_store(&run->crash.part, -1);
    atomic_store(&run->crash.n, 1);
    if (run->worker) open_output(run->worker);
    for (int i = 0; i < MOST_RUNS; i++) {
        tri_run *none = NULL;
        if (atomic_compare_exchange_strong(&crash.run[i], &none, run)) break;
    }
    crash.pid = getpid();
    if (!crash.runs++) install();
    pthread_mutex_unlock(&mutex);
}

void crash_end(tri_run *run) {
    struct crash *c = &run->crash;
    if (!atomic_load(&c->n)) return;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < MOST_RUNS; i++) {
        tri_run *mine = run;
        atomic_compare_exchange_strong(&crash.run[i], &mine, NULL);
    }
    if (!--crash.runs) restore();
    if (run->worker && crash.out >= 0) {
        close(crash.out);
        crash.out = -1;
    }
    pthread_mutex_unlock(&mutex);
    team_run(c->others ? run->team : NULL, leave_team, run);
    atomic_store(&c->n, 0);
    free(c->others);
    c->others = NULL;
}
