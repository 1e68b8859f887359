/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "observe/progress.h"

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

static void put(struct pen *p, enum style s, const char *fmt, ...) TRI_PRINTF(3, 4);
static void put(struct pen *p, enum style s, const char *fmt, ...) {
    char text[2048];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
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

static bool fits(const struct pen *p, int lines) {
    return !p->page->rows || p->line + lines <= p->page->rows;
}

/* ---- numbers in few columns ---- */

#define NUMBER 24

static const char *with_unit(double x, double step, const char *units, char text[NUMBER]) {
    int u = 0;
    for (; x >= 999.5 && units[u]; u++) x /= step;
    if (!u)
        snprintf(text, NUMBER, "%.0f", x);
    else
        snprintf(text, NUMBER, "%.*f%c", x < 9.995 ? 2 : x < 99.95 ? 1 : 0, x, units[u - 1]);
    return text;
}

static const char *count(uint64_t n, char text[NUMBER]) {
    if (n < 100000)
        snprintf(text, NUMBER, "%u", (unsigned)n);
    else
        with_unit((double)n, 1000, "kMGTPE", text);
    return text;
}

static const char *time_of(int64_t ns, char text[NUMBER]) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    double x = (double)ns;
    int u = 0;
    for (; u < 3 && x >= 999.5; u++) x /= 1000;
    if (ns <= 0)
        snprintf(text, NUMBER, "-");
    else
        snprintf(text, NUMBER, "%.*f%s", !u || x >= 99.95 ? 0 : x < 9.995 ? 2 : 1, x, units[u]);
    return text;
}

/* ---- rates over several views ---- */

static const struct look_view *latest(const struct top *t) {
    return &t->view[(t->looks - 1) % TOP_LOOKS];
}

/* The latest view that is at least this old, or the oldest one. */
static const struct look_view *look_before(const struct top *t, double seconds) {
    const struct look_view *v = latest(t);
    for (int i = t->looks - 1; i >= 0 && i > t->looks - TOP_LOOKS; i--) {
        v = &t->view[i % TOP_LOOKS];
        if ((double)(latest(t)->now - v->now) / 1e9 >= seconds) break;
    }
    return v;
}

#define WINDOW 1.8  /* seconds over which rates are taken; longer if fewer steps or lanes ended: */
#define FEW_STEPS 5
#define FEW_LANES 3

static double rate_since(const struct look_view *from, const struct look_view *to) {
    double passed = (double)(to->now - from->now) / 1e9;
    return passed > 0 ? (double)(to->committed - from->committed) / passed : 0;
}

/* Steps per second. If too few steps have ended recently, the rate since the start of the run, but
 * at most what the recent views allow: a run that stands still has no rate. */
static double rate(const struct top *t) {
    const struct look_view *v = latest(t);
    double most = INFINITY;
    for (double window = WINDOW; window < TOP_LOOKS; window *= 2) {
        const struct look_view *from = look_before(t, window);
        uint64_t steps = v->committed - from->committed;
        if (steps >= FEW_STEPS) return fmin(most, rate_since(from, v));
        double passed = (double)(v->now - from->now) / 1e9;
        if (passed > 0) most = fmin(most, (double)(steps + 1) / passed);
    }
    double all = v->began ? (double)(v->now - v->began) / 1e9 : 0;
    if (!(all > 0) || v->committed <= v->base) return 0;
    return fmin(most, (double)(v->committed - v->base) / all);
}

/* ---- the head of the page ---- */

static enum style style_of(enum look_state s) {
    static const enum style style[LOOK_STATES] = {
        [LOOK_STARTING] = CYAN,  [LOOK_RUNNING] = GREEN, [LOOK_PAUSING] = YELLOW,
        [LOOK_PAUSED] = YELLOW,  [LOOK_STOPPING] = YELLOW, [LOOK_FINISHED] = GREEN,
        [LOOK_STOPPED] = YELLOW, [LOOK_FAILED] = RED,    [LOOK_LOST] = RED};
    return style[s];
}

