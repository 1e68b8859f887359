/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/window.h"

#include "graph/target.h"
#include "ops/op.h"

/* The inputs that have the shapes of x, weight and dy; -1: none. */
static const struct role {
    const char *op;
    int x, weight, dy;
} roles[] = {
    {"conv2d", 0, 1, -1},   {"conv2d_dx", 2, 1, 0},   {"conv2d_dw", 1, 2, 0},
    {"max_pool", 0, -1, -1}, {"max_pool_dx", 2, -1, 0},
    {"avg_pool", 0, -1, -1}, {"avg_pool_dx", 1, -1, 0},
};

static const struct role *role_of(const tri_node *n) {
    size_t i = 0;
    while (i < COUNT(roles) && !node_is(n, roles[i].op)) i++;
    CHECK(i < COUNT(roles));
    return &roles[i];
}

/* Up to this limit no sum or product of sizes overflows. */
#define LARGEST (1 << 20)

/* Reads an attribute [height, width]; 1 and 1 if the row does not have it. */
static bool pair(const tri_node *n, const char *name, int64_t least, int64_t *v, int64_t *h) {
    const tri_attr *a = node_attr(n, name);
    *v = a ? a->list.dim[0] : 1;
    *h = a ? a->list.dim[1] : 1;
    if (!a || (a->list.rank == 2 && *v >= least && *h >= least && *v <= LARGEST && *h <= LARGEST))
        return true;
    return tri_op_error(n, "%s must be two numbers from %lld to %d, for height and width", name,
                        (long long)least, LARGEST);
}

/* Padding for height and width: [both sides, both sides] or [top, left, bottom, right]. */
static bool padding(const tri_node *n, struct window *w) {
    const tri_shape pad = tri_attr_list(n, "pad");
    const bool sides = pad.rank == 4;
    bool fits = pad.rank == 2 || sides;
    for (int i = 0; i < pad.rank && fits; i++) fits = pad.dim[i] >= 0 && pad.dim[i] <= LARGEST;
    if (!fits)
        return tri_op_error(n, "pad must be two numbers from 0 to %d, for height and width, or "
                               "four: top, left, bottom and right", LARGEST);
    w->ph = pad.dim[0];
    w->pw = pad.dim[1];
    w->ph_end = pad.dim[sides ? 2 : 0];
    w->pw_end = pad.dim[sides ? 3 : 1];
    return true;
}

/* Output length along one axis. As in PyTorch, `ceil` adds a last window if that begins within the
 * input or the padding before it. */
static int64_t output_length(int64_t length, int64_t size, int64_t stride, int64_t pad,
                             int64_t pad_end, int64_t dilation, bool ceil) {
    int64_t room = length + pad + pad_end - dilation * (size - 1) - 1;
    if (ceil) room += stride - 1;
    if (room < 0) return 0;
    int64_t out = room / stride + 1;
    return ceil && (out - 1) * stride >= length + pad ? out - 1 : out;
}

/* Where x is in the whole image. */
static bool place(const tri_node *n, struct window *w) {
    const tri_attr *origin = node_attr(n, "origin"), *whole = node_attr(n, "whole");
    w->all_h = w->h;
    w->all_w = w->w;
    if (!origin || (!origin->list.rank && !whole->list.rank)) return true;
    bool fits = origin->list.rank == 2 && whole->list.rank == 2;
    if (fits) {
        w->y0 = origin->list.dim[0];
        w->x0 = origin->list.dim[1];
        w->all_h = whole->list.dim[0];
        w->all_w = whole->list.dim[1];
        fits = w->y0 >= 0 && w->x0 >= 0 && w->all_h <= INT32_MAX && w->all_w <= INT32_MAX &&
               w->y0 <= w->all_h - w->h && w->x0 <= w->all_w - w->w;
    }
    return fits || tri_op_error(n, "origin and whole do not describe a part of an image");
}

static bool convolution(const tri_node *n, const tri_shape *x, const tri_shape *weight,
                        struct window *w) {
    w->o = weight->dim[0];
    w->kh = weight->dim[2];
    w->kw = weight->dim[3];
    w->groups = tri_attr_int(n, "groups");
    if (w->groups < 1 || w->o % w->groups || x->dim[1] % w->groups)
        return tri_op_error(n, "groups is %lld; it must divide the %lld input and the %lld output "
                               "channels", (long long)w->groups, (long long)x->dim[1],
                            (long long)w->o);
    if (weight->dim[1] != x->dim[1] / w->groups)
        return tri_op_error(n, "x has %lld channels in %lld group(s), so the weight must be "
                               "[%lld,%lld,...], not [%lld,%lld,...]",
                            (long long)x->dim[1], (long long)w->groups,
                            (long long)w->o, (long long)(x->dim[1] / w->groups), (long long)w->o,
                            (long long)weight->dim[1]);
    return true;
}

