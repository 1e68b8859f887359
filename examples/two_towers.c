/* SPDX-License-Identifier: Apache-2.0
 * Two towers, as for retrieval: one network maps queries to vectors, the other items, and a query's
 * vector shall be closest to that of its own item. The other items of the batch are the negatives,
 * so each sample's loss depends on all others: the batch is one lane, which any number of workers
 * may compute (`trireme run -n 2 -- ./two_towers`). */
#include <stdio.h>
#include <trireme.h>

#define WIDTH 8
#define SIZE 16

/* [n, WIDTH] to vectors of length 1. */
static tri_tensor *tower(tri_tensor *x, const char *name) {
    tri_push(tri_graph_of(x), "%s", name);
    tri_tensor *h = tri_dense(tri_relu(tri_dense(x, "fc1", 32)), "fc2", SIZE);
    tri_pop(tri_graph_of(x));
    tri_tensor *square = tri_sum(tri_mul(h, h), TRI_SHAPE(1), .keep = true);
    return tri_mul(h, tri_rsqrt(tri_add_number(square, 1e-6)));
}

static void network(tri_graph *g) {
    int64_t n = tri_batch(g);
    tri_tensor *query = tri_input(g, "query", TRI_F32, TRI_SHAPE(n, WIDTH));
    tri_tensor *item = tri_input(g, "item", TRI_F32, TRI_SHAPE(n, WIDTH));
    tri_tensor *q = tower(query, "query"), *k = tower(item, "item");
    /* Row i has the scores of query i with all items; its own is item i. */
    tri_tensor *scores = tri_scale(tri_matmul(q, k, .trans_b = true), 10);
    tri_tensor *own = tri_arange(q);
    tri_tensor *back = tri_cross_entropy(tri_transpose(scores, TRI_SHAPE(1, 0)), own);
    /* The mean of the scores with other items, which tri_eye leaves out. */
    tri_tensor *others = tri_sub(tri_constant(g, 1, TRI_F32), tri_eye(q));
    tri_tensor *far = tri_div(tri_sum(tri_mul(scores, others), TRI_ALL), tri_sum(others, TRI_ALL));
    tri_metric(tri_accuracy(scores, own, 1), "found");
    tri_metric(far, "far");
    tri_loss(tri_scale(tri_add(tri_cross_entropy(scores, own), back), 0.5));
}

/* A number in [-1, 1) that looks random and is always the same for the same i. */
static float draw(uint64_t i) {
    i = (i + 1) * 0x9e3779b97f4a7c15u;
    i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9u;
    i = (i ^ i >> 27) * 0x94d049bb133111ebu;
    return (float)((double)(i >> 11) / 4503599627370496.0 - 1);
}

/* An item is a rotated, bent view of its query. */
static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    float *query = out[0], *item = out[1];
    (void)user, (void)epoch, (void)seed;
    for (int i = 0; i < WIDTH; i++) query[i] = draw((uint64_t)(index * WIDTH + i));
    for (int i = 0; i < WIDTH; i++)
        item[i] = query[(i + 3) % WIDTH] - query[i] * query[(i + 1) % WIDTH];
    return 0;
}

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    o.epochs = 20;
    o.lanes = 1;
    o.optimizer = (tri_optimizer){.name = "adam", .lr = 0.003};
    if (tri_options_parse(&o, &argc, argv)) return TRI_USAGE;
    if (argc > 1) return fprintf(stderr, "unknown: %s\n", argv[1]), TRI_USAGE;
    o.source = tri_data_new("pairs", 2048,
                            (const tri_field[]){{"query", TRI_F32, TRI_SHAPE(WIDTH)},
                                                {"item", TRI_F32, TRI_SHAPE(WIDTH)}},
                            2, fill, NULL, false);
    if (!o.source) return TRI_FAILED;
    tri_graph *g = tri_graph_new(o.batch);
    network(g);
    return tri_train(g, &o, NULL);
}
