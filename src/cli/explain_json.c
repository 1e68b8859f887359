/* SPDX-License-Identifier: Apache-2.0
 * Null is passed on: a list that lacks memory for a part of it is not printed at all. */
#include <jansson.h>
#include <stdlib.h>

#include "cli/explain.h"

/* Appends to a list, which becomes null if memory is out. */
static void append(json_t **list, json_t *value) {
    if (*list && value && !json_array_append_new(*list, value)) return;
    if (!*list) json_decref(value);
    json_decref(*list);
    *list = NULL;
}

static json_t *of_text(struct text *t) {
    json_t *s = t->failed ? NULL : json_string(t->data ? t->data : "");
    text_free(t);
    return s;
}

static json_t *of_shape(const tri_shape *s) {
    json_t *list = json_array();
    for (int d = 0; d < s->rank; d++) append(&list, json_integer((json_int_t)s->dim[d]));
    return list;
}

static json_t *of_layout(const struct explanation *e, const struct layout *l,
                         const tri_tensor *t) {
    struct text text = {0};
    layout_text(&e->d->mesh, l, t->spec.shape.rank, &text);
    return of_text(&text);
}

static json_t *of_operand(const struct explanation *e, const tri_tensor *t,
                          const struct layout *l) {
    tri_shape slice = explain_slice(e->d, t, l, NULL);
    return json_pack("{s:o,s:o,s:o}", "shape", of_shape(&t->spec.shape), "slice", of_shape(&slice),
                     "layout", of_layout(e, l, t));
}

static json_t *of_operator(const struct explanation *e, const tri_node *n) {
    struct text split = {0}, note = {0};
    json_t *in = json_array(), *out = json_array();
    explain_split(e->d, n, &split);
    explain_warning(e->d, e->c->target, n, &note);
    for (int i = 0; i < n->n_in; i++)
        append(&in, of_operand(e, n->in[i], dist_need(e->d, n, i)));
    for (int i = 0; i < n->n_out; i++)
        append(&out, of_operand(e, &n->out[i], &e->d->has[n->out[i].id]));
    return json_pack("{s:s,s:s,s:b,s:b,s:o,s:o,s:o,s:o}", "name", n->name, "operator",
                     n->entry->op->name, "backward", (int)n->backward, "per_lane",
                     (int)explain_per_lane(n), "split", of_text(&split), "inputs", in, "outputs",
                     out, "note", note.size || note.failed ? of_text(&note) : json_null());
}

static json_t *of_axes(const struct explanation *e, const struct move *m) {
    json_t *axes = json_array();
    for (int a = 0; a < e->d->mesh.n; a++)
        if (m->from.axis[a].kind != WHOLE && !split_equal(&m->from.axis[a], &m->to.axis[a]))
            append(&axes, json_string(e->d->mesh.axis[a].name));
    return axes;
}

static json_t *of_move(const struct explanation *e, const struct move *m) {
    static const char *const when[MOVE_TIMES] = {"forward", "backward", "to the store"};
    const tri_tensor *t = explain_tensor(e->d, m);
    const tri_node *reader = m->node < 0 ? NULL : e->d->g->node[m->node];
    struct text how = {0};
    move_text(&e->d->mesh, &m->from, &m->to, &how);
    return json_pack("{s:s,s:s,s:o,s:o,s:I,s:s,s:o,s:o,s:o,s:s?}", "when",
                     when[move_when(e->d, m)], "kind", move_kinds[move_kind(&e->d->mesh, m)],
                     "axes", of_axes(e, m), "collectives", of_text(&how), "bytes",
                     (json_int_t)m->bytes, "tensor", t->node->name, "shape",
                     of_shape(&t->spec.shape), "from", of_layout(e, &m->from, t), "to",
                     of_layout(e, &m->to, t), "reader", reader ? reader->name : NULL);
}

static json_t *of_seat(const struct explanation *e, int64_t i) {
    const struct seat_bytes *b = &e->seat[i].bytes;
    json_t *at = json_array();
    for (int a = 0; a < e->d->mesh.n; a++) append(&at, json_integer(e->seat[i].at[a]));
    return json_pack("{s:o,s:I,s:I,s:I,s:I,s:I,s:I}", "seat", at, "parameters",
                     (json_int_t)b->params, "states", (json_int_t)b->states, "data",
                     (json_int_t)b->data, "given", (json_int_t)b->given, "results",
                     (json_int_t)b->results, e->m ? "activations" : "computed",
                     (json_int_t)(e->m ? e->seat[i].lane : b->computed));
}

static json_t *of_mesh(const struct explanation *e) {
    json_t *axes = json_array();
    for (int a = 0; a < e->d->mesh.n; a++)
        append(&axes, json_pack("{s:s,s:I}", "axis", e->d->mesh.axis[a].name, "seats",
                                (json_int_t)e->d->mesh.axis[a].size));
    return axes;
}

/* Sums are doubles, which are whole numbers, but may be too large for an integer. */
static json_t *of_bytes(double bytes) {
    return bytes < 0x1p63 ? json_integer((json_int_t)bytes) : json_real(bytes);
}

