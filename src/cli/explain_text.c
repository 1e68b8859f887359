/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain.h"

#include "base/columns.h"

/* ---- operators and moves ---- */

static void add_operators(struct text *t, const struct explanation *e, bool backward) {
    bool any = false;
    for (size_t i = 0; i < e->d->g->n_nodes; i++) {
        const tri_node *n = e->d->g->node[i];
        if (!n->n_in || n->backward != backward || !explain_names(e->own->match, n)) continue;
        if (!any)
            text_add(t, "\n%s: operator, factor/axis, and the shapes that seat 0 computes\n",
                     backward ? "backward" : "forward");
        any = true;
        explain_operator(e->d, e->c->target, n, t);
    }
}

static void add_moves(struct text *t, const struct explanation *e, enum move_when when,
                      const char *title) {
    bool any = false;
    text_add(t, "\n%s\n", title);
    for (size_t i = 0; i < e->d->n_moves; i++) {
        const struct move *m = &e->d->move[i];
        const tri_node *of = explain_tensor(e->d, m)->node;
        const tri_node *reader = m->node < 0 ? of : e->d->g->node[m->node];
        if (move_when(e->d, m) != when) continue;
        if (!explain_names(e->own->match, of) && !explain_names(e->own->match, reader)) continue;
        any = true;
        explain_move(e->d, m, t);
    }
    if (!any) text_add(t, "  nothing\n");
}

/* ---- seats ---- */

static void add_mib(struct text *t, double bytes, const char *after) {
    text_add(t, "%.*f%s", bytes > 0 && bytes < 1 << 20 ? 4 : 1, bytes / (1 << 20), after);
}

static void add_seat(struct text *cells, const struct explanation *e, const struct seat_bytes *b,
                     size_t lane) {
    const size_t bytes[] = {b->params, b->states, b->data, b->given, b->results,
                            e->m ? lane : b->computed};
    for (size_t i = 0; i < COUNT(bytes); i++)
        text_add(cells, "\t"), add_mib(cells, (double)bytes[i], "");
    text_add(cells, "\n");
}

/* All, or the one that has most; and a lane that is not split. */
static void add_seats(struct text *t, const struct explanation *e) {
    struct text cells = {0};
    int64_t most = 0;
    for (int64_t i = 0; i < e->shown; i++)
        if (e->seat[i].lane > e->seat[most].lane) most = i;
    text_add(&cells, "MiB\tparameters\tstates\tdata\tgiven\tresults\t%s\n",
             e->m ? "activations" : "computed");
    for (int64_t i = 0; i < e->shown; i++) {
        if (!e->own->full && i != most) continue;
        text_add(&cells, e->own->full ? "seat " : "a seat, at most");
        for (int a = 0; a < e->d->mesh.n && e->own->full; a++)
            text_add(&cells, "%s%d", a ? "," : "", e->seat[i].at[a]);
        add_seat(&cells, e, &e->seat[i].bytes, e->seat[i].lane);
    }
    text_add(&cells, "unsplit");
    add_seat(&cells, e, &e->unsplit, e->unsplit_lane);
    text_add(t, "\n");
    columns_add(t, "  lrrrrrr", &cells);
    text_add(&cells,
             "given: casts and sums made before the lanes; results: what a lane makes; %s%s",
             e->m ? "activations: one lane's" : "computed: by all operators, in memory that is "
             "used once; larger meshes are not expanded",
             e->m && e->c->stages ? ", with what its legs hand over\n" : "\n");
    columns_fill(t, &cells);
}

/* ---- sums ---- */

static void add_sums(struct text *t, const struct explanation *e) {
    text_add(t, "a step (%lld lane%s) moves ", (long long)e->c->lanes,
             e->c->lanes == 1 ? "" : "s");
    add_mib(t, e->step[MOVE_FORWARD], " MiB forward, ");
    add_mib(t, e->step[MOVE_BACKWARD], " backward, ");
    add_mib(t, e->step[MOVE_TO_STORE], " to the store\n");
    if (!e->own->devices) return;
    text_add(t, "%lld devices: %lld replica%s of the mesh, each with lanes of its own: %.0f bytes "
             "forward, %.0f\nbackward; %.0f bytes of gradients are all-reduced over the replicas\n",
             (long long)(e->seats * e->replicas), (long long)e->replicas,
             e->replicas == 1 ? "" : "s", (double)e->replicas * e->step[MOVE_FORWARD],
             (double)e->replicas * e->step[MOVE_BACKWARD], e->replicas > 1 ? e->gradients : 0.0);
}

