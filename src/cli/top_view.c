/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top_view.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "observe/files.h"
#include "observe/progress.h"
#include "observe/series.h"

/* ---- a page ---- */

enum style { PLAIN, BOLD, DIM, GREEN, YELLOW, RED, CYAN, TITLE, STYLES };

struct pen {
    const struct top_page *page;
    struct text *out;
    int column, line;
};

static void set_style(struct pen *p, enum style s) {
    static const char *const code[STYLES] = {"0", "1", "2", "32", "33", "1;31", "36", "7"};
    if (p->page->colours) text_add(p->out, "\033[%sm", code[s]);
}

/* In UTF-8, bytes that begin with the bits 10 continue a character and take no column. */
static bool begins(char c) { return (c & 0xc0) != 0x80; }

static int width_of(const char *text) {
    int n = 0;
    for (; *text; text++) n += begins(*text);
    return n;
}

/* What comes after n characters. */
static const char *after(const char *text, int n) {
    while (*text && (!begins(*text) || n-- > 0)) text++;
    return text;
}

static void put(struct pen *p, enum style s, const char *fmt, ...) TRI_PRINTF(3, 4);
static void put(struct pen *p, enum style s, const char *fmt, ...) {
    char text[2048];
    va_list args;
    va_start(args, fmt);
    base_format_list(text, sizeof text, fmt, args);
    va_end(args);
    size_t n = 0;
    for (; text[n]; n++)
        if (begins(text[n]) && p->column++ >= p->page->columns) break;
    if (s) set_style(p, s);
    text_add_bytes(p->out, text, n);
    if (s) set_style(p, PLAIN);
}

/* The rest of a full line must not be erased: the cursor is still on its last character. */
static void end_line(struct pen *p) {
    const struct top_page *page = p->page;
    bool last = page->rows && ++p->line == page->rows;
    if (page->terminal && p->column < page->columns) text_add(p->out, "\033[K");
    if (!last) text_add(p->out, page->terminal ? "\r\n" : "\n");
    p->column = 0;
}

/* Puts two blanks and the text, or begins a line with it. */
static void piece(struct pen *p, enum style s, const char *fmt, ...) TRI_PRINTF(3, 4);
static void piece(struct pen *p, enum style s, const char *fmt, ...) {
    char text[512];
    va_list args;
    va_start(args, fmt);
    base_format_list(text, sizeof text, fmt, args);
    va_end(args);
    if (p->column && p->column + 2 + width_of(text) > p->page->columns) end_line(p);
    put(p, s, "%s%s", p->column ? "  " : "", text);
}

/* At most `room` characters of a long text: its begin, or its end. */
static void put_within(struct pen *p, enum style s, const char *text, int room, bool end) {
    int n = width_of(text), keep = room > 3 ? room - 3 : 0;
    if (n <= room)
        put(p, s, "%s", text);
    else if (end)
        put(p, s, "...%s", after(text, n - keep));
    else
        put(p, s, "%.*s...", (int)(after(text, keep) - text), text);
}

static bool fits(const struct pen *p, int lines) {
    return !p->page->rows || p->line + lines <= p->page->rows;
}

/* ---- the head of the page ---- */

static enum style style_of(enum look_state s) {
    static const enum style style[LOOK_STATES] = {
        [LOOK_STARTING] = CYAN,  [LOOK_RUNNING] = GREEN, [LOOK_PAUSING] = YELLOW,
        [LOOK_PAUSED] = YELLOW,  [LOOK_STOPPING] = YELLOW, [LOOK_FINISHED] = GREEN,
        [LOOK_STOPPED] = YELLOW, [LOOK_FAILED] = RED,    [LOOK_LOST] = RED};
    return style[s];
}

#define LEAST_TITLE 8
#define STILL 4 /* an open step that takes so many times as long as others: no time left is known */

/* A line of what a host sends and receives; in brackets, the share of
 * what it is in memory. */
