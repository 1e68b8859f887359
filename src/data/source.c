/* SPDX-License-Identifier: Apache-2.0
 * Options of sources. */
#include "data/source.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

static tri_status unknown_key(const char *spec, const char *key, const struct data_option *known,
                              int n) {
    struct nearest near = {.wanted = key};
    for (int i = 0; i < n; i++) nearest_offer(&near, known[i].key);
    return base_fail(TRI_USAGE, "data '%s': unknown option '%s'; known: %s", spec, key,
                     n ? near.names : "none");
}

static tri_status set_option(const char *spec, const struct data_option *o, char *value) {
    char *end = value;
    const int kind = (int)(o->kind % DATA_PREPARES);
    errno = 0;
    if (kind == DATA_TEXT) {
        *(const char **)o->value = value;
        if (*value) return TRI_OK;
        return base_fail(TRI_USAGE, "data '%s': %s is empty", spec, o->key);
    }
    if (kind == DATA_INT) {
        long long number = strtoll(value, &end, 10);
        *(int64_t *)o->value = number;
        if (end != value && !*end && !errno) return TRI_OK;
        return base_fail(TRI_USAGE, "data '%s': %s=%s is not a whole number", spec, o->key, value);
    }
    double number = base_number(value, &end);
    *(double *)o->value = number;
    if (end != value && !*end && isfinite(number)) return TRI_OK;
    return base_fail(TRI_USAGE, "data '%s': %s=%s is not a number", spec, o->key, value);
}

static void print_option(const struct data_option *o, struct text *out) {
    char number[NUMBER_TEXT];
    const int kind = (int)(o->kind % DATA_PREPARES);
    if (kind == DATA_INT)
        text_add(out, "%lld", (long long)*(const int64_t *)o->value);
    else if (kind == DATA_FLOAT)
        text_add(out, "%s", base_number_text(*(const double *)o->value, number));
    else
        text_add(out, "%s", *(const char *const *)o->value);
}

/* Takes the options of earlier data that are not given now. */
static tri_status take_prepared(const struct data_spec *s, const struct data_option *known, int n,
                                uint32_t given) {
    tri_status status = TRI_OK;
    for (char *next, *key = s->prepared; key && *key && !status; key = next) {
        if ((next = strchr(key, ','))) *next++ = 0;
        char *value = strchr(key, '=');
        if (!value) return base_fail(TRI_FAILED, "weights: '%s' is not of the form key=value", key);
        *value++ = 0;
        int i = 0;
        while (i < n && !((known[i].kind & DATA_PREPARES) && !strcmp(known[i].key, key))) i++;
        if (i == n) continue; /* of another source */
        struct text now = {0};
        if (given >> i & 1) print_option(&known[i], &now);
        if (now.failed)
            status = base_no_memory(s->spec);
        else if (!now.data)
            status = set_option(s->spec, &known[i], value);
        else if (strcmp(now.data, value))
            fprintf(stderr, "trireme: data '%s': %s=%s, but the weights were trained with %s=%s\n",
                    s->spec, key, now.data, key, value);
        text_free(&now);
    }
    return status;
}

tri_data *data_prepared(tri_data *d, const struct data_option *known, int n) {
    struct text all = {0};
    for (int i = 0; i < n && d; i++) {
        if (!(known[i].kind & DATA_PREPARES)) continue;
        text_add(&all, "%s%s=", all.size ? "," : "", known[i].key);
        print_option(&known[i], &all);
    }
    if (d) d->about.prepared = all.failed ? NULL : arena_copy(&d->arena, all.data);
    if (d && !d->about.prepared) {
        base_no_memory(d->name);
        tri_data_free(d);
        d = NULL;
    }
    text_free(&all);
    return d;
}

tri_status data_parse_options(const struct data_spec *s, const struct data_option *known, int n) {
    CHECK(n <= 32);
    const char *spec = s->spec;
    uint32_t seen = 0;
    for (char *next, *key = s->options; key && *key; key = next) {
        if ((next = strchr(key, ','))) *next++ = 0;
        char *value = strchr(key, '=');
        if (!value)
            return base_fail(TRI_USAGE, "data '%s': '%s' is not of the form key=value", spec, key);
        *value++ = 0;
        int i = 0;
        while (i < n && strcmp(known[i].key, key)) i++;
        if (i == n) return unknown_key(spec, key, known, n);
        if (seen >> i & 1)
            return base_fail(TRI_USAGE, "data '%s': %s is given twice", spec, key);
        seen |= UINT32_C(1) << i;
        tri_status status = set_option(spec, &known[i], value);
        if (status) return status;
    }
    return take_prepared(s, known, n, seen);
}

tri_status data_choose(const char *spec, const char *key, const char *text, const char *no,
                       const char *yes, bool *out) {
    if (!text) return TRI_OK;
    *out = !strcmp(text, yes);
    if (*out || !strcmp(text, no)) return TRI_OK;
    return base_fail(TRI_USAGE, "data '%s': %s=%s is neither %s nor %s", spec, key, text, no, yes);
}
