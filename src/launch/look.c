/* SPDX-License-Identifier: Apache-2.0
 * The head is written by other processes, perhaps of another build, so numbers are checked before
 * they are used as indices. Only the head is mapped, because agents never truncate it. */
#include "launch/look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host.h"
#include "base/runqueue.h"
#include "observe/files.h"

#define LINK "/memfd:trireme store (deleted)"
#define MOST_NAMES (1 << 20)

/* ---- finding ---- */

static bool holds_store(int pid, int fd) {
    char path[64], target[sizeof LINK + 1];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    ssize_t n = readlink(path, target, sizeof target);
    return n == (ssize_t)sizeof LINK - 1 && !memcmp(target, LINK, sizeof LINK - 1);
}

static bool read_at(int fd, void *to, size_t bytes, uint64_t at) {
    return pread(fd, to, bytes, (off_t)at) == (ssize_t)bytes;
}

/* Magic, size and agent are the first words of the head in every version. */
static tri_status check_head(const struct look *l) {
    struct {
        uint64_t magic, bytes;
        int64_t agent;
    } first;
    struct stat st;
    if (!read_at(l->store, &first, sizeof first, 0) || !first.magic)
        return base_fail(TRI_FAILED, "the run is just starting; try again");
    if (first.magic != CREW_MAGIC || first.bytes != sizeof(struct crew_head) ||
        fstat(l->store, &st) || st.st_size < (off_t)crew_head_bytes())
        return base_fail(TRI_FAILED, "the run (agent %d) was started by another version of "
                         "Trireme: use that program", l->pid);
    if (first.agent != l->pid)
        return base_fail(TRI_FAILED, "process %d is not the run's agent", l->pid);
    return TRI_OK;
}

