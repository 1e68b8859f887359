/* SPDX-License-Identifier: Apache-2.0
 * trireme ctl: asks a run for something, by the words in its head that are there for it, and waits until
 * it has come about. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/nearest.h"
#include "cli/cli.h"
#include "launch/look.h"

#define LOOK_AGAIN 10 /* milliseconds */
#define STILL 1.0     /* seconds after which nothing more can be on its way */

struct control {
    struct look look;
    struct look_view now;
    int number;      /* of scale */
    int64_t asked;   /* when; nanoseconds */
    uint64_t from;   /* steps that were done then */
    uint32_t asked_for; /* the number of the wish for a checkpoint */
    struct text *said;
};

/* DONE and FAILED have said how in `said`; WAITS, what for. */
enum outcome { WAITS, DONE, FAILED };

struct word {
    const char *name, *argument, *help;
    /* Asks, unless that is needless (DONE) or impossible (FAILED). */
    enum outcome (*ask)(struct control *c);
    enum outcome (*look)(struct control *c);
};

static void after_step(struct control *c, const char *what) {
    unsigned long long n = c->now.committed;
    if (n)
        text_add(c->said, "%s after step %llu", what, n);
    else
        text_add(c->said, "%s before the first step", what);
}

static enum outcome ended(struct control *c) {
    after_step(c, "the run has ended meanwhile,");
    return FAILED;
}

static bool over(const struct control *c) { return c->now.state >= LOOK_FINISHED; }

/* Who keeps the open step from its end, or the next one from being opened. */
static void tell_who(struct control *c) {
    const struct look_view *v = &c->now;
    bool open = v->opened > v->committed;
    for (int i = 0; i < v->places; i++) {
        const struct look_worker *w = &v->worker[i];
        if (!look_worker_shown(w) || w->at == CREW_AT_WAIT || (!open && i != v->reporter)) continue;
        text_add(c->said, "; worker %d (pid %d): ", i, w->pid);
        look_describe(&c->look, w, c->said);
    }
}

/* ---- pause ---- */

static enum outcome ask_pause(struct control *c) {
    struct crew_head *h = c->look.head;
    if (c->now.state == LOOK_STOPPING) {
        text_add(c->said, "the run is stopping; it cannot be paused");
        return FAILED;
    }
    if (c->now.state == LOOK_PAUSED) {
        after_step(c, "it is paused already,");
        return DONE;
    }
    atomic_store(&h->paused, 1);
    crew_notify(h);
    return WAITS;
}

/* The reporter may have found the word unset just before, and open one more step. Once it has gone to wait
 * since then, it has seen it; so what it waits for is read first, the steps afterwards. */
static enum outcome look_pause(struct control *c) {
    const struct look_view *v = &c->now;
    const struct look_worker *w = &v->worker[v->reporter >= 0 && v->reporter < v->places ? v->reporter : 0];
    bool seen = w->at == CREW_AT_WAIT && w->since > c->asked;
    bool late = (double)(v->now - c->asked) > STILL * 1e9;
    if (over(c)) return ended(c);
    const struct crew_head *h = c->look.head;
    if (!atomic_load(&h->paused)) {
        text_add(c->said, "it was to be paused, and has been resumed meanwhile");
        return FAILED;
    }
    uint64_t committed = atomic_load(&h->committed), opened = atomic_load(&h->opened);
    bool last = opened && committed == v->total; /* the run ends instead */
    if (opened == committed && !last && (seen || late)) {
        c->now.committed = committed;
        after_step(c, "paused");
        return DONE;
    }
    if (opened > committed)
        text_add(c->said, "step %llu is being worked on", (unsigned long long)opened);
    else
        text_add(c->said, "no step is open");
    tell_who(c);
    return WAITS;
}

/* ---- resume ---- */

static enum outcome ask_resume(struct control *c) {
    struct crew_head *h = c->look.head;
    if (!atomic_load(&h->paused)) {
        after_step(c, "it is not paused; at work");
        return DONE;
    }
    atomic_store(&h->paused, 0);
    crew_notify(h);
    return WAITS;
}

static enum outcome look_resume(struct control *c) {
    const struct look_view *v = &c->now;
    if (v->opened > c->from) {
        text_add(c->said, "resumed with step %llu", (unsigned long long)c->from + 1);
        return DONE;
    }
    if (over(c)) return ended(c);
    text_add(c->said, "step %llu is not open yet", (unsigned long long)c->from + 1);
    tell_who(c);
    return WAITS;
}

