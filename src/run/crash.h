/* SPDX-License-Identifier: Apache-2.0
 * A process whose code is killed by SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS or SIGTRAP
 * while a run is open reports first what the run was at: a line with step, callback (or lane,
 * operator), signal and address, then a trace of the calls. Then it dies of the same signal. One
 * process reports to stderr. A worker reports to worker-K.out and adds a line "crash" to
 * worker-K.log; it reports to the user's stderr too, unless a worker has just done so for the same
 * place. A signal that has a handler, of the program or of a sanitizer, is left to it. */
#ifndef RUN_CRASH_H
#define RUN_CRASH_H

#include "crew/head.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

struct tri_run;
struct line;

/* A thread that computes for a run. */
struct crash_thread {
    _Atomic pid_t number; /* by the system's count; 0: none */
    void *stack;          /* for handlers, as its own may be full; null: none of ours */
};

/* Part of a run. */
struct crash {
    struct crash_thread caller, *others; /* others: the threads of its team from 1 up; or null */
    atomic_int n;                        /* of all of them; 0: the run is not registered */
    /* What a run of one process does: of crew_at, and the callback or batch (-1: none). A worker has
     * this for each thread in the store's head. */
    atomic_int at, part;
    _Atomic int64_t step;
};

/* What the crashed thread was doing. */
struct crash_scene {
    const struct tri_run *run; /* null: not known */
    int thread;                /* of the run's team; -1: none */
    int worker;                /* its place; -1: the run has none */
    int64_t step;              /* 0: none */
    int at;                    /* of crew_at; -1: not known */
    int part;                  /* of `at`: callback, lane or batch; -1: none */
    int number;                /* of the operator; -1: none */
    const char *item;          /* its name; null: not known */
    bool reads;                /* a thread that reads ahead: `part` is a lane */
};

/* Registers a run that the calling thread opens; with the first, handlers are installed. */
void crash_begin(struct tri_run *run);
void crash_add_team(struct tri_run *run); /* once it has one */
/* Before its team goes. With the last run, what the handlers have replaced is put back. */
void crash_end(struct tri_run *run);

/* For a thread that is none of a team. */
void crash_thread_begin(struct crash_thread *t);
void crash_thread_end(struct crash_thread *t);
/* The signals that such a thread must not block. */
void crash_unblock(sigset_t *set);


/* What a run of one process does: for struct executor. */
void crash_note(struct crash *c, enum crew_at at, int part);
void crash_note_step(struct crash *c, int64_t step);
void crash_look(const struct tri_run *run, struct crash_scene *s);
void crash_found(const struct tri_run *run, struct crash_scene *s, int sig,
                 const siginfo_t *info, int to[2]);
void crash_traced(const struct tri_run *run, int sig);

/* For a report of an executor's own, in a signal handler. */
const char *crash_signal_name(int sig);
bool crash_is_sent(const siginfo_t *info); /* by another process */
void crash_address(struct line *l, int sig, const siginfo_t *info, const char *before);
void crash_put(int fd, const char *text, size_t n);

#endif
