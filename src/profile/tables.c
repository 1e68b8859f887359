/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/tables.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "observe/series.h"
#include "profile/study.h"

/* ---- items ---- */

enum tables_comm tables_comm_of(const struct profile_item *item) {
    if (item->move) return COMM_MOVE;
    if (!strcmp(item->operator, "transfer")) return COMM_TRANSFER;
    return strcmp(item->phase, "sum") ? COMM_NONE : COMM_SUM;
}

double tables_ideal(const struct profile_host *h, const struct profile_item *item) {
    const size_t type = strcspn(item->out, "[");
    double seconds = h->bandwidth > 0 ? item->bytes / h->bandwidth : 0;
    for (int i = 0; i < h->n_rates; i++) {
        const struct profile_rate *r = &h->rate[i];
        if (strlen(r->type) != type || strncmp(r->type, item->out, type) || !(r->flops > 0))
            continue;
        if (item->flops / r->flops > seconds) seconds = item->flops / r->flops;
    }
    return seconds;
}

size_t tables_number(const struct profile *p, int host, int item) {
    size_t n = (size_t)item;
    for (int i = 0; i < host; i++) n += (size_t)p->host[i].n_items;
    return n;
}

/* Of an item that several threads may compute together: all spans with the same numbers are parts
 * of one call. Of a sum, each span is one, as a lane may bring several. */
struct call {
    size_t item;
    uint32_t step;
    int lane;
};

static int by_call(const void *a, const void *b) {
    const struct call *x = a, *y = b;
    if (x->item != y->item) return x->item < y->item ? -1 : 1;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return (x->lane > y->lane) - (x->lane < y->lane);
}

static void count_calls(struct tables_item *of, struct call *call, size_t n) {
    if (n) qsort(call, n, sizeof *call, by_call);
    for (size_t i = 0; i < n; i++)
        if (!i || by_call(&call[i - 1], &call[i])) of[call[i].item].calls++;
}

static bool is_shared(const struct profile_item *item) {
    return tables_comm_of(item) != COMM_SUM && tables_comm_of(item) != COMM_TRANSFER;
}

/* All spans that have an item, but for waits. Returns how many may be parts of calls. */
static size_t gather(const struct profile *p, struct tables_item *of, struct call *call) {
    size_t n = 0;
    for (int i = 0; i < p->n_threads; i++) {
        const struct profile_thread *t = &p->thread[i];
        const size_t first = tables_number(p, t->host, 0);
        for (size_t k = 0; k < t->n; k++) {
            const struct span *s = &t->span[k];
            if (s->item < 0) continue;
            const size_t item = first + (size_t)s->item;
            if (profile_is_wait(s)) {
                of[item].waited += s->end - s->begin;
                continue;
            }
            of[item].ns += s->end - s->begin;
            of[item].whole += 1.0 / span_chunks(s);
            of[item].wire += span_wire_part(s) / span_chunks(s);
            if (s->kind == SPAN_OPERATOR && is_shared(&p->host[t->host].item[s->item]))
                call[n++] = (struct call){item, s->step, s->lane};
            else of[item].calls++;
        }
    }
    return n;
}

struct tables_item *tables_items(const struct profile *p) {
    struct tables_item *of = calloc(tables_number(p, p->n_hosts, 0) + 1, sizeof *of);
    struct call *call = malloc((p->spans + 1) * sizeof *call);
    if (of && call) {
        count_calls(of, call, gather(p, of, call));
    } else {
        free(of);
        of = NULL;
    }
    free(call);
    return of;
}

/* ---- ops.csv ---- */

struct op {
    const struct profile_host *host;
    const struct profile_item *item; /* of a kind, one of them */
    int64_t calls, ns;
    double flops, bytes, ideal; /* of all calls */
};

static int by_operator(const void *a, const void *b) {
    const struct op *x = a, *y = b;
    return strcmp(x->item->operator, y->item->operator);
}