/* ---- stop ---- */

static enum outcome ask_stop(struct control *c) {
    atomic_store(&c->look.head->stop, CREW_STOP_ASKED);
    crew_notify(c->look.head);
    return WAITS;
}

static enum outcome look_stop(struct control *c) {
    const struct look_view *v = &c->now;
    if (look_alive(&c->look)) {
        if (over(c))
            text_add(c->said, "the workers have not ended");
        else
            text_add(c->said, "step %llu is not done", (unsigned long long)v->opened);
        tell_who(c);
        return WAITS;
    }
    if (v->state == LOOK_FINISHED) {
        text_add(c->said, "it has finished all of its %llu steps", (unsigned long long)v->committed);
        return DONE;
    }
    after_step(c, v->state == LOOK_FAILED ? "failed" : "stopped");
    return DONE;
}

/* ---- scale ---- */

static enum outcome ask_scale(struct control *c) {
    struct crew_head *h = c->look.head;
    if (c->number < 1 || c->number > c->now.most) {
        text_add(c->said, "scale %d: this run can have 1 to %d workers, as its memory is laid out for (--most)", c->number, c->now.most);
        return FAILED;
    }
    if (c->now.state == LOOK_STOPPING) {
        text_add(c->said, "the run is stopping; it cannot be scaled");
        return FAILED;
    }
    atomic_store(&h->wanted, c->number);
    crew_notify(h);
    return WAITS;
}

/* Who is to come, or to go; returns how many. */
static int tell_movers(struct control *c) {
    const struct look_view *v = &c->now;
    int movers = 0, ranks = 0;
    for (int i = 0; i < v->places; i++) {
        const struct look_worker *w = &v->worker[i];
        bool leaves = w->leaves && w->state != CREW_EMPTY;
        bool ready = w->rank >= 0 && w->state == CREW_READY;
        ranks += ready;
        if (!leaves && (w->rank < 0 || ready)) continue;
        text_add(c->said, "%sworker %d (pid %d) has not %s yet", movers++ ? ", " : "", i, w->pid,
                 leaves ? "left" : "come to its first step");
    }
    if (!movers && ranks < v->ranks)
        text_add(c->said, "%d of %d workers are there", ranks, v->ranks);
    return movers + (ranks < v->ranks);
}

static enum outcome look_scale(struct control *c) {
    const struct look_view *v = &c->now;
    if (over(c)) return ended(c);
    if (v->wanted == c->number) {
        text_add(c->said, v->opened ? "the agent has not begun with it" : "the first step is not open yet");
        return WAITS;
    }
    if (v->ranks != c->number) {
        text_add(c->said, "somebody else has asked for %d workers", v->wanted ? v->wanted : v->ranks);
        return FAILED;
    }
    if (tell_movers(c)) return WAITS;
    text_add(c->said, "scaled to %d worker%s at step %llu", c->number, c->number == 1 ? "" : "s",
             (unsigned long long)v->committed);
    return DONE;
}

/* ---- checkpoint ---- */

static enum outcome ask_checkpoint(struct control *c) {
    struct crew_head *h = c->look.head;
    if (!atomic_load(&h->keeps)) {
        text_add(c->said, "this run has no directory for checkpoints: --ckpt DIR gives it one");
        return FAILED;
    }
    c->asked_for = atomic_fetch_add(&h->save_asked, 1) + 1;
    crew_notify(h);
    return WAITS;
}

static enum outcome look_checkpoint(struct control *c) {
    const struct crew_head *h = c->look.head;
    if ((int32_t)(atomic_load(&h->save_answered) - c->asked_for) < 0) {
        if (over(c)) return ended(c);
        text_add(c->said, "step %llu is not saved", (unsigned long long)c->now.opened);
        tell_who(c);
        return WAITS;
    }
    if (*h->save_error) {
        text_add(c->said, "step %llu could not be saved: %s", (unsigned long long)atomic_load(&h->saved), h->save_error);
        return FAILED;
    }
    text_add(c->said, "step %llu is saved", (unsigned long long)atomic_load(&h->saved));
    return DONE;
}

/* ---- the words ---- */

static const struct word words[] = {
    {"pause", NULL, "finishes the step and opens no other", ask_pause, look_pause},
    {"resume", NULL, "goes on", ask_resume, look_resume},
    {"stop", NULL, "finishes the step, then ends the run with exit code 3", ask_stop, look_stop},
    {"scale", "N", "to N workers, without changing the result", ask_scale, look_scale},
    {"checkpoint", NULL, "saves the step that is done (--ckpt)", ask_checkpoint, look_checkpoint},
};

