/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/coordinator.h"

#include <stdlib.h>
#include <string.h>

#include "launch/coordinator_inside.h"

void coordinator_say(const struct coordinator *c, const char *fmt, ...) {
    char line[2 * HOST_TEXT];
    va_list args;
    va_start(args, fmt);
    base_format_list(line, sizeof line, fmt, args);
    va_end(args);
    c->o.say(c->o.user, line);
}

void coordinator_send(struct coordinator *c, const struct host *h, struct host_message m) {
    if (h->conn >= 0) c->o.send(c->o.user, h->conn, &m);
}

static void send_all(struct coordinator *c, unsigned states, struct host_message m) {
    for EACH(c, h)
        if (is_in(h, states)) coordinator_send(c, h, m);
}

void coordinator_end_run(struct coordinator *c, int code, const char *text) {
    send_all(c, CONNECTED, (struct host_message){.kind = HOST_END, .code = code, .text = text});
    c->phase = OVER;
    c->code = code;
}

void coordinator_drop(struct coordinator *c, int conn, enum host_kind kind, const char *text) {
    c->o.send(c->o.user, conn, &(struct host_message){.kind = kind, .text = text});
    c->o.close(c->o.user, conn);
}

static bool anybody_stays(const struct coordinator *c) {
    for (const struct host *h = c->host; h < c->host + c->o.n; h++)
        if (h->state == MEMBER && !h->leaves && !h->joins) return true;
    return false;
}

/* The names of hosts in these states; of those that leave only if nobody stays. */
const char *coordinator_names(const struct coordinator *c, unsigned states, char text[HOST_TEXT]) {
    const bool stay = anybody_stays(c);
    size_t n = 0;
    *text = 0;
    for (const struct host *h = c->host; h < c->host + c->o.n && n < HOST_TEXT / 2; h++)
        if (is_in(h, states) && !(h->leaves && stay))
            n += (size_t)base_format(text + n, HOST_TEXT - n, "%s%s", n ? ", " : "", h->name);
    return text;
}

void coordinator_lose(struct coordinator *c, struct host *h, enum going how, const char *why) {
    const bool starting = c->phase == STARTING, member = h->state == MEMBER;
    const bool joins = !starting && (!member || h->joins);
    base_format(h->cause, sizeof h->cause, "%s", why);
    if (h->conn >= 0 && how != ENDED)
        coordinator_drop(c, h->conn, how == SILENT ? HOST_EVICTED : HOST_REFUSED, h->cause);
    h->conn = -1;
    h->state = h->leaving ? LEFT : GONE;
    host_message_free(&h->report);
    if (h->leaving)
        coordinator_say(c, "host %s has left in step %llu, as it was asked to", h->name,
            (unsigned long long)c->step);
    c->changed |= member;
    if (joins) coordinator_say(c, "host %s has not joined: %s", h->name, why);
    h->told = joins || starting;
    if (!starting) return;
    coordinator_say(c, "host %s: %s", h->name, why);
    if (!c->doomed) c->doomed = c->now + OTHERS;
}

void coordinator_tell_gone(struct coordinator *c) {
    char list[HOST_TEXT];
    for EACH(c, h) {
        if (h->state != GONE || h->told) continue;
        h->told = true;
        const bool any = *coordinator_names(c, IN(MEMBER), list);
        coordinator_say(c, "host %s has gone in step %llu (%s)%s%s; epoch %u", h->name,
            (unsigned long long)c->step, h->cause, any ? ": its lanes go to " : "", list, c->epoch);
    }
}

/* ---- epochs ---- */

static void admit(struct coordinator *c) {
    for EACH(c, h) {
        if (h->state != READY || c->step <= c->barren) continue;
        h->state = MEMBER;
        h->deadline = c->now + c->o.lease + SLACK;
        c->changed = true;
        coordinator_say(c, "host %s joins: it fetches %.1f MiB, and no step begins meanwhile",
                        h->name,
            (double)h->bytes / (1 << 20));
    }
}