static int longest_first(const void *a, const void *b) {
    const struct op *x = a, *y = b;
    if (x->ns != y->ns) return x->ns < y->ns ? 1 : -1;
    const int order = strcmp(x->item->name, y->item->name);
    return order ? order : (x->item > y->item) - (x->item < y->item);
}

static size_t list_ops(const struct profile *p, const struct tables_item *of, struct op *op) {
    size_t n = 0, number = 0;
    for (int h = 0; h < p->n_hosts; h++)
        for (int i = 0; i < p->host[h].n_items; i++, number++) {
            const struct profile_item *item = &p->host[h].item[i];
            const double calls = (double)of[number].calls;
            if (!of[number].calls || tables_comm_of(item) == COMM_TRANSFER) continue;
            op[n++] = (struct op){&p->host[h], item, of[number].calls, of[number].ns,
                                  calls * item->flops, calls * item->bytes,
                                  calls * tables_ideal(&p->host[h], item)};
        }
    return n;
}

/* Adds up those of a kind. */
static size_t list_kinds(struct op *op, size_t n, struct op *kind) {
    size_t kinds = 0;
    if (n) qsort(op, n, sizeof *op, by_operator);
    for (size_t i = 0; i < n; i++) {
        if (!i || by_operator(&op[i - 1], &op[i])) {
            kind[kinds++] = op[i];
            continue;
        }
        struct op *to = &kind[kinds - 1];
        to->calls += op[i].calls;
        to->ns += op[i].ns;
        to->flops += op[i].flops;
        to->bytes += op[i].bytes;
        to->ideal += op[i].ideal;
    }
    return kinds;
}

static void write_op(struct out *o, const struct op *op, bool kind, double all) {
    static const struct profile_item none = {.unit = "", .name = "", .scope = "", .phase = "",
                                             .in = "", .out = "", .stage = -1, .leg = -1,
                                             .seat = -1, .size = -1};
    const struct profile_item *i = kind ? &none : op->item;
    const double seconds = 1e-9 * (double)op->ns;
    out_text(o, kind ? "kind" : "instance");
    out_cell(o, op->item->operator);
    out_cell(o, i->unit);
    out_cell(o, i->name);
    out_cell(o, i->scope);
    out_cell(o, i->phase);
    out_cell(o, kind ? "" : op->host->name);
    const int64_t at[] = {i->stage, i->leg, i->seat, i->size};
    for (size_t k = 0; k < COUNT(at); k++)
        out_format(o, at[k] < 0 ? "," : ",%lld", (long long)at[k]);
    out_format(o, ",%lld,%.9f", (long long)op->calls, seconds);
    const double rate[][2] = {{seconds, all}, {op->flops * 1e-9, seconds},
                              {op->bytes * 1e-9, seconds}, {op->ideal, seconds}};
    for (size_t k = 0; k < COUNT(rate); k++)
        out_format(o, rate[k][0] > 0 && rate[k][1] > 0 ? ",%.6g" : ",", rate[k][0] / rate[k][1]);
    out_cell(o, i->in);
    out_cell(o, i->out);
    out_text(o, "\n");
}

static tri_status write_ops(const struct profile *p, const struct tables_item *of, struct out *o) {
    const size_t most = tables_number(p, p->n_hosts, 0) + 1;
    struct op *op = malloc(most * sizeof *op), *kind = malloc(most * sizeof *kind);
    double all = 0;
    if (op && kind) {
        const size_t n = list_ops(p, of, op), kinds = list_kinds(op, n, kind);
        out_text(o, "level,operator,unit,name,scope,phase,host,stage,leg,seat,size,calls,seconds,"
                    "share,gflops,gbytes,roofline,in,out\n");
        for (size_t i = 0; i < n; i++) all += 1e-9 * (double)op[i].ns;
        if (n) qsort(op, n, sizeof *op, longest_first);
        if (n) qsort(kind, kinds, sizeof *kind, longest_first);
        for (size_t i = 0; i < kinds; i++) write_op(o, &kind[i], true, all);
        for (size_t i = 0; i < n; i++) write_op(o, &op[i], false, all);
    }
    const bool good = op && kind;
    free(op);
    free(kind);
    return good ? TRI_OK : base_no_memory("ops.csv");
}

