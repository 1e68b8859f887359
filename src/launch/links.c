/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/links.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool links_file(struct text *path) {
    const bool have = base_cache(path);
    text_add(path, "/links");
    return have && !path->failed;
}

tri_status links_write(const char *path, const struct link_speed *link, size_t n) {
    const char *slash = strrchr(path, '/');
    char day[32], folder[PART_PATH];
    const time_t now = time(NULL);
    struct tm date;
    struct text t = {0};
    strftime(day, sizeof day, "%F %T UTC", gmtime_r(&now, &date));
    text_add(&t, "# trireme bench links, %s: seconds of a round trip, bytes per second,\n"
             "# seconds of processor time per GB\n", day);
    for (size_t i = 0; i < n; i++)
        text_add(&t, "link %s %s %.6g %.6g %.6g\n", link[i].from, link[i].to, link[i].latency,
                 link[i].bandwidth, link[i].cpu);
    base_format(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    return text_write(&t, folder, slash ? slash + 1 : path, TRI_OK);
}

/* A line, which ends with a zero. */
static bool read_line(const char *line, struct link_speed *l) {
    double *const to[] = {&l->latency, &l->bandwidth, &l->cpu};
    int used = 0;
    if (strncmp(line, "link ", 5) || sscanf(line, "link %63s %63s%n", l->from, l->to, &used) != 2)
        return false;
    char *at = (char *)(uintptr_t)line + used;
    for (size_t i = 0; i < COUNT(to); i++) {
        const char *begin = at;
        if (*at != ' ') return false;
        *to[i] = base_number(begin, &at);
        if (at == begin || !isfinite(*to[i]) || !(*to[i] > 0)) return false;
    }
    return !*at && strcmp(l->from, l->to);
}

tri_status links_read(const char *path, struct link_speed **link, size_t *n) {
    char *text;
    size_t bytes, room = 0;
    *link = NULL;
    *n = 0;
    tri_status status = base_read_file(path, &text, &bytes);
    if (status) return status;
    char *line = text, *end;
    for (int number = 1; !status && line < text + bytes; line = end ? end + 1 : line, number++) {
        end = memchr(line, '\n', (size_t)(text + bytes - line));
        if (end) *end = 0;
        if (end && (!*line || *line == '#')) continue;
        if (!ARRAY_GROW(*link, *n, room)) status = base_no_memory(path);
        else if (end && strlen(line) == (size_t)(end - line) && read_line(line, *link + *n)) ++*n;
        else status = base_fail(TRI_FAILED, "%s: line %d is damaged; `trireme bench links` makes "
                                "the file again", path, number);
    }
    free(text);
    if (status) free(*link);
    if (status) *link = NULL;
    return status;
}
