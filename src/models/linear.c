/* SPDX-License-Identifier: Apache-2.0
 * The smallest network, with its own data: z = 2 x^2 + 3 y^3 + 5 and a little noise, from the
 * features x^2 and y^3, so that training finds weights 2 and 3 and bias 5. */
#include "models/models.h"

#define SAMPLES 1600
#define NOISE 0.03

void linear_build(tri_graph *g, tri_args *args) {
    (void)args;
    int64_t n = tri_batch(g);
    tri_tensor *features = tri_input(g, "features", TRI_F32, TRI_SHAPE(n, 2));
    tri_tensor *target = tri_input(g, "target", TRI_F32, TRI_SHAPE(n, 1));
    tri_tensor *prediction = tri_dense(features, "fc", 1);
    tri_output(prediction, "prediction");
    tri_loss(tri_mse(prediction, target));
}

/* The next 64 bits of splitmix64. */
static uint64_t draw(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* In [-1, 1). */
static double point(uint64_t *state) { return (double)(draw(state) >> 11) * 0x1p-52 - 1; }

/* The sum of twelve uniform 16-bit numbers has variance 1. It needs no function of the math
 * library, whose results could differ between machines. */
static double normal(uint64_t *state) {
    uint64_t sum = 0;
    for (int i = 0; i < 3; i++)
        for (uint64_t z = draw(state), k = 0; k < 4; k++) sum += z >> 16 * k & 0xffff;
    return ((double)sum + 6) * 0x1p-16 - 6;
}

/* Every epoch has the same SAMPLES points. */
static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)epoch;
    uint64_t state = seed * 0xd1342543de82ef95u + (uint64_t)index * 0x2545f4914f6cdd1du;
    double x = point(&state), y = point(&state), noise = NOISE * normal(&state);
    float *features = out[0], *target = out[1];
    features[0] = (float)(x * x);
    features[1] = (float)(y * y * y);
    target[0] = (float)(2 * (x * x) + 3 * (y * y * y) + 5 + noise);
    return 0;
}

tri_data *linear_data(void) {
    const tri_field fields[] = {
        {"features", TRI_F32, TRI_SHAPE(2)},
        {"target", TRI_F32, TRI_SHAPE(1)},
    };
    return tri_data_new("linear", SAMPLES, fields, 2, fill, NULL, false);
}