static bool pooling(const tri_node *n, const tri_shape *x, struct window *w) {
    w->o = x->dim[1];
    w->groups = 1;
    if (!pair(n, "size", 1, &w->kh, &w->kw)) return false;
    if (tri_attr_list(n, "pad").rank == 4)
        return role_of(n)->dy >= 0 ||
               (w->ph < w->kh && w->ph_end < w->kh && w->pw < w->kw && w->pw_end < w->kw) ||
               tri_op_error(n, "each side's pad must be smaller than the window");
    return (2 * w->ph <= w->kh && 2 * w->pw <= w->kw) ||
           tri_op_error(n, "pad must be at most half the window");
}

bool window_of(const tri_node *n, struct window *w) {
    const struct role *role = role_of(n);
    const tri_shape *x = in_shape(n, role->x);
    *w = (struct window){0};
    if (!op_need_rank(n, role->x, 4) || (role->weight >= 0 && !op_need_rank(n, role->weight, 4)) ||
        !pair(n, "stride", 1, &w->sh, &w->sw) || !padding(n, w) ||
        !pair(n, "dilation", 1, &w->dh, &w->dw))
        return false;
    if (!(role->weight >= 0 ? convolution(n, x, in_shape(n, role->weight), w) : pooling(n, x, w)))
        return false;
    const tri_attr *ceil = node_attr(n, "ceil"), *exclude = node_attr(n, "exclude_pad");
    w->exclude_pad = exclude && exclude->i;
    w->n = x->dim[0];
    w->c = x->dim[1];
    w->h = x->dim[2];
    w->w = x->dim[3];
    if (!place(n, w)) return false;
    w->oh = output_length(w->h, w->kh, w->sh, w->ph, w->ph_end, w->dh, ceil && ceil->i);
    w->ow = output_length(w->w, w->kw, w->sw, w->pw, w->pw_end, w->dw, ceil && ceil->i);
    if (w->oh < 1 || w->ow < 1)
        return tri_op_error(n, "the window, %lldx%lld with dilation, is larger than the padded "
                               "image, %lldx%lld", (long long)(w->dh * (w->kh - 1) + 1),
                            (long long)(w->dw * (w->kw - 1) + 1),
                            (long long)(w->h + w->ph + w->ph_end),
                            (long long)(w->w + w->pw + w->pw_end));
    tri_shape y = window_output(w);
    if (role->dy < 0 || base_shape_equal(in_shape(n, role->dy), &y)) return true;
    return tri_op_error(n, "input %d must be [%lld,%lld,%lld,%lld]", role->dy, (long long)y.dim[0],
                        (long long)y.dim[1], (long long)y.dim[2], (long long)y.dim[3]);
}

tri_shape window_output(const struct window *w) { return TRI_SHAPE(w->n, w->o, w->oh, w->ow); }

static struct window_span within(int64_t begin, int64_t size, int64_t from, int64_t to) {
    int64_t end = begin + size;
    return (struct window_span){begin < from ? from : begin, end > to ? to : end};
}

struct window_span window_rows(const struct window *w, int64_t r) {
    return within(r * w->sh - w->ph, w->kh, 0, w->h);
}

struct window_span window_columns(const struct window *w, int64_t q) {
    return within(q * w->sw - w->pw, w->kw, 0, w->w);
}

int64_t window_divisor(const struct window *w, int64_t r, int64_t q) {
    const bool pads = !w->exclude_pad;
    struct window_span v = within(r * w->sh - w->ph, w->kh, pads ? -w->ph : -w->y0,
                                  pads ? w->h + w->ph_end : w->all_h - w->y0);
    struct window_span h = within(q * w->sw - w->pw, w->kw, pads ? -w->pw : -w->x0,
                                  pads ? w->w + w->pw_end : w->all_w - w->x0);
    return (v.end - v.begin) * (h.end - h.begin);
}

/* ---- parts ---- */

/* One axis of a pooling or convolution row: sizes of x, y and the window with dilation. */
struct along {
    int64_t x, y, stride, pad, window;
    bool in_y; /* windows lie in y: the factor is x's */
};

static struct along along_of(const tri_node *n, char factor) {
    struct window w;
    CHECK(window_of(n, &w));
    const bool in_y = factor == 'h' || factor == 'w';
    return factor == 'h' || factor == 'p'
               ? (struct along){w.h, w.oh, w.sh, w.ph, w.dh * (w.kh - 1) + 1, in_y}
               : (struct along){w.w, w.ow, w.sw, w.pw, w.dw * (w.kw - 1) + 1, in_y};
}