static void draw_wire(struct pen *p, const struct pace_wire *w) {
    char part[32] = "";
    if (!(w->sent + w->received > 0)) return;
    if (w->sent < w->sent_whole)
        base_format(part, sizeof part, " (%.0f %%)", 100 * w->sent / w->sent_whole);
    piece(p, PLAIN, "sends %.1f MB/s%s", 1e-6 * w->sent, part);
    piece(p, PLAIN, "receives %.1f MB/s", 1e-6 * w->received);
    end_line(p);
}

/* The run's name is shortened before all else; on a narrow page it has a line of its own. */
static void draw_title(struct pen *p, const struct pace *pace) {
    const struct look_view *v = pace_latest(pace);
    char elapsed[DURATION_TEXT] = "", workers[128], died[32] = "";
    const char *state = look_state_name(v->state);
    int n = base_format(workers, sizeof workers, "%d worker(s)", v->ranks);
    bool scales = v->wanted && v->wanted != v->ranks;
    if (v->began) progress_duration((double)(v->now - v->began) / 1e9, elapsed);
    if (scales) n += sprintf(workers + n, " (%d wanted)", v->wanted);
    if (v->spares) n += base_format(workers + n, 64, " + %d spare(s)", v->spares);
    if (v->threads > 1) sprintf(workers + n, " x %d threads", v->threads);
    if (v->deaths) snprintf(died, sizeof died, "%u died", v->deaths);
    int room = p->page->columns - 2 - width_of(state) - 2 - width_of(workers);
    room -= (*elapsed ? 2 + width_of(elapsed) : 0) + (*died ? 2 + width_of(died) : 0);
    bool apart = room < LEAST_TITLE && room < width_of(v->title);
    put_within(p, BOLD, v->title, apart ? p->page->columns : room, false);
    if (apart) end_line(p);
    piece(p, style_of(v->state), "%s", state);
    if (*elapsed) piece(p, PLAIN, "%s", elapsed);
    piece(p, scales ? YELLOW : PLAIN, "%s", workers);
    if (*died) piece(p, YELLOW, "%s", died);
    end_line(p);
    put_within(p, DIM, *v->out ? v->out : "no directory", p->page->columns, true);
    end_line(p);
    if (!v->hosts.n) return;
    piece(p, PLAIN, "host %s", v->hosts.self);
    piece(p, PLAIN, "teller %s", v->hosts.epoch ? v->hosts.teller : "-");
    piece(p, v->hosts.taking < v->hosts.n ? YELLOW : PLAIN, "%d of %d hosts take part",
          v->hosts.taking, v->hosts.n);
    piece(p, PLAIN, "epoch %u", v->hosts.epoch);
    end_line(p);
    const struct pace_wire wire = pace_wire(pace);
    draw_wire(p, &wire);
}

#define MOST_BARS 256
#define WIDE 100 /* columns of a page without limit */

/* Columns for bars, if n more follow. */
static int bars(const struct pen *p, int n) {
    int page = p->page->columns == INT_MAX ? WIDE : p->page->columns, room = page - p->column - n;
    return room < 0 ? 0 : room > MOST_BARS ? MOST_BARS : room;
}

static void put_times(struct pen *p, enum style s, const char *what, int n) {
    struct text t = {0};
    for (int i = 0; i < n; i++) text_add(&t, "%s", what);
    if (t.data) put(p, s, "%s", t.data);
    text_free(&t);
}

