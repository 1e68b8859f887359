/* SPDX-License-Identifier: Apache-2.0 */
#include "run/items.h"

#include <stdlib.h>
#include <string.h>

#include "machine/budget.h"
#include "observe/log.h"
#include "plan/explain.h"
#include "run/executor.h"
#include "run/profile.h"

/* ---- programs ---- */

static const char *const phases[] = {"count", "count", "lane", "lane", "pre", "step", "sum", "sum"};

/* The graphs of an executable, in the order of `phases`. */
static tri_graph *graph_at(const struct machine *m, int i) {
    const struct compilation *c = &m->compilation;
    tri_graph *const all[COUNT(phases)] = {c->count[0], c->count[1], c->lane[0],  c->lane[1],
                                           c->pre,      c->step,     c->merge[0], c->merge[1]};
    return all[i];
}

/* A program of the graph; all of them have the same items. */
static const struct program *program_of(const struct machine *m, const tri_graph *g) {
    for (int k = 0; g && k < 2; k++)
        if (m->tree[k].g == g && m->tree[k].threads) return m->tree[k].merge;
    for (int i = 0; g && machine_program(m, i); i++)
        if (machine_program(m, i)->g == g) return machine_program(m, i);
    return NULL;
}

int items_number(const tri_run *run) {
    int n = 0;
    for (int e = 0; e < run->n_executables; e++)
        for (int i = 0; i < (int)COUNT(phases); i++) {
            tri_graph *g = graph_at(&run->executable[e], i);
            const struct program *p = program_of(&run->executable[e], g);
            if (!p) continue;
            g->first_item = 1 + n;
            n += (int)p->n_items;
        }
    return n;
}

bool items_find(const tri_run *run, int number, struct item_at *out) {
    for (int e = 0; e < run->n_executables; e++) {
        const struct machine *m = &run->executable[e];
        for (int i = 0; i < (int)COUNT(phases); i++) {
            const struct program *p = program_of(m, graph_at(m, i));
            const int64_t item = p ? number - (p->g->first_item - 1) : -1;
            if (item < 0 || (size_t)item >= p->n_items) continue;
            const int sums = i - (int)COUNT(phases) + 2;
            *out = (struct item_at){m, p, (size_t)item,
                                    sums >= 0 ? &m->tree[sums] : NULL};
            return true;
        }
    }
    return false;
}

#define BESIDE 1.3 /* times the items: with lanes, waits, and parts of several threads */

int64_t items_in_step(const tri_run *run) {
    const struct machine *m = run->executable;
    double n = 0;
    for (int i = 0; i < (int)COUNT(phases); i++) {
        const struct program *p = program_of(m, graph_at(m, i));
        const double times = i < 4 ? (double)m->lanes / m->compilation.n_sizes
                             : i < 6 ? 1 : (double)(m->lanes - 1);
        if (p) n += times * (double)p->n_items;
    }
    return (int64_t)(BESIDE * n) + 16;
}

/* ---- a line ---- */

static void add_specs(struct text *t, const char *key, tri_tensor *const *tensor, int n) {
    text_add(t, ",\"%s\":[", key);
    for (int i = 0; i < n; i++) {
        char spec[SPEC_TEXT];
        text_add(t, "%s\"%s\"", i ? "," : "", base_spec_text(&tensor[i]->spec, spec));
    }
    text_add(t, "]");
}

/* "layer1/0" of "layer1.0.conv2d". */
static void add_scope(struct text *t, const char *name) {
    char scope[512];
    base_format(scope, sizeof scope, "%s", name);
    char *last = strrchr(scope, '.');
    if (last) *last = 0;
    else *scope = 0;
    for (char *c = scope; *c; c++)
        if (*c == '.') *c = '/';
    text_add(t, ",\"scope\":");
    log_quote(t, scope);
}

/* The seat that computes it alone; -1: several do, or there is no mesh. */
static int64_t seat_of(const struct mesh *m, const tri_node *n) {
    int64_t seat = 0;
    for (int a = 0; a < m->n; a++) {
        if (n->owner[a] < 0) return -1;
        seat = seat * m->axis[a].size + n->owner[a];
    }
    return m->n ? seat : -1;
}

/* A move has several items. All name it; the first one has its bytes, once for all of them. Others
 * have fused it; of these, the item that first does so names it. */
static void add_move(struct text *t, const struct machine *m, const struct program *p,
                     const struct unit *u, bool *moved) {
    const struct dist *d = &m->compilation.dist[p->g == m->compilation.lane[1]];
    const tri_node *n = u->node[u->n - 1];
    size_t bytes = 0;
    for (int k = 0; k < u->n; k++) {
        const int is = u->node[k]->move;
        if (!is || (size_t)is > d->n_moves || moved[is]) continue;
        moved[is] = true;
        bytes += d->move[is - 1].bytes;
        if (!n->move) n = u->node[k];
    }
    if (!n->move || (size_t)n->move > d->n_moves) return;
    const struct move *move = &d->move[n->move - 1];
    struct text how = {0};
    move_text(&d->mesh, &move->from, &move->to, &how);
    text_add(&how, " of %s", explain_tensor(d, move)->node->name);
    if (move->node >= 0) text_add(&how, " for %s", d->g->node[move->node]->name);
    text_add(t, ",\"move\":");
    log_quote(t, how.data ? how.data : "");
    text_add(t, ",\"moved\":%zu", bytes);
    text_free(&how);
}

