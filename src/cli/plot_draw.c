/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plot.h"
#include "observe/progress.h"

/* ---- both ---- */

#define WIDEST 1000 /* columns */

/* Where y stands among `rows` rows, 0 being the uppermost. */
static double place_of(const struct plot *p, double y, double rows) {
    return (p->top - y) / (p->top - p->bottom) * rows;
}

/* The label of a place on the scale. */
static const char *label(const struct plot *p, double y, char text[NUMBER_TEXT]) {
    if (fabs(y) < (p->top - p->bottom) * 1e-9) y = 0;
    base_format(text, NUMBER_TEXT, "%.4g", p->log ? pow(10, y) : y);
    return text;
}

static const char *label_x(const struct plot *p, double x, char text[NUMBER_TEXT]) {
    char time[DURATION_TEXT];
    if (p->axis == CURVE_TIME) base_format(text, NUMBER_TEXT, "%s", progress_duration(x, time));
    else base_format(text, NUMBER_TEXT, "%.0f", x);
    return text;
}

static const char *axis_of(const struct plot *p) { return p->axis == CURVE_TIME ? "time" : "step"; }

/* "run, evaluated: last 0.41, least 0.4, most 2.3" */
static void describe(const struct plot *p, const struct plot_curve *c, struct text *out) {
    char last[NUMBER_TEXT], least[NUMBER_TEXT], most[NUMBER_TEXT];
    const struct curve *curve = c->curve;
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < curve->n; i++) {
        low = fmin(low, curve->point[i].least);
        high = fmax(high, curve->point[i].most);
    }
    text_add_escaped(out, c->run);
    text_add(out, c->evaluations ? " eval " : " ");
    text_add_escaped(out, p->key);
    if (!curve->n) return;
    text_add(out, ": last %s, least %s, most %s", label(p, curve->last, last), label(p, low, least),
             label(p, high, most));
}

/* ---- a terminal ---- */

#define ROWS 16   /* of text */
#define MARGIN 10 /* columns before the curves */

static bool has_colours(const struct top_page *page) { return page->colours && page->unicode; }

/* A point of the picture, two of which share a character. */
struct dot {
    unsigned char curve; /* from 1 on; 0: empty */
    bool band;
};

struct canvas {
    int width;
    struct dot dot[2 * ROWS][WIDEST];
};

static void fill(struct canvas *k, int x, double from, double to, size_t curve, bool band) {
    const int last = 2 * ROWS - 1;
    int a = (int)fmin(from, to), b = (int)fmax(from, to);
    for (int y = a < 0 ? 0 : a; y <= (b > last ? last : b); y++)
        if (!band || !k->dot[y][x].curve)
            k->dot[y][x] = (struct dot){(unsigned char)(curve % 250 + 1), band};
}

/* Columns without a point get a part of the line between their neighbours; in a broken line, every
 * other one. */
static void draw_line(struct canvas *k, const struct plot *p, size_t i,
                      const struct curve_point column[]) {
    int before = -1;
    double y0 = 0;
    for (int x = 0; x < k->width; x++) {
        if (!column[x].n) continue;
        const double y = place_of(p, column[x].mean, 2 * ROWS - 1) + 0.5;
        for (int at = before < 0 ? x : before + 1; at <= x; at++) {
            const double a = before < 0 ? 1 : (double)(at - 1 - before) / (x - before);
            const double b = before < 0 ? 1 : (double)(at - before) / (x - before);
            const double from = y0 + (y - y0) * a, to = y0 + (y - y0) * b;
            if (p->curve[i].evaluations && at < x && at % 2) continue;
            /* it begins beside the end of the column before */
            const double next = fabs(to - from) < 1 ? to : from + (to > from ? 1 : -1);
            fill(k, at, before < 0 ? y : next, to, i, false);
        }
        before = x;
        y0 = y;
    }
}

/* bands: letters of several runs have none. */
static void draw(struct canvas *k, const struct plot *p, bool bands) {
    static struct curve_point column[WIDEST];
    const struct curve_view v = {p->axis, p->left, p->right, k->width, column};
    for (int lines = 0; lines < 2; lines++)
        for (size_t i = 0; i < p->n; i++) {
            curve_columns(p->curve[i].curve, &v);
            for (int x = 0; x < k->width && bands && !lines; x++)
                if (column[x].n > 1)
                    fill(k, x, place_of(p, column[x].least, 2 * ROWS - 1) + 0.5,
                         place_of(p, column[x].most, 2 * ROWS - 1) + 0.5, i, true);
            if (lines) draw_line(k, p, i, column);
        }
}