static void draw_title(struct pen *p, const struct look_view *v) {
    char elapsed[DURATION_TEXT] = "";
    put(p, BOLD, "%s", v->title);
    put(p, PLAIN, "  ");
    put(p, style_of(v->state), "%s", look_state_name(v->state));
    if (v->began)
        put(p, PLAIN, "  %s", progress_duration((double)(v->now - v->began) / 1e9, elapsed));
    put(p, PLAIN, "  %d worker%s", v->ranks, v->ranks == 1 ? "" : "s");
    if (v->wanted && v->wanted != v->ranks) put(p, YELLOW, " (%d wanted)", v->wanted);
    if (v->spares) put(p, PLAIN, " + %d spare%s", v->spares, v->spares == 1 ? "" : "s");
    if (v->threads > 1) put(p, PLAIN, " x %d threads", v->threads);
    if (v->deaths) put(p, YELLOW, "  %u died", v->deaths);
    end_line(p);
    /* A long path is cut at its beginning. */
    const char *out = *v->out ? v->out : "no directory";
    int n = (int)strlen(out), most = p->page->columns;
    if (n > most)
        put(p, DIM, "...%s", out + n - most + 3);
    else
        put(p, DIM, "%s", out);
    end_line(p);
}

#define MOST_BARS 256

static void put_times(struct pen *p, enum style s, const char *what, int n) {
    struct text t = {0};
    for (int i = 0; i < n; i++) text_add(&t, "%s", what);
    if (t.data) put(p, s, "%s", t.data);
    text_free(&t);
}

static void draw_progress(struct pen *p, const struct top *t) {
    const struct look_view *v = latest(t);
    double part = v->total ? (double)v->committed / (double)v->total : 0;
    double r = v->state == LOOK_PAUSED ? 0 : rate(t);
    char left[DURATION_TEXT] = "-";
    bool goes = v->state == LOOK_RUNNING && r > 0;
    if (goes) progress_duration((double)(v->total - v->committed) / r, left);
    put(p, PLAIN, "step %llu/%llu  ", (unsigned long long)v->committed,
        (unsigned long long)v->total);
    int width = p->page->columns - p->column - 24, full = (int)(part * width);
    if (width > MOST_BARS) width = MOST_BARS;
    put_times(p, GREEN, p->page->unicode ? "\u2588" : "#", full);
    put_times(p, DIM, p->page->unicode ? "\u2591" : ".", width - full);
    put(p, PLAIN, "%s%5.1f%%", width > 0 ? "  " : "", 100 * part);
    if (v->state < LOOK_FINISHED) put(p, PLAIN, "  ETA %s", left);
    end_line(p);
    double samples = r * (double)v->batch;
    put(p, PLAIN, "%.*f samples/s  %.*f steps/s  batch %lld in %d lane%s", samples < 100 ? 1 : 0,
        samples, r < 10 ? 2 : r < 100 ? 1 : 0, r, (long long)v->batch, v->lanes,
        v->lanes == 1 ? "" : "s");
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
    const struct look_view *v = latest(t);
    double bar[MOST_BARS], least, most;
    char text[64], span[DURATION_TEXT];
    if (isnan(v->loss))
        put(p, PLAIN, "loss -");
    else
        put(p, PLAIN, "loss %#.4g  ", v->loss);
    int width = p->page->columns - p->column - 30;
    if (width > MOST_BARS) width = MOST_BARS;
    double seconds = top_loss_bars(&t->loss, (double)v->now / 1e9, width, bar, &least, &most);
    if (seconds > 0) {
        draw_bars(p, bar, width, least, most);
        snprintf(text, sizeof text, "  %.4g to %.4g in %s", least, most,
                 progress_duration(seconds, span));
        put(p, DIM, "%s", text);
    }
    end_line(p);
}

/* ---- the workers ---- */

static const struct look_worker *worker_before(const struct top *t, int place, double *passed) {
    const struct look_view *v = latest(t);
    const struct look_worker *w = &v->worker[place];
    double window = FEW_LANES * (double)w->lane_time / 1e9;
    const struct look_view *from = look_before(t, window > WINDOW ? window : WINDOW);
    *passed = (double)(v->now - from->now) / 1e9 * v->threads;
    return from->worker[place].pid == w->pid && w->pid ? &from->worker[place] : NULL;
}

static void put_share(struct pen *p, enum style s, int64_t ns, double passed, bool known) {
    double share = passed > 0 ? (double)ns / 1e7 / passed : 0;
    if (known && passed > 0)
        put(p, s, " %3.0f", share < 0 ? 0 : share > 100 ? 100 : share);
    else
        put(p, PLAIN, "   -");
}

static void draw_shares(struct pen *p, const struct top *t, int place) {
    double passed;
    const struct look_worker *w = &latest(t)->worker[place], *b = worker_before(t, place, &passed);
    static const struct look_worker nothing;
    bool known = b && t->looks > 1;
    if (!b) b = &nothing;
    put_share(p, GREEN, w->compute - b->compute, passed, known);
    put_share(p, YELLOW, w->wait - b->wait, passed, known);
    put_share(p, CYAN, w->reduce - b->reduce, passed, known);
    put_share(p, PLAIN, w->data - b->data, passed, known);
}

