/* SPDX-License-Identifier: Apache-2.0
 * What a worker does when it crashes: it writes a line to worker-K.log, notes for the agent, and
 * the report to worker-K.out. All of this runs in a signal handler. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/line.h"
#include "base/random.h"
#include "run/crash.h"
#include "run/worker_inside.h"

void worker_crash_open(struct worker *c) {
    const char *fds = getenv(CREW_ENV_OUTPUT);
    char path[sizeof c->head->told.out + 32];
    int out;
    c->crash_out = -1;
    if (!fds || sscanf(fds, "%d,%d", &out, &c->crash_user) != 2) c->crash_user = STDERR_FILENO;
    if (!*c->head->told.out) return;
    base_format(path, sizeof path, "%s/worker-%d.out", c->head->told.out, c->place);
    c->crash_out = base_open(path, O_WRONLY | O_CREAT | O_APPEND, NULL);
}

void worker_crash_close(struct worker *c) {
    if (c->crash_out >= 0) close(c->crash_out);
    c->crash_out = -1;
}

static const char *operator_name(const struct worker *c, int item) {
    bool found = c->run && item >= 0 && item < c->region[REGION_NAMES].n;
    return found ? worker_region(c, REGION_NAMES, item) : NULL;
}

void worker_look(const tri_run *run, struct crash_scene *s) {
    const struct worker *c = run->worker;
    const struct crew_thread *t = c->context[s->thread].shared;
    s->worker = c->place;
    s->seated = crew_seats_of(c->head, c->place, &s->seats);
    s->number = -1;
    if (!t) s->thread = -1; /* a thread of the team that does not take part yet */
    if (!t) return;
    s->at = atomic_load(&t->at);
    s->part = atomic_load(&t->lane);
    s->step = (int64_t)atomic_load(&t->step);
    s->has_leg = atomic_load(&t->leg) >= 0;
    if (s->has_leg) s->leg = legs_at(&c->head->layout.legs, atomic_load(&t->leg));
    if (s->at == CREW_AT_LANE || s->at == CREW_AT_UPDATE) s->number = atomic_load(&t->item);
    s->item = operator_name(c, s->number);
}

static void write_log(const struct worker *c, const struct crash_scene *s, int sig,
                      const siginfo_t *info) {
    static const char *const part[CREW_ATS] = {
        [CREW_AT_DATA] = "lane",         [CREW_AT_LANE] = "lane",      [CREW_AT_SUM] = "lane",
        [CREW_AT_CALLBACK] = "callback", [CREW_AT_EVALUATE] = "batch",
    };
    struct line l = {.n = 0};
    line_add(&l, "{\"time\":\"");
    line_time(&l);
    line_add(&l, "\",\"level\":\"error\",\"event\":\"crash\"");
    line_field(&l, "worker", c->place);
    if (s->at >= 0) line_field(&l, "step", s->step);
    if (s->at >= 0 && s->part >= 0 && part[s->at]) line_field(&l, part[s->at], s->part);
    line_text(&l, "at", s->at >= 0 ? crew_at_name((enum crew_at)s->at) : "a thread of the program",
              CREW_NAME);
    if (s->item) line_text(&l, "operator", s->item, CREW_NAME);
    line_text(&l, "signal", crash_signal_name(sig), CREW_NAME);
    line_field(&l, "pid", getpid());
    size_t before = l.n;
    crash_address(&l, sig, info, ",\"address\":\"0x");
    if (l.n > before) line_add(&l, "\"");
    line_add(&l, "}");
    l.text[l.n++] = '\n';
    crash_put(c->log.log.fd, l.text, l.n);
}

static void note_for_agent(const struct worker *c, const struct crash_scene *s,
                           const siginfo_t *info) {
    struct crew_worker *w = worker_self(c);
    if (crash_is_sent(info)) atomic_store(&w->sender, info->si_pid ? info->si_pid : -1);
    if (s->reads) {
        atomic_store(&w->reads_step, (uint32_t)s->step);
        atomic_store(&w->reads_lane, 1 + s->part);
    } else if (s->thread >= 0) {
        atomic_store(&w->crashed, 1 + (int)(c->context[s->thread].shared - c->head->thread));
    }
}

/* Only the first of the workers that crash at the same place reports it to the user. */
static bool is_news(struct crew_head *h, const struct crash_scene *s, int sig) {
    const int place[] = {sig, s->at, s->part, s->number};
    uint64_t told = base_hash(place, sizeof place, 0);
    return atomic_exchange(&h->told.crash_told, told) != told;
}

void worker_crashed(const tri_run *run, struct crash_scene *s, int sig, const siginfo_t *info,
                    int to[2]) {
    const struct worker *c = run->worker;
    s->worker = c->place;
    s->seated = crew_seats_of(c->head, c->place, &s->seats);
    note_for_agent(c, s, info);
    to[0] = c->crash_out;
    if (c->crash_out < 0 || (!crash_is_sent(info) && is_news(c->head, s, sig)))
        to[1] = c->crash_user;
    write_log(c, s, sig, info);
}

void worker_traced(const tri_run *run, int sig) {
    const struct worker *c = run->worker;
    if (c->crash_out >= 0) atomic_store(&worker_self(c)->traced, sig);
}
