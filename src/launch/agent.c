/* SPDX-License-Identifier: Apache-2.0
 * The agent's main loop: makes the store's head, starts the workers, supervises them, cleans up. */
#include "launch/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/pipes.h"
#include "crew/messages.h"
#include "launch/agent_inside.h"
#include "launch/membership.h"

#define TICK 50 /* milliseconds between two checks of the workers */
#define SOON 1  /* the same, while a recovery waits for other workers */

/* ---- the store's head ---- */

static tri_status make_head(struct agent *a) {
    const struct launch *l = a->launch;
    struct crew_size size = launch_size(l);
    if (l->membership) membership_size(l->membership, l, &size);
    tri_status status = crew_check(&size);
    if (status) return status;
    int fd = memfd_create("trireme store", 0);
    if (fd < 0 || ftruncate(fd, (off_t)crew_head_bytes()))
        return base_fail(TRI_FAILED, "cannot make the store: %s", strerror(errno));
    a->fd = fd;
    struct crew_head *h = mmap(NULL, crew_head_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (h == MAP_FAILED) return base_fail(TRI_FAILED, "cannot map the store: %s", strerror(errno));
    a->head = h;
    crew_head_begin(h, &size);
    h->agent = getpid();
    if (agent_make_rings(a)) return TRI_FAILED;
    h->asked.until_loss = l->timing ? l->timing->until_loss : 0;
    atomic_store(&h->told.shown.notes, l->timing && l->timing->again);
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    for (int i = 0; i < h->size.place_threads; i++) pthread_mutex_init(&h->thread[i].life, &kind);
    for (int i = 0; i < CREW_CHOICES; i++) pthread_mutex_init(&h->chosen[i].lock, &kind);
    pthread_mutexattr_destroy(&kind);
    a->recovery = (struct recovery){.view = {.head = h, .fd = fd}};
    if (l->out && !realpath(l->out, h->told.out)) *h->told.out = 0;
    if (l->membership) membership_attach(l->membership, a);
    base_format(h->told.title, sizeof h->told.title, "%s", l->title ? l->title : l->argv[0]);
    h->told.earlier = a->earlier;
    status = agent_write_address(a);
    return status ? status : agent_open_run(a);
}

/* ---- signals ---- */

static tri_status open_signals(struct agent *a) {
    pipes_hold();
    a->blocks_signals = true;
    a->signals = launch_block_signals(&a->old_mask);
    int nowhere = a->launch->timing ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
    a->output[0] = fcntl(nowhere < 0 ? STDOUT_FILENO : nowhere, F_DUPFD, 16);
    a->output[1] = fcntl(STDERR_FILENO, F_DUPFD, 16);
    if (nowhere >= 0) close(nowhere);
    cores_find(&a->cores, a->launch->workers, a->launch->threads);
    a->deaths = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (a->signals < 0 || a->deaths < 0)
        return base_fail(TRI_FAILED, "cannot wait for signals: %s", strerror(errno));
    return TRI_OK;
}

void agent_begin_grace(struct agent *a) {
    a->stop_deadline = base_now() + (int64_t)(a->launch->grace * 1e9);
    crew_notify_end(a->head);
}

static void ask_to_stop(struct agent *a, int sig) {
    struct crew_head *h = a->head;
    if (a->launch->membership && !atomic_load(&h->asked.stop) && !a->leaves) {
        agent_print(a, "this host leaves the run after the current step");
        a->leaves = true;
        membership_leave(a->launch->membership);
        return;
    }
    if (a->leaves || atomic_load(&h->asked.stop) == CREW_STOP_ASKED) {
        agent_print(a, "second signal: the workers are killed and nothing is saved");
        agent_kill_all(a);
        return;
    }
    agent_print(a, "%s: " RUN_ENDS_SOON,
               sig == SIGINT ? "interrupted" : sig == SIGTERM ? "asked to end" : "hung up");
    log_event(&a->log, LOG_WARNING, "stop", "signal=%d", sig);
    atomic_store(&h->asked.stop, CREW_STOP_ASKED);
    agent_begin_grace(a);
}

/* A run that was asked to end DATA_GRACE ago abandons its open step if a worker has waited for
 * samples of it for DATA_WAIT. Nanoseconds; at most a half and a quarter of --grace. */
#define DATA_GRACE 3e9
#define DATA_WAIT 1e9

static double least(double a, double b) { return a < b ? a : b; }

/* If samples of the last step do not arrive, ends the run without it, so that there is time to
 * save. */
static void end_without_samples(struct agent *a) {
    struct crew_head *h = a->head;
    double grace = 1e9 * a->launch->grace, now = (double)base_now();
    int runs = CREW_RUNS;
    double asked = (double)a->stop_deadline - grace;
    if (!a->stop_deadline || now - asked < least(DATA_GRACE, grace / 2)) return;
    for (int i = 0; i < h->size.place_threads && !atomic_load(&h->course.ending); i++) {
        const struct crew_thread *thread = &h->thread[i];
        int place = i / h->size.threads;
        bool waits = a->process[place].pid && atomic_load(&thread->at) == CREW_AT_DATA &&
                     now - (double)atomic_load(&thread->since) > least(DATA_WAIT, grace / 4);
        if (!waits || !atomic_compare_exchange_strong(&h->course.ending, &runs, CREW_STOPPED))
            continue;
        agent_print(a, "no samples arrived for step %llu, which worker %d waits for: the run ends "
                    "without it", (unsigned long long)atomic_load(&h->course.opened), place);
        crew_notify_end(h);
    }
}

static void read_signals(struct agent *a) {
    struct crew_head *h = a->head;
    struct signalfd_siginfo s;
    int no = CREW_STOP_NO;
    while (read(a->signals, &s, sizeof s) == (ssize_t)sizeof s)
        if (s.ssi_signo != SIGCHLD) ask_to_stop(a, (int)s.ssi_signo);
    if (pipes_closed()) atomic_compare_exchange_strong(&h->asked.stop, &no, CREW_STOP_UNREAD);
    if (!atomic_load(&h->asked.stop) || a->stop_deadline) return;
    agent_begin_grace(a); /* something other than ask_to_stop has set `stop` */
    if (atomic_load(&h->asked.stop) == CREW_STOP_UNREAD)
        agent_print(a, RUN_IS_UNREAD);
    else if (!a->timed)
        agent_print(a, "asked to stop: the run ends after the current step");
}

static bool any_pending(const struct agent *a) {
    for (int i = 0; i < a->head->size.places; i++)
        if (a->process[i].pending) return true;
    return false;
}

static void wait_for_events(struct agent *a) {
    struct pollfd sources[2 + MEMBERSHIP_FDS] = {{a->signals, POLLIN, 0}, {a->deaths, POLLIN, 0}};
    for (int i = 0; i < MEMBERSHIP_FDS; i++) sources[2 + i].fd = -1;
    if (a->launch->membership) membership_poll(a->launch->membership, sources + 2);
    poll(sources, COUNT(sources), any_pending(a) ? SOON : TICK);
    uint64_t n;
    if (read(a->deaths, &n, sizeof n) < 0 && errno != EAGAIN) return;
    read_signals(a);
}

/* ---- the main loop ---- */

static bool any_worker(const struct agent *a) {
    for (int i = 0; i < a->head->size.places; i++)
        if (a->process[i].pid) return true;
    return false;
}

static int exit_code(const struct agent *a) {
    if (a->forced_code) return a->forced_code;
    int ending = atomic_load(&a->head->course.ending);
    if (ending == CREW_STOPPED) return AGENT_RESUMABLE;
    if (a->reporter_code) return a->reporter_code;
    if (ending == CREW_FINISHED && atomic_load(&a->head->course.closed))
        return atomic_load(&a->head->told.code);
    return ending == CREW_RUNS && a->stopped ? AGENT_RESUMABLE : 1;
}

/* If several have failed since the last call, only the latest is reported. */
static void report_save_failures(struct agent *a) {
    uint32_t failures = atomic_load(&a->head->told.save_failures);
    if (failures == a->save_failures) return;
    a->save_failures = failures;
    agent_event(a, "save-failure", -1, -1, a->head->told.save_failure);
}

static int supervise(struct agent *a) {
    struct membership *hosts = a->launch->membership;
    while (any_worker(a) || (hosts && membership_waits(hosts))) {
        wait_for_events(a);
        if (hosts) membership_turn(hosts);
        agent_reap(a);
        report_save_failures(a);
        meter_tell(a->meter, &a->log);
        recovery_map(&a->recovery);
        agent_check_progress(a);
        agent_choose_workers(a);
        agent_time(a);
        agent_log_first_lanes(a);
        agent_note_outputs(a, false);
        agent_write_run(a);
        agent_scale(a);
        agent_profile(a);
        end_without_samples(a);
        if (a->stop_deadline && base_now() > a->stop_deadline) {
            agent_print(a, "the workers have not ended within %g s (--grace): they are killed",
                        a->launch->grace);
            a->stop_deadline = INT64_MAX;
            agent_kill_all(a);
        }
    }
    return exit_code(a);
}

static int print_audit(struct agent *a, int code) {
    const struct crew_layout *l = &a->head->layout;
    unsigned long long n = atomic_load(&a->head->course.audited);
    const char *what = l->region[REGION_AUDITS].n > l->lanes ? "leg" : "lane";
    if (a->launch->audit > 0 && !code && n)
        agent_print(a, "audit: %llu %s%s computed twice, bit for bit the same", n, what,
                    n == 1 ? " was" : "s were");
    else if (a->launch->audit > 0 && !code)
        agent_print(a, "audit: no %s was computed twice: --audit %g chose none, or no worker was "
                    "left that had not computed it", what, a->launch->audit);
    return code;
}

/* Prints the last line, which the reporter has left in the head after the last step, even if it
 * failed later. A line without its newline is incomplete. */
static int print_last(struct agent *a, int code) {
    const char *line = a->head->told.last_line;
    if (!strchr(line, '\n') || a->launch->timing) return code;
    errno = 0;
    if (fputs(line, stdout) >= 0 && !fflush(stdout)) return code;
    if (code == AGENT_RESUMABLE && errno == EPIPE) return code; /* the cause of the stop, perhaps */
    agent_print(a, "cannot write the last line to stdout: %s", strerror(errno));
    return code && code != AGENT_RESUMABLE ? code : (int)TRI_FAILED;
}

/* The event's message; for a failed run, the latest message. */
static void run_end_event(struct agent *a, int code) {
    const struct crew_head *h = a->head;
    const struct membership *hosts = a->launch->membership;
    char text[128];
    base_format(text, sizeof text, "%s after %llu of %llu step(s)",
                code == AGENT_RESUMABLE ? "stopped" : "ended",
                h ? (unsigned long long)atomic_load(&h->course.committed) : 0,
                h ? (unsigned long long)atomic_load(&h->course.total) : 0);
    const char *why = !h ? "" : *h->course.failure ? h->course.failure : a->last_print;
    const struct event end = {"end", code && code != AGENT_RESUMABLE && *why ? why : text, -1,
                              h ? (int64_t)atomic_load(&h->course.committed) : 0, code, NULL};
    events_close(a->events, hosts && !membership_told_end(hosts) ? NULL : &end);
}

static void end(struct agent *a) {
    if (a->head) agent_kill_all(a);
    agent_join_watchers(a);
    meter_close(a->meter, &a->log);
    recovery_unmap(&a->recovery);
    agent_end_profile(a);
    if (a->head) munmap(a->head, crew_head_bytes());
    if (a->fd >= 0) close(a->fd);
    for (int i = 0; i < 2; i++)
        if (a->output[i] > 0) close(a->output[i]);
    if (a->signals >= 0) close(a->signals);
    if (a->deaths >= 0) close(a->deaths);
    if (a->blocks_signals) {
        sigprocmask(SIG_SETMASK, &a->old_mask, NULL);
        pipes_release();
    }
    log_close(&a->log);
    log_close(&a->outputs.log);
    if (a->address >= 0) close(a->address);
    free(a->process);
}

int agent_run(const struct launch *l) {
    struct launch settled = *l;
    struct agent a = {.launch = &settled, .fd = -1, .signals = -1, .deaths = -1, .log.fd = -1,
                      .outputs.log.fd = -1, .address = -1};
    launch_settle(&settled);
    tri_status status = agent_open_files(&a);
    if (!status) status = make_head(&a);
    if (!status) status = open_signals(&a);
    a.automatic = settled.automatic && settled.workers > 1;
    a.process = calloc(CREW_MOST_WORKERS, sizeof *a.process);
    if (!status && !a.process) status = base_no_memory("workers");
    if (!status) status = meter_open(settled.timing ? NULL : settled.out, a.head, &a.meter);
    if (!status) status = agent_start_all(&a);
    int code = (int)status;
    if (!status)
        code = print_last(&a, print_audit(&a, supervise(&a)));
    else
        fprintf(stderr, "trireme: %s\n", tri_message());
    if (a.head) agent_note_outputs(&a, true);
    agent_close_run(&a, code);
    log_event(&a.log, code ? LOG_WARNING : LOG_INFO, "end", "code=%d", code);
    const bool again = settled.membership && membership_joins_again(settled.membership);
    if (again) events_close(a.events, NULL);
    else run_end_event(&a, code);
    const bool lost = settled.membership && membership_lost(settled.membership);
    if (settled.membership) membership_ended(settled.membership, code);
    if (a.address >= 0 && !again) agent_write_exit(settled.out, code);
    if (a.address >= 0 && lost) agent_write_exit(settled.directory, code);
    end(&a);
    return code;
}
