/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/lines.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST 1000 /* fields; further ones are not read */

/* ---- fields ---- */

static int add_field(struct lines *l, const char *name, size_t length) {
    if (l->n == MOST || !ARRAY_GROW(l->name, l->n, l->names) ||
        !ARRAY_GROW(l->value, l->n, l->values) || !ARRAY_GROW(l->seen, l->n, l->kinds) ||
        !(l->name[l->n] = strndup(name, length)))
        return -1;
    l->value[l->n] = NAN;
    l->seen[l->n] = 0;
    return (int)l->n++;
}

static bool is_field(const struct lines *l, size_t i, const char *name, size_t length) {
    return i < l->n && !strncmp(l->name[i], name, length) && !l->name[i][length];
}

size_t lines_find(const struct lines *l, const char *name, size_t guess) {
    if (guess < l->n && !strcmp(l->name[guess], name)) return guess;
    for (guess = 0; guess < l->n && strcmp(l->name[guess], name);) guess++;
    return guess;
}

/* Its place; -1: there are too many. k: where it stands in the line, as in the line before. */
static int find_field(struct lines *l, bool evaluation, int k, const char *name, size_t length) {
    int *guess = &l->guess[evaluation][k & 63];
    if (is_field(l, (size_t)*guess, name, length)) return *guess;
    size_t i = 0;
    while (i < l->n && !is_field(l, i, name, length)) i++;
    int found = i < l->n ? (int)i : add_field(l, name, length);
    if (found >= 0) *guess = found;
    return found;
}

static void set_field(struct lines *l, bool evaluation, int field, double value) {
    if (field < 0) return;
    l->seen[field] |= evaluation ? LINES_EVALUATED : LINES_TRAINED;
    l->value[field] = value;
}

/* ---- lines as observe/metrics.c writes them ---- */

/* What a double has exactly, scaled by a power of ten that it has exactly, is rounded once. */
static const char *scan_number(const char *p, double *out) {
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *begin = p;
    uint64_t digits = 0;
    int n = 0, scale = 0, exponent = 0;
    if (*p == '-') p++;
    for (; *p >= '0' && *p <= '9' && n < 18; p++, n++) digits = 10 * digits + (uint64_t)(*p - '0');
    if (!n) return NULL;
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9' && n < 18; p++, n++, scale--)
            digits = 10 * digits + (uint64_t)(*p - '0');
    if (*p == 'e' || *p == 'E') {
        const bool minus = *++p == '-';
        if (minus || *p == '+') p++;
        for (; *p >= '0' && *p <= '9' && exponent < 1000; p++)
            exponent = 10 * exponent + (*p - '0');
        scale += minus ? -exponent : exponent;
    }
    const bool more = *p >= '0' && *p <= '9';
    if (more || digits > (uint64_t)1 << 53 || scale < -22 || scale > 22) {
        char *end;
        *out = base_number(begin, &end);
        return end;
    }
    *out = scale < 0 ? (double)digits / power[-scale] : (double)digits * power[scale];
    if (*begin == '-') *out = -*out;
    return p;
}

/* An array, which is skipped. */
static const char *scan_array(const char *p) {
    bool inside = false;
    for (int depth = 0; *p; p++) {
        if (*p == '\\') return NULL;
        if (*p == '"') inside = !inside;
        else if (inside) continue;
        else if (*p == '[' || *p == '{') depth++;
        else if ((*p == ']' || *p == '}') && !--depth) return p + 1;
    }
    return NULL;
}

static const char *scan_object(struct lines *l, const char *p, bool evaluation);

static const char *scan_field(struct lines *l, const char *p, bool evaluation, int k) {
    double value = NAN;
    if (*p != '"') return NULL;
    const char *name = ++p;
    while (*p != '"' && *p != '\\' && *p >= ' ' && *p < 127) p++; /* else it may be no UTF-8 */
    const size_t length = (size_t)(p - name);
    if (*p++ != '"' || *p++ != ':') return NULL;
    if (*p == '[') return scan_array(p);
    if (*p == '{') {
        const bool results = !evaluation && length == 4 && !memcmp(name, "eval", 4);
        return results ? scan_object(l, p, true) : NULL;
    }
    p = strncmp(p, "null", 4) ? scan_number(p, &value) : p + 4;
    if (p) set_field(l, evaluation, find_field(l, evaluation, k, name, length), value);
    return p;
}

/* What follows the object; null: it is not as the writer writes it. */
static const char *scan_object(struct lines *l, const char *p, bool evaluation) {
    l->evaluation |= evaluation;
    if (*p != '{') return NULL;
    for (int k = 0; (p = scan_field(l, p + 1, evaluation, k)); k++)
        if (*p != ',') return *p == '}' ? p + 1 : NULL;
    return NULL;
}

/* ---- any lines ---- */

static void take_object(struct lines *l, const json_t *object, bool evaluation) {
    const char *name;
    json_t *value;
    int k = 0;
    json_object_foreach((json_t *)object, name, value) {
        if (json_is_number(value) || json_is_null(value)) {
            const int field = find_field(l, evaluation, k++, name, strlen(name));
            set_field(l, evaluation, field, json_is_null(value) ? NAN : json_number_value(value));
        }
        if (evaluation || !json_is_object(value) || strcmp(name, "eval")) continue;
        l->evaluation = true;
        take_object(l, value, true);
    }
}

static void forget(struct lines *l) {
    for (size_t i = 0; i < l->n; i++) l->value[i] = NAN;
    l->evaluation = false;
}

bool lines_scan(struct lines *l, const char *line) {
    static const char *const fixed[] = {"step", "steps", "epoch", "samples", "lr", "seconds"};
    while (l->n < LINES_FIXED)
        if (add_field(l, fixed[l->n], strlen(fixed[l->n])) < 0) return false;
    forget(l);
    const char *end = scan_object(l, line, false);
    if (!end || *end) {
        json_t *object = json_loads(line, 0, NULL);
        forget(l);
        take_object(l, object, false);
        json_decref(object);
    }
    return l->value[LINES_STEP] >= 0 && l->value[LINES_STEP] < 0x1p53;
}

/* ---- files ---- */

tri_status lines_open_at(struct lines *l, const char *path, int64_t at) {
    return line_file_open(&l->file, path, at);
}

tri_status lines_open(struct lines *l, const char *path) { return lines_open_at(l, path, 0); }

bool lines_next(struct lines *l) {
    for (ssize_t n; (n = line_file_next(&l->file, &l->line)) >= 0;) {
        if ((size_t)n == strlen(l->line) && lines_scan(l, l->line)) return true;
        l->damaged++;
    }
    line_file_close(&l->file);
    return false;
}

void lines_free(struct lines *l) {
    line_file_close(&l->file);
    for (size_t i = 0; i < l->n; i++) free(l->name[i]);
    free(l->name);
    free(l->value);
    free(l->seen);
    *l = (struct lines){0};
}

bool run_is_later(void) { return strstr(tri_message(), "a later version of Trireme"); }