/* ---- steps.csv ---- */

static void add_spent(const struct profile_host *h, const struct profile_thread *t, int64_t *sum) {
    int at = 0;
    for (size_t k = 0; k < t->n; k++) {
        const struct span *s = &t->span[k];
        if (s->kind >= SPENTS) continue;
        while (at < h->n_steps && h->step[at].next <= s->begin) at++;
        for (int i = at; i < h->n_steps && h->step[i].begin < s->end; i++) {
            const int64_t begin = s->begin > h->step[i].begin ? s->begin : h->step[i].begin,
                          end = s->end < h->step[i].next ? s->end : h->step[i].next;
            if (end > begin) sum[(size_t)i * SPENTS + s->kind] += end - begin;
        }
    }
}

static bool computes(const struct profile_thread *t, int host, int place) {
    return t->host == host && t->place == place && t->what == SPAN_COMPUTES;
}

int64_t *tables_spent(const struct profile *p, int host, int place) {
    const struct profile_host *h = &p->host[host];
    int64_t *sum = calloc((size_t)h->n_steps + 1, SPENTS * sizeof *sum);
    for (int i = 0; sum && i < p->n_threads; i++)
        if (computes(&p->thread[i], host, place)) add_spent(h, &p->thread[i], sum);
    return sum;
}

int tables_threads(const struct profile *p, int host, int place) {
    int n = 0;
    for (int i = 0; i < p->n_threads; i++) n += computes(&p->thread[i], host, place);
    return n;
}

/* Whether this thread is the first of its worker's that compute. */
static bool is_first(const struct profile *p, int i) {
    const struct profile_thread *t = &p->thread[i];
    if (t->what != SPAN_COMPUTES) return false;
    for (int k = i - 1; k >= 0 && p->thread[k].host == t->host; k--)
        if (computes(&p->thread[k], t->host, t->place)) return false;
    return true;
}

static void out_seconds(struct out *o, int64_t ns) { out_format(o, ",%.9f", 1e-9 * (double)ns); }

/* The cells that begin a row of a worker. */
static void out_worker(struct out *o, const struct profile *p, const struct profile_thread *t,
                       uint32_t step) {
    out_integer(o, step);
    out_cell(o, p->host[t->host].name);
    out_format(o, ",%d", t->place);
}

static tri_status write_worker(const struct profile *p, const struct profile_thread *t,
                               struct out *o) {
    const struct profile_host *h = &p->host[t->host];
    int64_t *sum = tables_spent(p, t->host, t->place);
    if (!sum) return base_no_memory("steps.csv");
    for (int i = 0; i < h->n_steps; i++) {
        out_worker(o, p, t, h->step[i].step);
        out_format(o, ",%d", tables_threads(p, t->host, t->place));
        out_seconds(o, h->step[i].next - h->step[i].begin);
        for (size_t k = 0; k < SPENTS; k++) out_seconds(o, sum[(size_t)i * SPENTS + k]);
        out_text(o, "\n");
    }
    free(sum);
    return TRI_OK;
}

static tri_status write_steps(const struct profile *p, const struct tables_item *of,
                              struct out *o) {
    (void)of;
    tri_status status = TRI_OK;
    out_text(o, "step,host,worker,threads,seconds");
    for (int i = 0; i < SPENTS; i++) {
        out_text(o, spent_rows[i].group == SPENT_WAITS ? ",wait-" : ",");
        out_text(o, spent_rows[i].name);
    }
    out_text(o, "\n");
    for (int i = 0; i < p->n_threads && !status; i++)
        if (is_first(p, i)) status = write_worker(p, &p->thread[i], o);
    return status;
}

