/* SPDX-License-Identifier: Apache-2.0
 * Moves between all pairs of layouts on several meshes: values are kept, and a seat reads from the
 * others only what it lacks. The owners of elements are found here element by element. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/mesh_trial.h"

#define RANK 3
static const tri_shape SHAPE = TRI_SHAPE(8, 12, 7); /* uneven over most meshes */

static const char TEXT[] = "graph {batch=1}\n"
                           "%p = param() {name=\"p\", shape=[]}\n"
                           "assign %p %p\n"
                           "%i0 = state() {name=\"i0\", type=f32, shape=[8,12,7,8]}\n"
                           "%y = sum(%i0) {axes=[3]} @ \"source\"\n"
                           "%z = neg(%y) @ \"target\"\n"
                           "output \"y0\" %z\n";
enum { INPUT = 2, SOURCE, TARGET }; /* nodes, and their tensors */

/* How a tensor may lie along one axis: in the last case as 3 blocks of 4 places, or 2 of 6, each of
 * which is split. */
enum { AS_WHOLE, AS_DIM0, AS_DIM1, AS_DIM2, AS_THIRDS, AS_HALVES, AS_PARTIAL, WAYS };

static struct split split_of(int way) {
    static const int64_t outer[WAYS] = {[AS_THIRDS] = 3, [AS_HALVES] = 2};
    if (way == AS_WHOLE) return (struct split){.kind = WHOLE};
    if (way == AS_PARTIAL) return (struct split){.kind = PARTIAL, .partial = TRI_PARTIAL_SUM};
    int dim = way <= AS_DIM2 ? way - AS_DIM0 : 1;
    int64_t blocks = outer[way] ? outer[way] : 1;
    return (struct split){.kind = SPLIT, .dim = dim, .outer = blocks,
                          .extent = SHAPE.dim[dim] / blocks};
}

/* Whether each seat has some places. Axes cut a dimension in one way. */
static bool exists(const struct mesh *m, const int *way) {
    for (int a = 0; a < m->n; a++) {
        int64_t seats = 1;
        struct split s = split_of(way[a]);
        if (s.kind != SPLIT) continue;
        for (int b = 0; b < m->n; b++) {
            struct split other = split_of(way[b]);
            if (other.kind != SPLIT || other.dim != s.dim) continue;
            if (other.outer != s.outer) return false;
            seats *= m->axis[b].size;
        }
        if (seats > s.extent) return false;
    }
    return true;
}

/* ---- what must happen ---- */

/* The coordinates at which an element is, -1 along axes that do not split the tensor. */
static void owner_of(const struct mesh *m, const struct layout *l, const int64_t *place,
                     int64_t *at) {
    int64_t begin[RANK] = {0}, end[RANK] = {0};
    for (int a = 0; a < m->n; a++) {
        const struct split *s = &l->axis[a];
        at[a] = -1;
        if (s->kind != SPLIT) continue;
        if (!end[s->dim]) end[s->dim] = s->extent;
        int64_t its = place[s->dim] % (SHAPE.dim[s->dim] / s->outer), length, i = 0;
        int64_t b = begin[s->dim], size = m->axis[a].size, all = end[s->dim] - b;
        for (; length = all / size + (i < all % size), its >= b + length; i++) b += length;
        begin[s->dim] = b;
        end[s->dim] = b + length;
        at[a] = i;
    }
}

/* The fewest elements that the seats at `seat`, -1 along axes that share the tensor, can read from
 * other seats: those of the result that they do not have, and as many of each other partial sum. */
static int64_t fewest(const struct mesh *m, const struct layout *from, const struct layout *to,
                      const int16_t *seat) {
    int64_t n = 0, sources = 1;
    bool own_part = true;
    for (int a = 0; a < m->n; a++)
        if (from->axis[a].kind == PARTIAL && to->axis[a].kind != PARTIAL) {
            sources *= m->axis[a].size;
            own_part &= seat[a] >= 0;
        }
    for (int64_t e = 0; e < tri_shape_count(&SHAPE); e++) {
        const int64_t place[RANK] = {e / SHAPE.dim[2] / SHAPE.dim[1],
                                     e / SHAPE.dim[2] % SHAPE.dim[1], e % SHAPE.dim[2]};
        int64_t source[MESH_MOST_AXES], target[MESH_MOST_AXES];
        bool mine = true, have = own_part;
        owner_of(m, from, place, source);
        owner_of(m, to, place, target);
        for (int a = 0; a < m->n; a++) {
            mine &= target[a] < 0 || target[a] == seat[a];
            have &= source[a] < 0 || source[a] == seat[a];
        }
        n += mine ? sources - have : 0;
    }
    return n;
}

