/* SPDX-License-Identifier: Apache-2.0 */
#include "run/own_series.h"

#include <unistd.h>

#include "base/host.h"

static bool is_open(const struct own_series *s) { return s->own && s->times.series.fd >= 0; }

tri_status own_series_open(struct own_series *s, const char *directory, int64_t done,
                           const struct own_time *own, int64_t lanes) {
    const char *kind[SPENTS];
    *s = (struct own_series){.times.series.fd = -1, .done = done, .lanes = lanes};
    if (!directory || !own->spending) return TRI_OK;
    for (int k = 0; k < SPENTS; k++) kind[k] = spent_rows[k].name;
    s->own = own;
    return times_open(&s->times, directory, done, atomic_load(&own->spending->born), 1,
                      own->threads, kind, SPENTS);
}

static tri_status add(struct own_series *s, int64_t now, int64_t step) {
    int64_t sum[SPENTS] = {0};
    for (int t = 0; t < s->own->threads; t++) spending_add(&s->own->spending[t], now, sum);
    const struct times_place place = {
        .time = sum, .lanes = (uint64_t)((step - s->done) * s->lanes), .memory = s->memory};
    const tri_status status = times_add(&s->times, now, step, s->slowest, s->slowest_step, &place);
    s->slowest = s->slowest_step = 0;
    return status;
}

tri_status own_series_turn(struct own_series *s, int64_t now, int64_t step, int64_t took) {
    tri_status status = TRI_OK;
    if (!is_open(s)) return TRI_OK;
    if (took > s->slowest) {
        s->slowest = took;
        s->slowest_step = step;
    }
    if (times_look_due(&s->times, now)) {
        for (int t = 0; t < s->own->threads; t++)
            times_thread(&s->times, 0, t, (int)getpid(), s->own->spender[t].tid);
        times_look(&s->times, now);
        s->memory = (int64_t)host_peak();
    }
    if (times_due(&s->times, now, step)) status = add(s, now, step);
    return status;
}

tri_status own_series_close(struct own_series *s, int64_t step) {
    const tri_status status = is_open(s) ? add(s, base_now(), step) : TRI_OK;
    times_close(&s->times);
    s->own = NULL;
    return status;
}