static void end_alone(struct coordinator *c) {
    coordinator_end_run(c, TRI_FAILED, "no host is left that has the state");
    for EACH(c, h)
        if (h->state == MEMBER) h->state = LEFT;
    coordinator_tell_gone(c);
    coordinator_say(c, "no host is left after step %llu: the run has ended; --resume continues "
                    "from its latest checkpoint",
                    (unsigned long long)c->step);
}

static void hold(struct coordinator *c) {
    bool any = false;
    c->changed = false;
    c->epoch++;
    c->phase = HOLDING;
    for EACH(c, h) {
        any |= h->state == MEMBER;
        h->reported = false;
    }
    if (any) send_all(c, IN(MEMBER), (struct host_message){.kind = HOST_HOLD, .epoch = c->epoch});
    else end_alone(c);
}

static void tell_teller(struct coordinator *c, struct host_message m) {
    if (c->teller >= 0) coordinator_send(c, &c->host[c->teller], m);
}

/* What a new teller must know. */
static void inform_teller(struct coordinator *c) {
    const struct host *h = &c->host[c->teller];
    unsigned news = c->informed == c->teller ? 0 : c->wishes;
    if (!anybody_stays(c)) news |= ~c->wishes & IN(HOST_STOP); /* the last that could save */
    c->wishes |= news;
    for (int32_t ask = 0; ask <= HOST_SAVE; ask++)
        if (news & IN(ask)) tell_teller(c, (struct host_message){.kind = HOST_ASK, .ask = ask});
    c->wishes &= ~IN(HOST_SAVE);
    if (*c->failure && c->informed != c->teller)
        tell_teller(c, (struct host_message){.kind = HOST_FAIL, .text = c->failure});
    c->informed = c->teller;
    if (h->has_closed) coordinator_end_run(c, h->closed.code, h->closed.text);
}

static void set_joins(struct coordinator *c, struct host *h, bool joins) {
    if (h->joins && !joins)
        coordinator_say(c, "host %s has joined in step %llu", h->name, (unsigned long long)c->step);
    h->joins = joins;
}

/* Takes what all have reported. False: nobody has the state. */
static bool take_reports(struct coordinator *c) {
    uint64_t step = 0;
    if (c->teller >= 0 && c->host[c->teller].report.report.joins) c->teller = -1;
    for EACH(c, h) {
        if (h->state != MEMBER) continue;
        set_joins(c, h, h->report.report.joins);
        if (!h->joins && c->teller < 0) c->teller = (int)(h - c->host);
        if (h->report.report.step > step) step = h->report.report.step;
    }
    if (step > c->step) c->step = step;
    /* There is no step to join in: see admit. */
    for EACH(c, h) {
        if (step || h->state != MEMBER || !h->joins) continue;
        h->state = READY;
        c->barren = c->step;
    }
    return c->teller >= 0;
}

/* All have reported. */
static void begin_epoch(struct coordinator *c) {
    struct host_member member[HOSTS_MOST] = {0};
    if (!take_reports(c)) {
        end_alone(c);
        return;
    }
    const bool stay = anybody_stays(c);
    for EACH(c, h) {
        if (h->state != MEMBER) continue;
        member[h - c->host] = (struct host_member){true, h->leaves && stay ? 0 : h->weight,
                                                   h->address, h->report.report};
    }
    send_all(c, IN(MEMBER), (struct host_message){.kind = HOST_EPOCH, .epoch = c->epoch,
                            .teller = c->teller, .n_members = c->o.n, .member = member});
    c->phase = RUNNING;
    /* A step after c->step may have been offered, with lanes of those that leave; no later one. A
     * host that has opened the one after has all of it, and so have all others. */
    for EACH(c, h) {
        host_message_free(&h->report);
        if (!h->leaves || !stay) h->leave_at = 0;
        else if (!h->leave_at) h->leave_at = c->step + 2;
    }
    coordinator_tell_gone(c);
    inform_teller(c);
}

