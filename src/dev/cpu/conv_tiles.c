/* SPDX-License-Identifier: Apache-2.0
 * Rows of tiles are read in place, 64 bytes each: of a strip of the output's lines, what it reads is
 * copied, 32 channels together. Of an axis with strides, places are copied in phases: those that
 * one tap reads, beside each other. Lines of the copy are as long as the output's, with zeros after
 * them, where the padding before the next line also is; so are planes. So the places of all lines
 * and samples make one sequence, in which a tap is a distance. What is computed for zeros between
 * lines and planes is left out. */
#include "dev/cpu/conv_tiles.h"

#include "dev/cpu/gemm_tiles.h"
#include "dev/cpu/half.h"

#define STRIP (512 << 10) /* bytes of a strip's copy, about: with the weight, in the second cache */
#define ROWS 2048         /* places of a strip at most, or a line */
#define BLOCK GEMM_PANEL
#define AFTER 32 /* places that are read after the last */

/* What the taps of an axis read: phase p of a line is its places p, p + move, ... Tap t reads, for
 * place i of the output, place i + distance of a phase. */
struct lay {
    int64_t least, most; /* distances */
    int64_t length;      /* of a line in the copy */
    int64_t phases;      /* that are read */
};

static int64_t distance_of(const struct conv_axis *a, int64_t tap) {
    const int64_t at = a->read + tap * a->next_read;
    return (at < 0 ? at - a->move + 1 : at) / a->move;
}

static int64_t phase_of(const struct conv_axis *a, int64_t tap) {
    return a->read + tap * a->next_read - distance_of(a, tap) * a->move;
}

static bool reads_phase(const struct conv_axis *a, int64_t phase) {
    for (int64_t t = 0; t < a->taps; t++)
        if (phase_of(a, t) == phase) return true;
    return false;
}

/* How many of the phases before it are read. */
static int64_t phases_before(const struct conv_axis *a, int64_t phase) {
    int64_t n = 0;
    for (int64_t p = 0; p < phase; p++) n += reads_phase(a, p);
    return n;
}

/* How many places of a phase, of an axis of `size`, are copied. */
static int64_t copied(const struct conv_axis *a, const struct lay *l, int64_t size, int64_t phase) {
    return least((size - phase + a->move - 1) / a->move, l->most + a->count);
}

static struct lay lay_of(const struct conv_axis *a, int64_t size) {
    struct lay l = {.phases = phases_before(a, a->move)};
    for (int64_t t = 0; t < a->taps; t++) {
        const int64_t d = distance_of(a, t);
        if (!t || d < l.least) l.least = d;
        if (!t || d > l.most) l.most = d;
    }
    const int64_t all = copied(a, &l, size, 0) - (l.least < 0 ? l.least : 0);
    l.length = l.most > 0 ? l.most + a->count : a->count;
    if (all > l.length) l.length = all;
    return l;
}

struct strip {
    struct lay down, across;
    int64_t lines;        /* of the output, of all samples, at most */
    int64_t before, plane; /* places before the first line; of a phase in all */
};

static struct strip strip_of(const struct conv_tiles *t) {
    struct strip s = {.down = lay_of(&t->down, t->from.h), .across = lay_of(&t->across, t->from.w)};
    const int64_t more = s.down.most - s.down.least;
    const int64_t line = s.across.length * t->reads * 2 * s.down.phases * s.across.phases;
    s.lines = least(line ? STRIP / line - more : ROWS, ROWS / s.across.length);
    s.lines = s.lines < 1 ? 1 : least(s.lines, s.down.length * t->samples);
    s.before = s.across.least < 0 ? -s.across.least : 0;
    s.plane = s.before + (s.lines + more) * s.across.length + AFTER +
              (s.across.most > 0 ? s.across.most : 0);
    return s;
}

static int64_t runs_of(const struct conv_tiles *t) {
    return t->down.taps * t->across.taps * t->reads / HALF_GROUP;
}

/* What a strip has in the scratch. */
struct room {
    float *copy; /* [32 channels, phase down, phase across, place, 32 of bf16] */
    struct gemm_run *run;
    int64_t *row;
    size_t bytes;
};

static struct room room_of(const struct conv_tiles *t, const struct strip *s, void *scratch) {
    struct room r = {.copy = scratch};
    const int64_t phases = s->down.phases * s->across.phases;
    r.run = (struct gemm_run *)(void *)(r.copy + phases * t->reads * s->plane / 2);
    r.row = (int64_t *)(void *)(r.run + runs_of(t));
    r.bytes = (size_t)((char *)(r.row + s->lines * s->across.length) - (char *)scratch);
    return r;
}

size_t conv_tiles_scratch(const struct conv_tiles *t) {
    const struct strip s = strip_of(t);
    return room_of(t, &s, NULL).bytes;
}

/* ---- a strip ---- */

static void clear_places(int64_t n, float *to) {
    if (n > 0) memset(to, 0, (size_t)n * BLOCK * sizeof *to);
}

