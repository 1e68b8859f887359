/* SPDX-License-Identifier: Apache-2.0
 * How a run over several hosts begins, and how a host joins it. */
#include <string.h>

#include "launch/coordinator_inside.h"
#include "link/control.h"

_Static_assert(HOSTS_PARTS * HOSTS_PART == HOST_BYTES, "a digest has its parts");

void coordinator_make_welcome(const struct coordinator_options *o, int host,
                              struct coordinator_welcome *w) {
    w->m = (struct host_message){.kind = HOST_WELCOME, .host = host, .run = o->run,
                                 .lease = o->lease, .names = {o->n, w->name},
                                 .weights = {o->n, w->weight},
                                 .launch = *o->launch};
    for (int i = 0; i < o->n; i++) {
        w->name[i] = o->host[i].name;
        w->weight[i] = o->host[i].workers;
    }
    int n = 0;
    for (; n < o->launch->n_numbers && n < HOST_NUMBERS; n++) w->number[n] = o->launch->number[n];
    w->number[n] = (struct host_number){"workers", o->host[host].workers};
    w->m.launch.number = w->number;
    w->m.launch.n_numbers++;
}

/* Why a host with that name cannot take part; "": it can. */
static void check_hello(const struct coordinator *c, const struct host *h, const char *name,
                        char why[HOST_TEXT]) {
    *why = 0;
    if (!h)
        base_format(why, HOST_TEXT, "host %s is not one of the run's", name);
    else if (c->phase == OVER)
        base_format(why, HOST_TEXT, "host %s is too late: the run has ended", h->name);
    else if (c->phase == STARTING && h->state == GONE)
        base_format(why, HOST_TEXT, "host %s is no longer in the run: %s", h->name, h->cause);
    else if (is_in(h, CONNECTED))
        base_format(why, HOST_TEXT, "host %s is in the run already, with another process", h->name);
}

void coordinator_take_hello(struct coordinator *c, int conn, const struct host_message *m) {
    char text[HOST_TEXT];
    struct host *h = NULL;
    struct coordinator_welcome w;
    for EACH(c, one)
        if (!strcmp(one->name, m->name)) h = one;
    if (h && is_in(h, CONNECTED) && h->pid == m->pid && c->phase != OVER)
        coordinator_lose(c, h, SILENT, "it has connected again");
    check_hello(c, h, m->name, text);
    if (*text) {
        coordinator_say(c, "refused: %s", text);
        coordinator_drop(c, conn, HOST_REFUSED, text);
        return;
    }
    coordinator_tell_gone(c);
    host_message_free(&h->closed);
    *h = (struct host){.name = h->name, .state = GREETED, .conn = conn, .pid = m->pid,
                       .greeted = c->phase == STARTING ? c->began : c->now,
                       .joins = c->phase != STARTING};
    if (strcmp(m->version, c->o.version)) {
        base_format(text, sizeof text, "it has version %s, and the run is started by version %s",
                    m->version, c->o.version);
        coordinator_lose(c, h, OUT, text);
        return;
    }
    coordinator_make_welcome(&c->o, (int)(h - c->host), &w);
    w.m.joins = h->joins;
    coordinator_send(c, h, w.m);
}

/* What two digests say; null: the same. */
static const char *what_differs(const uint8_t *a, const uint8_t *b) {
    static const char *const parts[HOSTS_PARTS] = {
        "network or plan differ", "options differ", "data (number of samples) differ",
        "data (samples of the first step) differ"};
    for (int i = 0; i < HOSTS_PARTS; i++)
        if (memcmp(a + HOSTS_PART * i, b + HOSTS_PART * i, HOSTS_PART)) return parts[i];
    return NULL;
}