/* A run that stands still has no rate, and the time left does not grow with the open step. */
static void draw_progress(struct pen *p, const struct top *t) {
    const struct look_view *v = pace_latest(&t->pace);
    double part = v->total ? (double)v->committed / (double)v->total : 0;
    double each = pace_step(&t->pace);
    double open = (double)(v->now - v->ended) / 1e9;
    double r = v->state == LOOK_PAUSED || !(each > 0) ? 0 : 1 / fmax(each, open - each);
    char left[DURATION_TEXT] = "-";
    if (v->state == LOOK_RUNNING && each > 0 && open < STILL * each + 10)
        progress_duration((double)(v->total - v->committed) * each - fmin(open, each), left);
    put(p, PLAIN, "step %llu/%llu", (unsigned long long)v->committed,
        (unsigned long long)v->total);
    int width = bars(p, 26), full = (int)(part * width);
    if (width) put(p, PLAIN, "  ");
    put_times(p, GREEN, p->page->unicode ? "\u2588" : "#", full);
    put_times(p, DIM, p->page->unicode ? "\u2591" : ".", width - full);
    piece(p, PLAIN, "%5.1f%%", 100 * part);
    if (v->state < LOOK_FINISHED) piece(p, PLAIN, "ETA %s", left);
    end_line(p);
    double samples = r * (double)v->batch;
    piece(p, PLAIN, "%.*f samples/s", samples < 100 ? 1 : 0, samples);
    piece(p, PLAIN, "%.*f steps/s", r < 10 ? 2 : r < 100 ? 1 : 0, r);
    piece(p, PLAIN, "batch %lld in %d lane(s)", (long long)v->batch, v->lanes);
    if (v->stages > 1) put(p, PLAIN, ", %d stages", v->stages);
    end_line(p);
}

static void draw_bars(struct pen *p, const double bar[], int n, double least, double most) {
    static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const marks[] = {"_", ".", "-", "~", "=", "+", "*", "#"};
    struct text t = {0};
    for (int i = 0; i < n; i++) {
        double high = most > least ? (bar[i] - least) / (most - least) : 0;
        int level = isnan(bar[i]) ? -1 : (int)(high * 7.999);
        text_add(&t, "%s", level < 0 ? " " : p->page->unicode ? blocks[level] : marks[level]);
    }
    if (t.data) put(p, CYAN, "%s", t.data);
    text_free(&t);
}

static void draw_loss(struct pen *p, const struct top *t) {
    const struct look_view *v = pace_latest(&t->pace);
    double bar[MOST_BARS], least, most;
    char span[DURATION_TEXT];
    if (isnan(v->loss))
        put(p, PLAIN, "loss -");
    else
        put(p, PLAIN, "loss %#.4g", v->loss);
    int width = bars(p, 32);
    double seconds = recent_bars(&t->loss, (double)v->now / 1e9, width, bar, &least, &most);
    if (seconds > 0 && width) {
        put(p, PLAIN, "  ");
        draw_bars(p, bar, width, least, most);
        piece(p, DIM, "%.4g to %.4g in %s", least, most, progress_duration(seconds, span));
    }
    end_line(p);
}

/* ---- cells ---- */

#define CELL 256

static void with_unit(double x, double step, const char *units, char *text) {
    int u = 0;
    for (; x >= 999.5 && units[u]; u++) x /= step;
    if (!u)
        snprintf(text, CELL, "%.0f", x);
    else
        snprintf(text, CELL, "%.*f%c", x < 9.995 ? 2 : x < 99.95 ? 1 : 0, x, units[u - 1]);
}

static void count(int64_t n, char *text) {
    if (n < 100000)
        snprintf(text, CELL, "%d", (int)n);
    else
        with_unit((double)n, 1000, "kMGTPE", text);
}

static void time_of(int64_t ns, char *text) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    double x = (double)ns;
    int u = 0;
    for (; u < 3 && x >= 999.5; u++) x /= 1000;
    if (ns <= 0)
        snprintf(text, CELL, "-");
    else
        snprintf(text, CELL, "%.*f%s", !u || x >= 99.95 ? 0 : x < 9.995 ? 2 : 1, x, units[u]);
}

struct row {
    const struct pace *pace;
    struct look *look;
    const struct look_view *v;
    const struct look_worker *w;
    int place;
};

/* A cell's text, and its style. */
#define FILL(name) static enum style name(const struct row *r, char *cell)

FILL(place) { return snprintf(cell, CELL, "%d", r->place), PLAIN; }

