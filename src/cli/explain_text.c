/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain.h"

#include <string.h>

static void add_shape(struct text *t, const tri_shape *s) {
    text_add(t, "[");
    for (int d = 0; d < s->rank; d++) text_add(t, "%s%lld", d ? "," : "", (long long)s->dim[d]);
    text_add(t, "]");
}

static void add_slice(struct text *t, const struct explanation *e, const tri_tensor *tensor,
                      const struct layout *l) {
    tri_shape s = explain_slice(e->d, tensor, l, NULL);
    add_shape(t, &s);
}

/* ---- operators ---- */

static void add_operator(struct text *t, const struct explanation *e, const tri_node *n) {
    struct text split = {0}, note = {0};
    explain_split(e->d, n, &split);
    text_add(t, "  %-40s %-16s %-24s ", n->name, n->entry->op->name,
             split.data ? split.data : "");
    t->failed |= split.failed;
    text_free(&split);
    for (int i = 0; i < n->n_in; i++) {
        text_add(t, "%s", i ? ", " : "");
        add_slice(t, e, n->in[i], dist_need(e->d, n, i));
    }
    text_add(t, " -> ");
    for (int i = 0; i < n->n_out; i++) {
        text_add(t, "%s", i ? ", " : "");
        add_slice(t, e, &n->out[i], &e->d->has[n->out[i].id]);
    }
    text_add(t, "%s\n", explain_per_lane(n) ? "  per lane" : "");
    explain_warning(e->d, e->c->target, n, &note);
    if (note.size) text_add(t, "    note: %s\n", note.data);
    t->failed |= note.failed;
    text_free(&note);
}

static void add_operators(struct text *t, const struct explanation *e, bool backward) {
    bool any = false;
    for (size_t i = 0; i < e->d->g->n_nodes; i++) {
        const tri_node *n = e->d->g->node[i];
        if (!n->n_in || n->backward != backward) continue;
        if (!any)
            text_add(t, "\n%s: operator, factor/axis, and the shapes that seat 0 computes\n",
                     backward ? "backward" : "forward");
        any = true;
        add_operator(t, e, n);
    }
}

/* ---- moves ---- */

/* Two layouts may have the same text and still cut at other places: then the shape of the first
 * seat's part follows each. */
static void add_layouts(struct text *t, const struct explanation *e, const struct move *m,
                        const tri_tensor *of, const char *reader) {
    const struct layout *const layout[] = {&m->from, &m->to};
    struct text text[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) layout_text(&e->d->mesh, layout[i], of->spec.shape.rank, &text[i]);
    t->failed |= text[0].failed || text[1].failed;
    for (int i = 0; i < 1 + (reader != NULL) && !t->failed; i++) {
        if (i) text_add(t, "; %s needs ", reader);
        text_add(t, "%s", text[i].data);
        if (!reader || strcmp(text[0].data, text[1].data)) continue;
        text_add(t, " of ");
        add_slice(t, e, of, layout[i]);
    }
    for (int i = 0; i < 2; i++) text_free(&text[i]);
}

static void add_move(struct text *t, const struct explanation *e, const struct move *m,
                     const tri_tensor *tensor) {
    char spec[SPEC_TEXT];
    const tri_node *reader = m->node < 0 ? NULL : e->d->g->node[m->node];
    text_add(t, "  ");
    move_text(&e->d->mesh, &m->from, &m->to, t);
    text_add(t, ", %zu bytes: %s of %s is ", m->bytes, base_spec_text(&tensor->spec, spec),
             tensor->node->name);
    add_layouts(t, e, m, tensor, reader ? reader->name : NULL);
    if (reader && reader->file) text_add(t, " (%s:%d)", reader->file, reader->line);
    text_add(t, "\n");
}

static void add_moves(struct text *t, const struct explanation *e, enum move_when when,
                      const char *title) {
    bool any = false;
    for (size_t i = 0; i < e->d->n_moves; i++) {
        const struct move *m = &e->d->move[i];
        if (move_when(e->d, m) != when) continue;
        if (!any) text_add(t, "\n%s\n", title);
        any = true;
        add_move(t, e, m, explain_tensor(e->d, m));
    }
    if (!any) text_add(t, "\n%s\n  nothing\n", title);
}

static void add_read(struct text *t, const struct explanation *e) {
    int parts = 0, all = 0;
    double bytes = 0;
    for (size_t i = 0; i < e->d->g->n_nodes; i++) {
        const tri_node *n = e->d->g->node[i];
        if (!node_is_stored(n)) continue;
        bool part = explain_taken_apart(e->d, n->out);
        parts += part;
        all += !part;
        if (part) bytes += (double)base_spec_bytes(&n->out->spec);
    }
    text_add(t, "\nfrom the store: %d parameters and states, of %.0f bytes, are read in parts; %d "
             "as a whole\n", parts, bytes, all);
}

/* ---- seats ---- */

