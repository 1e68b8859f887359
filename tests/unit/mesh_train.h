/* SPDX-License-Identifier: Apache-2.0
 * The random networks of mesh_case.h, trained over their meshes: what is computed again, stages and
 * ZeRO change no bit. */
#ifndef MESH_TRAIN_H
#define MESH_TRAIN_H

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit/mesh_case.h"

#define TRAIN_STEPS 2
#define TRAIN_WAYS 3

/* What divides a run, and changes no bit. */
struct way {
    char recompute[64], zero[2];
    const char *pipeline;
    int64_t stages; /* 0: not drawn yet */
};

struct train_result {
    bool runs;        /* false: no lane or axis suits this network */
    char hash[2][65]; /* of the weights: as usual, and divided in this way */
    struct way way;
    char *text;       /* the network, then its strategies; the caller frees it */
};

/* A network with its strategies. */
struct train_case {
    tri_graph *g;
    struct bytes b;
    int64_t lanes;
    const char *optimizer, *unset;
    struct text lines;
};

/* Of the last tensors of the pool. */
static inline void train_loss(struct net_case *c) {
    tri_tensor *loss = NULL;
    for (int i = 0; i < 3 && i < c->n; i++) {
        tri_tensor *y = c->pool[c->n - 1 - i], *part = tri_mean(tri_mul(y, y), TRI_ALL);
        loss = loss ? tri_add(loss, part) : part;
    }
    (tri_loss)(loss);
}

/* Lines for single operators, and two for all of them. */
static inline void train_lines(struct train_case *t) {
    static const char *const unset[] = {"follow", "batch", "whole"};
    static const char *const name[] = {"batch", "features", "seq", "height", "width", "out", "in"};
    t->unset = unset[case_strategies(t->g, &t->b, CASE_ASKS, &t->lines)];
    for (int i = 0; i < t->g->mesh.n; i++)
        text_add(&t->lines, "maybe * %s=%s\n", name[pick(&t->b, COUNT(name))],
                 t->g->mesh.axis[i].name);
}

static inline void train_case(const uint8_t *data, size_t size, struct train_case *t) {
    static const char *const optimizer[] = {"sgd", "adam"};
    struct net_case c = {.b = {data, data + size}};
    *t = (struct train_case){.lanes = 1 + pick(&c.b, 2), .optimizer = optimizer[pick(&c.b, 2)]};
    case_begin(&c, true);
    keep(&c, tri_mul(c.pool[0], weight_of(&c, TRI_SHAPE(tri_dim(c.pool[0], -1)))));
    case_grow(&c);
    train_loss(&c);
    t->g = c.g;
    t->b = c.b;
    if (!tri_graph_status(t->g)) train_lines(t);
}

/* A pattern is "*" or the name of an operator. */
static inline struct way train_way(const tri_graph *g, struct bytes *b) {
    static const char *const pipeline[] = {NULL, "gpipe"};
    struct way w = {.stages = 1 + pick(b, 3), .zero = {(char)('0' + pick(b, 4))}};
    int64_t again = pick(b, 6), at = pick(b, 64) % (int64_t)graph_forward(g);
    while (at && !g->node[at]->n_in) at--;
    snprintf(w.recompute, sizeof w.recompute, "%s",
             again == 0                        ? "none"
             : again < 3                       ? "full"
             : again < 5 || !g->node[at]->n_in ? "*"
                                               : g->node[at]->name);
    if (w.stages > 1) w.pipeline = pipeline[pick(b, 2)];
    return w;
}

/* Takes the graph. */
static inline tri_status train_hash(struct train_case *t, const struct way *w, char hash[65]) {
    tri_options o = tri_options_default();
    char path[32], state[65];
    int file = memfd_create("strategies", 0);
    CHECK(file >= 0 && !t->lines.failed);
    CHECK(write(file, t->lines.data, t->lines.size) == (ssize_t)t->lines.size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    o.steps = TRAIN_STEPS;
    o.threads = 1;
    o.data_threads = -1;
    o.data = "synthetic";
    o.quiet = true;
    o.lanes = t->lanes;
    o.optimizer.name = t->optimizer;
    o.unset = t->unset;
    o.strategy = path;
    o.recompute = w->recompute;
    o.stages = w->stages;
    o.zero = w->zero;
    o.pipeline = w->pipeline;
    tri_run *run = tri_open(t->g, &o);
    t->g = NULL;
    close(file);
    if (!run) return base_last();
    while (tri_step(run)) continue;
    tri_hash(run, hash, state);
    return tri_close(run);
}

/* One run. *lanes: at most so many. way: drawn if it has no stages. *text: of the network. */
static inline tri_status train_once(const uint8_t *data, size_t size, int64_t *lanes,
                                    struct way *way, int number, char hash[65], char **text) {
    struct train_case t;
    struct text all = {0};
    train_case(data, size, &t);
    tri_status status = tri_graph_status(t.g);
    if (t.lanes < *lanes) *lanes = t.lanes;
    t.lanes = *lanes;
    for (int i = 0; !status && !way->stages; i++) {
        struct way w = train_way(t.g, &t.b);
        if (i == number) *way = w;
    }
    free(*text);
    *text = tri_graph_print(t.g);
    text_add(&all, "%s%s", *text ? *text : "", t.lines.data ? t.lines.data : "");
    free(*text);
    *text = all.data;
    if (!status) status = train_hash(&t, way, hash);
    tri_graph_free(t.g);
    text_free(&t.lines);
    return status;
}

/* What a network may be refused for, though none of its strategies must be followed: it computes
 * across samples, nothing can be learned, or an axis is left over. */
static inline bool train_may_refuse(void) {
    static const char *const may[] = {" lanes: ", "no trainable parameter", "nothing uses the axis",
                                      "is not a multiple of the batch", "for a channel's variance"};
    for (size_t i = 0; i < COUNT(may); i++)
        if (strstr(tri_message(), may[i])) return true;
    return false;
}

/* TRI_USAGE: it must not be refused. */
static inline tri_status train_run(const uint8_t *data, size_t size, struct train_result *r) {
    const struct way usual = {.recompute = "none", .zero = "2", .stages = 1};
    int64_t lanes = 2;
    *r = (struct train_result){.way = usual};
    tri_status status = train_once(data, size, &lanes, &r->way, 0, r->hash[0], &r->text);
    if (status && lanes-- > 1)
        status = train_once(data, size, &lanes, &r->way, 0, r->hash[0], &r->text);
    if (status == TRI_USAGE && train_may_refuse()) return TRI_OK;
    strcpy(r->hash[1], r->hash[0]);
    r->runs = !status;
    for (int i = 0; i < TRAIN_WAYS && !status && !strcmp(r->hash[0], r->hash[1]); i++) {
        r->way.stages = 0;
        status = train_once(data, size, &lanes, &r->way, i, r->hash[1], &r->text);
        if (status != TRI_USAGE || !strstr(tri_message(), "--stages")) continue;
        r->way.stages = 1; /* too few operators */
        r->way.pipeline = NULL;
        status = train_once(data, size, &lanes, &r->way, i, r->hash[1], &r->text);
    }
    return status;
}

#endif