FILL(rank) {
    bool reports = r->place == r->v->reporter;
    if (r->w->rank < 0) snprintf(cell, CELL, "spare ");
    else snprintf(cell, CELL, "%d%c", r->w->rank, reports ? '*' : ' ');
    return reports ? GREEN : PLAIN;
}

FILL(seats) {
    const struct crew_seats *s = &r->w->seats;
    snprintf(cell, CELL, !r->w->seated ? "-" : s->first < s->last ? "%d:%d-%d" : "%d:%d",
             s->replica, s->first, s->last);
    return PLAIN;
}

FILL(turn) {
    return snprintf(cell, CELL, r->w->turn ? "%d/%d" : "-", r->w->turn, r->w->turns), PLAIN;
}

static enum style percent(double part, char *cell) {
    if (isnan(part)) snprintf(cell, CELL, "-");
    else snprintf(cell, CELL, "%.0f", 100 * part);
    return PLAIN;
}

FILL(others) {
    double all = 0;
    for (enum spent_group g = 0; g < SPENT_GROUPS; g++)
        if (g < SPENT_COMPUTES || g == SPENT_BESIDE) all += pace_group(r->pace, r->place, g);
    return percent(all, cell);
}

#define SHOWN 0.01 /* of its time: a cause below that is not shown */
#define CAUSES 2   /* the largest */

FILL(causes) {
    struct text all = {0};
    double part[SPENTS + 1]; /* the last one: it had no core */
    for (enum spent k = 0; k < SPENTS; k++)
        part[k] = spent_rows[k].group == SPENT_WAITS ? pace_spent(r->pace, r->place, k) : 0;
    part[SPENTS] = pace_no_core(r->pace, r->place);
    for (int n = 0; n < CAUSES; n++) {
        int most = 0;
        for (int k = 1; k <= SPENTS; k++)
            if (part[k] > part[most]) most = k;
        if (!(part[most] > SHOWN)) break;
        text_add(&all, "%s%s %.0f", n ? " " : "",
                 most < SPENTS ? spent_rows[most].name : "no core", 100 * part[most]);
        part[most] = 0;
    }
    snprintf(cell, CELL, "%s", all.data ? all.data : "");
    text_free(&all);
    return YELLOW;
}

#define LONG 1500000000 /* nanoseconds after which the duration of an activity is shown */

FILL(at) {
    const struct look_worker *w = r->w;
    bool rests = w->state == CREW_EMPTY || w->at == CREW_AT_WAIT;
    bool elsewhere = w->step != r->v->opened && w->rank >= 0 && !rests;
    bool lasts = w->since && !rests && r->v->now - w->since > LONG && r->v->state != LOOK_PAUSED;
    struct text what = {0};
    if (w->stopped) text_add(&what, "stopped, ");
    if (elsewhere) text_add(&what, "@%u ", w->step);
    if (w->leaves) text_add(&what, "leaves, ");
    if (lasts) text_add(&what, "%llds ", (long long)(r->v->now - w->since) / 1000000000);
    enum style s = what.size ? YELLOW : rests ? DIM : PLAIN;
    look_describe(r->look, w, &what);
    snprintf(cell, CELL, "%s", what.data ? what.data : "");
    text_free(&what);
    return s;
}

/* ---- columns ---- */

enum kind { TEXT, INT, COUNT_OF, TIME, BYTES, PART, CALL };
enum when { ALWAYS, SEATS, STAGES, NO_STAGES };

#define IN(field) offsetof(struct look_worker, field)

