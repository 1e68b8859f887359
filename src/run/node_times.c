/* SPDX-License-Identifier: Apache-2.0 */
#include "run/node_times.h"

#include <stdlib.h>
#include <string.h>

#include "plan/stages.h"
#include "run/executor.h"
#include "run/unit_price.h"

static int by_name(const void *a, const void *b) {
    const struct node_time *x = a, *y = b;
    return strcmp(x->name, y->name);
}

const struct node_time *node_times_at(const struct node_times *t, const char *name) {
    const struct node_time key = {.name = name};
    return t->n ? bsearch(&key, t->of, t->n, sizeof key, by_name) : NULL;
}

void node_times_free(struct node_times *t) {
    free(t->of);
    arena_free(&t->arena);
    *t = (struct node_times){0};
}

/* At least this part of the usual work of a lane must have a price. Not all: fusions at the cuts of
 * a pipeline differ from those without one. */
#define ENOUGH 0.9

/* What it would cost usually. */
static double usual_work(const struct unit *u) {
    double all = 0;
    for (int k = 0; k < u->n; k++) all += stages_work(u->node[k], NULL);
    return all;
}

/* The unit's seconds go to its nodes in proportion to their usual work. */
static void add_unit(struct node_times *out, const struct unit *u, double seconds) {
    const double all = usual_work(u);
    for (int k = 0; k < u->n; k++) {
        const tri_node *n = u->node[k];
        const double own = all > 0 ? seconds * stages_work(n, NULL) / all : seconds / u->n;
        out->of[out->n++] = (struct node_time){.name = n->of ? n->of : n->name, .all = own,
                                               .forward = n->backward || n->of ? 0 : own};
    }
}

/* Makes one of those of the same name. */
static tri_status merge(struct node_times *out) {
    size_t n = 0;
    if (out->n) qsort(out->of, out->n, sizeof *out->of, by_name);
    for (size_t i = 0; i < out->n; i++) {
        struct node_time *last = n ? &out->of[n - 1] : NULL;
        if (last && !strcmp(last->name, out->of[i].name)) {
            last->forward += out->of[i].forward;
            last->all += out->of[i].all;
            continue;
        }
        out->of[n] = out->of[i];
        if (!(out->of[n].name = arena_copy(&out->arena, out->of[i].name)))
            return base_no_memory("the times of nodes");
        n++;
    }
    out->n = n;
    return TRI_OK;
}

tri_status node_times_find(const tri_run *run, const struct prices *p, struct node_times *out) {
    const struct machine *m = run->machine;
    const struct program *lane = m->compilation.lane[0] ? m->thread[0].lane : &m->step;
    const bool divided = m->compilation.strategies.mesh.n > 0;
    size_t nodes = 0;
    *out = (struct node_times){0};
    for (size_t i = 0; i < lane->n_items; i++) nodes += (size_t)lane->item[i].unit->n;
    if (divided) return TRI_OK;
    if (!(out->of = calloc(nodes + 1, sizeof *out->of)))
        return base_no_memory("the times of nodes");
    double *seconds = calloc(lane->n_items + 1, sizeof *seconds);
    double known_seconds = 0, known_work = 0, work = 0;
    const int busy = unit_busy(run, lane, (int)m->lanes);
    for (size_t i = 0; seconds && i < lane->n_items; i++) {
        const struct unit *u = lane->item[i].unit;
        const char *text = unit_price_text(&out->arena, run, u);
        const struct price *is = text ? prices_find(p, text, busy) : NULL;
        seconds[i] = is ? is->seconds : -1;
        work += usual_work(u);
        known_work += is ? usual_work(u) : 0;
        known_seconds += is ? is->seconds : 0;
    }
    const bool known = seconds && known_seconds > 0 && known_work >= ENOUGH * work;
    for (size_t i = 0; known && i < lane->n_items; i++) {
        const struct unit *u = lane->item[i].unit;
        add_unit(out, u, seconds[i] < 0 ? usual_work(u) * known_seconds / known_work : seconds[i]);
    }
    free(seconds);
    if (!known) {
        node_times_free(out);
        return seconds ? TRI_OK : base_no_memory("the times of nodes");
    }
    const tri_status status = merge(out);
    if (status) node_times_free(out);
    return status;
}

tri_status node_times_open(const tri_run *own, const tri_run *run, struct node_times *out) {
    struct prices p = {0};
    struct text path = {0};
    *out = (struct node_times){0};
    tri_status status = prices_open(&p, own->executor->cores(own), &path);
    if (!status && p.n) status = node_times_find(run, &p, out);
    prices_free(&p);
    text_free(&path);
    return status;
}