/* After every input: begins what is to begin. */
static void settle(struct coordinator *c) {
    if (c->phase == OVER) return;
    coordinator_check_timeouts(c);
    if (c->phase == STARTING) coordinator_settle_start(c);
    else admit(c);
    if (c->phase == OVER) return;
    if (c->teller >= 0 && c->host[c->teller].state != MEMBER) c->teller = -1;
    if (c->changed) hold(c);
    if (c->phase != HOLDING) return;
    for EACH(c, h)
        if (h->state == MEMBER && !h->reported) return;
    begin_epoch(c);
}

/* ---- messages of members ---- */

static void take_report(struct coordinator *c, struct host *h, struct host_message *m) {
    if (c->phase != HOLDING || m->epoch != c->epoch) return; /* of an earlier epoch */
    host_message_free(&h->report);
    h->report = *m;
    *m = (struct host_message){0};
    h->reported = true;
}

/* A pair that cannot keep a session ends the run's progress, not the run. */
static void take_lost(struct coordinator *c, struct host *h, struct host_message *m) {
    struct host *peer = &c->host[m->host];
    if (c->phase != RUNNING || m->epoch != c->epoch || m->host >= c->o.n || peer == h ||
        peer->state != MEMBER)
        return;
    if (c->lost_step != c->step) memset(c->lost, 0, sizeof c->lost);
    c->lost_step = c->step;
    struct host *low = h < peer ? h : peer, *high = h < peer ? peer : h;
    c->changed = true;
    if (!low->leaving && !high->leaving)
        coordinator_say(c, "hosts %s and %s have lost their connection in step %llu (%s)",
                        low->name,
            high->name, (unsigned long long)c->step, m->text);
    if (++c->lost[low - c->host][high - c->host] < MOST_LOST) return;
    char why[HOST_TEXT];
    struct host *out = high == &c->host[c->teller] ? low : high;
    base_format(why, sizeof why, "it cannot keep a connection to host %s",
                (out == high ? low : high)->name);
    coordinator_lose(c, out, OUT, why);
}

static void take_beat(struct coordinator *c, struct host *h, struct host_message *m) {
    struct host_message back = *m;
    back.step = (uint64_t)c->now;
    coordinator_send(c, h, back);
    h->deadline = c->now + c->o.lease + SLACK;
    h->workers = m->workers;
    if (m->step > h->step) h->step = m->step;
    if (h->step > c->step) c->step = h->step;
    if (m->step) set_joins(c, h, false);
    if (!h->leave_at || h->step < h->leave_at) return;
    coordinator_send(c, h, (struct host_message){.kind = HOST_END});
    h->leaving = true;
}

static void take_leave(struct coordinator *c, struct host *h, struct host_message *m) {
    (void)m;
    if (h->state != MEMBER) {
        coordinator_lose(c, h, OUT, "it was asked to end");
        return;
    }
    c->changed |= !h->leaves;
    h->leaves = true;
}

static void take_ask(struct coordinator *c, struct host *h, struct host_message *m) {
    if (m->ask == HOST_KILL) coordinator_lose(c, h, OUT, "it asked for what no host may");
    else coordinator_ask(c, (enum host_ask)m->ask, c->now);
}

/* All hosts know what their users wait for. */
static void take_done(struct coordinator *c, struct host *h, struct host_message *m) {
    if (h - c->host == c->teller) send_all(c, IN(MEMBER), *m);
}

static void take_failed(struct coordinator *c, struct host *h, struct host_message *m) {
    if (h->state != MEMBER || h->joins) {
        coordinator_lose(c, h, OUT, m->text);
        return;
    }
    if (*c->failure) return; /* the first counts */
    base_format(c->failure, sizeof c->failure, "host %s: %s", h->name, m->text);
    tell_teller(c, (struct host_message){.kind = HOST_FAIL, .text = c->failure});
}

