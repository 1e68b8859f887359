/* SPDX-License-Identifier: Apache-2.0 */
#include "data/labels.h"

#include <stdlib.h>
#include <string.h>

struct reading {
    const struct labels *l;
    const struct folder *f;
    uint32_t *order; /* the folder's pictures, sorted by name */
    int32_t *of_id;  /* [n_ids]: classes by their number in the file `ids`; -1: none */
    size_t n_ids;
    int32_t *label;
};

/* ---- words ---- */

/* Cuts the next word off a line; null: there is none. */
static char *word(char **line) {
    char *from = *line + strspn(*line, " \t,\r");
    if (!*from) return NULL;
    char *end = from + strcspn(from, " \t,\r");
    *line = end + (*end != 0);
    *end = 0;
    return from;
}

static char *cut_line(char **text) {
    char *line = *text, *end = line + strcspn(line, "\n");
    *text = end + (*end != 0);
    *end = 0;
    return line;
}

static bool number(const char *text, size_t below, size_t *out) {
    char *end;
    unsigned long long v = strtoull(text, &end, 10);
    *out = (size_t)v;
    return *text >= '0' && *text <= '9' && !*end && v < below;
}

/* ---- classes ---- */

static int by_text(const void *key, const void *element) {
    return strcmp(key, *(char *const *)element);
}

static int32_t named_class(const struct labels *l, const char *name) {
    char *const *found = bsearch(name, l->classes, l->n_classes, sizeof *l->classes, by_text);
    return found ? (int32_t)(found - l->classes) : -1;
}

static int32_t find_class(const struct reading *r, const char *name) {
    int32_t class = named_class(r->l, name);
    size_t id;
    if (class >= 0) return class;
    if (r->l->ids) return number(name, r->n_ids, &id) ? r->of_id[id] : -1;
    return number(name, r->l->n_classes, &id) ? (int32_t)id : -1;
}

#define MOST_IDS ((size_t)1 << 20)

static tri_status read_ids(struct reading *r) {
    char *text, *at;
    size_t bytes, id;
    if (!r->l->ids) return TRI_OK;
    tri_status status = base_read_file(r->l->ids, &text, &bytes);
    if (status) return status;
    r->of_id = malloc(MOST_IDS * sizeof *r->of_id);
    if (!r->of_id) status = base_no_memory(r->l->ids);
    if (!status) memset(r->of_id, -1, MOST_IDS * sizeof *r->of_id);
    r->n_ids = MOST_IDS;
    at = text;
    for (long n = 1; *at && !status; n++) {
        char *line = cut_line(&at), *name = word(&line), *value = name ? word(&line) : NULL;
        if (!name) continue;
        if (!value || !number(value, MOST_IDS, &id))
            status = base_fail(TRI_FAILED, "%s: line %ld is not of the form CLASS NUMBER",
                               r->l->ids, n);
        else
            r->of_id[id] = named_class(r->l, name);
    }
    free(text);
    return status;
}

/* ---- pictures ---- */

static int compare_names(const void *a, const void *b, void *folder) {
    const struct folder *f = folder;
    return strcmp(folder_text(f, f->picture[*(const uint32_t *)a]),
                  folder_text(f, f->picture[*(const uint32_t *)b]));
}

static const char *name_at(const struct reading *r, size_t place) {
    return folder_text(r->f, r->f->picture[r->order[place]]);
}

/* The first picture whose name is not less than this one. */
static size_t lower(const struct reading *r, const char *name, size_t bytes) {
    size_t low = 0, high = r->f->n_pictures;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strncmp(name_at(r, middle), name, bytes) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* With its extension or without. */
static bool find_picture(const struct reading *r, char *name, uint32_t *picture) {
    size_t n = strlen(name), at = lower(r, name, n + 1);
    bool found = at < r->f->n_pictures && !strcmp(name_at(r, at), name);
    if (!found) {
        name[n] = '.'; /* replaces the end for a moment */
        at = lower(r, name, n + 1);
        found = at < r->f->n_pictures && !strncmp(name_at(r, at), name, n + 1);
        name[n] = 0;
    }
    if (found) *picture = r->order[at];
    return found;
}

static tri_status read_line(struct reading *r, char *line, long n, size_t *next) {
    const char *file = r->l->file;
    char *name = word(&line), *class = name ? word(&line) : NULL;
    uint32_t picture;
    if (!name) return TRI_OK;
    if (class) {
        if (!find_picture(r, name, &picture))
            return n == 1 ? TRI_OK
                          : base_fail(TRI_FAILED, "%s: line %ld: there is no picture %s", file, n,
                                      name);
    } else {
        class = name;
        if (*next == r->f->n_pictures)
            return base_fail(TRI_FAILED, "%s: line %ld: there are only %zu picture(s)", file, n,
                             *next);
        picture = r->order[(*next)++];
    }
    r->label[picture] = find_class(r, class);
    if (r->label[picture] >= 0) return TRI_OK;
    return base_fail(TRI_FAILED, "%s: line %ld: there is no class %s", file, n, class);
}

static tri_status read_lines(struct reading *r) {
    char *text;
    size_t bytes, next = 0;
    tri_status status = base_read_file(r->l->file, &text, &bytes);
    if (status) return status;
    char *at = text;
    for (long n = 1; *at && !status; n++) status = read_line(r, cut_line(&at), n, &next);
    for (size_t i = 0; i < r->f->n_pictures && !status; i++)
        if (r->label[i] < 0)
            status = base_fail(TRI_FAILED, "%s: no class for the picture %s", r->l->file,
                               folder_text(r->f, r->f->picture[i]));
    free(text);
    return status;
}

tri_status labels_read(const struct labels *l, const struct folder *f, int32_t *label) {
    struct reading r = {.l = l, .f = f, .label = label};
    r.order = malloc(f->n_pictures * sizeof *r.order + 1);
    if (!r.order) return base_no_memory(l->file);
    for (size_t i = 0; i < f->n_pictures; i++) {
        r.order[i] = (uint32_t)i;
        label[i] = -1;
    }
    qsort_r(r.order, f->n_pictures, sizeof *r.order, compare_names, (void *)(uintptr_t)f);
    tri_status status = read_ids(&r);
    if (!status) status = read_lines(&r);
    free(r.order);
    free(r.of_id);
    return status;
}