/* n places of 32 channels, of two blocks that are `block` apart. */
static void copy_places(const uint16_t *x, int64_t block, int64_t move, int64_t n, float *to) {
    for (int64_t i = 0; i < n; i++, x += move * BLOCK, to += BLOCK) {
        memcpy(to, x, BLOCK * sizeof *x);
        memcpy(to + BLOCK / 2, x + block, BLOCK * sizeof *x);
    }
}

/* What lines [first, first + lines) of the output read of a phase, of 32 channels that begin at
 * x. */
static void copy_phase(const struct conv_tiles *t, const struct strip *s, const uint16_t *x,
                       int64_t down, int64_t across, int64_t first, int64_t lines, float *to) {
    const int64_t length = s->across.length, plane = t->from.h * t->from.w * BLOCK;
    const int64_t some = copied(&t->across, &s->across, t->from.w, across);
    const int64_t end = copied(&t->down, &s->down, t->from.h, down);
    const int64_t before = first + s->down.least, stop = first + lines + s->down.most;
    clear_places(s->before, to);
    to += s->before * BLOCK;
    for (int64_t line = before; line < stop; line++, to += length * BLOCK) {
        const int64_t sample = line < 0 ? -1 : line / s->down.length, i = line % s->down.length;
        const bool real = sample >= 0 && sample < t->samples && i < end && some > 0;
        const int64_t n = real ? some : 0;
        if (real)
            copy_places(x + sample * conv_plane_size(&t->from) +
                            ((i * t->down.move + down) * t->from.w + across) * BLOCK,
                        plane, t->across.move, n, to);
        clear_places(length - n, to + n * BLOCK);
    }
}

static void copy_strip(const struct conv_tiles *t, const struct strip *s, int64_t first,
                       int64_t lines, float *to) {
    for (int64_t c = 0; c < t->reads; c += HALF_GROUP)
        for (int64_t i = 0; i < t->down.move; i++)
            for (int64_t j = 0; j < t->across.move; j++) {
                if (!reads_phase(&t->down, i) || !reads_phase(&t->across, j)) continue;
                copy_phase(t, s, t->x + c * t->from.h * t->from.w, i, j, first, lines, to);
                to += s->plane * BLOCK;
            }
}

/* Where in y the places of a strip are; -1: between lines or planes. */
static void list_rows(const struct conv_tiles *t, const struct strip *s, int64_t first,
                      int64_t lines, int64_t *row) {
    for (int64_t line = first; line < first + lines; line++) {
        const int64_t sample = line / s->down.length, i = line % s->down.length;
        const int64_t h = t->down.first + i * t->down.step;
        for (int64_t j = 0; j < s->across.length; j++) {
            const int64_t w = t->across.first + j * t->across.step;
            *row++ = i < t->down.count && j < t->across.count
                         ? sample * conv_plane_size(&t->to) + (h * t->to.w + w) * BLOCK
                         : -1;
        }
    }
}

/* The groups of 32 channels of each tap: where they are in the copy, and in a panel. */
static void list_runs(const struct conv_tiles *t, const struct strip *s, struct gemm_run *run) {
    const int64_t groups = t->reads / HALF_GROUP, phases = s->down.phases * s->across.phases;
    int64_t n = 0;
    for (int64_t k = 0; k < t->down.taps * t->across.taps; k++) {
        const int64_t i = k / t->across.taps, j = k % t->across.taps;
        const int64_t phase = phases_before(&t->down, phase_of(&t->down, i)) * s->across.phases +
                              phases_before(&t->across, phase_of(&t->across, j));
        const int64_t at = s->before + distance_of(&t->across, j) +
                           (distance_of(&t->down, i) - s->down.least) * s->across.length;
        const int64_t tap = t->packed ? k : conv_tap(&t->down, &t->across, t->kw, k);
        for (int64_t g = 0; g < groups; g++)
            run[n++] = (struct gemm_run){((g * phases + phase) * s->plane + at) * BLOCK,
                                         (tap * groups + g) * HALF_STEPS * BLOCK, 0};
    }
}

void conv_tiles_run(const struct conv_tiles *t, void *scratch) {
    const struct strip s = strip_of(t);
    const struct room r = room_of(t, &s, scratch);
    const int64_t all = (t->samples - 1) * s.down.length + t->down.count;
    const int64_t strips = (all + s.lines - 1) / s.lines;
    if (!t->down.count || !t->across.count) return;
    list_runs(t, &s, r.run);
    for (int64_t i = 0; i < strips; i++) {
        const int64_t first = all * i / strips, lines = all * (i + 1) / strips - first;
        copy_strip(t, &s, first, lines, r.copy);
        list_rows(t, &s, first, lines, r.row);
        const struct gemm_tiled g = {.m = lines * s.across.length, .n = t->makes, .run = r.run,
                                     .runs = runs_of(t), .a = r.copy, .b = t->b,
                                     .b_panel = t->b_panel};
        gemm_tiles_rounded(&g, &(struct gemm_rounded){t->bias, t->y, r.row,
                                                      t->to.h * t->to.w * BLOCK});
    }
}
