/* SPDX-License-Identifier: Apache-2.0
 * Trireme's kernels: a graph of one node, with the tensors in the formats that the device prefers,
 * run as a step would run it. */
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "dev/dev.h"
#include "graph/pack.h"
#include "kernels.h"
#include "machine/program.h"
#include "ops/op.h"

static struct dev *dev;
static struct team *team;
static bool may_winograd = true;

struct job {
    tri_graph *g;
    tri_node *node; /* the product or the convolution */
    tri_tensor *y;
    struct program program;
    void *memory[4]; /* the arena; values of the sources */
};

void ours_allow_winograd(bool may) { may_winograd = may; }

static const char *open_ours(int threads, char *about, size_t bytes) {
    dev = dev_find("cpu");
    if (!dev) return "this build has no device cpu";
    if (dev_open(dev)) return tri_message();
    const char *why = rates_open(threads);
    if (why) return why;
    if (team_make(threads, &team)) return tri_message();
    dev->kind->describe(dev, false, about, bytes);
    return NULL;
}

/* ---- the graph ---- */

static tri_tensor *source(const struct task *t, tri_graph *g, const char *name,
                          const tri_shape *shape) {
    return tri_state(g, name, t->half ? TRI_BF16 : TRI_F32, *shape, (tri_init){0});
}

static tri_tensor *product_of(const struct task *t, tri_graph *g, tri_tensor *a, tri_tensor *b) {
    tri_tensor *y = tri_matmul(a, b, .trans_a = t->product.trans_a, .trans_b = t->product.trans_b);
    if (!t->product.gelu) return y;
    tri_tensor *bias = source(t, g, "bias", &TRI_SHAPE(t->product.n));
    return tri_gelu(tri_add(y, bias));
}

/* The gradients read only the shape of their last input. */
static tri_tensor *conv_of(const struct task *t, tri_graph *g, tri_tensor *a, tri_tensor *b) {
    static const char *const ops[] = {"conv2d", "conv2d_dx", "conv2d_dw"};
    const struct conv *v = &t->conv;
    tri_tensor *in[] = {a, b, t->direction == FORWARD ? NULL : source(t, g, "like", &t->out)};
    const tri_attr attrs[] = {AL("stride", TRI_SHAPE(v->stride, v->stride)),
                              AL("pad", TRI_SHAPE(v->pad, v->pad)), AI("groups", v->groups)};
    return graph_apply(g, ops[t->direction], in[2] ? 3 : 2, in, (int)COUNT(attrs), attrs);
}

/* As the passes `conv` and `format` decide. */
static void choose(tri_node *n) {
    struct format in[3] = {0}, out = {0};
    tri_attr *way = (tri_attr *)node_attr(n, "way");
    if (way && may_winograd && dev->kind->target->convolution(n, true) == WAY_WINOGRAD)
        way->i = WAY_WINOGRAD;
    dev->kind->target->formats(n, in, &out);
    for (int i = 0; i < n->n_in; i++) {
        if (!node_reads(n, i)) continue;
        n->in[i]->block = in[i].block;
        memcpy(n->in[i]->pack, in[i].pack, sizeof in[i].pack);
    }
    n->out->block = out.block;
    memcpy(n->out->pack, out.pack, sizeof out.pack);
}

static bool build(const struct task *t, struct job *j) {
    j->g = tri_graph_new(t->convolves ? t->conv.count : t->product.batch);
    if (!j->g) return false;
    tri_tensor *a = source(t, j->g, "a", &t->in[0]);
    tri_tensor *b = source(t, j->g, "b", &t->in[1]);
    j->y = (t->convolves ? conv_of : product_of)(t, j->g, a, b);
    tri_output(j->y, "y");
    if (tri_graph_status(j->g)) return false;
    const tri_node *unit[3];
    int n = 0;
    for (size_t i = 0; i < j->g->n_nodes; i++) {
        tri_node *node = j->g->node[i];
        if (!node_runs(node)) continue;
        if (!n) j->node = node;
        node->unit = t->product.gelu;
        unit[n++] = node;
    }
    CHECK(n == 1 || dev->kind->target->fuses(unit, n));
    choose(j->node);
    return true;
}

/* ---- memory ---- */

/* Copies between a plain tensor of f32 and one in a format. */
static void copy(const tri_tensor *t, float *plain, void *formatted, bool to_plain) {
    struct pack p;
    const tri_shape *s = &t->spec.shape;
    const int64_t count = tri_shape_count(s);
    int64_t at[TRI_MAX_RANK] = {0};
    pack_of(t, &p);
    for (int64_t i = 0; i < count; i++) {
        const size_t place = (size_t)pack_place(&p, s, at);
        if (to_plain)
            plain[i] = (float)convert_load(t->spec.type, formatted, place);
        else
            convert_store(t->spec.type, formatted, place, plain[i]);
        for (int d = s->rank - 1; d >= 0 && ++at[d] == s->dim[d]; d--) at[d] = 0;
    }
}

static void bind(struct job *j, float *const in[2]) {
    size_t used = 0;
    j->memory[used] = take(j->program.memory.total);
    program_place(&j->program, j->memory[used], j->memory[used]);
    used++;
    for (size_t i = 0; i < j->g->n_nodes; i++) {
        tri_tensor *t = j->g->node[i]->out;
        if (node_runs(t->node)) continue;
        j->memory[used] = take(base_spec_bytes(&t->spec));
        program_bind(&j->program, t->id, j->memory[used]);
        if (used < 3) copy(t, in[used - 1], j->memory[used], false);
        used++;
    }
}

static void release(void *job) {
    struct job *j = job;
    if (j->program.g) program_free(&j->program);
    for (size_t i = 0; i < COUNT(j->memory); i++) free(j->memory[i]);
    tri_graph_free(j->g);
    free(j);
}

/* ---- jobs ---- */

static void *prepare(const struct task *t, int way, float *const in[2]) {
    (void)way;
    struct job *j = calloc(1, sizeof *j);
    if (j && build(t, j) && !program_make(j->g, dev, 0, team_threads(team), &j->program)) {
        bind(j, in);
        return j;
    }
    fprintf(stderr, "%s: %s\n", t->name, tri_message());
    if (j) release(j);
    return NULL;
}

static void run(void *job) {
    struct job *j = job;
    struct tri_fault fault = {0};
    program_run(&j->program, team, &(struct program_step){.fault = &fault});
    CHECK(!fault.failed);
}

static void read_plain(void *job, float *out) {
    const struct job *j = job;
    copy(j->y, out, program_value(&j->program, j->y->id), true);
}

double ours_flops(const void *job) {
    const tri_node *n = ((const struct job *)job)->node;
    return n->entry->op->flops(n);
}

bool ours_winograd(const void *job) {
    const tri_attr *a = node_attr(((const struct job *)job)->node, "way");
    return a && a->i;
}

double ours_multiply(void) { return dev->kind->multiply(dev); }

const char *ours_instructions(void) { return dev->kind->instructions(dev, NULL); }

const struct library ours = {"trireme", 1, open_ours, prepare, run, read_plain, release, NULL};
