/* SPDX-License-Identifier: Apache-2.0
 * trireme ctl: sets the control words in the head of a run's store and waits until the run has done
 * what they ask. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/ctl_hosts.h"
#include "launch/look.h"

#define LOOK_AGAIN 10 /* milliseconds */
#define STILL 1.0     /* seconds after which the reporter must have seen the word */

struct control {
    struct look look;
    struct look_view now;
    int number;          /* argument of scale */
    char host[HOSTS_NAME]; /* argument of evict, or of scale; empty: none */
    int64_t until;       /* when --timeout is over */
    int64_t asked;       /* time of the request, nanoseconds */
    uint64_t from;       /* steps done at that time */
    uint32_t save_asked; /* number of the request for a checkpoint */
    struct text *report; /* for the user */
};

/* In each case `report` explains: the result, the failure, or what is missing. */
enum outcome { WAITS, DONE, FAILED };

struct word {
    const char *name, *argument, *help;
    /* Sends the request, unless it is already fulfilled (DONE) or impossible (FAILED). */
    enum outcome (*ask)(struct control *c);
    enum outcome (*look)(struct control *c);
};

static void after_step(struct control *c, const char *what) {
    unsigned long long n = c->now.committed;
    if (n)
        text_add(c->report, "%s after step %llu", what, n);
    else
        text_add(c->report, "%s before the first step", what);
}

static enum outcome ended(struct control *c) {
    after_step(c, "the run has ended");
    return FAILED;
}

static bool over(const struct control *c) { return c->now.state >= LOOK_FINISHED; }

/* The workers that the open step waits for; without one, the reporter, which opens the next. */
static void add_workers(struct control *c) {
    const struct look_view *v = &c->now;
    bool open = v->opened > v->committed;
    for (int i = 0; i < v->places; i++) {
        const struct look_worker *w = &v->worker[i];
        if (!look_worker_shown(w) || w->at == CREW_AT_WAIT || (!open && i != v->reporter)) continue;
        char seats[CREW_SEATS];
        text_add(c->report, "; worker %d (pid %d%s): ", i, w->pid,
                 crew_name_seats(c->look.head, i, seats));
        look_describe(&c->look, w, c->report);
    }
}

/* ---- pause ---- */

static bool has_hosts(const struct control *c) { return c->now.hosts.n > 0; }

static enum outcome ask_pause(struct control *c) {
    struct crew_head *h = c->look.head;
    if (c->now.state == LOOK_STOPPING) {
        text_add(c->report, "the run is stopping and cannot be paused");
        return FAILED;
    }
    if (c->now.state == LOOK_PAUSED) {
        after_step(c, "already paused");
        return DONE;
    }
    atomic_store(&h->asked.paused, (int)(base_now() >> 10 & INT_MAX) | 1);
    crew_notify(h);
    return WAITS;
}

/* The reporter may have read the word just before it was set and open one more step. If it began to
 * wait after the request, it has seen the word. Its state is therefore read before the steps. */
static enum outcome look_pause(struct control *c) {
    const struct look_view *v = &c->now;
    bool known = v->reporter >= 0 && v->reporter < v->places;
    const struct look_worker *w = &v->worker[known ? v->reporter : 0];
    bool seen = w->at == CREW_AT_WAIT && w->since > c->asked;
    bool late = (double)(v->now - c->asked) > STILL * 1e9;
    if (over(c)) return ended(c);
    const struct crew_head *h = c->look.head;
    if (!atomic_load(&h->asked.paused)) {
        text_add(c->report, "the run has been resumed before it paused");
        return FAILED;
    }
    uint64_t committed = atomic_load(&h->course.committed), opened = atomic_load(&h->course.opened);
    bool last = opened && committed == v->total; /* then the run ends instead */
    if (has_hosts(c)) /* the teller has said so */
        seen = late = atomic_load(&h->told.paused) == committed + 1;
    if (opened == committed && !last && (seen || late)) {
        c->now.committed = committed;
        after_step(c, "paused");
        return DONE;
    }
    if (opened > committed)
        text_add(c->report, "step %llu is not done", (unsigned long long)opened);
    else
        text_add(c->report, "no step is open");
    add_workers(c);
    return WAITS;
}

/* ---- resume ---- */

static enum outcome ask_resume(struct control *c) {
    struct crew_head *h = c->look.head;
    if (!atomic_load(&h->asked.paused)) {
        after_step(c, "not paused; running");
        return DONE;
    }
    atomic_store(&h->asked.paused, 0);
    crew_notify(h);
    return WAITS;
}

