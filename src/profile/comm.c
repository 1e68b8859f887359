/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "profile/tables.h"

#define NOBODY (-1)
#define ANY (-1) /* all workers of a host */

/* ---- when threads computed ---- */

struct cover {
    struct {
        int64_t begin, end, before; /* before: time covered until it begins */
    } *part;
    size_t n;
};

static int by_begin(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void merge(struct cover *c) {
    size_t n = 0;
    if (c->n) qsort(c->part, c->n, sizeof *c->part, by_begin);
    for (size_t i = 0; i < c->n; i++) {
        if (n && c->part[i].begin <= c->part[n - 1].end) {
            if (c->part[i].end > c->part[n - 1].end) c->part[n - 1].end = c->part[i].end;
            continue;
        }
        c->part[n] = c->part[i];
        c->part[n].before =
            n ? c->part[n - 1].before + c->part[n - 1].end - c->part[n - 1].begin : 0;
        n++;
    }
    c->n = n;
}

static bool computes(const struct profile *p, const struct profile_thread *t,
                     const struct span *s) {
    const struct profile_item *item = profile_item_of(p, t, s);
    return s->kind == SPAN_OPERATOR && !(item && tables_comm_of(item));
}

static bool is_of(const struct profile_thread *t, int host, int place) {
    return t->host == host && (place == ANY || t->place == place);
}

static bool find_cover(const struct profile *p, int host, int place, struct cover *c) {
    size_t most = 1;
    for (int i = 0; i < p->n_threads; i++)
        if (is_of(&p->thread[i], host, place)) most += p->thread[i].n;
    *c = (struct cover){.part = malloc(most * sizeof *c->part)};
    for (int i = 0; c->part && i < p->n_threads; i++) {
        const struct profile_thread *t = &p->thread[i];
        for (size_t k = 0; is_of(t, host, place) && k < t->n; k++) {
            if (!computes(p, t, &t->span[k])) continue;
            c->part[c->n].begin = t->span[k].begin;
            c->part[c->n++].end = t->span[k].end;
        }
    }
    if (c->part) merge(c);
    return c->part;
}

/* How much is covered until then. */
static int64_t covered(const struct cover *c, int64_t until) {
    size_t low = 0, high = c->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (c->part[middle].begin < until) low = middle + 1;
        else high = middle;
    }
    if (!low) return 0;
    const int64_t end = c->part[low - 1].end < until ? c->part[low - 1].end : until;
    return c->part[low - 1].before + end - c->part[low - 1].begin;
}

/* ---- rows ---- */

struct comm {
    int64_t exposed;
    int64_t waits, most; /* of the worker being added up; of the one that waited longest */
    int who;
};

static void add_exposed(const struct profile *p, const struct profile_thread *t,
                        const struct cover *c, bool transfers, struct comm *row) {
    for (size_t k = 0; k < t->n; k++) {
        const struct span *s = &t->span[k];
        const struct profile_item *item = profile_item_of(p, t, s);
        if (!item || profile_is_wait(s) || !tables_comm_of(item)) continue;
        if ((tables_comm_of(item) == COMM_TRANSFER) != transfers) continue;
        row[s->item].exposed += s->end - s->begin - covered(c, s->end) + covered(c, s->begin);
    }
}

static bool add_host(const struct profile *p, int host, struct comm *row) {
    struct cover all = {0}, one = {0};
    bool good = find_cover(p, host, ANY, &all);
    for (int i = 0; i < p->n_threads && good; i++) {
        const struct profile_thread *t = &p->thread[i];
        if (t->host != host) continue;
        if (!one.part || t[-1].place != t->place) {
            free(one.part);
            good = find_cover(p, host, t->place, &one);
        }
        if (!good) break;
        add_exposed(p, t, &one, false, row);
        add_exposed(p, t, &all, true, row);
    }
    free(all.part);
    free(one.part);
    return good;
}

/* Who of a host waited longest for each item. */
static void add_waits(const struct profile *p, int host, struct comm *row) {
    const int n = p->host[host].n_items;
    for (int i = 0; i < n; i++) row[i].who = NOBODY;
    for (int i = 0; i < p->n_threads; i++) {
        const struct profile_thread *t = &p->thread[i];
        if (t->host != host) continue;
        for (size_t k = 0; k < t->n; k++) {
            const struct span *s = &t->span[k];
            if (profile_is_wait(s) && s->item >= 0) row[s->item].waits += s->end - s->begin;
        }
        if (i + 1 < p->n_threads && is_of(t + 1, host, t->place)) continue;
        for (int k = 0; k < n; k++) {
            if (row[k].waits > row[k].most) row[k].most = row[k].waits, row[k].who = t->place;
            row[k].waits = 0;
        }
    }
}

static void write_row(struct out *o, const struct profile_host *h, const struct profile_item *item,
                      const struct tables_item *of, const struct comm *row) {
    static const char *const kinds[] = {"", "move", "sum", "transfer"};
    const char *const cell[] = {item->operator, item->name, item->scope, h->name,
                                item->move ? item->move : "", item->in, item->out};
    const bool transfer = tables_comm_of(item) == COMM_TRANSFER;
    const double whole = transfer ? of->whole * item->bytes
                                  : (double)of->calls * (item->move ? item->moved : item->bytes),
                 bytes = transfer ? of->wire * item->wire : whole, seconds = 1e-9 * (double)of->ns;
    out_text(o, kinds[tables_comm_of(item)]);
    for (size_t i = 0; i < COUNT(cell); i++) out_cell(o, cell[i]);
    out_format(o, item->bucket < 0 ? "," : ",%lld", (long long)item->bucket);
    out_format(o, ",%lld,%.0f,%.9f", (long long)of->calls, bytes, seconds);
    out_format(o, seconds > 0 ? ",%.6g" : ",", bytes / seconds);
    out_format(o, ",%.9f,%.9f", 1e-9 * (double)row->exposed, 1e-9 * (double)of->waited);
    out_format(o, row->who == NOBODY ? "," : ",%d", row->who);
    out_format(o, transfer ? ",%.0f\n" : ",\n", whole);
}

tri_status comm_write(const struct profile *p, const struct tables_item *items, struct out *o) {
    out_text(o, "kind,operator,name,scope,host,why,in,out,bucket,times,bytes,seconds,rate,exposed,"
                "waited,most,whole\n");
    for (int i = 0; i < p->n_hosts; i++) {
        const struct profile_host *h = &p->host[i];
        const struct tables_item *of = items + tables_number(p, i, 0);
        struct comm *row = calloc((size_t)h->n_items + 1, sizeof *row);
        const bool good = row && add_host(p, i, row);
        if (good) add_waits(p, i, row);
        for (int k = 0; good && k < h->n_items; k++)
            if (tables_comm_of(&h->item[k]) && of[k].calls)
                write_row(o, h, &h->item[k], &of[k], &row[k]);
        free(row);
        if (!good) return base_no_memory("comm.csv");
    }
    return TRI_OK;
}
