/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/top_view.h"

#define SPAN 180.0          /* seconds */
#define TAIL (1024 * 1024) /* bytes of metrics.jsonl to read */
#define DENSEST (2 * SPAN / MOST) /* least seconds between two points */
#define MOST ((int)COUNT(((struct top_loss *)0)->point))

void top_loss_add(struct top_loss *l, double time, double loss) {
    if (!isfinite(loss)) return;
    if (l->n == MOST) {
        l->n -= MOST / 2;
        memmove(l->point, l->point + MOST / 2, (size_t)l->n * sizeof *l->point);
    }
    l->point[l->n].time = time;
    l->point[l->n++].loss = loss;
}

/* Reads a line of metrics.jsonl; false if it has no loss. */
static bool read_row(const char *line, size_t bytes, double *step, double *seconds, double *loss) {
    json_t *row = json_loadb(line, bytes, 0, NULL);
    const json_t *number = json_object_get(row, "loss");
    bool good = json_is_number(number);
    *loss = json_number_value(number);
    *step = json_number_value(json_object_get(row, "step"));
    *seconds = json_number_value(json_object_get(row, "seconds"));
    json_decref(row);
    return good;
}

static char *read_tail(const char *path, size_t *bytes) {
    struct stat st;
    int fd = base_open(path, O_RDONLY, &st);
    char *text = fd >= 0 ? malloc(TAIL) : NULL;
    if (text) {
        ssize_t n = pread(fd, text, TAIL, st.st_size > TAIL ? st.st_size - TAIL : 0);
        *bytes = n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0) close(fd);
    return text;
}

static void reverse(struct top_loss *l) {
    for (int i = 0; i < l->n / 2; i++) {
        double time = l->point[i].time, loss = l->point[i].loss;
        l->point[i] = l->point[l->n - 1 - i];
        l->point[l->n - 1 - i].time = time;
        l->point[l->n - 1 - i].loss = loss;
    }
}

/* Reads the lines backwards, until they are older than SPAN. The last one counts as written now. */
static void read_rows(struct top_loss *l, const char *text, size_t bytes, double now,
                      uint64_t last) {
    double latest = -1, before = INFINITY, step, seconds, loss;
    for (size_t end = bytes; end;) {
        size_t begin = end - 1;
        while (begin && text[begin - 1] != '\n') begin--;
        size_t n = end - begin;
        end = begin;
        if (!read_row(text + begin, n, &step, &seconds, &loss) || step > (double)last) continue;
        if (latest < 0) latest = seconds;
        if (seconds < latest - SPAN || seconds > latest) break;
        if (before - seconds < DENSEST) continue;
        before = seconds;
        top_loss_add(l, now - (latest - seconds), loss);
    }
    reverse(l);
}

void top_loss_read(struct top_loss *l, const char *directory, double now, uint64_t step) {
    char path[2048];
    size_t bytes = 0;
    if (!*directory || !step) return;
    base_format(path, sizeof path, "%s/metrics.jsonl", directory);
    char *text = read_tail(path, &bytes);
    if (text) read_rows(l, text, bytes, now, step);
    free(text);
}

double top_loss_bars(const struct top_loss *l, double now, int width, double bar[], double *least,
                     double *most) {
    int first = 0, n = 0;
    while (first < l->n && l->point[first].time < now - SPAN) first++;
    if (first == l->n || width < 1) return 0;
    double begin = l->point[first].time, span = now - begin > 1 ? now - begin : 1;
    *least = INFINITY;
    *most = -INFINITY;
    for (int i = 0, k = first; i < width; i++) {
        double until = begin + span * (i + 1) / width, sum = 0;
        for (n = 0; k < l->n && (l->point[k].time < until || i == width - 1); k++, n++)
            sum += l->point[k].loss;
        bar[i] = n ? sum / n : i ? bar[i - 1] : NAN; /* no step: repeat the bar before */
        if (isnan(bar[i])) continue;
        *least = fmin(*least, bar[i]);
        *most = fmax(*most, bar[i]);
    }
    return span;
}
