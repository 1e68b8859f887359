/* SPDX-License-Identifier: Apache-2.0
 * Learning-rate schedules: the factor of the base rate as a function of the step. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "base/nearest.h"
#include "train/settings.h"
#include "train/train.h"

/* done: steps done after warm-up; at: their fraction, 0 to 1, of all steps after warm-up. */
static double constant(const struct schedule *s, double at, int64_t done) {
    (void)s, (void)at, (void)done;
    return 1;
}

static double step(const struct schedule *s, double at, int64_t done) {
    (void)at;
    return math_pow(s->factor, (double)(done / s->every));
}

static double polynomial(const struct schedule *s, double at, int64_t done) {
    (void)done;
    return s->end + (1 - s->end) * math_pow(1 - at, s->power);
}

static double cosine(const struct schedule *s, double at, int64_t done) {
    (void)done;
    return s->end + (1 - s->end) * 0.5 * (1 + math_cos(3.14159265358979323846 * at));
}

static const struct {
    const char *name;
    double (*factor)(const struct schedule *s, double at, int64_t done);
} kinds[] = {{"constant", constant}, {"step", step}, {"poly", polynomial}, {"cosine", cosine}};

static tri_status bad(const char *text) {
    char name[32];
    base_format(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);
    struct nearest near = {.wanted = name};
    for (size_t i = 0; i < COUNT(kinds); i++) nearest_offer(&near, kinds[i].name);
    return base_fail(TRI_USAGE, "schedule \"%s\" is not one of: constant, step:every=N,factor=X, "
                     "poly:power=X,end=X, cosine:end=X; each with warmup=N (end is a share of the "
                     "base rate)%s", text, strcmp(near.name, name) ? nearest_meant(&near) : "");
}

tri_status schedule_parse(const char *text, struct schedule *s) {
    *s = (struct schedule){.every = 0, .factor = 0.1, .power = 1};
    if (!text || !*text) return TRI_OK;
    size_t name = strcspn(text, ":");
    while (s->kind < (int)COUNT(kinds) && (strlen(kinds[s->kind].name) != name ||
                                           memcmp(kinds[s->kind].name, text, name)))
        s->kind++;
    if (s->kind == (int)COUNT(kinds)) return bad(text);
    const struct setting_key keys[] = {
        {"warmup", &s->warmup, NULL, 0}, {"every", &s->every, NULL, 1},
        {"factor", NULL, &s->factor, 0}, {"power", NULL, &s->power, 0},
        {"end", NULL, &s->end, 0},
    };
    if (!settings_parse(text + name + (text[name] == ':'), keys, COUNT(keys))) return bad(text);
    if (kinds[s->kind].factor == step && s->every < 1)
        return base_fail(TRI_USAGE, "schedule \"%s\": step needs every=N, the steps between drops",
                         text);
    return TRI_OK;
}

double schedule_rate(const struct schedule *s, double base, int64_t number, int64_t total) {
    if (number <= s->warmup) return base * (double)number / (double)s->warmup;
    int64_t done = number - 1 - s->warmup, rest = total - s->warmup;
    double at = rest > 0 ? (double)done / (double)rest : 0;
    return base * kinds[s->kind].factor(s, at < 1 ? at : 1, done);
}

bool schedule_ends(const struct schedule *s) {
    return kinds[s->kind].factor == polynomial || kinds[s->kind].factor == cosine;
}