#define WIDE 100        /* columns from which the page has a column for the step */
#define LONG 1500000000 /* nanoseconds after which the duration of an activity is shown */

/* A narrow page shows a worker's step only if it is not the open one. */
static void draw_work(struct pen *p, struct top *t, const struct look_worker *w) {
    const struct look_view *v = latest(t);
    struct text what = {0};
    bool rests = w->state == CREW_EMPTY || w->at == CREW_AT_WAIT;
    if (p->page->columns >= WIDE)
        put(p, PLAIN, "%9u ", w->step);
    else if (w->step != v->opened && w->rank >= 0 && !rests)
        put(p, YELLOW, "@%u ", w->step);
    if (w->leaves) put(p, YELLOW, "leaves, ");
    if (w->since && !rests && v->now - w->since > LONG && v->state != LOOK_PAUSED)
        put(p, YELLOW, "%llds ", (long long)(v->now - w->since) / 1000000000);
    look_describe(&t->look, w, &what);
    put(p, rests ? DIM : PLAIN, "%s", what.data ? what.data : "");
    text_free(&what);
    end_line(p);
}

static void draw_seats(struct pen *p, const struct look_worker *w) {
    char seats[24] = "-", both[40];
    if (w->seated && w->seats.first == w->seats.last)
        snprintf(seats, sizeof seats, "%d", w->seats.first);
    else if (w->seated)
        snprintf(seats, sizeof seats, "%d-%d", w->seats.first, w->seats.last);
    snprintf(both, sizeof both, "%d:%s", w->seats.replica, seats);
    put(p, PLAIN, " %7s", w->seated ? both : seats);
}

static void draw_worker(struct pen *p, struct top *t, int place) {
    const struct look_view *v = latest(t);
    const struct look_worker *w = &v->worker[place];
    char a[NUMBER], b[NUMBER], rank[16] = "spare", core[16] = "any";
    if (w->rank >= 0) snprintf(rank, sizeof rank, "%d", w->rank);
    if (w->core >= 0) snprintf(core, sizeof core, "%d", w->core);
    put(p, PLAIN, "%3d %5s", place, rank);
    put(p, place == v->reporter ? GREEN : PLAIN, "%c", place == v->reporter ? '*' : ' ');
    if (v->replicas) draw_seats(p, w);
    put(p, PLAIN, " %7d", w->pid);
    draw_shares(p, t, place);
    put(p, PLAIN, " %6s %5s", time_of(w->lane_time, a), count(w->lanes_done, b));
    put(p, w->lanes_lost ? YELLOW : PLAIN, " %4s", count(w->lanes_lost, a));
    put(p, PLAIN, " %5s %4s", with_unit((double)w->peak, 1024, "KMGT", a), core);
    put(p, w->restarts ? YELLOW : PLAIN, " %4d", w->restarts);
    put(p, PLAIN, " ");
    draw_work(p, t, w);
}

static int shown(const struct look_view *v) {
    int n = 0;
    for (int i = 0; i < v->places; i++) n += look_worker_shown(&v->worker[i]);
    return n;
}

static void draw_workers(struct pen *p, struct top *t) {
    const struct look_view *v = latest(t);
    bool wide = p->page->columns >= WIDE;
    char head[512];
    snprintf(head, sizeof head,
             "  #  RANK %s     PID CMP WAI RED DAT   LANE  DONE LOST  PEAK CORE DIED%s AT",
             v->replicas ? "  SEATS " : "", wide ? "      STEP" : "");
    put(p, TITLE, "%-*s", p->page->colours && p->page->columns < 500 ? p->page->columns : 0, head);
    end_line(p);
    int left = shown(v);
    for (int i = 0; i < v->places; i++) {
        if (!look_worker_shown(&v->worker[i])) continue;
        if (!fits(p, left > 1 ? 2 : 1)) {
            put(p, DIM, "and %d more", left);
            end_line(p);
            return;
        }
        draw_worker(p, t, i);
        left--;
    }
}

void top_draw(struct top *t, const struct top_page *page, struct text *out) {
    const struct look_view *v = latest(t);
    struct pen p = {.page = page, .out = out};
    if (page->terminal) text_add(out, "\033[H");
    draw_title(&p, v);
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
    if (page->terminal && fits(&p, 2)) {
        end_line(&p);
        put(&p, DIM, "q quits; * reporter; CMP WAI RED DAT: %% of the time; trireme top --help");
        end_line(&p);
    }
    if (page->terminal) text_add(out, "\033[J");
}