/* A line for each; in short, one for all. */
static void add_buckets(struct text *t, const struct explanation *e) {
    struct text cells = {0};
    struct part_bucket first = {0};
    double all = 0;
    int n = 0;
    text_add(&cells, "bucket\tbytes\tresults\tcomplete after\n");
    for (int i = 0; i < parts_buckets(e->m); i++) {
        struct part_bucket b = parts_bucket(e->m, i);
        if (parts_hands_over(e->m, i) || !b.results) continue;
        if (!n++) first = b;
        all += (double)b.bytes;
        text_add(&cells, "%d\t%zu\t%d\t", n, b.bytes, b.results);
        if (!b.after) text_add(&cells, e->c->stages ? "its leg\n" : "the lane\n");
        else
            text_add(&cells, "unit %lld of %lld, %s\n", (long long)b.item, (long long)b.items,
                     b.after);
    }
    if (n && e->own->full) {
        text_add(t, "\nbuckets of results, each summed over the lanes as soon as it is complete\n");
        columns_add(t, "  lrrl", &cells);
    }
    text_free(&cells);
    if (!n || e->own->full) return;
    text_add(t, "%d bucket%s of results, ", n, n == 1 ? "" : "s");
    add_mib(t, all, " MiB in all");
    if (first.after)
        text_add(t, "; the first is complete after unit %lld of %lld", (long long)first.item,
                 (long long)first.items);
    text_add(t, "\n");
}

/* How many there are; all, if no list of operators says so. */
static void add_per_lane(struct text *t, const struct explanation *e) {
    struct text cells = {0};
    int found = 0;
    for (size_t i = 0; i < e->c->whole->n_nodes; i++) {
        const tri_node *n = e->c->whole->node[i];
        if (n->backward || !explain_per_lane(n)) continue;
        if (found++ && !(e->own->full && !e->d->g)) continue;
        text_add(&cells, "%s\t%s\t%s", n->name, n->entry->op->name, n->file ? n->file : "");
        if (n->file) text_add(&cells, ":%d", n->line);
        text_add(&cells, "\n");
    }
    if (found) text_add(t, "per lane, of its own samples: %d, such as\n", found);
    columns_add(t, e->own->full ? "  lll" : "  cll", &cells);
}

/* ---- all ---- */

void explain_as_text(const struct explanation *e, struct text *t) {
    const struct compilation *c = e->c;
    const bool mesh = e->d->g, full = e->own->full;
    struct text notes = {0};
    text_add(&notes, "%s, batch %lld: %lld lane%s of %lld", e->model, (long long)c->whole->batch,
             (long long)c->lanes, c->lanes == 1 ? "" : "s", (long long)c->samples[0]);
    if (c->n_sizes > 1) text_add(&notes, " or %lld", (long long)c->samples[1]);
    text_add(&notes, " sample%s; %s", c->samples[0] == 1 ? "" : "s", mesh ? "mesh " : "no mesh");
    mesh_print(&c->strategies.mesh, &notes);
    if (mesh) text_add(&notes, ": %lld seat%s", (long long)e->seats, e->seats == 1 ? "" : "s");
    text_add(&notes, "\n");
    columns_fill(t, &notes);
    if (mesh && (full || e->own->match)) {
        add_operators(t, e, false);
        add_operators(t, e, true);
        add_moves(t, e, MOVE_FORWARD, "between seats, forward");
        add_moves(t, e, MOVE_BACKWARD, "between seats, backward");
        add_moves(t, e, MOVE_TO_STORE, "to the store, from the parts of seats");
        text_add(t, full ? "\n" : "");
    }
    if (e->own->match) return;
    if (mesh) explain_outline(e->d, t);
    if (e->d->rebuilt)
        text_add(t, "operators named .split. stand for one that cannot be split as it is\n");
    explain_notes(c, true, "", &notes);
    columns_fill(t, &notes);
    add_per_lane(t, e);
    explain_add_stages(e, t);
    add_buckets(t, e);
    if (mesh) add_seats(t, e), add_sums(t, e);
    if (!full) text_add(t, "--full lists all operators, moves and buckets; --match PATTERN some\n");
}