static tri_status open_store(int pid, int fd, bool steer, struct look *l) {
    char path[64];
    *l = (struct look){.pid = pid, .fd = fd};
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    l->store = open(path, (steer ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (l->store < 0)
        return base_fail(TRI_FAILED, "cannot open the run's store (%s): %s", path,
                         strerror(errno));
    tri_status status = check_head(l);
    void *at = MAP_FAILED;
    if (!status)
        at = mmap(NULL, crew_head_bytes(), steer ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                  l->store, 0);
    if (!status && at == MAP_FAILED)
        status = base_fail(TRI_FAILED, "cannot map the run's store: %s", strerror(errno));
    if (status) {
        close(l->store);
        return status;
    }
    l->head = at;
    return TRI_OK;
}

/* Reads agent.json. A lock on it would make an agent fail that starts at this moment. */
static tri_status read_address(const char *directory, int *pid, int *fd) {
    char path[4096], text[128] = "";
    *fd = 0;
    base_format(path, sizeof path, "%s/agent.json", directory);
    int file = base_open(path, O_RDONLY, NULL);
    char own[4096];
    base_format(own, sizeof own, "%s/run.log", directory);
    if (file < 0 && errno == ENOENT && !access(own, F_OK))
        return base_fail(TRI_FAILED, "the run in %s is of one process, which cannot be asked; "
                         "train with -n 1, for a worker and its agent", directory);
    if (file < 0 && errno == ENOENT)
        return base_fail(TRI_FAILED, "there is no run in %s; `trireme ps` lists runs (only those "
                         "with -n N can be found)", directory);
    if (file < 0) return base_fail(TRI_FAILED, "cannot read %s", tri_message());
    ssize_t n = read(file, text, sizeof text - 1);
    close(file);
    if (n > 0 && sscanf(text, "{\"pid\":%d,\"fd\":%d", pid, fd) == 2 && *pid > 0 && *fd >= 0)
        return TRI_OK;
    return base_fail(TRI_FAILED, n && *fd >= 0 ? "%s is damaged"
                                               : "%s is empty: the run is just starting",
                     path);
}

/* Hosts may share a directory, and their processes numbers: then the name decides. */
static tri_status check_host(const char *directory, struct look *l) {
    const struct crew_hosts *h = &l->head->hosts;
    char whole[PATH_MAX];
    const char *name = realpath(directory, whole) ? strrchr(whole, '/') : NULL;
    if (!h->n || h->self < 0 || h->self >= HOSTS_MOST ||
        (name && !strncmp(name + 1, h->name[h->self], HOSTS_NAME)))
        return TRI_OK;
    look_close(l);
    return base_fail(TRI_FAILED, "the run in %s is of another host, or has ended", directory);
}

static tri_status open_directory(const char *directory, bool steer, struct look *l) {
    int pid, fd;
    char path[64];
    struct stat st;
    tri_status status = read_address(directory, &pid, &fd);
    if (status) return status;
    if (holds_store(pid, fd)) {
        status = open_store(pid, fd, steer, l);
        return status ? status : check_host(directory, l);
    }
    snprintf(path, sizeof path, "/proc/%d", pid);
    if (!stat(path, &st) && st.st_uid != geteuid() && geteuid())
        return base_fail(TRI_FAILED, "the run in %s is not yours: process %d is another user's, or "
                         "it has ended", directory, pid);
    return base_fail(TRI_FAILED, "the run in %s has ended", directory);
}

/* DIR may be that of a run over several hosts, each of which has a directory DIR/hosts/NAME. */
static bool open_host(const char *directory, bool steer, struct look *l, bool *any) {
    glob_t hosts = {0};
    bool found = false;
    files_match(directory, "hosts/*/agent.json", &hosts);
    *any = hosts.gl_pathc > 0;
    for (size_t i = 0; i < hosts.gl_pathc && !found; i++) {
        *strrchr(hosts.gl_pathv[i], '/') = 0;
        if (open_directory(hosts.gl_pathv[i], steer, l)) continue;
        found = l->head->hosts.n;
        if (!found) look_close(l);
    }
    globfree(&hosts);
    return found;
}

tri_status look_open(const char *directory, bool steer, struct look *l) {
    char why[512];
    bool any = false;
    tri_status status = open_directory(directory, steer, l);
    if (!status) return status;
    base_format(why, sizeof why, "%s", tri_message());
    if (open_host(directory, steer, l, &any)) return TRI_OK;
    if (any)
        return base_fail(TRI_FAILED, "the run in %s has ended, or this machine is none of its "
                         "hosts", directory);
    return base_fail(status, "%s", why);
}

bool look_open_agent(int pid, struct look *l) {
    char path[64];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *d = opendir(path);
    if (!d) return false;
    for (struct dirent *e; !found && (e = readdir(d));) {
        int fd = atoi(e->d_name);
        if (*e->d_name == '.' || !holds_store(pid, fd)) continue;
        found = !open_store(pid, fd, false, l);
    }
    closedir(d);
    return found;
}

void look_close(struct look *l) {
    if (l->head) munmap(l->head, crew_head_bytes());
    if (l->head) close(l->store);
    free(l->names);
    pipeline_free(&l->pipeline);
    *l = (struct look){0};
}

bool look_alive(const struct look *l) { return holds_store(l->pid, l->fd); }

/* ---- names ---- */

/* Copied rather than mapped, because an agent that restarts its run truncates the store. */
static void read_names(struct look *l) {
    const struct crew_head *h = l->head;
    uint64_t store = h->layout.store_bytes, at = h->layout.region[REGION_NAMES].at;
    int64_t n = h->layout.region[REGION_NAMES].n;
    if (n < 1 || n > MOST_NAMES || at > store || store - at < (uint64_t)n * CREW_NAME) return;
    char *names = malloc((size_t)n * CREW_NAME);
    if (names && read_at(l->store, names, (size_t)n * CREW_NAME, crew_head_bytes() + at)) {
        l->names = names;
        l->n_names = (int)n;
    } else {
        free(names);
    }
}

/* The name of the operator with this number; empty if unknown. */
static const char *look_name(struct look *l, int item) {
    if (!atomic_load(&l->head->layout.published) || item < 0) return "";
    if (!l->names) read_names(l);
    if (item >= l->n_names) return "";
    char *name = l->names + (size_t)item * CREW_NAME;
    name[CREW_NAME - 1] = 0;
    return name;
}

/* ---- reading the head ---- */

const char *look_state_name(enum look_state s) {
    static const char *const names[LOOK_STATES] = {"starting", "running",  "pausing",
                                                   "paused",   "stopping", "finished",
                                                   "stopped",  "failed",   "lost"};
    return (unsigned)s < LOOK_STATES ? names[s] : "?";
}

static enum look_state state_of(const struct crew_head *h, const struct look_view *v, bool alive) {
    switch (atomic_load(&h->course.ending)) {
    case CREW_FINISHED:
        return alive || v->closed ? LOOK_FINISHED : LOOK_LOST;
    case CREW_STOPPED:
        return LOOK_STOPPED;
    case CREW_FAILED:
        return LOOK_FAILED;
    default:
        break;
    }
    if (!alive) return LOOK_LOST;
    if (atomic_load(&h->asked.stop)) return LOOK_STOPPING;
    bool ready = v->reporter >= 0 && v->reporter < v->places &&
                 atomic_load(&h->worker[v->reporter].state) == CREW_READY;
    bool paused = atomic_load(&h->asked.paused);
    if (!v->opened && !(ready && paused)) return LOOK_STARTING;
    if (!paused) return LOOK_RUNNING;
    return v->opened > v->committed ? LOOK_PAUSING : LOOK_PAUSED;
}

static int within(int x, int least, int most) { return x < least ? least : x > most ? most : x; }

/* The loss of the latest step, or of the one before while that is being written. */
static double loss_of(const struct crew_head *h, uint64_t committed) {
    for (uint64_t step = committed; step && step + 2 > committed; step--) {
        double loss = h->course.values[step % 2].loss;
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load(&h->course.values[step % 2].step) == step) return loss;
    }
    return NAN;
}

static void add_thread(const struct crew_thread *h, int64_t now, struct look_worker *w) {
    spending_add(&h->spending, now, w->time);
    w->lanes_done += atomic_load(&h->lanes_done);
    w->lanes_lost += atomic_load(&h->lanes_lost);
}

static int64_t without_core(int pid, int tid) {
    const int fd = pid > 0 && tid > 0 ? runqueue_open("", pid, tid) : -1;
    const int64_t waited = runqueue_waited(fd);
    if (fd >= 0) close(fd);
    return waited > 0 ? waited : 0;
}

static void read_worker(const struct crew_head *h, int place, const struct look_view *v,
                        struct look_worker *w) {
    const struct crew_worker *from = &h->worker[place];
    const struct crew_thread *thread = &h->thread[place * v->threads];
    *w = (struct look_worker){
        .state = (enum crew_state)atomic_load(&from->state), .rank = atomic_load(&from->rank),
        .pid = atomic_load(&from->pid),
        .restarts = atomic_load(&from->restarts), .leaves = atomic_load(&from->leave),
        .peak = atomic_load(&from->peak), .at = atomic_load(&thread->at),
        .lane = atomic_load(&thread->lane), .item = atomic_load(&thread->item),
        .leg = atomic_load(&thread->leg),
        .step = atomic_load(&thread->step), .since = atomic_load(&thread->since),
        .heartbeat = atomic_load(&thread->heartbeat),
        .lane_time = atomic_load(&thread->lane_time)};
    crew_name_leg(h, thread, w->leg_name);
    for (int t = 0; t < v->threads; t++) {
        add_thread(thread + t, v->now, w);
        w->no_core += without_core(w->pid, atomic_load(&thread[t].tid));
    }
    if (v->replicas) w->seated = crew_seats_of(h, place, &w->seats);
    struct host_thread first;
    host_thread("", w->pid, w->pid, &first);
    w->core = first.processor;
    w->stopped = first.state == 'T' || first.state == 't';
}

/* Copies a text of the head, which may lack its end, without control characters. */
static void copy_text(char *to, const char *from, size_t bytes) {
    size_t i = 0;
    for (; i + 1 < bytes && from[i]; i++)
        to[i] = (unsigned char)from[i] < ' ' || from[i] == 127 ? '?' : from[i];
    to[i] = 0;
}

static void read_hosts(const struct crew_hosts *h, struct look_view *v) {
    const int n = within(h->n, 0, HOSTS_MOST), last = n ? n - 1 : 0;
    v->hosts.n = n;
    v->hosts.epoch = atomic_load(&h->epoch);
    for (int i = 0; i < n; i++) v->hosts.taking += atomic_load(&h->weight[i]) > 0;
    v->hosts.sent = atomic_load(&h->sent);
    v->hosts.received = atomic_load(&h->received);
    v->hosts.sent_whole = atomic_load(&h->sent_whole);
    copy_text(v->hosts.self, h->name[within(h->self, 0, last)], HOSTS_NAME);
    copy_text(v->hosts.teller, h->name[within(atomic_load(&h->teller), 0, last)], HOSTS_NAME);
}

static void read_turn(const struct look *l, struct look_worker *w) {
    const struct pipeline *p = &l->pipeline;
    const struct legs *legs = &l->head->layout.legs;
    if (w->leg < 0 || w->leg >= legs->n || w->lane < 0) return;
    int track = legs_at(legs, w->leg).stage % p->tracks;
    w->turns = p->per_track;
    for (int i = 0; i < p->per_track; i++) {
        const struct turn *t = pipeline_turn(p, track, i);
        if (t->leg == w->leg && t->lane == w->lane) w->turn = i + 1;
    }
}

static void read_schedule(struct look *l, struct look_view *v) {
    const struct crew_layout *h = &l->head->layout;
    if (v->stages < 2 || v->stages > STAGE_MOST || !atomic_load(&h->published)) return;
    if (!l->pipeline.turn && pipeline_make(&h->schedule, &h->legs, &l->pipeline)) return;
    const struct group_plan p = {
        .ranks = v->ranks, .most = v->most, .seats = v->replicas ? h->seats : 0,
        .stages = v->stages, .tracks = l->pipeline.tracks,
        .claimers = within(h->claimers, 1, v->threads)};
    for (int i = 0; i < v->places; i++) {
        if (v->worker[i].state == CREW_EMPTY) continue;
        group_stages(&p, v->worker[i].rank, v->worker[i].stages);
        read_turn(l, &v->worker[i]);
    }
}

void look_at(struct look *l, struct look_view *v) {
    const struct crew_head *h = l->head;
    const struct crew_course *r = &h->course;
    bool alive = look_alive(l);
    *v = (struct look_view){
        .now = base_now(), .closed = atomic_load(&r->closed), .opened = atomic_load(&r->opened),
        .committed = atomic_load(&r->committed), .total = atomic_load(&r->total),
        .base = atomic_load(&r->base), .began = atomic_load(&r->began), .batch = h->layout.batch,
        .ended = atomic_load(&r->committed_at),
        .lanes = h->layout.lanes, .stages = h->layout.legs.stages,
        .ranks = atomic_load(&h->workers.ranks),
        .reporter = atomic_load(&h->workers.reporter), .wanted = atomic_load(&h->asked.wanted),
        .most = h->size.most, .spares = h->size.spares,
        .deaths = atomic_load(&h->workers.epoch)};
    v->threads = within(h->size.threads, 1, CREW_MOST_THREADS);
    v->places = within(h->size.places, 0, CREW_MOST_WORKERS);
    if (v->places > CREW_MOST_THREADS / v->threads) v->places = CREW_MOST_THREADS / v->threads;
    if (h->layout.seats > 0 && v->ranks > 0)
        v->replicas = group_count(v->ranks, h->layout.seats);
    v->state = state_of(h, v, alive);
    v->loss = loss_of(h, v->committed);
    copy_text(v->title, h->told.title, sizeof v->title);
    copy_text(v->out, h->told.out, sizeof v->out);
    copy_text(v->failure, h->course.failure, sizeof v->failure);
    read_hosts(&h->hosts, v);
    for (int i = 0; i < v->places; i++) read_worker(h, i, v, &v->worker[i]);
    read_schedule(l, v);
}

bool look_worker_shown(const struct look_worker *w) {
    return w->state != CREW_EMPTY || (w->rank >= 0 && w->pid);
}

void look_describe(struct look *l, const struct look_worker *w, struct text *out) {
    bool lane = w->at == CREW_AT_LANE || w->at == CREW_AT_SUM || w->at == CREW_AT_DATA ||
                w->at == CREW_AT_EVALUATE;
    bool named = w->at == CREW_AT_LANE || w->at == CREW_AT_UPDATE;
    const char *name = named ? look_name(l, w->item) : "";
    if (w->state == CREW_EMPTY) {
        text_add(out, "gone");
    } else if (w->state == CREW_LEFT) {
        text_add(out, "left");
    } else {
        text_add(out, "%s", crew_at_name((enum crew_at)w->at));
        if (lane && w->lane >= 0) text_add(out, " %d%s", w->lane, w->leg_name);
        if (*name) text_add(out, " %s", name);
    }
}

/* ---- several views ---- */

#define WINDOW 1.8  /* seconds over which rates are taken; longer if fewer steps or lanes ended: */
#define FEW_STEPS 5
#define FEW_LANES 3

const struct look_view *pace_latest(const struct pace *p) {
    return &p->view[(p->looks - 1) % PACE_LOOKS];
}

/* An operator counts from the look that saw it first; at the first look of all, from the beginning
 * of its lane. While a worker is stopped, it spends no time on anything. */
static void compare(const struct look_view *before, struct look_view *v) {
    for (int i = 0; i < v->places && i < before->places; i++) {
        struct look_worker *w = &v->worker[i];
        const struct look_worker *b = &before->worker[i];
        if (w->item >= 0) w->since = b->heartbeat == w->heartbeat ? b->since : v->now;
        if (!w->stopped || w->pid != b->pid) continue;
        memcpy(w->time, b->time, sizeof w->time);
    }
}

const struct look_view *pace_look(struct pace *p) {
    struct look_view *v = &p->view[p->looks % PACE_LOOKS];
    look_at(&p->look, v);
    if (p->looks) compare(pace_latest(p), v);
    p->looks++;
    return v;
}

static double seconds(int64_t from, int64_t to) { return (double)(to - from) / 1e9; }

/* The latest view that is at least this old, or the oldest one. */
static const struct look_view *before(const struct pace *p, double old) {
    const struct look_view *v = pace_latest(p);
    for (int i = p->looks - 1; i >= 0 && i > p->looks - PACE_LOOKS; i--) {
        v = &p->view[i % PACE_LOOKS];
        if (seconds(v->now, pace_latest(p)->now) >= old) break;
    }
    return v;
}

double pace_step(const struct pace *p) {
    const struct look_view *v = pace_latest(p);
    for (double window = WINDOW; window < PACE_LOOKS; window *= 2) {
        const struct look_view *from = before(p, window);
        uint64_t steps = v->committed - from->committed;
        if (steps >= FEW_STEPS && from->ended)
            return seconds(from->ended, v->ended) / (double)steps;
    }
    bool any = v->began && v->committed > v->base;
    return any ? seconds(v->began, v->ended) / (double)(v->committed - v->base) : 0;
}

/* The view with which the latest one is compared, for a worker; null: not known yet. */
static const struct look_view *compared(const struct pace *p, int place) {
    const struct look_view *v = pace_latest(p);
    const struct look_worker *w = &v->worker[place];
    double window = FEW_LANES * (double)w->lane_time / 1e9;
    const struct look_view *from = before(p, window > WINDOW ? window : WINDOW);
    return w->pid && from->worker[place].pid == w->pid && from->now < v->now ? from : NULL;
}

static double part_of(const struct look_view *from, const struct look_view *to, int64_t spent) {
    double part = (double)spent / ((double)(to->now - from->now) * to->threads);
    return fmin(fmax(part, 0), 1);
}

double pace_spent(const struct pace *p, int place, enum spent what) {
    const struct look_view *to = pace_latest(p), *from = compared(p, place);
    if (!from) return NAN;
    return part_of(from, to, to->worker[place].time[what] - from->worker[place].time[what]);
}

double pace_no_core(const struct pace *p, int place) {
    const struct look_view *to = pace_latest(p), *from = compared(p, place);
    return from ? part_of(from, to, to->worker[place].no_core - from->worker[place].no_core) : NAN;
}

struct pace_wire pace_wire(const struct pace *p) {
    const struct look_view *to = pace_latest(p), *from = before(p, WINDOW);
    const double passed = seconds(from->now, to->now);
    if (!(passed > 0)) return (struct pace_wire){NAN, NAN, NAN};
    return (struct pace_wire){(double)(to->hosts.sent - from->hosts.sent) / passed,
                              (double)(to->hosts.received - from->hosts.received) / passed,
                              (double)(to->hosts.sent_whole - from->hosts.sent_whole) / passed};
}

double pace_group(const struct pace *p, int place, enum spent_group group) {
    const struct look_view *to = pace_latest(p), *from = compared(p, place);
    if (!from) return NAN;
    return part_of(from, to, spent_of(to->worker[place].time, group) -
                                 spent_of(from->worker[place].time, group));
}
