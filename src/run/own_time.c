/* SPDX-License-Identifier: Apache-2.0 */
#include "run/own_time.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "crew/spans.h"
#include "machine/team.h"

#define SHORT 2000000   /* nanoseconds: of shorter steps, */
#define APART 25000000  /* one is timed in about so long */
#define LONGER 4        /* times as long as expected: the rest is unexplained */

static void attach(void *own_time, int thread) {
    struct own_time *o = own_time;
    o->spender[thread].to = &o->spending[thread];
    o->spender[thread].tid = gettid();
    o->spender[thread].lane = o->spender[thread].leg = -1;
    spend_into(&o->spender[thread], thread ? SPENT_WAIT_THREADS : SPENT_START);
}

static void detach(void *own_time, int thread) {
    const struct own_time *o = own_time;
    if (spend_owner() == &o->spender[thread]) spend_into(NULL, SPENT_UNKNOWN);
}

static bool is_mine(const struct own_time *o) {
    return o->spender && pthread_equal(o->opener, pthread_self());
}

void own_time_open(struct own_time *o, struct team *team) {
    *o = (struct own_time){.threads = team_threads(team), .opener = pthread_self()};
    if (spend_owner()) return; /* an earlier run's */
    o->spender = calloc((size_t)o->threads, sizeof *o->spender + sizeof *o->spending);
    if (!o->spender) return;
    o->spending = (struct spending *)(o->spender + o->threads);
    team_run(team, attach, o);
    o->on = true;
}

void own_time_close(struct own_time *o, struct team *team) {
    if (!o->spender) return;
    own_time_apart(o);
    team_run(team, detach, o);
    if (is_mine(o)) free(o->spender); /* else the opener still uses it */
    *o = (struct own_time){0};
}

static int64_t part_of(int64_t all, int64_t part, int64_t whole) {
    return (int64_t)((double)all * (double)part / (double)whole);
}

/* Shares out the time since the thread's was counted last. */
static void resume(struct own_time *o, int64_t now) {
    const int64_t passed = now - atomic_load(&o->spending->since);
    const int64_t expected = o->took * (o->out - o->left + 1);
    int64_t known = passed <= LONGER * expected ? passed : expected, time[SPENTS] = {0};
    for (int i = 0; o->took && i < SPENTS; i++) time[i] = part_of(known, o->share[i], o->took);
    spend_resume(o->spender, time, now);
    o->on = true;
    o->left = o->out = 0;
}

static void pause_until(struct own_time *o, int64_t steps) {
    o->each = o->out = o->left = steps;
    o->on = false;
    spend_pause();
}

static void end_step(struct own_time *o, int64_t now) {
    o->took = now - o->began;
    if (spend_is_recorded()) spend_around(SPAN_STEP, o->began, now);
    for (int i = 0; i < SPENTS; i++)
        o->share[i] = atomic_load(&o->spending->time[i]) - o->before[i];
    const bool brief = o->took < SHORT && !spend_is_recorded();
    const int64_t some = brief ? APART / (o->took + 1) : 0, most = 4 * o->each + 3;
    if (some) pause_until(o, some < most ? some : most);
    else o->each = 0;
}

static void begin_step(struct own_time *o, int64_t now) {
    o->began = now;
    for (int i = 0; i < SPENTS; i++) o->before[i] = atomic_load(&o->spending->time[i]);
}

int64_t own_time_turn(struct own_time *o) {
    if (!is_mine(o)) return 0;
    const int64_t now = base_now(), timed = o->began ? now : 0;
    if (!o->on) resume(o, now);
    spend_at(SPENT_OPEN, now);
    if (o->began) end_step(o, now);
    o->began = 0;
    if (o->on) begin_step(o, now);
    return timed;
}

void own_time_whole(struct own_time *o) {
    const int64_t now = base_now();
    if (!o->on) resume(o, now);
    spend_at(SPENT_OPEN, now);
    begin_step(o, now);
}

void own_time_apart(struct own_time *o) {
    if (!is_mine(o)) return;
    if (!o->on) resume(o, base_now());
    if (!spend_is_recorded()) o->began = 0;
}
