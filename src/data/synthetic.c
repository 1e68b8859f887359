/* SPDX-License-Identifier: Apache-2.0
 * Random data for trying and timing a network. */
#include "data/source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/integer.h"
#include "base/random.h"
#include "graph/graph.h"

struct synthetic_field {
    uint64_t key;
    int64_t count, below; /* 0: normal numbers */
    tri_type type;
};

#define SYNTHETIC_SIZE 65536 /* samples of an epoch, by default */

/* Normal numbers are taken from POOL numbers made beforehand, with both signs and variance 1,
 * NEIGHBOURS at a time. This is over a hundred times faster than making each, and does not distort
 * the timing of a network. */
#define POOL 4096
#define NEIGHBOURS 16

struct synthetic {
    int n;
    float pool[2 * POOL + NEIGHBOURS]; /* the start is repeated at the end */
    struct synthetic_field field[];
};

/* The largest `below` of each type. 2^53, as uniform numbers are made from doubles. */
static const int64_t type_limit[] = {
    [TRI_I32] = INT64_C(1) << 31, [TRI_I64] = INT64_C(1) << 53, [TRI_U8] = 256, [TRI_BOOL] = 2};

static bool is_float(tri_type t) { return t == TRI_F32 || t == TRI_BF16 || t == TRI_F16; }

static int64_t integer(const struct synthetic_field *f, int64_t index, int64_t i) {
    double u = random_uniform(f->key, (uint64_t)index, (uint64_t)i);
    int64_t x = (int64_t)(u * (double)f->below);
    return x < f->below ? x : f->below - 1; /* the product may be rounded up */
}

static void fill_integers(const struct synthetic_field *f, int64_t index, void *out) {
    for (int64_t i = 0; i < f->count; i++)
        integer_store(f->type, out, (size_t)i, integer(f, index, i));
}

static void fill_normals(const struct synthetic *s, const struct synthetic_field *f, int64_t index,
                         void *out) {
    uint32_t bits[64];
    size_t count = (size_t)f->count;
    for (size_t first = 0, n; first < count; first += n) {
        size_t run = first / NEIGHBOURS % COUNT(bits);
        n = count - first < NEIGHBOURS ? count - first : NEIGHBOURS;
        if (!run) {
            size_t runs = (count - first + NEIGHBOURS - 1) / NEIGHBOURS;
            if (runs >= COUNT(bits) / 2) runs = COUNT(bits); /* batches of this size cost less */
            random_u32_fill(f->key, (uint64_t)index, first / NEIGHBOURS, runs, bits);
        }
        const float *from = s->pool + bits[run] % (2 * POOL);
        if (f->type == TRI_F32 && n == NEIGHBOURS)
            memcpy((float *)out + first, from, NEIGHBOURS * sizeof *from);
        else if (f->type == TRI_F32)
            memcpy((float *)out + first, from, n * sizeof *from);
        else
            for (size_t i = 0; i < n; i++) convert_store(f->type, out, first + i, (double)from[i]);
    }
}

/* In 128 steps, so that no 16-bit type rounds up to `below`. */
static void fill_uniform(const struct synthetic_field *f, int64_t index, void *out) {
    for (int64_t i = 0; i < f->count; i++) {
        double step = floor(128 * random_uniform(f->key, (uint64_t)index, (uint64_t)i));
        convert_store(f->type, out, (size_t)i, (double)f->below * step / 128);
    }
}

static void make_pool(float *pool, uint64_t seed) {
    uint64_t key = random_key(seed, base_hash_text("synthetic data"));
    double squares = 0;
    for (uint64_t i = 0; i < POOL; i++) {
        double x = random_normal(key, 0, i);
        squares += x * x;
    }
    double scale = sqrt(POOL / squares);
    for (uint64_t i = 0; i < POOL; i++) {
        pool[i] = (float)(random_normal(key, 0, i) * scale);
        pool[POOL + i] = -pool[i];
    }
    memcpy(pool + 2 * POOL, pool, NEIGHBOURS * sizeof *pool);
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    const struct synthetic *s = user;
    (void)epoch;
    (void)seed; /* the keys follow from the seed at opening */
    for (int i = 0; i < s->n; i++) {
        const struct synthetic_field *f = &s->field[i];
        if (!is_float(f->type))
            fill_integers(f, index, out[i]);
        else if (f->below)
            fill_uniform(f, index, out[i]);
        else
            fill_normals(s, f, index, out[i]);
    }
    return 0;
}

tri_data *data_synthetic(const tri_field *fields, const int64_t *below, int n, int64_t size,
                         uint64_t seed) {
    CHECK(n >= 0);
    struct synthetic *s = calloc(1, sizeof *s + (size_t)n * sizeof s->field[0]);
    if (!s) {
        base_no_memory("synthetic data");
        return NULL;
    }
    s->n = n;
    make_pool(s->pool, seed);
    for (int i = 0; i < n; i++) {
        const tri_field *f = &fields[i];
        bool real = is_float(f->type);
        int64_t limit = real ? below[i] : type_limit[f->type];
        if (below[i] < 0 || below[i] > limit) {
            base_fail(TRI_USAGE, "synthetic data: field '%s': below %lld is not in 0 to %lld",
                      f->name, (long long)below[i], (long long)limit);
            free(s);
            return NULL;
        }
        s->field[i] = (struct synthetic_field){.key = random_key(seed, base_hash_text(f->name)),
                                               .count = tri_shape_count(&f->shape),
                                               .below = below[i] || real ? below[i] : 2,
                                               .type = f->type};
    }
    return data_make("synthetic", size, fields, n, fill, s, false, free);
}

/* The inputs of a graph are its fields. */
static tri_data *fill_graph(const tri_graph *g, int64_t size, uint64_t seed) {
    tri_field fields[TRI_MAX_FIELDS];
    int64_t below[TRI_MAX_FIELDS];
    int n = 0;
    for (size_t i = 0; g && i < g->n_nodes; i++) {
        const tri_node *node = g->node[i];
        if (!node_is(node, "input")) continue;
        if (n == TRI_MAX_FIELDS) {
            base_fail(TRI_USAGE, "the network has more than %d inputs", TRI_MAX_FIELDS);
            return NULL;
        }
        tri_spec one = graph_sample_spec(&node->out->spec);
        fields[n] = (tri_field){source_name(node), one.type, one.shape};
        below[n++] = tri_attr_int(node, "below");
    }
    return data_synthetic(fields, below, n, size, seed);
}

static tri_data *synthetic_open(const struct data_spec *s) {
    int64_t size = SYNTHETIC_SIZE;
    const struct data_option known[] = {{"size", DATA_INT, &size}};
    if (data_parse_options(s, known, (int)COUNT(known))) return NULL;
    if (size < 1 || size > DATA_MAX_SIZE) {
        base_fail(TRI_USAGE, "data '%s': size is %lld; 1 to 2^48 samples are possible", s->spec,
                  (long long)size);
        return NULL;
    }
    if (!s->graph) {
        base_fail(TRI_USAGE, "data '%s': synthetic samples are made for the inputs of a network; "
                  "give it to one, as in `trireme train MODEL --data synthetic`", s->spec);
        return NULL;
    }
    return fill_graph(s->graph, size, s->seed);
}

const struct data_source source_synthetic = {"synthetic", NULL, "synthetic[:size=N]",
                                             synthetic_open, false};