static json_t *of_sums(const struct explanation *e) {
    const double replicas = (double)e->replicas;
    return json_pack("{s:I,s:o,s:o,s:o,s:o}", "replicas", (json_int_t)e->replicas, "forward",
                     of_bytes(replicas * e->step[MOVE_FORWARD]), "backward",
                     of_bytes(replicas * e->step[MOVE_BACKWARD]), "to_store",
                     of_bytes(replicas * e->step[MOVE_TO_STORE]), "gradients_over_replicas",
                     of_bytes(e->replicas > 1 ? e->gradients : 0));
}

static json_t *of_bucket(const struct explanation *e, int i) {
    struct part_bucket b = parts_bucket(e->m, i);
    return json_pack("{s:I,s:i,s:I,s:I,s:s?}", "bytes", (json_int_t)b.bytes, "results", b.results,
                     "unit", (json_int_t)b.item, "units", (json_int_t)b.items, "after", b.after);
}

static json_t *of_stage(const struct explanation *e, int i) {
    struct part_stage s = parts_stage(e->m, i);
    return json_pack("{s:i,s:i,s:i,s:i,s:s?,s:s?}", "track", s.track, "forward",
                     s.operators[LEG_FORWARD], "backward", s.operators[LEG_BACKWARD], "weights",
                     s.operators[LEG_WEIGHTS], "from", s.first, "to", s.last);
}

static json_t *of_handed(const struct explanation *e, int i) {
    struct part_bucket h = parts_bucket(e->m, i);
    struct text readers = {0};
    char name[LEG_TEXT];
    legs_name(&e->c->legs, h.leg, name);
    parts_readers(e->m, i, &readers);
    return json_pack("{s:s,s:o,s:I,s:i,s:i,s:s}", "leg", name, "readers", of_text(&readers),
                     "bytes", (json_int_t)h.bytes, "tensors", h.results, "kept", h.kept, "largest",
                     h.largest->node->name);
}

/* The turns of each track as [leg, lane, when it begins if all legs take 1]. */
static json_t *of_schedule(const struct explanation *e) {
    const struct pipeline *p = &e->m->pipeline;
    json_t *tracks = json_array();
    for (int track = 0; track < p->tracks; track++) {
        json_t *turns = json_array();
        for (int i = 0; i < p->per_track; i++) {
            const struct turn *t = pipeline_turn(p, track, i);
            char name[LEG_TEXT];
            legs_name(&e->c->legs, t->leg, name);
            append(&turns, json_pack("[s,i,f]", name, t->lane,
                                     e->m->times.begin[t->leg * p->lanes + t->lane]));
        }
        append(&tracks, turns);
    }
    return tracks;
}

static json_t *of_pipeline(const struct explanation *e) {
    json_t *stages = json_array(), *handed = json_array();
    for (int i = 0; i < e->c->stages; i++) append(&stages, of_stage(e, i));
    for (int i = 0; i < parts_buckets(e->m); i++)
        if (parts_hands_over(e->m, i)) append(&handed, of_handed(e, i));
    json_t *all = json_pack("{s:s,s:o,s:o,s:o,s:f}", "order", pipeline_name(e->c->pipeline),
                            "stages", stages, "handed", handed, "schedule", of_schedule(e),
                            "waiting", pipeline_idle(&e->m->pipeline, &e->m->times));
    if (!all || !e->cost) return all;
    json_t *seconds = json_array();
    for (int i = 0; i < e->c->legs.n; i++) append(&seconds, json_real(e->cost[i]));
    json_object_set_new(all, "seconds", seconds);
    json_object_set_new(all, "waiting_measured", json_real(parts_waiting(e->m, e->cost)));
    return all;
}

bool explain_as_json(const struct explanation *e, struct text *out) {
    json_t *operators = json_array(), *moves = json_array(), *seats = json_array();
    json_t *buckets = json_array();
    for (size_t i = 0; e->d->g && i < e->d->g->n_nodes; i++)
        if (e->d->g->node[i]->n_in) append(&operators, of_operator(e, e->d->g->node[i]));
    for (size_t i = 0; i < e->d->n_moves; i++) append(&moves, of_move(e, &e->d->move[i]));
    for (int64_t i = 0; i < e->shown; i++) append(&seats, of_seat(e, i));
    for (int i = 0; i < parts_buckets(e->m); i++)
        if (!parts_hands_over(e->m, i)) append(&buckets, of_bucket(e, i));
    json_t *all = json_pack("{s:s,s:I,s:I,s:I,s:o,s:I,s:o,s:o,s:o,s:o,s:o}", "model", e->model,
                            "batch", (json_int_t)e->c->whole->batch, "lanes",
                            (json_int_t)e->c->lanes, "samples", (json_int_t)e->c->samples[0],
                            "mesh", of_mesh(e), "seats", (json_int_t)e->seats, "operators",
                            operators, "moves", moves, "seat_bytes", seats, "step_bytes",
                            of_sums(e), "buckets", buckets);
    if (all && e->m && e->c->stages && json_object_set_new(all, "pipeline", of_pipeline(e))) {
        json_decref(all);
        all = NULL;
    }
    char *text = all ? json_dumps(all, JSON_INDENT(1)) : NULL;
    if (text) text_add(out, "%s\n", text);
    free(text);
    json_decref(all);
    return text != NULL;
}