static const struct column {
    const char *title;
    int width;        /* with the blank before it */
    int dropped;      /* a narrow page drops the lowest number first; 0: it stays */
    enum when when;
    enum style style; /* if it is not 0 */
    enum kind kind;
    size_t from;      /* in the worker; or the part */
    enum style (*call)(const struct row *r, char cell[CELL]);
    const char *help;
} columns[] = {
    {"#", 3, 0, ALWAYS, 0, CALL, 0, place, "its place"},
    {"RANK ", 7, 0, ALWAYS, 0, CALL, 0, rank, "its rank in a step, or spare; * marks the reporter"},
    {"SEATS", 8, 12, SEATS, 0, CALL, 0, seats,
     "with a mesh, its replica and the seats it computes there"},
    {"PID", 8, 8, ALWAYS, 0, INT, IN(pid), NULL, "its process"},
    {"CMP", 4, 15, ALWAYS, GREEN, PART, SPENT_COMPUTES, NULL,
     "percentage of the last seconds in which its threads computed lanes, also in audits"},
    {"WAI", 4, 13, ALWAYS, YELLOW, PART, SPENT_WAITS, NULL, "the same, waited"},
    {"RED", 4, 11, ALWAYS, CYAN, PART, SPENT_SUMS, NULL,
     "the same, summed gradients and updated parameters"},
    {"DAT", 4, 9, ALWAYS, 0, PART, SPENT_READS, NULL, "the same, read samples"},
    {"OTH", 4, 5, ALWAYS, 0, CALL, 0, others,
     "the rest: the program's own code, evaluation, saving, what is between steps"},
    {"WAITS FOR", 24, 4, ALWAYS, 0, CALL, 0, causes,
     "what it waited for in more than 1 % of the last seconds, and how much: samples, lanes, sums, "
     "slots, legs, seats or tasks of others, the opening of the next step, saves, its worker's "
     "other threads, hosts, pause; no core: it was ready to run, and others had its core"},
    {"LANE", 7, 3, NO_STAGES, 0, TIME, IN(lane_time), NULL, "mean time of a lane on a thread"},
    {"STAGE", 6, 14, STAGES, 0, TEXT, IN(stages), NULL, "with stages, those that it serves"},
    {"TURN", 8, 10, STAGES, 0, CALL, 0, turn,
     "with stages, the place of its leg among the turns of a step in the schedule"},
    {"DONE", 6, 0, ALWAYS, 0, COUNT_OF, IN(lanes_done), NULL,
     "lanes (with stages, legs) that it has done or, with a mesh, taken part in"},
    {"LOST", 5, 6, ALWAYS, YELLOW, COUNT_OF, IN(lanes_lost), NULL,
     "lanes that it did after another worker had done them"},
    {"PEAK", 6, 2, ALWAYS, 0, BYTES, IN(peak), NULL, "its largest memory"},
    {"CORE", 5, 1, ALWAYS, 0, INT, IN(core), NULL, "where its first thread has run last"},
    {"DIED", 5, 7, ALWAYS, YELLOW, INT, IN(restarts), NULL, "deaths at this place"},
    {"STEP", 9, 4, ALWAYS, 0, INT, IN(step), NULL, "the step it is in"},
    {"AT", 1, 0, ALWAYS, 0, CALL, 0, at,
     "what its first thread does, with lane, leg and operator; for how long, from 1.5 s on; @STEP "
     "if another step is open; stopped, by a signal; leaves, after ctl scale"},
};

#define AT_LEAST 24 /* columns that AT needs */

static bool has(const struct look_view *v, enum when when) {
    return when == SEATS ? v->replicas > 0 : when == STAGES ? v->stages > 1
           : when == ALWAYS || v->stages <= 1;
}

static void choose_columns(const struct look_view *v, int width, bool shown[]) {
    int total = AT_LEAST;
    for (size_t i = 0; i < COUNT(columns); i++)
        total += (shown[i] = has(v, columns[i].when)) ? columns[i].width : 0;
    for (int drop = 1; drop < (int)COUNT(columns); drop++)
        for (size_t i = 0; i < COUNT(columns); i++)
            if (shown[i] && columns[i].dropped == drop && total > width) {
                shown[i] = false;
                total -= columns[i].width;
            }
}

