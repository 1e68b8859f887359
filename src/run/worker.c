/* SPDX-License-Identifier: Apache-2.0
 * A worker joins the agent's store: its place, its threads, who it is. */
#include "run/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run/executables.h"
#include "run/worker_inside.h"

/* ---- the place ---- */

#define TAKEN "TRIREME_TAKEN_BY" /* the process whose first run has taken the place */

/* The environment names the place. Processes that this one starts must not take it too. */
static tri_status read_environment(int *fd, int *place) {
    const char *store = getenv(CREW_ENV_STORE), *number = getenv(CREW_ENV_PLACE);
    const char *taken = getenv(TAKEN);
    char pid[24];
    *place = -1;
    base_format(pid, sizeof pid, "%d", (int)getpid());
    if (taken && !strcmp(taken, pid))
        return base_fail(TRI_USAGE, "a second run that trains in one program: workers share only "
                         "the first; move the other to another program, or start this one without "
                         "workers");
    if (!store || !number) return TRI_OK;
    *fd = atoi(store);
    *place = atoi(number);
    unsetenv(CREW_ENV_STORE);
    setenv(TAKEN, pid, 1);
    return TRI_OK;
}

/* The agent recovers from a death once all threads of the worker are dead, so each thread that
 * computes holds its mutex as long as it lives. One that ends while the run is open would look as
 * if the worker had been killed: the worker says what it was, and exits. */
static pthread_mutex_t attached_lock = PTHREAD_MUTEX_INITIALIZER;
static struct worker *attached; /* null: it has been freed, maybe by another thread */
static pthread_key_t ends;
static pthread_once_t ends_once = PTHREAD_ONCE_INIT;

static void end_thread(void *arg) {
    static const char why[] = "a thread that computes has ended while the run is open; the thread "
                              "that calls tri_open must live until tri_close";
    (void)arg;
    pthread_mutex_lock(&attached_lock);
    if (attached) {
        worker_log_failure(attached, why); /* the agent prints it, except before the first step */
        if (!crew_begun(attached->head)) fprintf(stderr, "trireme: %s\n", why);
        _exit(TRI_FAILED);
    }
    pthread_mutex_unlock(&attached_lock);
}

static void make_ends(void) { CHECK(!pthread_key_create(&ends, end_thread)); }

static void set_attached(struct worker *from, struct worker *to) {
    pthread_mutex_lock(&attached_lock);
    if (attached == from) attached = to;
    pthread_mutex_unlock(&attached_lock);
}

/* From now on the agent sees this thread's death at once: the robust mutex is released. */
static void attach_thread(struct worker *c, int thread) {
    struct thread_context *me = &c->context[thread];
    me->worker = c;
    me->number = c->place * c->threads + thread;
    me->shared = &c->head->thread[me->number];
    int failed = pthread_mutex_lock(&me->shared->life);
    if (failed == EOWNERDEAD) failed = pthread_mutex_consistent(&me->shared->life);
    CHECK(!failed);
    atomic_store(&me->shared->failed_lane, -1);
    atomic_store(&me->shared->tid, (int)syscall(SYS_gettid));
    atomic_store(&me->shared->held, 1);
    me->spender.to = &me->shared->spending;
    spend_into(&me->spender, thread ? SPENT_WAIT_THREADS : SPENT_START);
    pthread_once(&ends_once, make_ends);
    CHECK(!pthread_setspecific(ends, me));
}

static void attach_other(void *arg, int thread) {
    struct worker *c = arg;
    if (!thread) return; /* attached in worker_join */
    attach_thread(c, thread);
    worker_note(&c->context[thread], CREW_AT_REST, -1, -1);
}

/* The thread ends without having died. */
static void detach_thread(void *arg, int thread) {
    struct worker *c = arg;
    struct crew_thread *t = c->context ? c->context[thread].shared : NULL;
    if (!t || !atomic_load(&t->held)) return;
    spend_into(NULL, SPENT_UNKNOWN);
    atomic_store(&t->held, 0);
    pthread_mutex_unlock(&t->life);
    pthread_setspecific(ends, NULL);
}

void worker_attach(struct worker *c, struct team *team) { team_run(team, attach_other, c); }
void worker_release(struct worker *c, struct team *team) {
    team_run(team_works(team) ? team : NULL, detach_thread, c);
}

#ifdef TRIREME_POINTS
/* TRIREME_POINT="K:N": the first worker in place K is killed after its Nth write. TRIREME_LOSE: its
 * first thread sleeps on when it should wake for the Nth time from waiting for others. */
static _Atomic long points_left, sleeps_left;
static const struct crew_thread *sleeper;

static void count_point(const char *where) {
    (void)where;
    if (atomic_fetch_sub(&points_left, 1) == 0) kill(getpid(), SIGKILL);
}

static bool count_sleep(void) {
    return gettid() == atomic_load(&sleeper->tid) && atomic_load(&sleeper->at) == CREW_AT_WAIT &&
           atomic_fetch_sub(&sleeps_left, 1) == 0;
}

