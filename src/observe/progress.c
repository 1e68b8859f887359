/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/progress.h"

#include <math.h>
#include <sys/ioctl.h>

#define TERMINAL_INTERVAL 0.1
#define LINE_SHARE 0.05 /* interval between lines, as a share of the time so far */
#define LINE_SHORTEST 1.0
#define LINE_LONGEST 60.0

static int columns(FILE *to) {
    struct winsize size;
    return !ioctl(fileno(to), TIOCGWINSZ, &size) && size.ws_col > 20 ? size.ws_col : 80;
}

tri_status progress_open(struct progress *p, FILE *to, bool terminal, int n, int64_t done) {
    *p = (struct progress){.to = to, .terminal = terminal};
    if (terminal) p->width = columns(to);
    p->mark[p->marks++] = (struct progress_mark){.step = done};
    return averages_open(&p->since, n);
}

void progress_resume(struct progress *p, const struct observed *o, int64_t shown) {
    p->mark[0] = (struct progress_mark){o->now - o->aside, o->step, p->samples};
    p->printed = o->now;
    p->shown = shown;
}

void progress_begin(struct progress *p, const struct progress_head *h) {
    struct text line = {0};
    text_add(&line, "%s: %lld parameter(s), %lld lane(s) x ", h->model,
             (long long)h->parameters, (long long)h->lanes);
    int64_t least = h->batch / h->lanes, most = (h->batch + h->lanes - 1) / h->lanes;
    text_add(&line, "%lld", (long long)least);
    if (most > least) text_add(&line, "-%lld", (long long)most);
    text_add(&line, " sample%s of %s, ", most == 1 ? "" : "s", h->data);
    if (h->seats > 1) text_add(&line, "mesh of %lld seats, ", (long long)h->seats);
    if (h->stages) text_add(&line, "%d stage(s), ", h->stages);
    text_add(&line, "device %s, ", h->device);
    if (h->workers > 1) text_add(&line, "%d workers of ", h->workers);
    text_add(&line, "%d thread(s)", h->threads);
    if (!line.failed) fprintf(p->to, "%s\n", line.data);
    fflush(p->to);
    text_free(&line);
}

char *progress_duration(double seconds, char text[DURATION_TEXT]) {
    long long s = seconds < 8e15 ? llround(seconds) : 8000000000000000;
    long long minutes = s / 60 % 60, hours = s / 3600 % 24, days = s / 86400;
    s %= 60;
    if (days)
        snprintf(text, DURATION_TEXT, "%lldd %02lld:%02lld:%02lld", days, hours, minutes, s);
    else if (hours)
        snprintf(text, DURATION_TEXT, "%lld:%02lld:%02lld", hours, minutes, s);
    else
        snprintf(text, DURATION_TEXT, "%lld:%02lld", minutes, s);
    return text;
}

/* What was done since the oldest mark. Adds a mark if a second has passed since the latest one. */
static struct progress_mark done_lately(struct progress *p, const struct observed *o) {
    const struct progress_mark *first = &p->mark[0], *last = &p->mark[p->marks - 1];
    const double time = o->now - o->aside;
    const struct progress_mark done = {time - first->time, o->step - first->step,
                                       p->samples - first->samples};
    if (time - last->time < LINE_SHORTEST) return done;
    if (p->marks == PROGRESS_MARKS) {
        for (int i = 1; i < PROGRESS_MARKS; i++) p->mark[i - 1] = p->mark[i];
        p->marks--;
    }
    p->mark[p->marks++] = (struct progress_mark){time, o->step, p->samples};
    return done;
}

static void add_rate(const struct observed *o, struct progress_mark done, struct text *line) {
    if (!(done.time > 0) || !done.step) return;
    const double samples = (double)done.samples / done.time, rate = (double)done.step / done.time;
    text_add(line, "  %.*f samples/s", samples < 100 ? 1 : 0, samples);
    char left[DURATION_TEXT];
    if (o->step < o->total)
        text_add(line, "  ETA %s", progress_duration((double)(o->total - o->step) / rate, left));
}

static void print(struct progress *p, const struct observed *o) {
    struct text line = {0};
    text_add(&line, "step %lld/%lld", (long long)o->step, (long long)o->total);
    for (int i = 0; i < o->n; i++)
        text_add(&line, "  %s %#.4g", o->name[i], averages_mean(&p->since, i));
    add_rate(o, done_lately(p, o), &line);
    if (line.failed) /* skip this line */
        ;
    else if (p->terminal)
        fprintf(p->to, "\r%.*s\033[K", p->width - 1, line.data);
    else
        fprintf(p->to, "%s\n", line.data);
    fflush(p->to);
    p->line_open = p->terminal;
    text_free(&line);
}

static bool due(const struct progress *p, const struct observed *o) {
    if (o->step <= 1 || o->step == o->total) return true;
    double wait = TERMINAL_INTERVAL;
    if (!p->terminal) wait = fmin(fmax(LINE_SHARE * o->now, LINE_SHORTEST), LINE_LONGEST);
    return o->now - p->printed >= wait;
}

static void put(struct progress *p) {
    print(p, &p->last);
    p->printed = p->last.now;
    p->shown = p->last.step;
    averages_clear(&p->since);
}

void progress_step(struct progress *p, const struct observed *o) {
    averages_add(&p->since, o);
    if (o->step > p->mark[0].step) p->samples += o->samples; /* else progress_resume counted it */
    p->last = *o;
    if (due(p, o)) put(p);
}

void progress_note(struct progress *p, const char *line) {
    fprintf(p->to, p->line_open ? "\r%s\033[K\n" : "%s\n", line);
    fflush(p->to);
    p->line_open = false;
}

void progress_close(struct progress *p) {
    if (p->since.steps) put(p);
    if (p->line_open) fputc('\n', p->to);
    p->line_open = false;
    averages_close(&p->since);
}