static enum style fill(const struct column *c, const struct row *r, char cell[CELL]) {
    const void *from = (const char *)r->w + c->from;
    int64_t n = c->kind == INT ? *(const int *)from : 0;
    if (c->kind == TIME || c->kind == BYTES || c->kind == COUNT_OF) n = *(const int64_t *)from;
    if (c->kind == TEXT) snprintf(cell, CELL, "%s", *(const char *)from ? (const char *)from : "-");
    if (c->kind == PART)
        percent(pace_group(r->pace, r->place, (enum spent_group)c->from), cell);
    if (c->kind == INT) snprintf(cell, CELL, "%d", (int)n);
    if (c->kind == COUNT_OF) count(n, cell);
    if (c->kind == TIME) time_of(n, cell);
    if (c->kind == BYTES) with_unit((double)n, 1024, "KMGT", cell);
    return c->kind == CALL ? c->call(r, cell) : c->kind == PART || n ? c->style : PLAIN;
}

static void draw_worker(struct pen *p, struct top *t, const bool shown[], int place) {
    const struct look_view *v = pace_latest(&t->pace);
    struct row r = {.pace = &t->pace, .look = &t->pace.look, .v = v, .w = &v->worker[place],
                    .place = place};
    for (size_t i = 0; i < COUNT(columns); i++) {
        char cell[CELL];
        if (!shown[i]) continue;
        enum style s = fill(&columns[i], &r, cell);
        bool last = i + 1 == COUNT(columns);
        put(p, PLAIN, "%*s", columns[i].width - (last ? 0 : width_of(cell)), "");
        put(p, s, "%s", cell);
    }
    end_line(p);
}

static int count_shown(const struct look_view *v) {
    int n = 0;
    for (int i = 0; i < v->places; i++) n += look_worker_shown(&v->worker[i]);
    return n;
}

static void draw_workers(struct pen *p, struct top *t) {
    const struct look_view *v = pace_latest(&t->pace);
    int left = count_shown(v), width = p->page->columns;
    bool shown[COUNT(columns)];
    struct text head = {0};
    choose_columns(v, width, shown);
    for (size_t i = 0; i + 1 < COUNT(columns); i++)
        if (shown[i]) text_add(&head, "%*s", columns[i].width, columns[i].title);
    text_add(&head, " AT");
    put(p, TITLE, "%-*s", p->page->colours && width < 500 ? width : 0, head.data ? head.data : "");
    text_free(&head);
    end_line(p);
    for (int i = 0; i < v->places; i++) {
        if (!look_worker_shown(&v->worker[i])) continue;
        if (!fits(p, left > 1 ? 2 : 1)) {
            put(p, DIM, "and %d more", left);
            end_line(p);
            return;
        }
        draw_worker(p, t, shown, i);
        left--;
    }
}

/* ---- workers of other hosts ---- */

#define LATEST 40 /* frames of workers.series, 2 s */

struct other {
    struct series s;
    double covers, group[CREW_MOST_WORKERS][SPENT_GROUPS];
    struct pace_wire wire;
};

/* What each group of kinds has taken of the last frames. */
static void add_frames(struct other *o, int places) {
    int column[SPENTS];
    const int sent = series_column(&o->s, "sent-kib"),
              received = series_column(&o->s, "received-kib"),
              whole = series_column(&o->s, "sent-whole-kib");
    for (int k = 0; k < SPENTS; k++) column[k] = series_column(&o->s, spent_rows[k].name);
    for (int64_t i = o->s.n > LATEST ? o->s.n - LATEST : 0; i < o->s.n; i++) {
        if (!series_read(&o->s, i)) continue;
        const double covers = (double)o->s.frame.covers;
        o->covers += covers;
        o->wire.sent += 1024 * series_value(&o->s, 0, sent);
        o->wire.received += 1024 * series_value(&o->s, 0, received);
        o->wire.sent_whole += 1024 * series_value(&o->s, 0, whole);
        for (int p = 0; p < places; p++)
            for (int k = 0; k < SPENTS; k++)
                o->group[p][spent_rows[k].group] += covers * series_value(&o->s, p, column[k]);
    }
}