static enum outcome look_resume(struct control *c) {
    const struct look_view *v = &c->now;
    if (v->opened > c->from) {
        text_add(c->report, "resumed with step %llu", (unsigned long long)c->from + 1);
        return DONE;
    }
    if (over(c)) return ended(c);
    text_add(c->report, "step %llu is not open yet", (unsigned long long)c->from + 1);
    add_workers(c);
    return WAITS;
}

/* ---- stop ---- */

static enum outcome ask_stop(struct control *c) {
    atomic_store(&c->look.head->asked.stop, CREW_STOP_ASKED);
    crew_notify(c->look.head);
    return WAITS;
}

static enum outcome look_stop(struct control *c) {
    const struct look_view *v = &c->now;
    if (look_alive(&c->look)) {
        if (over(c))
            text_add(c->report, "the workers have not ended");
        else
            text_add(c->report, "step %llu is not done", (unsigned long long)v->opened);
        add_workers(c);
        return WAITS;
    }
    if (v->state == LOOK_FINISHED) {
        text_add(c->report, "the run has finished all of its %llu step(s)",
                 (unsigned long long)v->committed);
        return DONE;
    }
    after_step(c, v->state == LOOK_FAILED ? "failed" : "stopped");
    return DONE;
}

/* ---- scale ---- */

/* Sends a request to the coordinator. */
static enum outcome request(struct control *c, const char *text) {
    char answer[CREW_ANSWER];
    tri_status status = has_hosts(c) ? ctl_request(&c->look, text, c->until, answer)
                                     : base_fail(TRI_USAGE, "this run has one host: it was started "
                                                 "without --hosts");
    if (status) text_add(c->report, "%s", tri_message());
    return status ? FAILED : WAITS;
}

/* The host that was named, as the coordinator sees it now; null: it failed. */
static const struct ctl_host *find_host(struct control *c, struct ctl_host host[HOSTS_MOST]) {
    const int64_t soon = base_now() + 2000000000; /* also of the last look, at the time limit */
    const int n = ctl_hosts(&c->look, c->until > soon ? c->until : soon, host);
    for (int i = 0; i < n; i++)
        if (!strcmp(host[i].name, c->host)) return &host[i];
    if (n >= 0) base_fail(TRI_FAILED, "host %s is not in the run", c->host);
    text_add(c->report, "%s", tri_message());
    return NULL;
}

static enum outcome ask_scale(struct control *c) {
    struct crew_head *h = c->look.head;
    char text[HOSTS_NAME + 32];
    if (!strcmp(c->host, c->now.hosts.self)) *c->host = 0; /* this one */
    base_format(text, sizeof text, "scale %s=%d", c->host, c->number);
    if (*c->host) return request(c, text);
    if (c->number < 1 || c->number > c->now.most) {
        text_add(c->report,
                 "scale %d: this run can have 1 to %d worker(s); --most sets the limit when "
                 "it is started", c->number, c->now.most);
        return FAILED;
    }
    if (c->now.state == LOOK_STOPPING) {
        text_add(c->report, "the run is stopping and cannot be scaled");
        return FAILED;
    }
    atomic_store(&h->asked.wanted, c->number);
    crew_notify(h);
    return WAITS;
}

/* Adds the workers that have not started or left yet, and returns how many they are. */
static int add_movers(struct control *c) {
    const struct look_view *v = &c->now;
    int movers = 0, ranks = 0;
    for (int i = 0; i < v->places; i++) {
        const struct look_worker *w = &v->worker[i];
        bool leaves = w->leaves && w->state != CREW_EMPTY;
        bool ready = w->rank >= 0 && w->state == CREW_READY;
        ranks += ready;
        if (!leaves && (w->rank < 0 || ready)) continue;
        text_add(c->report, "%sworker %d (pid %d) has not %s yet", movers++ ? ", " : "", i, w->pid,
                 leaves ? "left" : "reached its first step");
    }
    if (!movers && ranks < v->ranks)
        text_add(c->report, "%d of %d worker(s) are ready", ranks, v->ranks);
    return movers + (ranks < v->ranks);
}

static enum outcome look_scale(struct control *c) {
    const struct look_view *v = &c->now;
    struct ctl_host all[HOSTS_MOST];
    const struct ctl_host *host = NULL;
    if (over(c)) return ended(c);
    if (*c->host && !(host = find_host(c, all))) return FAILED;
    if (host) {
        text_add(c->report, "host %s has %d worker(s)", c->host, host->workers);
        return host->workers == c->number ? DONE : WAITS;
    }
    if (v->wanted == c->number) {
        text_add(c->report, "%s", v->opened ? "the agent has not acted yet"
                                          : "the first step is not open yet");
        return WAITS;
    }
    if (v->ranks != c->number) {
        text_add(c->report, "a later request asks for %d worker(s)",
                 v->wanted ? v->wanted : v->ranks);
        return FAILED;
    }
    if (add_movers(c)) return WAITS;
    text_add(c->report, "scaled to %d worker(s) at step %llu", c->number,
             (unsigned long long)v->committed);
    return DONE;
}

