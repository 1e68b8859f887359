/* SPDX-License-Identifier: Apache-2.0
 * The files of a run's directory: its lock, what an earlier run has left, logs and run.json. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host.h"
#include "launch/agent_inside.h"
#include "launch/membership.h"
#include "observe/earlier.h"
#include "observe/files.h"

void agent_path(const struct agent *a, char path[4096], const char *name) {
    base_format(path, 4096, "%s/%s", a->launch->out, name);
}

/* ---- the directory ---- */

/* A directory belongs to one run at a time. The kernel releases the lock when the agent ends. */
static tri_status lock_directory(struct agent *a) {
    char path[4096];
    agent_path(a, path, "agent.json");
    a->address = base_open(path, O_RDWR | O_CREAT, NULL);
    if (a->address < 0)
        return base_fail(TRI_FAILED, "cannot write %s; choose another directory with --out",
                         tri_message());
    if (flock(a->address, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
        close(a->address);
        a->address = -1; /* nothing there is this run's */
        return base_fail(TRI_USAGE, "another run is using %s (`trireme top %s` shows it); choose "
                         "another directory with --out", a->launch->out, a->launch->out);
    }
    return TRI_OK;
}

/* Writes agent.json, by which `trireme top` and `trireme ctl` find the store, /proc/PID/fd/FD, and
 * hosts see that they share the directory. */
tri_status agent_write_address(struct agent *a) {
    const struct membership *hosts = a->launch->membership;
    char text[128];
    if (a->address < 0) return TRI_OK;
    int n = snprintf(text, sizeof text, "{\"pid\":%d,\"fd\":%d", (int)getpid(), a->fd);
    if (hosts)
        n += snprintf(text + n, sizeof text - (size_t)n, ",\"run\":\"%016llx\",\"earlier\":%d",
                      (unsigned long long)membership_run(hosts), a->earlier);
    n += snprintf(text + n, sizeof text - (size_t)n, "}\n");
    if (ftruncate(a->address, 0) || pwrite(a->address, text, (size_t)n, 0) != n)
        return base_fail(TRI_FAILED, "cannot write %s/agent.json: %s", a->launch->out,
                         strerror(errno));
    return TRI_OK;
}

static bool read_run(const char *path, unsigned long long *run, int *earlier) {
    char text[128];
    FILE *f = fopen(path, "re");
    if (!f) return false;
    const bool good = fgets(text, sizeof text, f) &&
                      sscanf(text, "{\"pid\":%*d,\"fd\":%*d,\"run\":\"%llx\",\"earlier\":%d}", run,
                             earlier) == 2;
    fclose(f);
    return good;
}

bool agent_has_run(const char *directory, uint64_t run, int *earlier) {
    glob_t found = {0};
    unsigned long long is = 0;
    bool has = false;
    files_match(directory, "hosts/*/agent.json", &found);
    for (size_t i = 0; i < found.gl_pathc && !has; i++)
        has = read_run(found.gl_pathv[i], &is, earlier) && is == run;
    globfree(&found);
    return has;
}

/* Whether a host of this run has come before this one, perhaps itself, and has given the files of
 * an earlier run their number. */
static bool came_before(struct agent *a) {
    int earlier;
    const bool is = agent_has_run(a->launch->directory, membership_run(a->launch->membership),
                                  &earlier);
    if (is) a->earlier = earlier;
    return is;
}

/* DIR/hosts/NAME. Hosts that share DIR come one after the other. */
static tri_status open_below(struct agent *a) {
    const char *directory = a->launch->directory;
    char hosts[4096];
    tri_status status = files_make_directory(directory);
    const int lock = status ? -1 : earlier_lock(directory);
    if (lock < 0) return base_last();
    a->same_run = came_before(a);
    if (!a->same_run) status = earlier_move(directory, false, &a->earlier);
    base_format(hosts, sizeof hosts, "%s/hosts", directory);
    if (!status) status = files_make_directory(hosts);
    if (!status) status = files_make_directory(a->launch->out);
    if (!status) status = lock_directory(a);
    if (!status && !a->same_run) agent_write_exit(directory, -1);
    if (!status) status = agent_write_address(a);
    close(lock);
    return status;
}

static tri_status open_own(struct agent *a) {
    tri_status status = files_make_directory(a->launch->out);
    if (!status) status = lock_directory(a);
    return status ? status : earlier_move(a->launch->out, true, &a->earlier);
}

tri_status agent_open_files(struct agent *a) {
    char path[4096], outputs[4096];
    if (!a->launch->out) return TRI_OK;
    tri_status status = a->launch->directory ? open_below(a) : open_own(a);
    if (!status) agent_write_exit(a->launch->out, -1);
    agent_path(a, path, "agent.log");
    agent_path(a, outputs, "outputs.jsonl");
    if (!status) status = log_open(&a->log, path, LOG_BUDGET);
    if (!status) status = log_open(&a->outputs.log, outputs, LOG_BUDGET);
    return status ? status : events_open(a->launch->on_event, a->launch->out, path, &a->events);
}

void agent_write_exit(const char *directory, int code) {
    char path[4096], part[4400], own[256] = "";
    gethostname(own, sizeof own - 1);
    base_format(path, sizeof path, "%s/exit", directory);
    base_format(part, sizeof part, "%s.%s.%d", path, own, (int)getpid());
    if (code < 0) {
        unlink(path);
        return;
    }
    FILE *f = fopen(part, "we");
    bool good = f && fprintf(f, "%d\n", code) > 0;
    if (f) good &= !fclose(f);
    if (!good || rename(part, path))
        fprintf(stderr, "trireme: cannot write %s: %s\n", path, strerror(errno));
}

/* ---- run.json ---- */

tri_status agent_open_run(struct agent *a) {
    const struct crew_head *h = a->head;
    const char *host[HOSTS_MOST];
    char path[4096];
    if (!a->launch->out) return TRI_OK;
    for (int i = 0; i < h->hosts.n; i++) host[i] = h->hosts.name[i];
    const struct run_start start = {
        .title = h->told.title, .command = a->launch->argv, .hosts = h->hosts.n, .host_name = host,
        .host = h->hosts.n ? h->hosts.name[h->hosts.self] : NULL, .workers = h->size.workers,
        .threads = h->size.threads, .cores = host_cores()};
    agent_path(a, path, "run.json");
    return run_file_begin(path, &start, a->same_run, &a->run);
}

/* What the reporter has found out. */
static void take_from_head(struct agent *a) {
    const struct crew_told *t = &a->head->told;
    char path[4096];
    if (!a->run) return;
    if (!a->described && atomic_load(&t->described)) {
        a->described = true;
        run_file_describe(a->run, t->about);
    }
    if (a->continues || !atomic_load(&t->continues)) return;
    a->continues = true;
    agent_path(a, path, "run.json.old");
    run_file_continue(a->run, path);
}

static void take_times(struct agent *a) {
    const struct crew_head *h = a->head;
    for (int place = 0; place < h->size.places; place++) {
        int64_t time[SPENTS] = {0};
        for (int t = 0; t < h->size.threads; t++)
            spending_add(&h->thread[place * h->size.threads + t].spending, base_now(), time);
        for (int k = 0; k < SPENTS; k++)
            run_file_total(a->run, place, spent_rows[k].name, 1e-9 * (double)time[k]);
    }
}

static void take_numbers(struct agent *a) {
    const struct crew_course *r = &a->head->course;
    if (crew_begun(a->head))
        run_file_steps(a->run, (int64_t)atomic_load(&r->base) + 1,
                       (int64_t)atomic_load(&r->committed));
    take_times(a);
}

void agent_write_run(struct agent *a) {
    take_from_head(a);
    if (!run_file_is_due(a->run, base_seconds())) return;
    take_numbers(a);
    run_file_write(a->run);
}

void agent_close_run(struct agent *a, int code) {
    if (!a->run) return;
    for (int rank = 0; rank < CREW_MOST_WORKERS; rank++)
        agent_rank_back(a, rank, -1, base_now());
    take_from_head(a);
    take_numbers(a);
    run_file_end(a->run, code);
    a->run = NULL;
}

/* ---- what deaths cost ---- */

int64_t agent_fault(struct agent *a, const char *kind, int place, const char *text, double cost) {
    return run_file_fault(a->run, kind, place, (int64_t)atomic_load(&a->head->course.opened), text,
                          cost);
}

void agent_rank_lost(struct agent *a, int rank, int64_t since, int64_t fault) {
    if (rank < 0) { /* of a spare, nobody misses it */
        run_file_cost(a->run, fault, 0);
        return;
    }
    agent_rank_back(a, rank, -1, since); /* it has died again before it computed */
    a->lost[rank] = (struct lost){since, fault, -1};
}

void agent_rank_back(struct agent *a, int rank, int place, int64_t when) {
    struct lost *l = &a->lost[rank];
    const double cost = 1e-9 * (double)(when - l->since);
    if (!l->since || cost < 0) return;
    if (place >= 0)
        log_event(&a->log, LOG_INFO, "recovered", "worker=%d rank=%d cost=%g", place, rank, cost);
    else
        log_event(&a->log, LOG_INFO, "given-up", "rank=%d cost=%g", rank, cost);
    run_file_cost(a->run, l->death, cost);
    if (l->takeover >= 0) run_file_cost(a->run, l->takeover, cost);
    l->since = 0;
}

void agent_log_first_lanes(struct agent *a) {
    for (int i = 0; i < a->head->size.places; i++) {
        struct crew_worker *w = &a->head->worker[i];
        const int64_t when = atomic_load(&w->first_claimed);
        const int rank = atomic_load(&w->rank);
        if (when <= 0) continue;
        log_event(&a->log, LOG_INFO, "rowing", "worker=%d at_ns=%lld", i, (long long)when);
        atomic_store(&w->first_claimed, -1);
        if (rank >= 0) agent_rank_back(a, rank, i, when);
    }
}
