/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/against.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "profile/rules.h"

#define SHOWN 20 /* rows of changes */

/* Something that takes time in either profile. */
struct row {
    const struct profile_item *is; /* a kind of time has no unit */
    double seconds[2]; /* in a step of a, of b */
    bool is_in[2];
};

struct rows {
    struct row *row;
    size_t n, capacity;
    double all[2]; /* seconds of all threads in a step */
    /* Kinds of time, and what is left, as if they were operators. */
    struct profile_item kind[SPENTS + 1];
};

static double steps_of(const struct profile *p) {
    return p->n_hosts && p->host[0].n_steps ? p->host[0].n_steps : 1;
}

static bool add(struct rows *r, int which, const struct profile_item *is, double seconds) {
    if (!ARRAY_GROW(r->row, r->n, r->capacity)) return false;
    struct row *row = &r->row[r->n++];
    *row = (struct row){.is = is};
    row->seconds[which] = seconds;
    row->is_in[which] = true;
    return true;
}

static bool add_kind(struct rows *r, int which, int k, double seconds) {
    const bool waits = k < SPENTS && spent_rows[k].group == SPENT_WAITS;
    r->kind[k] = (struct profile_item){
        .operator = k < SPENTS ? spent_rows[k].name : "outside of operators", .scope = "",
        .phase = waits ? "wait" : "time", .seat = -1};
    return add(r, which, &r->kind[k], seconds);
}

/* The rows of a profile add up to its threads' time in a step. */
static bool add_profile(struct rows *r, int which, const struct profile *p) {
    const struct study *s = p->study;
    const double steps = 1e9 * steps_of(p);
    double outside = s->all;
    bool good = true;
    r->all[which] = s->all / steps;
    for (int h = 0; h < p->n_hosts; h++)
        for (int i = 0; i < p->host[h].n_items && good; i++) {
            const struct profile_item *item = &p->host[h].item[i];
            const struct tables_item *of = &s->item[tables_number(p, h, i)];
            if (!of->calls || tables_comm_of(item) == COMM_TRANSFER) continue;
            outside -= (double)of->ns;
            good = add(r, which, item, (double)of->ns / steps);
        }
    for (int k = 0; k < SPENTS && good; k++) {
        const enum spent_group group = spent_rows[k].group;
        if (group == SPENT_COMPUTES || group == SPENT_SUMS || !(s->spent[k] > 0)) continue;
        outside -= s->spent[k] * s->all;
        good = add_kind(r, which, k, s->spent[k] * s->all / steps);
    }
    return good && add_kind(r, which, SPENTS, fmax(outside, 0) / steps);
}

static int by_key(const void *a, const void *b) {
    const struct profile_item *x = ((const struct row *)a)->is, *y = ((const struct row *)b)->is;
    int order = strcmp(x->scope, y->scope);
    if (!order) order = strcmp(x->operator, y->operator);
    if (!order) order = strcmp(x->phase, y->phase);
    return order ? order : (x->seat > y->seat) - (x->seat < y->seat);
}

static double change_of(const struct row *row) { return row->seconds[0] - row->seconds[1]; }

/* What both have, then what was added, then what was removed; each by the change. */
static int by_change(const void *a, const void *b) {
    const struct row *x = a, *y = b;
    const int in[] = {2 * !x->is_in[0] + !x->is_in[1], 2 * !y->is_in[0] + !y->is_in[1]};
    const double difference = fabs(change_of(x)) - fabs(change_of(y));
    if (in[0] != in[1]) return in[0] - in[1];
    return difference != 0 ? (difference < 0) - (difference > 0) : by_key(a, b);
}

static void merge(struct rows *r) {
    size_t n = 0;
    if (r->n) qsort(r->row, r->n, sizeof *r->row, by_key);
    for (size_t i = 0; i < r->n; i++) {
        if (!n || by_key(&r->row[n - 1], &r->row[i])) {
            r->row[n++] = r->row[i];
            continue;
        }
        for (int k = 0; k < 2; k++) {
            r->row[n - 1].seconds[k] += r->row[i].seconds[k];
            r->row[n - 1].is_in[k] |= r->row[i].is_in[k];
        }
    }
    r->n = n;
    if (n) qsort(r->row, n, sizeof *r->row, by_change);
}

static void name_row(struct text *cells, const struct profile_item *is) {
    struct text name = {0};
    text_add(&name, "%s%s%s%s", strcmp(is->phase, "wait") ? "" : "waits for ", is->operator,
             *is->scope ? " " : "", is->scope);
    if (is->unit && *is->phase && strcmp(is->phase, "lane"))
        text_add(&name, ", phase %s", is->phase);
    if (is->seat >= 0) text_add(&name, ", seat %lld", (long long)is->seat);
    columns_cell(cells, name.data ? name.data : "");
    text_free(&name);
}

/* The rows that are in `a`, in `b`, or in both. */
static void print_rows(const struct rows *r, bool a, bool b, const char *title, struct text *out) {
    struct text cells = {0};
    const double least = thresholds.change * fmax(r->all[0], r->all[1]);
    int n = 0, more = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct row *row = &r->row[i];
        const double change = change_of(row);
        if (row->is_in[0] != a || row->is_in[1] != b || (a && b && fabs(change) < least)) continue;
        if (n++ >= SHOWN && a && b) {
            more++;
            continue;
        }
        text_add(&cells, "%s%s", change < 0 ? "-" : "+", TIME(fabs(change)));
        if (a && b) text_add(&cells, "\t%s\t%s", TIME(row->seconds[0]), TIME(row->seconds[1]));
        text_add(&cells, "\t");
        name_row(&cells, row->is);
        text_add(&cells, "\n");
    }
    text_add(out, "%s\n%s", title, n ? "" : "  nothing\n");
    columns_add(out, a && b ? "  rrrl" : "  rl", &cells);
    if (more) text_add(out, "  and %d more\n", more);
}

/* What makes the figures less comparable. */
static void tell_difference(const struct profile *a, const struct profile *b, struct text *out) {
    const double threads[] = {a->study->threads, b->study->threads};
    if (steps_of(a) != steps_of(b))
        text_add(out, "It is of %.0f step(s), the profile before of %.0f.\n", steps_of(a),
                 steps_of(b));
    if (fabs(threads[0] - threads[1]) >= 0.5)
        text_add(out, "%.0f thread(s) compute, in the profile before %.0f.\n", threads[0],
                 threads[1]);
    if (a->lost || b->lost)
        text_add(out, "%lld span(s) of it were lost, and %lld of the profile before: their time is "
                 "missing.\n", (long long)a->lost, (long long)b->lost);
}

tri_status against_print(const struct profile *a, const struct profile *b, struct text *out) {
    struct rows r = {0};
    const double now = a->study->step, before = b->study->step;
    const bool good = add_profile(&r, 0, a) && add_profile(&r, 1, b);
    merge(&r);
    text_add(out, "A step takes %s instead of %s", TIME(now), TIME(before));
    if (before > 0)
        text_add(out, ", %s %s", SHARE(fabs(now / before - 1)), now < before ? "less" : "more");
    text_add(out, ".\n");
    tell_difference(a, b, out);
    text_add(out, "\n");
    print_rows(&r, true, true, "Changed, as time of all threads in a step: the change, now, before",
               out);
    print_rows(&r, true, false, "\nAdded", out);
    print_rows(&r, false, true, "\nRemoved", out);
    free(r.row);
    return good && !out->failed ? TRI_OK : base_no_memory("the comparison of profiles");
}