static void add_item(struct text *t, const struct machine *m, const struct program *p, int phase,
                     size_t i, int64_t live, bool *moved) {
    const struct unit *u = p->item[i].unit;
    const tri_node *n = u->node[u->n - 1];
    const struct work w = profile_work(p, i);
    text_add(t, "{\"operator\":\"%s\",\"unit\":\"", n->entry->op->name);
    for (int k = 0; k < u->n; k++) text_add(t, "%s%s", k ? "+" : "", u->node[k]->entry->op->name);
    text_add(t, "\",\"name\":");
    log_quote(t, n->name);
    add_scope(t, n->name);
    text_add(t, ",\"phase\":\"%s\",\"size\":%d", phases[phase], phase % 2 && phase != 5);
    if (n->backward) text_add(t, ",\"backward\":true");
    if (n->stage >= 0 && m->compilation.stages) text_add(t, ",\"stage\":%d", n->stage);
    if (p->g->legs) text_add(t, ",\"leg\":%d", n->leg);
    if (phase >= 6) text_add(t, ",\"bucket\":%d", m->tree[phase - 6].bucket_of[i]);
    const int64_t seat = seat_of(&p->g->mesh, n);
    if (seat >= 0) text_add(t, ",\"seat\":%lld", (long long)seat);
    add_move(t, m, p, u, moved);
    add_specs(t, "in", u->in, u->n_in);
    add_specs(t, "out", u->out, u->n_out);
    text_add(t, ",\"flops\":%.0f,\"bytes\":%.0f,\"live\":%lld}\n", w.flops, w.bytes,
             (long long)live);
}

/* By item, the bytes of the arena that tensors have at that moment; null: out of memory. */
static int64_t *live_bytes(const struct program *p) {
    const struct memory_plan *plan = &p->memory;
    int64_t *live = calloc(p->n_items + 2, sizeof *live);
    for (size_t k = 0; live && k < p->g->n_nodes; k++)
        for (int o = 0; o < p->g->node[k]->n_out; o++) {
            const tri_tensor *is = &p->g->node[k]->out[o];
            if (plan->root[is->id] != is->id || plan->offset[is->id] == MEMORY_OUTSIDE ||
                plan->begin[is->id] < 0) /* nothing needs it */
                continue;
            live[plan->begin[is->id]] += (int64_t)memory_bytes(is);
            live[plan->end[is->id] + 1] -= (int64_t)memory_bytes(is);
        }
    for (size_t i = 1; live && i < p->n_items; i++) live[i] += live[i - 1];
    return live;
}

static tri_status add_program(struct text *t, const struct machine *m, const struct program *p,
                              int phase) {
    int64_t *live = live_bytes(p);
    bool *moved = calloc(m->compilation.dist[p->g == m->compilation.lane[1]].n_moves + 1,
                         sizeof *moved);
    for (size_t i = 0; live && moved && i < p->n_items; i++)
        add_item(t, m, p, phase, i, live[i], moved);
    const bool good = live && moved;
    free(live);
    free(moved);
    return good ? TRI_OK : base_no_memory("items.jsonl");
}

/* Of several hosts: what a bucket sends, in the order of boards (worker_settle.c). */
static void add_transfers(struct text *t, const struct machine *m) {
    for (int k = 0; k < 2 && m->hosts; k++)
        for (int b = 0; b < m->tree[k].buckets.n; b++) {
            const struct tree_bucket *is = &m->tree[k].bucket[b];
            const struct wire_map map = tree_map(&m->tree[k], b);
            text_add(t, "{\"operator\":\"transfer\",\"name\":\"bucket %d of %s\",\"phase\":\"%s\","
                     "\"bucket\":%d,\"bytes\":%zu,\"wire\":%zu}\n", b, k ? "lanes" : "counts",
                     k ? "lane" : "count", b, is->bytes, wire_bytes(&map, 0, wire_blocks(&map)));
        }
}

static void add_head(struct text *t, const tri_run *run, int64_t first, int64_t last) {
    const struct machine *m = run->executable;
    const struct budget b = budget_of(m, &run->store);
    text_add(t, "{\"version\":1,\"steps\":[%lld,%lld],\"lanes\":%lld,\"threads\":%d,"
             "\"workers\":%d,", (long long)first, (long long)last, (long long)run_lanes(run),
             run_threads(run), run->executor->size(run));
    if (m->pipeline.tracks)
        text_add(t, "\"tracks\":%d,\"waiting\":%.4f,", m->pipeline.tracks,
                 pipeline_idle(&m->pipeline, &m->times));
    text_add(t, "\"memory\":{\"parameters\":%zu,\"optimizer\":%zu,\"slots\":%zu,\"carried\":%zu,"
             "\"data\":%zu}}\n", b.parameters + b.states, b.optimizer, b.lane_sums + b.handed,
             b.carried, b.data);
}

tri_status items_write(const tri_run *run, const char *folder, int64_t first, int64_t last) {
    struct text t = {0};
    tri_status status = TRI_OK;
    items_number(run);
    add_head(&t, run, first, last);
    for (int e = 0; e < run->n_executables && !status; e++)
        for (int i = 0; i < (int)COUNT(phases) && !status; i++) {
            const struct machine *m = &run->executable[e];
            const struct program *p = program_of(m, graph_at(m, i));
            if (p) status = add_program(&t, m, p, i);
        }
    for (int e = 0; e < run->n_executables; e++) add_transfers(&t, &run->executable[e]);
    return text_write(&t, folder, "items.jsonl", status);
}