/* ---- checkpoint ---- */

static enum outcome ask_checkpoint(struct control *c) {
    struct crew_head *h = c->look.head;
    if (!atomic_load(&h->course.keeps)) {
        text_add(c->report, "this run writes no checkpoints: start it with --ckpt DIR");
        return FAILED;
    }
    c->save_asked = atomic_fetch_add(&h->asked.saves, 1) + 1;
    crew_notify(h);
    return WAITS;
}

static enum outcome look_checkpoint(struct control *c) {
    const struct crew_head *h = c->look.head;
    if ((int32_t)(atomic_load(&h->told.save_answered) - c->save_asked) < 0) {
        if (over(c)) return ended(c);
        text_add(c->report, "step %llu is not saved yet", (unsigned long long)c->now.opened);
        add_workers(c);
        return WAITS;
    }
    if (*h->told.save_error) {
        text_add(c->report, "step %llu could not be saved: %s",
                 (unsigned long long)atomic_load(&h->told.saved), h->told.save_error);
        return FAILED;
    }
    text_add(c->report, "step %llu is saved", (unsigned long long)atomic_load(&h->told.saved));
    return DONE;
}

/* ---- hosts ---- */

static enum outcome ask_hosts(struct control *c) {
    struct ctl_host all[HOSTS_MOST];
    if (!has_hosts(c)) return request(c, "hosts");
    const int n = ctl_hosts(&c->look, c->until, all);
    if (n < 0) text_add(c->report, "%s", tri_message());
    else ctl_hosts_print(all, n, c->report);
    return n < 0 ? FAILED : DONE;
}

static enum outcome ask_evict(struct control *c) {
    char text[HOSTS_NAME + 32];
    base_format(text, sizeof text, "evict %s", c->host);
    return request(c, text);
}

/* If no other host would stay, the run ends instead. */
static enum outcome look_evict(struct control *c) {
    struct ctl_host all[HOSTS_MOST];
    if (over(c) || !look_alive(&c->look)) {
        const bool left = !strcmp(c->host, c->now.hosts.self) && c->now.state == LOOK_FINISHED;
        after_step(c, left ? "this host has left" : "the run has ended");
        return DONE;
    }
    const struct ctl_host *host = find_host(c, all);
    if (!host) return look_alive(&c->look) ? FAILED : WAITS;
    const bool gone = !strcmp(host->state, "left") || !strcmp(host->state, "gone");
    text_add(c->report, gone ? "host %s has %s" : "host %s is still there (%s)", c->host,
             host->state);
    if (!gone && atomic_load(&c->look.head->asked.paused))
        text_add(c->report, ": it leaves when the run, which is paused, is resumed");
    return gone ? DONE : WAITS;
}

/* ---- reading the request ---- */

static const struct word words[] = {
    {"pause", NULL, "finish the step and start no other", ask_pause, look_pause},
    {"resume", NULL, "continue a paused run", ask_resume, look_resume},
    {"stop", NULL, "finish the step and end the run, with exit status 3", ask_stop, look_stop},
    {"scale", "[HOST=]N",
     "continue with N workers, of this or another host, at most --most; the result is the same",
     ask_scale, look_scale},
    {"checkpoint", NULL, "save the latest step (needs --ckpt)", ask_checkpoint, look_checkpoint},
    {"hosts", NULL, "list the hosts of a run over several", ask_hosts, NULL},
    {"evict", "HOST", "let a host leave after the step; the others take over its lanes", ask_evict,
     look_evict},
};

static const struct word *look_up(const char *name) {
    for (size_t i = 0; i < COUNT(words); i++)
        if (!strcmp(words[i].name, name)) return &words[i];
    return NULL;
}

/* before: the word before it, where the directory belongs. */
static const struct word *find_word(const char *name, const char *before) {
    const struct word *w = look_up(name), *early = look_up(before);
    if (w) return w;
    if (early) {
        base_fail(TRI_USAGE, "ctl: the directory of the run comes before %s: "
                  "trireme ctl DIR %s%s%s", before, before, early->argument ? " " : "",
                  early->argument ? early->argument : "");
        return NULL;
    }
    struct nearest near = {.wanted = name};
    const size_t n = strlen(name);
    for (size_t i = 0; i < COUNT(words); i++) {
        nearest_offer(&near, words[i].name);
        if (!near.distance || strncmp(words[i].help, name, n) || words[i].help[n] != ' ') continue;
        near.distance = 0; /* "save" is what checkpoint does */
        base_format(near.name, sizeof near.name, "%s", words[i].name);
    }
    const char *meant = nearest_meant(&near);
    base_fail(TRI_USAGE, "ctl: unknown request %s%s%s %s", name, meant,
              *meant ? " There are" : "; there are", near.names);
    return NULL;
}