void window_reach(const tri_node *n, char factor, tri_reach *out) {
    const struct along a = along_of(n, factor);
    const int64_t first = a.pad - (a.window > a.stride ? a.window - a.stride : 0);
    *out = a.in_y ? (tri_reach){.times = 1, .over = a.stride, .low = first, .high = a.pad}
                  : (tri_reach){.times = a.stride, .over = 1, .low = -a.pad,
                                .high = a.window - 1 - a.pad};
}

static int64_t clamp(int64_t v, int64_t low, int64_t high) {
    return v < low ? low : v > high ? high : v;
}

/* The padding is what the windows of y's places have beyond x's places. */
void window_part(const tri_node *n, char factor, const int64_t part[2], const int64_t seen[2],
                 tri_attr *attr) {
    const struct along a = along_of(n, factor);
    const int axis = factor == 'w' || factor == 'q';
    const int64_t *x = a.in_y ? part : seen, *y = a.in_y ? seen : part;
    const int64_t beyond = (y[1] - 1) * a.stride + a.window - a.pad - x[1];
    for (int i = 0; i < n->entry->n_attrs; i++) {
        const char *name = n->entry->attr[i].name;
        tri_shape *list = &attr[i].list;
        if (!strcmp(name, "pad")) {
            if (list->rank == 2) *list = TRI_SHAPE(list->dim[0], list->dim[1], list->dim[0],
                                                   list->dim[1]);
            list->dim[2 + axis] = clamp(beyond, 0, a.x + list->dim[2 + axis] - x[1]);
            list->dim[axis] = a.pad + x[0] - y[0] * a.stride;
        }
        if (!strcmp(name, "origin")) {
            if (!list->rank) *list = TRI_SHAPE(0, 0);
            list->dim[axis] = x[0];
        }
        if (!strcmp(name, "whole")) {
            const tri_shape *all = in_shape(n, role_of(n)->x);
            *list = TRI_SHAPE(all->dim[2], all->dim[3]);
        }
    }
}

int window_infer_like_last(const tri_node *n, tri_spec *out) {
    struct window w;
    for (int i = 0; i < n->n_in; i++) {
        tri_type t = in_spec(n, i)->type;
        if (type_is_float(t) && t != in_spec(n, 0)->type)
            return tri_op_error(n, "the types of the inputs differ; tri_cast one of them");
    }
    if (!op_need_float(n, 0) || !window_of(n, &w)) return 0;
    out[0] = (tri_spec){in_spec(n, 0)->type, *in_shape(n, n->n_in - 1)};
    return 1;
}

/* By Winograd's algorithm: of the products of 36 elements for each 4x4 places of y, or of dx. */
static double winograd_flops(const tri_node *n, const struct window *w) {
    const bool dx = node_is(n, "conv2d_dx");
    const int64_t rows = dx ? w->h : w->oh, columns = dx ? w->w : w->ow;
    const int64_t tiles = w->n * ((rows + 3) / 4) * ((columns + 3) / 4);
    return 2.0 * 36 * (double)tiles * (double)(w->c * w->o);
}

double window_flops(const tri_node *n) {
    struct window w;
    if (!window_of(n, &w)) return 0;
    const tri_attr *way = node_attr(n, "way");
    if (way && way->i == WAY_WINOGRAD) return winograd_flops(n, &w);
    tri_shape y = window_output(&w);
    double places = (double)tri_shape_count(&y) * (double)(w.kh * w.kw);
    return role_of(n)->weight < 0 ? places : 2 * places * (double)(w.c / w.groups);
}

tri_shape window_pair(int64_t both, int64_t width) { return TRI_SHAPE(both, width ? width : both); }

tri_shape window_pad(int64_t both, int64_t width) {
    return TRI_SHAPE(both, width == -1 ? 0 : width ? width : both);
}

tri_tensor *window_pool(const char *op, tri_tensor *x, const tri_pool_options *o, bool averages) {
    tri_shape size = window_pair(o->size, o->size_w);
    tri_shape stride = o->stride ? window_pair(o->stride, o->stride_w) : size;
    if (!o->stride && o->stride_w) stride.dim[1] = o->stride_w;
    return graph_apply(tri_graph_of(x), op, 1, INPUTS(x), averages ? 5 : 4,
                       (const tri_attr[]){AL("size", size), AL("stride", stride),
                                          AL("pad", window_pad(o->pad, o->pad_w)),
                                          AI("ceil", o->ceil_mode),
                                          AI("exclude_pad", o->exclude_pad)});
}
