/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/recent.h"

#define SPAN 180.0          /* seconds */
#define TAIL (1024 * 1024) /* bytes of metrics.jsonl to read */
#define DENSEST (2 * SPAN / MOST) /* least seconds between two points */
#define MOST ((int)COUNT(((struct recent *)0)->point))

void recent_add(struct recent *r, double time, double loss) {
    if (!isfinite(loss)) return;
    if (r->n == MOST) {
        r->n -= MOST / 2;
        memmove(r->point, r->point + MOST / 2, (size_t)r->n * sizeof *r->point);
    }
    r->point[r->n].time = time;
    r->point[r->n++].loss = loss;
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

/* The last row counts as written now. The first line may be incomplete. */
static void read_rows(struct recent *r, const char *line, const char *end, double now,
                      uint64_t last) {
    double before = -INFINITY, step, seconds, loss;
    for (const char *next; (next = memchr(line, '\n', (size_t)(end - line))); line = next + 1) {
        if (!read_row(line, (size_t)(next - line), &step, &seconds, &loss) || step > (double)last)
            continue;
        if (seconds < before) r->n = 0; /* another run has continued the file */
        else if (seconds - before < DENSEST) continue;
        before = seconds;
        recent_add(r, seconds, loss);
    }
    for (int i = 0; i < r->n; i++) r->point[i].time += now - before;
}

void recent_read(struct recent *r, const char *directory, double now, uint64_t step) {
    char path[2048];
    size_t bytes = 0;
    if (!*directory || !step) return;
    base_format(path, sizeof path, "%s/metrics.jsonl", directory);
    char *text = read_tail(path, &bytes);
    if (text) read_rows(r, text, text + bytes, now, step);
    free(text);
}

double recent_bars(const struct recent *r, double now, int width, double bar[], double *least,
                   double *most) {
    int first = 0, n = 0;
    while (first < r->n && r->point[first].time < now - SPAN) first++;
    if (first == r->n || width < 1) return 0;
    double begin = r->point[first].time, span = now - begin > 1 ? now - begin : 1;
    *least = INFINITY;
    *most = -INFINITY;
    for (int i = 0, k = first; i < width; i++) {
        double until = begin + span * (i + 1) / width, sum = 0;
        for (n = 0; k < r->n && (r->point[k].time < until || i == width - 1); k++, n++)
            sum += r->point[k].loss;
        bar[i] = n ? sum / n : i ? bar[i - 1] : NAN; /* no step: repeat the bar before */
        if (isnan(bar[i])) continue;
        *least = fmin(*least, bar[i]);
        *most = fmax(*most, bar[i]);
    }
    return span;
}
