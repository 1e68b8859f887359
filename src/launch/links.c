/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool links_file(struct text *path) {
    const bool have = base_cache(path);
    text_add(path, "/links");
    return have && !path->failed;
}

tri_status links_write(const char *path, const struct link_speed *link, size_t n) {
    char day[DATE_TEXT];
    struct text t = {0};
    text_add(&t, "# trireme bench links, %s: seconds of a round trip, bytes per second,\n"
             "# seconds of processor time per GB\n", base_date_text(day));
    for (size_t i = 0; i < n; i++)
        text_add(&t, "link %s %s %.6g %.6g %.6g\n", link[i].from, link[i].to, link[i].latency,
                 link[i].bandwidth, link[i].cpu);
    return text_write_file(&t, path, TRI_OK);
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
        if (at == begin || !(*to[i] > 0 && *to[i] < (to[i] == &l->bandwidth ? 1e18 : 1e9)))
            return false;
    }
    return !*at && strcmp(l->from, l->to);
}

struct taken {
    struct link_speed *link;
    size_t n, room;
    bool full; /* there is no memory for another */
};

static bool take_line(void *user, char *line) {
    struct taken *t = user;
    t->full |= !ARRAY_GROW(t->link, t->n, t->room);
    if (t->full) return true;
    if (!read_line(line, &t->link[t->n])) return false;
    t->n++;
    return true;
}

tri_status links_read(const char *path, struct link_speed **link, size_t *n) {
    struct taken t = {0};
    tri_status status =
        base_read_lines(path, "`trireme bench links` makes the file again", take_line, &t);
    if (!status && t.full) status = base_no_memory(path);
    if (status) free(t.link);
    *link = status ? NULL : t.link;
    *n = status ? 0 : t.n;
    return status;
}

static bool joins(const struct link_speed *l, const char *a, const char *b) {
    return (!strcmp(l->from, a) && !strcmp(l->to, b)) || (!strcmp(l->from, b) && !strcmp(l->to, a));
}

static void worsen(const struct link_speed *l, struct path_link *to) {
    if (l->latency > to->latency) to->latency = l->latency;
    if (!(to->bandwidth > 0) || l->bandwidth < to->bandwidth) to->bandwidth = l->bandwidth;
    if (l->cpu > to->cpu) to->cpu = l->cpu;
}

/* False: there is none between these two. */
static bool take_pair(const struct link_speed *link, size_t n, const char *a, const char *b,
                      struct path_link *to) {
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (a && !joins(&link[i], a, b)) continue;
        worsen(&link[i], to);
        any = true;
    }
    return any;
}

tri_status links_slowest(const struct host_list *hosts, struct path_link *out) {
    struct text path = {0};
    struct link_speed *link = NULL;
    size_t n = 0;
    tri_status status = TRI_OK;
    *out = (struct path_link){0};
    if (links_file(&path) && !access(path.data, F_OK)) status = links_read(path.data, &link, &n);
    bool all = hosts || take_pair(link, n, NULL, NULL, out);
    for (int a = 0; hosts && a < hosts->n; a++)
        for (int b = a + 1; b < hosts->n; b++)
            all &= take_pair(link, n, hosts->host[a].name, hosts->host[b].name, out);
    if (!all) *out = (struct path_link){0};
    free(link);
    text_free(&path);
    return status;
}
