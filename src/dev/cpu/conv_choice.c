/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/cpu/conv_own.h"
#include "ops/window.h"

#define FEW 16               /* channels: a vector of them */
#define FEW_PLACES (1 << 15) /* of a plane with what is beside it */

bool conv_few_takes(const tri_node *n) {
    struct window w;
    if (!node_is(n, "conv2d") && !node_is(n, "conv2d_dx") && !node_is(n, "conv2d_dw")) return false;
    CHECK(window_of(n, &w));
    const int64_t down = (w.kh - 1) * w.dh, right = (w.kw - 1) * w.dw;
    const int64_t way = tri_attr_int(n, "way");
    const bool fits = cpu_in(n, 0)->type == TRI_F32 && w.groups == 1 && w.sh == 1 && w.sw == 1 &&
                      w.ph <= down && w.ph_end <= down && w.pw <= right && w.pw_end <= right &&
                      w.c < FEW && w.o <= FEW &&
                      (w.h + 2 * down) * (w.w + 2 * right) <= FEW_PLACES;
    return fits && (way == WAY_BY_SIZES || way == WAY_FEW || way == WAY_ACROSS);
}

bool conv_wino_fits(const tri_node *n, const struct window *w) {
    return cpu_in(n, 0)->type == TRI_F32 && w->kh == 3 && w->kw == 3 && w->sh == 1 &&
           w->sw == 1 && w->dh == 1 && w->dw == 1 && w->groups == 1 && w->ph <= 2 && w->pw <= 2 &&
           w->ph_end <= 2 && w->pw_end <= 2 && w->c % 16 == 0 && w->o % 16 == 0;
}

struct window conv_lane(const tri_node *n) {
    struct window w;
    CHECK(window_of(n, &w));
    w.n /= n->graph->lanes;
    if (w.n < 1) w.n = 1;
    return w;
}

#define LEAST_PLACES 512 /* of outputs: for fewer, transforming the weights costs what is saved */
#define LEAST_CHANNELS 32

bool conv_wino_takes(const tri_node *n) {
    struct window w;
    if ((!node_is(n, "conv2d") && !node_is(n, "conv2d_dx")) ||
        tri_attr_int(n, "way") != WAY_WINOGRAD)
        return false;
    CHECK(window_of(n, &w));
    return conv_wino_fits(n, &w);
}

#define CACHED 262144 /* floats of the tensors of a group that stay in the second-level cache */
#define TAPS \
    24 /* of an output: with 9, bringing samples beside each other cost more than it gave */

/* Groups of SUMS samples are nearly full: with 12 of 16 it was slower than along the planes. */
static bool fills_groups(int64_t n) { return 8 * n >= 7 * ((n + SUMS - 1) / SUMS * SUMS); }

/* Whether n samples, of all that the node has, are best computed across them. */
static bool across(const tri_node *n, int64_t samples) {
    struct window w;
    CHECK(window_of(n, &w));
    return fills_groups(samples) &&
           w.kh * w.kw * (node_is(n, "conv2d_dx") ? w.o : w.c) >= TAPS &&
           SUMS * (w.c * w.h * (w.w + 2 * w.pw) + w.o * w.oh * w.ow) <= CACHED;
}

bool conv_across_takes(const tri_node *n) {
    if (!conv_few_takes(n)) return false;
    const int64_t way = tri_attr_int(n, "way");
    return way == WAY_ACROSS || (way == WAY_BY_SIZES && across(n, cpu_in(n, 0)->shape.dim[0]));
}

int cpu_convolution(const tri_node *n, bool winograd) {
    const struct window w = conv_lane(n);
    const bool many = w.c >= LEAST_CHANNELS && w.o >= LEAST_CHANNELS &&
                      w.n * w.oh * w.ow >= LEAST_PLACES;
    return winograd && many && conv_wino_fits(n, &w) ? WAY_WINOGRAD
           : !conv_few_takes(n)                      ? WAY_DIRECT
           : across(n, w.n)                          ? WAY_ACROSS
                                                     : WAY_FEW;
}

static bool in_blocks(const tri_tensor *t) { return !*t->pack && (!t->block || t->block == 16); }

static bool packed_as(const tri_tensor *t, const char *pack) {
    return !t->block && (!*t->pack || !strcmp(t->pack, pack));
}

bool conv_depth_takes(const tri_node *n) {
    struct window w;
    const bool dw = node_is(n, "conv2d_dw");
    if (!dw && !node_is(n, "conv2d") && !node_is(n, "conv2d_dx")) return false;
    CHECK(window_of(n, &w));
    return cpu_in(n, 0)->type == TRI_F32 && w.groups == w.c && w.o == w.c && w.c % 16 == 0 &&
           in_blocks(n->in[0]) && in_blocks(dw ? n->in[1] : n->out) &&
           packed_as(dw ? n->out : n->in[1], dw ? "" : CONV_DEPTH_PACK);
}

bool conv_thin_fits(tri_type type, const struct window *w) {
    const int64_t group = w->c / w->groups;
    return type == TRI_BF16 && w->c == w->o && w->c % 16 == 0 && group <= 8 && 8 % group == 0;
}

bool conv_thin_takes(const tri_node *n) {
    struct window w;
    if (!node_is(n, "conv2d") && !node_is(n, "conv2d_dx")) return false;
    CHECK(window_of(n, &w));
    return conv_thin_fits(cpu_in(n, 0)->type, &w) && in_blocks(n->in[0]) && in_blocks(n->out) &&
           packed_as(n->in[1], "");
}

bool conv_direct_takes(const tri_node *n) {
    const tri_type type = cpu_in(n, 0)->type;
    return (node_is(n, "conv2d") || node_is(n, "conv2d_dx")) &&
           (type == TRI_F32 || type == TRI_BF16);
}