/* Of a member, after its ferry has been replaced. */
void coordinator_take_ready(struct coordinator *c, struct host *h, struct host_message *m) {
    const char *how = c->phase != STARTING ? what_differs(c->digest, m->digest) : NULL;
    char why[HOST_TEXT] = "it has no workers";
    if (how) base_format(why, sizeof why, "its %s from those of the run", how);
    if (how || !m->weight) {
        coordinator_lose(c, h, OUT, why);
        return;
    }
    base_format(h->address, sizeof h->address, "%s", m->address);
    memcpy(h->digest, m->digest, HOST_BYTES);
    memcpy(h->values, m->state, HOST_BYTES);
    h->weight = m->weight;
    h->bytes = m->bytes;
    if (h->state == MEMBER) {
        c->changed = true;
        coordinator_say(c, "host %s has replaced its ferry in step %llu", h->name,
                        (unsigned long long)c->step);
    } else {
        h->state = READY;
        h->step = m->step;
    }
}

void coordinator_check_timeouts(struct coordinator *c) {
    char why[HOST_TEXT];
    for EACH(c, h) {
        const int64_t passed = c->now - (h->state == GREETED ? h->greeted : c->began);
        const int64_t most = h->state == ABSENT ? c->o.connect_timeout : c->o.start_timeout;
        if (!is_in(h, IN(ABSENT) | IN(GREETED)) || passed < most) continue;
        base_format(why, sizeof why, "it has not %s within %g s",
                    h->state == ABSENT ? "connected" : "been ready", (double)most / 1e9);
        coordinator_lose(c, h, OUT, why);
    }
}

/* Whether only the host itself reaches its ferry. */
static bool is_alone(const struct host *h) {
    char address[HOSTS_ADDRESS];
    base_format(address, sizeof address, "%s", h->address);
    char *port = strrchr(address, ':');
    if (port) *port = 0;
    return control_is_loopback(*address == '[' ? address + 1 : address);
}

/* How it differs from another; null: in nothing that it could not fetch. */
static const char *differs(const struct coordinator *c, const struct host *h,
                           const struct host *from) {
    const char *how = what_differs(h->digest, from->digest);
    if (how) return how;
    if (h->step == from->step && memcmp(h->values, from->values, HOST_BYTES))
        return "parameters or checkpoint differ";
    for (const struct host *other = c->host; is_alone(h) && other < c->host + c->o.n; other++)
        if (!is_alone(other)) return "address is reached by itself alone, and so differs";
    return NULL;
}

/* Hosts that do not share a directory have checkpoints of their own. */
static void let_fetch(struct coordinator *c, struct host *h, const struct host *latest) {
    base_format(h->cause, sizeof h->cause, "its checkpoint is of step %llu, and that of host %s of "
                "step %llu: it joins again, and fetches the state", (unsigned long long)h->step,
                latest->name, (unsigned long long)latest->step);
    coordinator_say(c, "host %s: %s", h->name, h->cause);
    coordinator_drop(c, h->conn, HOST_EVICTED, h->cause);
    h->conn = -1;
    h->state = GONE;
    h->told = true;
}

/* Begins the run when all hosts are ready, or ends it. */
void coordinator_settle_start(struct coordinator *c) {
    int ready = 0, gone = 0;
    const struct host *latest = c->host;
    for EACH(c, h) {
        ready += h->state == READY;
        gone += h->state == GONE;
        if (h->step > latest->step) latest = h;
    }
    for EACH(c, h) {
        char why[HOST_TEXT];
        const char *how = ready < c->o.n ? NULL : differs(c, h, latest);
        if (!how) continue;
        base_format(why, sizeof why, "its %s from those of host %s", how, latest->name);
        coordinator_lose(c, h, OUT, why);
        gone++;
    }
    if (gone && (ready + gone >= c->o.n || c->now >= c->doomed)) {
        char text[HOST_TEXT], list[HOST_TEXT];
        base_format(text, sizeof text, "the run has not begun, because of %s",
                    coordinator_names(c, IN(GONE), list));
        coordinator_end_run(c, TRI_FAILED, text);
    } else if (!gone && ready == c->o.n) {
        for EACH(c, h) {
            h->deadline = c->now + c->o.lease + SLACK;
            if (h->step < latest->step) let_fetch(c, h, latest);
            else h->state = MEMBER;
        }
        memcpy(c->digest, latest->digest, HOST_BYTES);
        c->changed = true;
    }
}