/* ---- what happens ---- */

static bool foreign(const struct mesh *m, const tri_node *source, const int16_t *seat) {
    for (int a = 0; a < m->n; a++)
        if (source->owner[a] >= 0 && source->owner[a] != seat[a]) return true;
    return false;
}

static const tri_tensor *uncut(const tri_tensor *t) {
    while (node_is(t->node, "slice") || node_is(t->node, "reshape")) t = t->node->in[0];
    return t;
}

/* The elements that a node's inputs take from instances of other seats. */
static int64_t reads(const struct mesh *m, const tri_node *n) {
    int64_t sum = 0;
    for (int i = 0; i < n->n_in; i++) {
        const tri_tensor *t = uncut(n->in[i]);
        if (node_is(t->node, "sum") && foreign(m, t->node, n->owner))
            sum += tri_shape_count(&n->in[i]->spec.shape);
    }
    return sum;
}

static bool same_seat(const struct mesh *m, const int16_t *a, const int16_t *b) {
    return !memcmp(a, b, sizeof *a * (size_t)m->n);
}

/* Each instance of the target node, and the nodes of the move that are made for its seats. */
static void check_reads(const tri_graph *g, const struct mesh *m, const struct layout *from,
                        const struct layout *to, const char *what) {
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tri_node *n = g->node[i];
        if (!node_is(n, "neg")) continue;
        int64_t sum = reads(m, n), least = fewest(m, from, to, n->owner);
        for (size_t k = 0; k < g->n_nodes; k++) {
            const tri_node *part = g->node[k];
            if (part->move == 1 && !node_is(part, "slice") && !node_is(part, "reshape") &&
                same_seat(m, part->owner, n->owner))
                sum += reads(m, part);
        }
        if (sum != least)
            fail_msg("%s: %s reads %d elements of others, %d are needed", what, n->name, (int)sum,
                     (int)least);
    }
}

/* ---- one pair ---- */

static struct use use_of(const tri_node *n, int way) {
    struct factors f;
    struct split s = split_of(way);
    struct use u = {.kind = USE_WHOLE};
    assert_true(factors_of(n, &f));
    if (s.kind == SPLIT)
        u = (struct use){USE_FACTOR, f.in[0].dim[s.dim].f[0], s.outer, s.extent};
    if (s.kind == PARTIAL && n->id == SOURCE)
        u = (struct use){USE_FACTOR, f.in[0].dim[RANK].f[0], 1, 8};
    if (s.kind == PARTIAL && n->id == TARGET) u.kind = USE_PARTIAL;
    factors_free(&f);
    return u;
}

/* What `dist` would find for these strategies. */
struct plan {
    struct use use[TARGET + 1][MESH_MOST_AXES];
    struct layout has[TARGET + 1], need[3]; /* of source, target and others */
    size_t first[TARGET + 1];
    struct move move[2];
};

static struct dist plan_of(struct plan *p, tri_graph *g, const struct mesh *m, const int *from,
                           const int *to) {
    *p = (struct plan){.first = {2, 2, 2, 0, 1}};
    for (int a = 0; a < m->n; a++) {
        p->use[SOURCE][a] = use_of(g->node[SOURCE], from[a]);
        p->use[TARGET][a] = use_of(g->node[TARGET], to[a]);
        p->has[SOURCE].axis[a] = split_of(from[a]);
        p->has[TARGET].axis[a] = p->need[1].axis[a] = split_of(to[a]);
        p->need[0].axis[a] = from[a] == AS_PARTIAL ? (struct split){.kind = SPLIT, .dim = RANK,
                                                                  .outer = 1, .extent = 8}
                                                   : split_of(from[a]);
    }
    p->move[0] = (struct move){.tensor = SOURCE, .node = TARGET, .from = p->has[SOURCE],
                               .to = p->has[TARGET]};
    p->move[1] = (struct move){.tensor = TARGET, .node = -1, .from = p->has[TARGET]};
    return (struct dist){.mesh = *m, .g = g, .use = p->use, .has = p->has, .need = p->need,
                         .first = p->first, .move = p->move, .n_moves = 2};
}

