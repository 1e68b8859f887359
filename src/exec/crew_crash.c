/* SPDX-License-Identifier: Apache-2.0
 * Behind `handle` stands only what is safe in a signal handler: no allocation, no stdio, no locks but the
 * loader's, which backtrace takes last. */
#include "exec/crew_crash.h"

#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "exec/crew.h"

#define STACK ((size_t)128 << 10)
#define FRAMES 64
#define PATIENCE 10 /* seconds for the trace, which may meet locks that the crash has left taken */

static const struct {
    int number;
    const char *name;
} signals[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"},
               {SIGABRT, "SIGABRT"}};

static struct {
    struct crew *_Atomic crew; /* null: none */
    atomic_int thread;         /* that has crashed; 0: none */
    int out;
    bool installed[COUNT(signals)];
} crash = {.out = -1};

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

/* Null: a thread of the program's own. */
static const struct crew_hand *hand_of(const struct crew *c, pid_t thread) {
    for (int t = 0; t < c->threads; t++)
        if (c->oar[t].thread == thread) return c->oar[t].hand;
    return NULL;
}

static const char *operator_name(const struct crew *c, int item) {
    if (!c->run || !c->head->names || item < 0 || item >= c->head->n_items) return NULL;
    return c->base + c->head->names + (size_t)item * CREW_NAME;
}

static void describe(struct line *l, const struct crew *c, int sig, const siginfo_t *info) {
    const struct crew_hand *h = hand_of(c, self());
    const char *name = "?", *item;
    int64_t step;
    int lane;
    for (size_t i = 0; i < COUNT(signals); i++)
        if (signals[i].number == sig) name = signals[i].name;
    add_time(l);
    add(l, ",\"level\":\"error\",\"event\":\"crash\"");
    add_field(l, "worker", c->place);
    if (h) {
        int at = atomic_load(&h->at);
        lane = atomic_load(&h->lane);
        bool of_lane = at == CREW_AT_DATA || at == CREW_AT_LANE || at == CREW_AT_SUM;
        add_field(l, "step", atomic_load(&h->step));
        if (of_lane && lane >= 0) add_field(l, "lane", lane);
        add_text(l, "at", crew_at_name((enum crew_at)at));
        item = at == CREW_AT_LANE || at == CREW_AT_UPDATE ? operator_name(c, atomic_load(&h->item)) : NULL;
        if (item) add_text(l, "operator", item);
    } else if (c->run && loader_at(&c->run->loader, self(), &step, &lane)) {
        add_field(l, "step", step);
        add_field(l, "lane", lane);
        add_text(l, "at", crew_at_name(CREW_AT_DATA));
    } else {
        add_text(l, "at", "a thread of the program");
    }
    add_text(l, "signal", name);
    add_field(l, "pid", getpid());
    if (sig != SIGABRT && info->si_code > 0) {
        add(l, ",\"address\":\"0x");
        add_number(l, (uint64_t)(uintptr_t)info->si_addr, 16, 1);
        add(l, "\"");
    }
    add(l, "}");
    l->text[l->n++] = '\n';
}

static void put(int fd, const char *text, size_t n) {
    if (fd >= 0 && write(fd, text, n) < 0) return; /* it dies anyway */
}

static void limit_time(void) {
    sigset_t set;
    signal(SIGALRM, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    alarm(PATIENCE);
}

static void report(struct crew *c, int sig, const siginfo_t *info) {
    struct line l = {.n = 0};
    const struct crew_hand *hand = hand_of(c, self());
    if (info->si_code <= 0 && info->si_pid != getpid()) atomic_store(&crew_self(c)->sender, info->si_pid);
    int64_t step;
    int lane;
    if (hand) {
        atomic_store(&crew_self(c)->crashed, 1 + (int)(hand - c->head->hand));
    } else if (c->run && loader_at(&c->run->loader, self(), &step, &lane)) {
        atomic_store(&crew_self(c)->reads_step, (uint32_t)step);
        atomic_store(&crew_self(c)->reads_lane, 1 + lane);
    }
    void *frame[FRAMES];
    int out = crash.out >= 0 ? crash.out : STDERR_FILENO;
    describe(&l, c, sig, info);
    put(c->log.log.fd, l.text, l.n);
    put(out, l.text, l.n);
    limit_time();
    backtrace_symbols_fd(frame, backtrace(frame, FRAMES), out);
    if (crash.out >= 0) atomic_store(&crew_self(c)->traced, sig);
}

/* The signal is blocked in here: raised again, it comes once this returns. A fault in here kills at
 * once. */
static void handle(int sig, siginfo_t *info, void *context) {
    struct crew *c = atomic_load(&crash.crew);
    int none = 0, me = self();
    (void)context;
    if (c && atomic_compare_exchange_strong(&crash.thread, &none, me))
        report(c, sig, info);
    else if (c && none != me)
        for (;;) pause(); /* the first one ends the process */
    signal(sig, SIG_DFL);
    raise(sig);
}

/* ---- where it stands ---- */

static int open_output(const struct crew *c) {
    char path[sizeof c->head->out + 32];
    if (!*c->head->out) return -1;
    base_format(path, sizeof path, "%s/worker-%d.out", c->head->out, c->place);
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

void crew_crash_begin(struct crew *c) {
    struct crew *none = NULL;
    struct sigaction now, ours = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    void *frame[1];
    sigemptyset(&ours.sa_mask);
    if (!atomic_compare_exchange_strong(&crash.crew, &none, c)) return;
    crash.out = open_output(c);
    backtrace(frame, 1); /* loads what it needs, which a handler must not */
    for (size_t i = 0; i < COUNT(signals); i++) {
        if (sigaction(signals[i].number, NULL, &now)) continue;
        if ((now.sa_flags & SA_SIGINFO) || now.sa_handler != SIG_DFL) continue;
        crash.installed[i] = !sigaction(signals[i].number, &ours, NULL);
    }
}

void crew_crash_end(struct crew *c) {
    struct sigaction now;
    if (atomic_load(&crash.crew) != c) return;
    for (size_t i = 0; i < COUNT(signals); i++) {
        bool stands = crash.installed[i] && !sigaction(signals[i].number, NULL, &now) &&
                      (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handle;
        if (stands) signal(signals[i].number, SIG_DFL);
        crash.installed[i] = false;
    }
    atomic_store(&crash.crew, NULL);
    if (crash.out >= 0) close(crash.out);
    crash.out = -1;
}

void crew_crash_thread(struct crew_oar *o) {
    stack_t now;
    o->thread = self();
    if (sigaltstack(NULL, &now) || !(now.ss_flags & SS_DISABLE)) return; /* it has one */
    o->stack = malloc(STACK);
    if (o->stack) sigaltstack(&(stack_t){.ss_sp = o->stack, .ss_size = STACK}, NULL);
}

void crew_crash_thread_end(struct crew_oar *o) {
    if (o->stack) sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
    free(o->stack);
    o->stack = NULL;
}