/* Of the 256 colours of terminals, for lines and bands. */
static int colour(const struct plot *p, struct dot d) {
    static const int colours[][2] = {{33, 24}, {208, 94}, {35, 22}, {161, 52},
                                     {98, 54}, {137, 58}, {44, 30}, {244, 238}};
    return colours[p->curve[d.curve - 1].number % COUNT(colours)][d.band];
}

/* Without colours a single run is drawn by shape, and several by a letter each. */
static const char *shape(const struct plot *p, const struct top_page *page, struct dot a,
                         struct dot b, char letter[2]) {
    const struct dot shown = a.curve && !a.band ? a : b.curve && !b.band ? b : a.curve ? a : b;
    if (!shown.curve) return " ";
    if (shown.band) return page->unicode ? "\u2591" : ":";
    if (p->n > 1) {
        letter[0] = (char)('a' + (shown.curve - 1) % 26);
        return letter;
    }
    if (!page->unicode) return "*";
    const bool upper = a.curve && !a.band, lower = b.curve && !b.band;
    return upper && lower ? "\u2588" : upper ? "\u2580" : "\u2584";
}

static void add_row(const struct plot *p, const struct top_page *page, const struct canvas *k,
                    int row, struct text *out) {
    const bool colours = has_colours(page);
    int end = k->width;
    while (end && !k->dot[2 * row][end - 1].curve && !k->dot[2 * row + 1][end - 1].curve) end--;
    for (int x = 0; x < end; x++) {
        const struct dot a = k->dot[2 * row][x], b = k->dot[2 * row + 1][x];
        char letter[2] = "";
        if (!colours || (!a.curve && !b.curve))
            text_add(out, "%s", shape(p, page, a, b, letter));
        else if (a.curve && b.curve)
            text_add(out, "\033[38;5;%d;48;5;%dm\u2580\033[0m", colour(p, a),
                     colour(p, b));
        else
            text_add(out, "\033[38;5;%dm%s\033[0m", colour(p, a.curve ? a : b),
                     a.curve ? "\u2580" : "\u2584");
    }
    text_add(out, "\n");
}

static void add_legend(const struct plot *p, const struct top_page *page, struct text *out) {
    for (size_t i = 0; i < p->n; i++) {
        const struct dot d = {(unsigned char)(i % 250 + 1), false};
        char letter[2] = "";
        if (has_colours(page))
            text_add(out, "  \033[38;5;%dm\u2580\033[0m ", colour(p, d));
        else text_add(out, "  %s ", shape(p, page, d, d, letter));
        describe(p, &p->curve[i], out);
        text_add(out, "\n");
    }
}

void plot_text(const struct plot *p, const struct top_page *page, struct text *out) {
    struct canvas *k = calloc(1, sizeof *k);
    char name[NUMBER_TEXT], end[NUMBER_TEXT];
    out->failed |= !k;
    if (!k) return;
    const int columns = page->columns == INT_MAX ? 100 : page->columns;
    k->width = columns < MARGIN + 10 ? 10 : columns > MARGIN + WIDEST ? WIDEST : columns - MARGIN;
    draw(k, p, p->n == 1 || has_colours(page));
    for (int row = 0; row < ROWS; row++) {
        const bool marked = row % 5 == 0;
        const double y = p->top - (p->top - p->bottom) * row / (ROWS - 1);
        text_add(out, "%*s %s", MARGIN - 2, marked ? label(p, y, name) : "",
                 page->unicode ? marked ? "\u2524" : "\u2502" : marked ? "+" : "|");
        add_row(p, page, k, row, out);
    }
    label_x(p, p->right, end);
    text_add(out, "%*s%-*s%s %s\n", MARGIN, "",
             k->width - (int)(strlen(axis_of(p)) + 1 + strlen(end)), label_x(p, p->left, name),
             axis_of(p), end);
    add_legend(p, page, out);
    free(k);
}

/* ---- SVG ---- */

#define WIDTH 760
#define HEIGHT 300
#define LEFT 64
#define RIGHT 16
#define TOP 16
#define INSIDE (WIDTH - LEFT - RIGHT)

static const char *const paint[] = {"#3b82bd", "#e08a2e", "#3c9d74", "#c7362c",
                                    "#8f63b8", "#9a7b52", "#2aa5a5", "#687182"};