/* ---- memory.csv ---- */

/* What a worker had taken at a time; 0: not known. */
static double measured(const struct profile_host *h, struct series *s, int place, int64_t time) {
    const int column = s->n ? series_column(s, "memory-kib") : -1;
    if (column < 0) return 0;
    int64_t i = series_find_time(s, time - h->offset + h->realtime - s->layout.began);
    if (i == s->n) i--;
    return series_read(s, i) && place < s->layout.places ? 1024 * series_value(s, place, column)
                                                         : 0;
}

static void write_live(const struct profile *p, const struct profile_thread *t,
                       const struct profile_step *step, struct series *series, struct out *o) {
    const struct profile_host *h = &p->host[t->host];
    for (size_t k = 0; k < t->n; k++) {
        const struct span *s = &t->span[k];
        const struct profile_item *item = profile_item_of(p, t, s);
        if (s->kind != SPAN_OPERATOR || !item || item->live < 0) continue;
        if (s->begin < step->begin || s->begin >= step->next) continue;
        out_worker(o, p, t, step->step);
        out_format(o, ",%.9f,%d,%lld", 1e-9 * (double)(s->begin - step->begin), s->lane,
                   (long long)item->live);
        for (int i = 0; i < PARTS; i++)
            out_format(o, h->part[i] < 0 ? "," : ",%lld", (long long)h->part[i]);
        const double is = measured(h, series, t->place, s->end);
        out_format(o, is > 0 ? ",%.0f" : ",", is);
        out_cell(o, item->name);
        out_cell(o, item->scope);
        out_text(o, "\n");
    }
}

static tri_status write_memory(const struct profile *p, const struct tables_item *of,
                               struct out *o) {
    (void)of;
    out_text(o, "step,host,worker,seconds,lane,live");
    for (int i = 0; i < PARTS; i++) OUT(o, ",", profile_parts[i]);
    out_text(o, ",measured,name,scope\n");
    for (int i = 0; i < p->n_threads; i++) {
        const struct profile_host *h = &p->host[p->thread[i].host];
        if (!h->n_steps || !is_first(p, i)) continue;
        struct series series = {.fd = -1};
        char path[4200];
        base_format(path, sizeof path, "%s/workers.series", h->path);
        const bool good = !access(path, R_OK) && !series_open(&series, path);
        write_live(p, &p->thread[i], &h->step[0], &series, o);
        if (good) series_close(&series);
    }
    return TRI_OK;
}

/* ---- all ---- */

static const struct {
    const char *name;
    tri_status (*write)(const struct profile *p, const struct tables_item *of, struct out *o);
} tables[] = {{"ops", write_ops}, {"steps", write_steps}, {"comm", comm_write},
              {"buckets", buckets_write}, {"memory", write_memory}};

tri_status tables_text(const struct profile *p, const char *name, struct text *out) {
    struct out *o = malloc(sizeof *o);
    tri_status status = o ? TRI_OK : base_no_memory("a table of the profile");
    for (size_t i = 0; i < COUNT(tables) && !status; i++) {
        if (strcmp(tables[i].name, name)) continue;
        out_open_text(o, out);
        status = out_close(o, tables[i].write(p, p->study->item, o));
    }
    free(o);
    return status;
}

tri_status tables_write(const struct profile *p, const char *folder) {
    struct out *o = malloc(sizeof *o);
    tri_status status = o ? TRI_OK : base_no_memory("the tables of the profile");
    for (size_t i = 0; i < COUNT(tables) && !status; i++) {
        char name[32];
        base_format(name, sizeof name, "%s.csv", tables[i].name);
        status = out_open(o, folder, name);
        if (!status) status = out_close(o, tables[i].write(p, p->study->item, o));
    }
    free(o);
    return status;
}