static void add_seats(struct text *t, const struct explanation *e) {
    text_add(t, "\nbytes of a seat\n  %-10s %12s %12s %12s %12s %12s %14s\n", "seat", "parameters",
             "states", "data", "given", "results", e->expanded ? "activations" : "computed");
    for (int64_t i = 0; i < e->shown; i++) {
        struct text at = {0};
        const struct seat_bytes *b = &e->seat[i].bytes;
        for (int a = 0; a < e->d->mesh.n; a++)
            text_add(&at, "%s%d", a ? "," : "", e->seat[i].at[a]);
        text_add(t, "  %-10s %12zu %12zu %12zu %12zu %12zu %14zu\n", at.data ? at.data : "",
                 b->params, b->states, b->data, b->given, b->results,
                 e->expanded ? e->seat[i].lane : b->computed);
        t->failed |= at.failed;
        text_free(&at);
    }
    text_add(t, "parameters, states, data: what the seat reads of them in a lane. given: what it "
                "reads of\nother phases' results. results: what it computes of gradients, metrics "
                "and new states.\n");
    text_add(t, e->expanded
                    ? "activations: the most that its operators and moves hold at once, scratch "
                      "included; what seats\nshare counts for each.\n"
                    : "computed: all that its operators compute, an upper bound: no place is used "
                      "twice, moves and\nscratch are not counted. A mesh of up to %d seats is "
                      "expanded, and explained exactly.\n", EXPLAIN_MOST_SEATS);
}

/* ---- sums ---- */

static void add_sums(struct text *t, const struct explanation *e) {
    struct move_sums s = explain_sums(e->d);
    text_add(t, "\nmoves of a lane      %24s %24s %24s\n", "forward", "backward", "to the store");
    for (int k = 0; k < MOVE_KINDS; k++) {
        if (!(s.of[0][k].n + s.of[1][k].n + s.of[2][k].n)) continue;
        text_add(t, "  %-18s", move_kinds[k]);
        for (int w = 0; w < MOVE_TIMES; w++)
            text_add(t, " %5d, %12.0f bytes", s.of[w][k].n, s.of[w][k].bytes);
        text_add(t, "\n");
    }
    text_add(t, "a step (%lld lane%s): %.0f bytes forward, %.0f backward, %.0f to the store\n",
             (long long)e->c->lanes, e->c->lanes == 1 ? "" : "s", e->step[MOVE_FORWARD],
             e->step[MOVE_BACKWARD], e->step[MOVE_TO_STORE]);
    if (!e->devices) return;
    text_add(t, "%lld devices: %lld replica%s of the mesh, each with lanes of its own: %.0f bytes "
             "forward, %.0f\nbackward; %.0f bytes of gradients are all-reduced over the replicas\n",
             (long long)(e->seats * e->replicas), (long long)e->replicas,
             e->replicas == 1 ? "" : "s", (double)e->replicas * e->step[MOVE_FORWARD],
             (double)e->replicas * e->step[MOVE_BACKWARD], e->replicas > 1 ? e->gradients : 0.0);
}

static void add_buckets(struct text *t, const struct explanation *e) {
    int n = explain_buckets(e);
    if (n)
        text_add(t, "\nbuckets of results, each summed over the lanes as soon as it is complete\n"
                    "  %-6s %12s %8s  complete after\n", "bucket", "bytes", "results");
    for (int i = 0, number = 1; i < n; i++) {
        if (explain_hands_over(e, i)) continue;
        struct explained_bucket b = explain_bucket(e, i);
        if (!b.results) continue;
        text_add(t, "  %-6d %12zu %8d  ", number++, b.bytes, b.results);
        if (b.after)
            text_add(t, "unit %lld of %lld, %s\n", (long long)b.item, (long long)b.items, b.after);
        else
            text_add(t, e->c->stages ? "its leg\n" : "the lane\n");
    }
}

/* Without a mesh, whose list of operators says so. */
static void add_per_lane(struct text *t, const struct explanation *e) {
    bool any = false;
    for (size_t i = 0; i < e->c->whole->n_nodes; i++) {
        const tri_node *n = e->c->whole->node[i];
        if (n->backward || !explain_per_lane(n)) continue;
        if (!any) text_add(t, "\nper lane: each lane has a result of its own samples\n");
        any = true;
        text_add(t, "  %-40s %-16s", n->name, n->entry->op->name);
        if (n->file) text_add(t, " %s:%d", n->file, n->line);
        text_add(t, "\n");
    }
}

void explain_as_text(const struct explanation *e, struct text *t) {
    const struct compilation *c = e->c;
    text_add(t, "%s, batch %lld: %lld lane%s of %lld", e->model, (long long)c->whole->batch,
             (long long)c->lanes, c->lanes == 1 ? "" : "s", (long long)c->samples[0]);
    if (c->n_sizes > 1) text_add(t, " or %lld", (long long)c->samples[1]);
    text_add(t, " sample%s; ", c->samples[0] == 1 ? "" : "s");
    if (!e->d->g) {
        text_add(t, "no mesh\n");
        add_per_lane(t, e);
        explain_add_stages(e, t);
        add_buckets(t, e);
        return;
    }
    text_add(t, "mesh ");
    mesh_print(&e->d->mesh, t);
    text_add(t, ": %lld seat%s\n", (long long)e->seats, e->seats == 1 ? "" : "s");
    if (e->d->rebuilt)
        text_add(t, "operators named .split. stand for one that cannot be split as it is\n");
    add_operators(t, e, false);
    add_operators(t, e, true);
    add_moves(t, e, MOVE_FORWARD, "between seats, forward");
    add_moves(t, e, MOVE_BACKWARD, "between seats, backward");
    add_read(t, e);
    add_moves(t, e, MOVE_TO_STORE, "to the store, from the parts of seats");
    explain_add_stages(e, t);
    add_buckets(t, e);
    add_seats(t, e);
    add_sums(t, e);
}