static double svg_y(const struct plot *p, double y) { return TOP + place_of(p, y, HEIGHT); }

static void add_words(struct text *out, double x, double y, const char *anchor, const char *text) {
    text_add(out, "<text x='%.1f' y='%.1f' text-anchor='%s'>", x, y, anchor);
    for (; *text; text++) {
        const char *entity = *text == '<' ? "&lt;" : *text == '&' ? "&amp;" : NULL;
        text_add_bytes(out, entity ? entity : text, entity ? strlen(entity) : 1);
    }
    text_add(out, "</text>\n");
}

static void add_grid(const struct plot *p, struct text *out) {
    char text[NUMBER_TEXT];
    const double rise = curve_marks(p->bottom, p->top, 6);
    for (double y = ceil(p->bottom / rise) * rise; y <= p->top; y += rise) {
        text_add(out, "<path d='M%d %.1fH%d' stroke='#ddd'/>\n", LEFT, svg_y(p, y),
                 WIDTH - RIGHT);
        add_words(out, LEFT - 8, svg_y(p, y) + 4, "end", label(p, y, text));
    }
    add_words(out, LEFT, TOP + HEIGHT + 20, "start", label_x(p, p->left, text));
    add_words(out, LEFT + INSIDE / 2.0, TOP + HEIGHT + 20, "middle", axis_of(p));
    if (p->right > p->left)
        add_words(out, WIDTH - RIGHT, TOP + HEIGHT + 20, "end", label_x(p, p->right, text));
}

/* The middle of column i of INSIDE. */
static double middle(int i) { return LEFT + i + 0.5; }

static void add_curve(const struct plot *p, size_t i, struct text *out) {
    const struct curve *c = p->curve[i].curve;
    const char *colour = paint[p->curve[i].number % COUNT(paint)];
    static struct curve_point column[INSIDE];
    struct text above = {0}, below = {0}, line = {0};
    curve_columns(c, &(struct curve_view){p->axis, p->left, p->right, INSIDE, column});
    for (int x = 0; x < INSIDE; x++) {
        if (!column[x].n) continue;
        const char *sep = x % 8 ? " " : "\n";
        text_add(&above, "%s%.1f,%.1f", sep, middle(x), svg_y(p, column[x].most));
        text_add(&line, "%s%.1f,%.1f", sep, middle(x), svg_y(p, column[x].mean));
    }
    for (int x = INSIDE - 1; x >= 0; x--)
        if (column[x].n)
            text_add(&below, "%s%.1f,%.1f", x % 8 ? " " : "\n", middle(x),
                     svg_y(p, column[x].least));
    if (c->n > INSIDE && above.data && below.data)
        text_add(out, "<polygon fill='%s' fill-opacity='.25' points='%s%s'/>\n", colour,
                 above.data, below.data);
    text_add(out, "<polyline fill='none' stroke='%s' stroke-width='1.5' stroke-linejoin='round'%s "
             "points='%s'/>\n", colour, p->curve[i].evaluations ? " stroke-dasharray='5 3'" : "",
             line.data ? line.data : "");
    out->failed |= above.failed || below.failed || line.failed;
    text_free(&above);
    text_free(&below);
    text_free(&line);
}

void plot_svg(const struct plot *p, struct text *out) {
    const int height = TOP + HEIGHT + 40 + 18 * (int)p->n;
    text_add(out, "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
             "viewBox='0 0 %d %d'\n font-family='monospace' font-size='12' fill='#1a1e26'>\n"
             "<rect width='%d' height='%d' fill='#fff'/>\n", WIDTH, height, WIDTH, height, WIDTH,
             height);
    add_grid(p, out);
    for (size_t i = 0; i < p->n; i++) add_curve(p, i, out);
    for (size_t i = 0; i < p->n; i++) {
        struct text t = {0};
        const int y = TOP + HEIGHT + 46 + 18 * (int)i;
        describe(p, &p->curve[i], &t);
        text_add(out, "<path d='M%d %dh24' stroke='%s' stroke-width='2'%s/>\n", LEFT, y - 4,
                 paint[p->curve[i].number % COUNT(paint)],
                 p->curve[i].evaluations ? " stroke-dasharray='5 3'" : "");
        add_words(out, LEFT + 32, y, "start", t.data ? t.data : "");
        out->failed |= t.failed;
        text_free(&t);
    }
    text_add(out, "</svg>\n");
}