/* The teller's run is all of it: it has saved. Of others it matters if one becomes the teller. */
static void take_closed(struct coordinator *c, struct host *h, struct host_message *m) {
    if (h->state != MEMBER || h->joins) {
        coordinator_lose(c, h, OUT,
                         *m->text ? m->text : "its program has ended before the first step");
        return;
    }
    host_message_free(&h->closed);
    h->closed = *m;
    *m = (struct host_message){0};
    h->has_closed = true;
    if (h - c->host == c->teller) coordinator_end_run(c, h->closed.code, h->closed.text);
}

static const struct {
    void (*take)(struct coordinator *c, struct host *h, struct host_message *m);
    unsigned states;
} rows[HOST_KIND_COUNT] = {
    [HOST_READY] = {coordinator_take_ready, CONNECTED}, [HOST_FAILED] = {take_failed, CONNECTED},
    [HOST_CLOSED] = {take_closed, CONNECTED}, [HOST_BEAT] = {take_beat, CONNECTED},
    [HOST_LEAVE] = {take_leave, CONNECTED}, [HOST_REPORT] = {take_report, IN(MEMBER)},
    [HOST_LOST] = {take_lost, IN(MEMBER)}, [HOST_ASK] = {take_ask, IN(MEMBER)},
    [HOST_DONE] = {take_done, IN(MEMBER)},
};

/* ---- inputs ---- */

static struct host *host_of(struct coordinator *c, int conn) {
    for EACH(c, h)
        if (h->conn == conn) return h;
    return NULL;
}

void coordinator_arrived(struct coordinator *c, int conn, struct host_message *m, int64_t now) {
    char text[HOST_TEXT];
    struct host *h = host_of(c, conn);
    c->now = now;
    if (h && (c->phase == OVER || h->leaving)) return;
    base_format(text, sizeof text, "it sent %s at a time when that has no meaning",
                host_kind_name(m->kind));
    if (!h && m->kind == HOST_HELLO)
        coordinator_take_hello(c, conn, m);
    else if (!h)
        coordinator_drop(c, conn, HOST_REFUSED, text);
    else if (is_in(h, rows[m->kind].states))
        rows[m->kind].take(c, h, m);
    else
        coordinator_lose(c, h, OUT, text);
    settle(c);
}

void coordinator_ended(struct coordinator *c, int conn, const char *why, int64_t now) {
    struct host *h = host_of(c, conn);
    c->now = now;
    if (!h) return;
    if (c->phase == OVER)
        h->conn = -1;
    else
        coordinator_lose(c, h, ENDED, why);
    settle(c);
}

void coordinator_tick(struct coordinator *c, int64_t now) {
    /* If this process was stopped, messages may wait that are older than that. */
    const int64_t away = now - c->ticked > SLACK ? now - c->ticked : 0;
    c->now = c->ticked = now;
    if (c->phase == OVER) return;
    for EACH(c, h) {
        h->deadline += away;
        if (h->state != MEMBER || now < h->deadline) continue;
        char why[HOST_TEXT];
        base_format(why, sizeof why, "no sign of it for %.1f s",
                    (double)(c->o.lease + SLACK) / 1e9);
        coordinator_lose(c, h, SILENT, why);
    }
    settle(c);
}

void coordinator_ask(struct coordinator *c, enum host_ask what, int64_t now) {
    const struct host_message ask = {.kind = HOST_ASK, .ask = (int32_t)what};
    c->now = now;
    if (c->phase == OVER && what != HOST_KILL) return;
    if (what == HOST_RESUME)
        c->wishes &= ~IN(HOST_PAUSE);
    else if (what != HOST_SAVE || c->teller < 0)
        c->wishes |= IN(what) & ~IN(HOST_KILL);
    if (what == HOST_PAUSE || what == HOST_RESUME || what == HOST_KILL)
        send_all(c, CONNECTED, ask); /* `ctl` reads on any host whether the run is paused */
    else
        tell_teller(c, ask);
    if (what == HOST_KILL) {
        c->phase = OVER;
        c->code = TRI_STOPPED;
    } else if (c->phase == STARTING && what == HOST_STOP) {
        coordinator_end_run(c, TRI_STOPPED, "stopped before the first step");
    }
}

