/* SPDX-License-Identifier: Apache-2.0
 * A process whose code is killed by SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS or SIGTRAP
 * while a run is open first reports what the run was doing: a line with step, callback (or lane and
 * operator), signal and address, then a trace of the calls. Then it dies of the same signal. A run
 * of one process reports to stderr. A worker reports to worker-K.out and adds a line "crash" to
 * worker-K.log; it also reports to the user's stderr, unless another worker has just done so for
 * the same place. Signals that already have a handler (the program's or a sanitizer's) are left
 * alone. */
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
    _Atomic pid_t number; /* the kernel's thread id; 0: none */
    void *stack;          /* for handlers, as the thread's own may be full; null: not ours */
};

/* The part of a run that crash reports need. */
struct crash {
    struct crash_thread caller, *others; /* others: the threads of its team from 1 on; or null */
    atomic_int n;                        /* how many threads; 0: the run is not registered */
    /* What a run of one process does: a crew_at, and the callback or batch (-1: none). A worker has
     * this for each thread in the store's head. */
    atomic_int at, part;
    _Atomic int64_t step;
};

/* What the crashed thread was doing. */
struct crash_scene {
    const struct tri_run *run; /* null: not known */
    int thread;                /* of the run's team; -1: none */
    int worker;                /* its place; -1: the run has one process */
    struct crew_seats seats;   /* of a mesh */
    bool seated;               /* it has some */
    int64_t step;              /* 0: none */
    int at;                    /* a crew_at; -1: not known */
    int part;                  /* the callback, lane or batch; -1: none */
    struct leg leg;            /* of the lane */
    bool has_leg;
    int number;                /* of the operator; -1: none */
    const char *item;          /* the operator's name; null: not known */
    bool reads;                /* the thread reads ahead; `part` is a lane */
};

/* Registers a run that the calling thread opens. The first one installs the handlers. */
void crash_begin(struct tri_run *run);
void crash_add_team(struct tri_run *run); /* after it has been made */
/* Call it before the team is freed. The last run restores the former handlers. */
void crash_end(struct tri_run *run);

/* For a thread that belongs to no team. */
void crash_thread_begin(struct crash_thread *t);
void crash_thread_end(struct crash_thread *t);
/* Removes the signals that such a thread must not block. */
void crash_unblock(sigset_t *set);

/* For struct executor, of a run of one process. */
void crash_note(struct crash *c, enum crew_at at, int part);
void crash_note_step(struct crash *c, int64_t step);
void crash_look(const struct tri_run *run, struct crash_scene *s);
void crash_found(const struct tri_run *run, struct crash_scene *s, int sig,
                 const siginfo_t *info, int to[2]);
void crash_traced(const struct tri_run *run, int sig);

/* For an executor that writes reports itself, in a signal handler. */
const char *crash_signal_name(int sig);
bool crash_is_sent(const siginfo_t *info); /* by another process */
void crash_address(struct line *l, int sig, const siginfo_t *info, const char *before);
void crash_put(int fd, const char *text, size_t n);

#endif
