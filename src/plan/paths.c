/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/paths.h"

#include <stdlib.h>

#include "plan/held.h"

const char *const path_words[PATHS + 2] = {"auto", "exchange", "ring", "butterfly", "root", NULL};

bool path_allows(enum path path, int hosts) {
    if (path == PATH_RING) return hosts > 1;
    if (path == PATH_BUTTERFLY) return hosts > 1 && !(hosts & (hosts - 1));
    return hosts > 0;
}

/* Places among the hosts that are alive. */
struct hop {
    int from, to;
};

/* Two trees of hops, in order, with hosts - 1 each: what is known of a chunk comes together, then
 * its root goes out. */
typedef void hops_of(int hosts, int chunk, struct hop *together, struct hop *out);

static void ring(int hosts, int chunk, struct hop *together, struct hop *out) {
    for (int i = 0; i < hosts - 1; i++) {
        together[i] = (struct hop){(chunk + 1 + i) % hosts, (chunk + 2 + i) % hosts};
        out[i] = (struct hop){(chunk + i) % hosts, (chunk + 1 + i) % hosts};
    }
}

static void turn_around(int hosts, const struct hop *together, struct hop *out) {
    for (int i = 0; i < hosts - 1; i++) {
        const struct hop *h = &together[hosts - 2 - i];
        out[i] = (struct hop){h->to, h->from};
    }
}

/* In the round of a bit, a host still has the chunks that have its lower bits, and sends those that
 * differ in this one. Neighbours come first: with equal shares they have siblings. */
static void butterfly(int hosts, int chunk, struct hop *together, struct hop *out) {
    int n = 0;
    for (int bit = 1; bit < hosts; bit *= 2)
        for (int h = 0; h < hosts; h++)
            if (((h ^ chunk) & (2 * bit - 1)) == bit) together[n++] = (struct hop){h, h ^ bit};
    turn_around(hosts, together, out);
}

static void root(int hosts, int chunk, struct hop *together, struct hop *out) {
    for (int i = 0; i < hosts - 1; i++) together[i] = (struct hop){i + 1, chunk};
    turn_around(hosts, together, out);
}

static hops_of *const hops[PATHS] = {NULL, ring, butterfly, root};

/* A transfer. A sender takes those first whose chunks have the longest way before them. */
struct sent {
    struct transfer is;
    int left; /* hops from here to the end of the way, in an order */
};

struct sending {
    struct held held;
    struct sent *sent;
    size_t n, capacity;
};

static bool send(struct sending *s, int left, int from, int to, int chunk, int node) {
    CHECK(held_since(&s->held, from, chunk, node) != HELD_NEVER);
    if (held_since(&s->held, to, chunk, node) != HELD_NEVER) return true;
    if (s->n == s->capacity) {
        const size_t capacity = 2 * s->capacity + 64;
        struct sent *more = realloc(s->sent, capacity * sizeof *more);
        if (!more) return false;
        s->sent = more;
        s->capacity = capacity;
    }
    s->sent[s->n++] = (struct sent){{.from = from, .to = to, .node = node, .chunk = chunk}, left};
    held_add(&s->held, to, chunk, node, 0);
    return true;
}

/* Sends what the host has of a chunk and has not added to anything. */
static bool send_all(struct sending *s, int left, int from, int to, int chunk) {
    const struct held *h = &s->held;
    for (int i = 0; i < h->n; i++) {
        const int node = h->node[i], parent = h->tree->node[node].parent;
        if (held_since(h, from, chunk, node) == HELD_NEVER ||
            (parent >= 0 && held_since(h, from, chunk, parent) != HELD_NEVER))
            continue;
        if (!send(s, left, from, to, chunk, node)) return false;
    }
    return true;
}

/* The hops from hop i to the host where its tree comes together. */
static int together_left(const struct hop *hop, int n, int i) {
    int left = 1;
    for (int k = i + 1; k < n; k++)
        if (hop[k].from == hop[i].to) left++, i = k;
    return left;
}

/* The most hops from hop i to a host that is reached last. */
static int out_left(const struct hop *hop, int n, int i) {
    int left = 0;
    for (int k = i + 1; k < n; k++) {
        const int more = hop[k].from == hop[i].to ? out_left(hop, n, k) : 0;
        left = more > left ? more : left;
    }
    return left + 1;
}

static bool send_chunks(struct sending *s, enum path path, const int *host, int hosts,
                        struct hop *hop) {
    struct hop *together = hop, *out = hop + hosts;
    const int root_node = s->held.tree->n_nodes - 1;
    for (int c = 0; c < s->held.chunks; c++) {
        hops[path](hosts, c, together, out);
        for (int i = 0; i < hosts - 1; i++)
            if (!send_all(s, hosts + together_left(together, hosts - 1, i),
                          host[together[i].from], host[together[i].to], c))
                return false;
        for (int i = 0; i < hosts - 1; i++)
            if (!send(s, out_left(out, hosts - 1, i), host[out[i].from], host[out[i].to], c,
                      root_node))
                return false;
    }
    return true;
}

static int compare(const void *a, const void *b) {
    const struct sent *x = a, *y = b;
    if (x->is.from != y->is.from) return x->is.from - y->is.from;
    if (x->left != y->left) return y->left - x->left;
    if (x->is.chunk != y->is.chunk) return x->is.chunk - y->is.chunk;
    if (x->is.node != y->is.node) return x->is.node - y->is.node;
    return x->is.to - y->is.to;
}

tri_status route_make(const struct lane_tree *tree, const struct transfers *t, const int *maker,
                      enum path path, const int *host, int hosts, struct route *r) {
    CHECK(hops[path] && path_allows(path, hosts));
    *r = (struct route){.chunks = path == PATH_ROOT ? 1 : hosts};
    struct sending s = {0};
    struct hop *hop = malloc(2 * (size_t)hosts * sizeof *hop);
    bool made = hop && !held_make(tree, t->n_operands, t->operand, t->hosts, r->chunks, &s.held);
    for (int k = 0; made && k < t->n_operands; k++)
        for (int c = 0; c < r->chunks; c++) held_add(&s.held, maker[k], c, t->operand[k], 0);
    made = made && send_chunks(&s, path, host, hosts, hop);
    r->all = made ? malloc((s.n + 1) * sizeof *r->all) : NULL;
    if (r->all) {
        if (s.n) qsort(s.sent, s.n, sizeof *s.sent, compare);
        for (; r->n < (int)s.n; r->n++) r->all[r->n] = s.sent[r->n].is;
    }
    free(hop);
    free(s.sent);
    held_free(&s.held);
    return r->all ? TRI_OK : base_no_memory("a schedule of transfers");
}

void route_free(struct route *r) {
    free(r->all);
    *r = (struct route){0};
}