tri_status coordinator_evict(struct coordinator *c, const char *name, int64_t now) {
    c->now = now;
    for EACH(c, h) {
        if (strcmp(h->name, name) || h->state != MEMBER || c->phase == OVER) continue;
        take_leave(c, h, NULL);
        settle(c);
        return TRI_OK;
    }
    return base_fail(TRI_USAGE, "host %s is not in the run", name);
}

bool coordinator_takes_part(const struct coordinator *c, int host) {
    return is_in(&c->host[host], CONNECTED | IN(LEFT));
}

tri_status coordinator_scale(struct coordinator *c, const char *name, int workers) {
    int most = 0;
    for (int i = 0; i < c->o.launch->n_numbers; i++)
        if (!strcmp(c->o.launch->number[i].name, "most"))
            most = (int)c->o.launch->number[i].value;
    for EACH(c, h) {
        if (strcmp(h->name, name) || h->state != MEMBER || c->phase == OVER) continue;
        if (!most) most = c->o.host[h - c->host].workers;
        if (workers < 1 || workers > most)
            return base_fail(TRI_USAGE, "host %s can have 1 to %d worker(s), not %d; --most sets "
                             "the limit when the run is started", name, most, workers);
        coordinator_send(c, h, (struct host_message){.kind = HOST_SCALE, .workers = workers});
        return TRI_OK;
    }
    return base_fail(TRI_USAGE, "host %s is not in the run", name);
}

void coordinator_look(const struct coordinator *c, int host, struct coordinator_view *v) {
    static const char *const names_of[] = {"absent", "starting", "ready", "takes part", "gone",
                                           "left"};
    const struct host *h = &c->host[host];
    *v = (struct coordinator_view){h->name, names_of[h->state], h->workers, h->step, c->epoch};
    if (h->state == MEMBER && host == c->teller) v->state = "teller";
    if (h->state == MEMBER && h->leaves) v->state = "leaving";
}

bool coordinator_has(const struct coordinator *c, int conn) {
    for (const struct host *h = c->host; h < c->host + c->o.n; h++)
        if (h->conn >= 0 && (conn < 0 || h->conn == conn)) return true;
    return false;
}

bool coordinator_is_over(const struct coordinator *c, int *code) {
    if (c->phase == OVER) *code = c->code;
    return c->phase == OVER;
}

tri_status coordinator_open(const struct coordinator_options *o, int64_t now,
                            struct coordinator **c) {
    struct coordinator_welcome w;
    struct text t = {0};
    CHECK(o->n >= 1 && o->n <= HOSTS_MOST);
    *c = NULL;
    coordinator_make_welcome(o, 0, &w);
    tri_status s = host_message_put(&w.m, &t); /* what is too long is refused now */
    text_free(&t);
    if (s) return s;
    *c = calloc(1, sizeof **c);
    if (!*c) return base_no_memory("the coordinator");
    (*c)->o = *o;
    (*c)->now = (*c)->ticked = (*c)->began = now;
    (*c)->teller = (*c)->informed = -1;
    for (int i = 0; i < o->n; i++)
        (*c)->host[i] = (struct host){.name = o->host[i].name, .conn = -1};
    return TRI_OK;
}

void coordinator_close(struct coordinator *c) {
    for (int i = 0; c && i < c->o.n; i++) {
        host_message_free(&c->host[i].report);
        host_message_free(&c->host[i].closed);
    }
    free(c);
}