static bool is_armed(const struct worker *c, const char *name, _Atomic long *left) {
    const char *text = getenv(name);
    int place;
    long n;
    bool armed = text && sscanf(text, "%d:%ld", &place, &n) == 2 && place == c->place &&
                 !atomic_load(&c->head->worker[place].restarts);
    if (armed) atomic_store(left, n);
    return armed;
}

static void arm_points(const struct worker *c) {
    sleeper = c->context[0].shared;
    if (is_armed(c, "TRIREME_POINT", &points_left)) claim_point = count_point;
    if (is_armed(c, "TRIREME_LOSE", &sleeps_left)) wait_loses = count_sleep;
}
#endif

tri_status worker_join(struct worker **out) {
    *out = NULL;
    int fd, place;
    tri_status status = read_environment(&fd, &place);
    if (status || place < 0) return status;
    struct worker *c = calloc(1, sizeof *c);
    if (!c) return base_no_memory("a worker");
    *c = (struct worker){.fd = fd, .place = place, .log.log.fd = -1, .crash_out = -1};
    status = crew_attach(fd, &c->head);
    if (!status && getppid() != (pid_t)c->head->agent)
        status = base_fail(TRI_USAGE, "this worker was started by process %d, not by the agent "
                           "(%d), which would not notice its death: let a script `exec` the "
                           "program", (int)getppid(), (int)c->head->agent);
    if (!status && (place < 0 || place >= c->head->size.places))
        status = base_fail(TRI_FAILED, "the workers have no place %d", place);
    if (!status) {
        c->threads = c->head->size.threads;
        c->context = calloc((size_t)c->threads, sizeof *c->context);
        if (!c->context) status = base_no_memory("a worker");
    }
    if (status) {
        worker_free(c);
        return status;
    }
    set_attached(NULL, c);
    c->opener = pthread_self();
    attach_thread(c, 0);
#ifdef TRIREME_POINTS
    arm_points(c);
#endif
    worker_crash_open(c);
    worker_at(c, CREW_AT_COMPILE, -1);
    worker_log_join(c);
    *out = c;
    return TRI_OK;
}

void worker_free(struct worker *c) {
    if (!c) return;
    detach_thread(c, 0);
    set_attached(c, NULL);
    worker_log_close(c);
    worker_crash_close(c);
    for (int i = 0; i < CREW_MOST_SHAPES; i++) {
        for (int k = 0; k < 2; k++) sweeps_free(&c->executable[i].sweeps[k]);
        free(c->executable[i].copy);
    }
    free(c->context);
    if (c->base) munmap(c->base, c->reserved);
    if (c->head) munmap(c->head, crew_head_bytes());
    close(c->fd);
    free(c);
}

struct worker *worker_for_plan(const struct crew_size *size) {
    if (crew_check(size)) return NULL;
    struct worker *c = calloc(1, sizeof *c);
    void *head = mmap(NULL, crew_head_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
    if (!c || head == MAP_FAILED) {
        free(c);
        base_no_memory("a worker");
        return NULL;
    }
    *c = (struct worker){.head = head,
                         .fd = -1,
                         .threads = size->threads,
                         .log.log.fd = -1,
                         .crash_out = -1};
    crew_head_begin(c->head, size);
    return c;
}

const char *worker_choice(struct worker *c, enum crew_choice of) {
    struct crew_chosen *is = &c->head->chosen[of];
    int failed = pthread_mutex_lock(&is->lock);
    if (failed == EOWNERDEAD) failed = pthread_mutex_consistent(&is->lock);
    CHECK(!failed);
    if (!is->is_there) return NULL;
    pthread_mutex_unlock(&is->lock);
    return is->text;
}

void worker_chose(struct worker *c, enum crew_choice of, const char *text) {
    struct crew_chosen *is = &c->head->chosen[of];
    if (text && strlen(text) < sizeof is->text) {
        strcpy(is->text, text);
        is->is_there = 1;
    }
    pthread_mutex_unlock(&is->lock);
}

int worker_all_threads(const struct worker *c) { return c->head->size.most * c->threads; }
int worker_place_threads(const struct worker *c) { return c->head->size.place_threads; }
int worker_auditors(const struct worker *c) {
    return c->head->size.audit > 0 ? worker_place_threads(c) : 0;
}
int worker_processes(const struct worker *c) {
    return c->head->size.workers + c->head->size.spares;
}

/* ---- who it is ---- */

struct crew_worker *worker_self(const struct worker *c) { return &c->head->worker[c->place]; }

int worker_rank(const struct worker *c) { return atomic_load(&worker_self(c)->rank); }
int worker_size(const struct worker *c) { return atomic_load(&c->head->workers.ranks); }

/* Until now they went to the worker's file. */
void worker_redirect_output(struct worker *c) {
    const char *fds = getenv(CREW_ENV_OUTPUT);
    int out, err;
    c->reports = true;
    if (!fds || sscanf(fds, "%d,%d", &out, &err) != 2) return;
    fflush(stdout);
    fflush(stderr);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
}

void worker_select_executable(struct worker *c, tri_run *run, uint64_t step) {
    run->machine = executables_at(run, (int64_t)step);
    c->current = &c->executable[run->machine - run->executable];
}