static const struct word *find_word(const char *name) {
    for (size_t i = 0; i < COUNT(words); i++)
        if (!strcmp(words[i].name, name)) return &words[i];
    struct nearest near = {.wanted = name};
    struct text all = {0};
    for (size_t i = 0; i < COUNT(words); i++) {
        nearest_offer(&near, words[i].name);
        text_add(&all, "%s%s%s%s", i ? ", " : "", words[i].name, words[i].argument ? " " : "",
                 words[i].argument ? words[i].argument : "");
    }
    if (nearest_name(&near))
        base_fail(TRI_USAGE, "ctl: unknown word %s; do you mean %s? There are %s", name, near.name,
                  all.data ? all.data : "");
    else
        base_fail(TRI_USAGE, "ctl: unknown word %s; there are %s", name, all.data ? all.data : "");
    text_free(&all);
    return NULL;
}

static tri_status read_number(const struct word *w, int argc, char **argv, int *number) {
    if (argc > 3 + !!w->argument)
        return base_fail(TRI_USAGE, "ctl: one word too many: '%s'", argv[3 + !!w->argument]);
    if (!w->argument) return TRI_OK;
    if (argc < 4) return base_fail(TRI_USAGE, "ctl: %s lacks its number: %s N", w->name, w->name);
    char *end;
    long n = strtol(argv[3], &end, 10);
    if (end == argv[3] || *end || n < 1 || n > CREW_MOST_WORKERS)
        return base_fail(TRI_USAGE, "ctl: %s %s: a number from 1 to %d is needed", w->name, argv[3],
                         CREW_MOST_WORKERS);
    *number = (int)n;
    return TRI_OK;
}

/* ---- asking and waiting ---- */

static enum outcome await(struct control *c, const struct word *w, double timeout) {
    for (;;) {
        look_at(&c->look, &c->now);
        text_free(c->said);
        enum outcome o = w->look(c);
        if (o != WAITS || (double)(base_now() - c->asked) > timeout * 1e9) return o;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_AGAIN * 1000000L}, NULL);
    }
}

static int control(struct control *c, const struct word *w, double timeout) {
    look_at(&c->look, &c->now);
    c->from = c->now.committed;
    c->asked = base_now();
    enum outcome o = over(c) ? ended(c) : w->ask(c);
    if (o == WAITS) o = await(c, w, timeout);
    const char *said = c->said->data ? c->said->data : "";
    if (o == DONE) {
        printf("%s\n", said);
        return TRI_OK;
    }
    if (o == WAITS)
        base_fail(TRI_FAILED, "%s has been asked for, but after %g s: %s", w->name, timeout, said);
    else
        base_fail(TRI_FAILED, "%s", said);
    return cli_fail();
}

struct own {
    double timeout;
};

static const struct option_row rows[] = {
    {"--timeout", "S", "seconds to wait until it has come about (30)", option_seconds,
     offsetof(struct own, timeout), USE_ALL},
    {0},
};

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {.timeout = 30};
    const struct option_set sets[] = {{rows, &own}, {0}};
    if (options_take(sets, USE_ALL, false, &argc, argv)) return cli_fail();
    if (argc < 3) {
        base_fail(TRI_USAGE, "ctl lacks its %s: trireme %s %s", argc < 2 ? "DIR" : "word", c->name,
                  c->arguments);
        return cli_fail();
    }
    const struct word *w = find_word(argv[2]);
    struct text said = {0};
    struct control control_of = {.said = &said};
    if (!w || read_number(w, argc, argv, &control_of.number)) return cli_fail();
    if (look_open(argv[1], true, &control_of.look)) return cli_fail();
    int code = control(&control_of, w, own.timeout);
    look_close(&control_of.look);
    text_free(&said);
    return code;
}

static void describe(struct text *out) {
    text_add(out, "\nDIR is the run's directory. It can be asked to\n");
    for (size_t i = 0; i < COUNT(words); i++)
        text_add(out, "  %-10s %-2s %s\n", words[i].name, words[i].argument ? words[i].argument : "",
                 words[i].help);
}

const struct command command_ctl = {
    .name = "ctl",
    .arguments = "DIR pause|resume|stop|scale N|checkpoint [--timeout S]",
    .help = "pauses, resumes, stops or scales a run, and waits for it",
    .rows = rows,
    .more = describe,
    .run = run,
};