struct world {
    tri_graph *g;
    struct values in, plain;
    int pairs, apart; /* of these: without a common refinement */
};

static void check_pair(struct world *w, const struct mesh *m, const int *from, const int *to) {
    struct plan p;
    struct values out = {0};
    struct text what = {0};
    struct refined r;
    struct dist d = plan_of(&p, w->g, m, from, to);
    const struct layout *both[] = {&p.has[SOURCE], &p.has[TARGET]};
    bool refined = layout_refine(&SHAPE, both, 2, m, &r);
    mesh_print(m, &what);
    for (int i = 0; i < 2; i++) {
        text_add(&what, i ? " to " : ": ");
        layout_text(m, both[i], RANK, &what);
    }
    tri_graph *g = expand(&d);
    if (!g) fail_msg("%s: %s", what.data, tri_message());
    check_reads(g, m, both[0], both[1], what.data);
    if (graph_run(g, 1, &w->in, &out)) fail_msg("%s: %s", what.data, tri_message());
    /* 0 may be -0: partial sums are negated. */
    for (int64_t i = 0; i < tri_shape_count(&SHAPE); i++)
        if (out.at[0][i] != w->plain.at[0][i]) fail_msg("%s: other values", what.data);
    w->pairs++;
    w->apart += !refined;
    values_free(&out);
    text_free(&what);
    tri_graph_free(g);
}

static struct world begin(void) {
    struct world w = {.g = tri_graph_parse(TEXT, strlen(TEXT), "moves")};
    if (tri_graph_status(w.g)) fail_msg("%s", tri_message());
    double *x = values_add(&w.in, &w.g->node[INPUT]->out->spec);
    /* whole numbers: sums are exact in any order */
    for (int i = 0; i < 8 * 12 * 7 * 8; i++) x[i] = i * 37 % 1009 - 500;
    if (graph_run(w.g, 1, &w.in, &w.plain)) fail_msg("%s", tri_message());
    return w;
}

static void end(struct world *w) {
    values_free(&w->in);
    values_free(&w->plain);
    tri_graph_free(w->g);
}

/* The ways number k of the pairs of all layouts of the mesh; partial targets come from partial
 * sources. */
static bool ways_of(int k, const struct mesh *m, int *from, int *to) {
    for (int a = 0; a < m->n; a++) {
        from[a] = k % WAYS;
        to[a] = k / WAYS % WAYS;
        k /= WAYS * WAYS;
        if (to[a] == AS_PARTIAL && from[a] != AS_PARTIAL) return false;
    }
    return exists(m, from) && exists(m, to);
}

static void check_mesh(const char *axes) {
    struct mesh m;
    int from[MESH_MOST_AXES], to[MESH_MOST_AXES], count = 1;
    struct world w = begin();
    assert_int_equal(mesh_parse(axes, &m), TRI_OK);
    for (int a = 0; a < m.n; a++) count *= WAYS * WAYS;
    for (int k = 0; k < count; k++)
        if (ways_of(k, &m, from, to)) check_pair(&w, &m, from, to);
    assert_true(w.pairs > 10 && (w.apart > 0) == (mesh_seats(&m) < 8));
    end(&w);
}

static void two(void **state) { (void)state; check_mesh("a=2"); }
static void three(void **state) { (void)state; check_mesh("a=3"); }
static void four(void **state) { (void)state; check_mesh("a=4"); }
static void six(void **state) { (void)state; check_mesh("a=6"); }
static void eight(void **state) { (void)state; check_mesh("a=8"); }
static void two_by_two(void **state) { (void)state; check_mesh("a=2,b=2"); }
static void two_by_three(void **state) { (void)state; check_mesh("a=2,b=3"); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two), cmocka_unit_test(three), cmocka_unit_test(four),
        cmocka_unit_test(six), cmocka_unit_test(eight), cmocka_unit_test(two_by_two),
        cmocka_unit_test(two_by_three)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