static void draw_other(struct pen *p, struct other *o, const char *host) {
    static const struct {
        const char *title;
        enum spent_group group;
        enum style style;
    } parts[] = {{"CMP", SPENT_COMPUTES, GREEN}, {"WAI", SPENT_WAITS, YELLOW},
                 {"RED", SPENT_SUMS, CYAN}, {"DAT", SPENT_READS, PLAIN}};
    const int most = (int)COUNT(o->group),
              places = o->s.layout.places < most ? o->s.layout.places : most;
    const int peak = series_column(&o->s, "memory-kib");
    add_frames(o, places);
    piece(p, TITLE, "host %s", host);
    piece(p, PLAIN, "step %lld", o->s.n ? (long long)o->s.frame.step : 0);
    end_line(p);
    const double passed = 1e-9 * o->covers;
    const struct pace_wire wire = {o->wire.sent / passed, o->wire.received / passed,
                                   o->wire.sent_whole / passed};
    if (passed > 0 && fits(p, 1)) draw_wire(p, &wire);
    for (int i = 0; i < places && fits(p, 1); i++) {
        char size[CELL];
        const double memory = series_value(&o->s, i, peak);
        if (!(memory > 0)) continue; /* nobody is there */
        put(p, PLAIN, "%3d ", i);
        for (size_t k = 0; k < COUNT(parts); k++)
            piece(p, parts[k].style, "%s %.0f", parts[k].title,
                  o->covers > 0 ? 100 * o->group[i][parts[k].group] / o->covers : 0);
        with_unit(1024 * memory, 1024, "KMGT", size);
        piece(p, PLAIN, "PEAK %s", size);
        end_line(p);
    }
}

/* From their files, if the hosts share the run's directory. */
static void draw_hosts(struct pen *p, const struct look_view *v) {
    struct run_folders f = {0};
    struct other *o = malloc(sizeof *o);
    char directory[PATH_MAX], path[PATH_MAX + 32];
    base_format(directory, sizeof directory, "%s", v->out);
    char *below = strstr(directory, "/hosts/");
    if (below) *below = 0;
    const bool good = o && below && !run_folders(directory, &f);
    for (size_t i = 0; good && i < f.n && fits(p, 3); i++) {
        if (!*f.of[i].host || !strcmp(f.of[i].host, v->hosts.self)) continue;
        *o = (struct other){.covers = 0};
        base_format(path, sizeof path, "%s/workers.series", f.of[i].path);
        if (series_open(&o->s, path)) continue;
        end_line(p);
        draw_other(p, o, f.of[i].host);
        series_close(&o->s);
    }
    run_folders_free(&f);
    free(o);
}

void top_describe(struct text *out) {
    for (size_t i = 0; i < COUNT(columns); i++)
        options_item(columns[i].title, NULL, columns[i].help, out);
}

void top_draw(struct top *t, const struct top_page *page, struct text *out) {
    const struct look_view *v = pace_latest(&t->pace);
    struct pen p = {.page = page, .out = out};
    if (page->terminal) text_add(out, "\033[H");
    draw_title(&p, &t->pace);
    if (fits(&p, 2)) draw_progress(&p, t);
    if (fits(&p, 1)) draw_loss(&p, t);
    if (*v->failure && fits(&p, 1)) {
        put(&p, RED, "%s", v->failure);
        end_line(&p);
    }
    if (fits(&p, 3)) {
        end_line(&p);
        draw_workers(&p, t);
    }
    if (v->hosts.n) draw_hosts(&p, v);
    if (page->terminal && fits(&p, 2)) {
        end_line(&p);
        put(&p, DIM, "q quits; * reporter; CMP to OTH: %% of the time; trireme top --help");
        end_line(&p);
    }
    if (page->terminal) text_add(out, "\033[J");
}