static tri_status read_argument(const struct word *w, int argc, char **argv, struct control *c) {
    const char *word = argc > 3 ? argv[3] : "", *is = strrchr(word, '=');
    const size_t name = w->argument && !is && *w->argument == 'H' ? strlen(word)
                        : is ? (size_t)(is - word) : 0;
    if (argc > 3 + !!w->argument)
        return base_fail(TRI_USAGE, "ctl: one word too many: '%s'", argv[3 + !!w->argument]);
    if (!w->argument) return TRI_OK;
    if (argc < 4)
        return base_fail(TRI_USAGE, "ctl: %s lacks its %s: %s %s", w->name,
                         *w->argument == 'H' ? "host" : "number", w->name, w->argument);
    if (name >= HOSTS_NAME) return base_fail(TRI_USAGE, "ctl: %s is no host's name", word);
    base_format(c->host, sizeof c->host, "%.*s", (int)name, word);
    if (*w->argument == 'H') return TRI_OK;
    char *end;
    const char *digits = is ? is + 1 : word;
    long n = strtol(digits, &end, 10);
    if (end == digits || *end || n < -INT_MAX || n > INT_MAX || (is && !name))
        return base_fail(TRI_USAGE, "ctl: %s %s: expected the number of workers", w->name, word);
    c->number = (int)n;
    return TRI_OK;
}

/* ---- sending it and waiting ---- */

static enum outcome await(struct control *c, const struct word *w, double timeout) {
    for (;;) {
        look_at(&c->look, &c->now);
        text_free(c->report);
        enum outcome o = w->look(c);
        if (o != WAITS || (double)(base_now() - c->asked) > timeout * 1e9) return o;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_AGAIN * 1000000L}, NULL);
    }
}

static int control(struct control *c, const struct word *w, double timeout) {
    c->until = base_now() + (int64_t)(timeout * 1e9);
    look_at(&c->look, &c->now);
    c->from = c->now.committed;
    c->asked = base_now();
    enum outcome o = over(c) ? ended(c) : w->ask(c);
    if (o == WAITS) o = await(c, w, timeout);
    const char *report = c->report->data ? c->report->data : "";
    if (o == DONE) {
        printf("%s%s", report, *report && report[strlen(report) - 1] == '\n' ? "" : "\n");
        return TRI_OK;
    }
    if (o == WAITS)
        base_fail(TRI_FAILED, "%s is requested, but not done after %g s: %s", w->name, timeout,
                  report);
    else
        base_fail(TRI_FAILED, "%s", report);
    return cli_fail();
}

struct own {
    double timeout;
};

static const struct option_row rows[] = {
    {"--timeout", "S", "fail if the request is not done after S seconds (default: 30)",
     OWN(option_seconds, timeout)},
    {0},
};

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {.timeout = 30};
    const struct option_set sets[] = {{rows, &own}, {0}};
    if (options_take(sets, USE_ALL, false, &argc, argv)) return cli_fail();
    if (argc < 3) {
        base_fail(TRI_USAGE, "ctl lacks its %s: trireme %s %s", argc < 2 ? "DIR" : "request",
                  c->name, c->arguments);
        return cli_fail();
    }
    const struct word *w = find_word(argv[2], argv[1]);
    struct text report = {0};
    struct control control_of = {.report = &report};
    if (!w || read_argument(w, argc, argv, &control_of)) return cli_fail();
    if (look_open(argv[1], true, &control_of.look)) return cli_fail();
    int code = control(&control_of, w, own.timeout);
    look_close(&control_of.look);
    text_free(&report);
    return code;
}

static void describe(struct text *out) {
    text_add(out, "\nDIR is the directory of the run. The requests are\n");
    for (size_t i = 0; i < COUNT(words); i++) 
        options_item(words[i].name, words[i].argument, words[i].help, out);
}

const struct command command_ctl = {
    .name = "ctl",
    .arguments = "DIR pause|resume|stop|scale N|checkpoint|hosts|evict HOST [--timeout S]",
    .help = "pause, resume, stop, scale or checkpoint a run, and wait until it is done",
    .rows = rows,
    .more = describe,
    .run = run,
};
