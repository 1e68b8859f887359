/* SPDX-License-Identifier: Apache-2.0
 * Elementwise operators, alone or several in one unit: chains, divided into parts by elements. */
#include "dev/cpu/chain.h"
#include "dev/cpu/tile.h"

static int64_t tiles_of(const struct chain *c) { return (chain_count(c) + TILE - 1) / TILE; }
#define LARGEST_PART 131072 /* elements, more or less: what an update must be able to undo */

static int64_t parts_of(const struct chain *c) {
    int64_t parts = cpu_parts(tiles_of(c), TILE);
    while (chain_count(c) / parts > LARGEST_PART) parts *= 2;
    return parts;
}

static void run(const tri_call *call) {
    const struct chain *c = call->state;
    struct cpu_range r = cpu_part(call, parts_of(c), tiles_of(c));
    int64_t first = r.begin * TILE, end = r.end * TILE;
    if (end > chain_count(c)) end = chain_count(c);
    chain_run(c, &(struct chain_io){.in = call->in, .out = call->out}, first, end - first);
}

static void span(const void *state, int64_t part, int64_t *first, int64_t *end) {
    int64_t tiles = tiles_of(state), parts = parts_of(state), count = chain_count(state);
    *first = tiles * part / parts * TILE;
    *end = tiles * (part + 1) / parts * TILE;
    if (*end > count) *end = count;
}

static bool shares(const void *state, int out, int in) { return chain_shares(state, out, in); }

static void plan(const tri_node *n, struct kernel *k) {
    (void)n;
    k->shares = shares;
    k->span = span;
    k->parts = parts_of(k->state);
}

tri_status elementwise_unit(const struct unit *u, struct kernel *out) {
    struct chain *c;
    tri_status status = chain_make(u, NULL, NULL, &c);
    if (status) return status;
    *out = (struct kernel){.run = run, .state = c, .release = free};
    plan(u->node[0], out);
    return TRI_OK;
}

static tri_status prepare(const tri_node *n, void **state) {
    tri_node *node = n->out->node;
    tri_tensor *out = n->out;
    struct unit u = {.node = &node, .n = 1, .in = n->in, .out = &out, .n_in = n->n_in, .n_out = 1};
    return chain_make(&u, NULL, NULL, (struct chain **)state);
}

static const char *supports_spread(const tri_node *n) {
    return type_is_float(cpu_out(n, 0)->type) || tri_attr_int(n, "count") == 1
               ? NULL
               : "spread divides floating-point numbers only; tri_cast to f32";
}

static void fill_like(const tri_call *c) {
    cpu_fill(cpu_out(c->node, 0), c->out[0], tri_attr_float(c->node, "value"));
}

/* stop_gradient, reshape: copies the elements in order. */
static void same(const tri_call *c) {
    if (c->out[0] != c->in[0]) memcpy(c->out[0], c->in[0], base_spec_bytes(cpu_out(c->node, 0)));
}

static void plan_same(const tri_node *n, struct kernel *k) {
    (void)n;
    k->alias = true;
}

static const char *supports(const tri_node *n) {
    if (tile_find(n, TILE_RUNS)) return NULL;
    return "it has no arithmetic of this type on cpu; tri_cast to f32";
}

const struct dev_row cpu_tile_row = {.run = run, .supports = supports, .prepare = prepare,
                                      .release = free, .plan = plan, .formats = cpu_same_format};

const struct dev_row cpu_elementwise[] = {
    {.op = "expand", .run = run, .prepare = prepare, .release = free, .plan = plan},
    {.op = "spread", .run = run, .supports = supports_spread, .prepare = prepare,
     .release = free, .plan = plan},
    {.op = "fill_like", .run = fill_like, .formats = cpu_same_format},
    {.op = "stop_gradient", .run = same, .plan = plan_same, .formats = cpu_same_format},
    {.op = "reshape", .run = same, .plan = plan_same},
    {0},
};
