/* SPDX-License-Identifier: Apache-2.0 */
#include "ferry/spans.h"

#include <sys/mman.h>

#include "crew/ring.h"

/* This host may have ended the last step before others have its sums. */
bool ferry_spans_are_wanted(const struct ferry_spans *s) {
    const struct crew_profile *p = &s->head->profile;
    const int state = atomic_load(&p->state);
    return (state == PROFILE_RECORDS || state == PROFILE_ENDS) &&
           s->step >= atomic_load(&p->first) && s->step <= atomic_load(&p->last);
}

static bool map_ring(struct ferry_spans *s) {
    const off_t at = (off_t)crew_ring_at(s->head, s->head->size.places, 0);
    s->tried = true;
    void *ring = mmap(NULL, ring_bytes(RING_SPANS), PROT_READ | PROT_WRITE, MAP_SHARED,
                      s->head->rings, at);
    if (ring != MAP_FAILED) s->ring = ring;
    return s->ring;
}

void ferry_spans_note(void *spans, const struct mover_moved *is) {
    struct ferry_spans *s = spans;
    const struct crew_layout *l = &s->head->layout;
    if (!ferry_spans_are_wanted(s) || !(s->ring || (!s->tried && map_ring(s)))) return;
    const int shape = s->head->course.shape_of[s->step % 2];
    const int board = l->shape[shape].tree[is->phase].boards + is->bucket;
    ring_put(s->ring, &(struct span){.begin = is->began, .end = base_now(),
                                     .item = atomic_load(&s->head->profile.transfers) + board,
                                     .step = (uint32_t)s->step, .lane = (int16_t)is->node,
                                     .whom = (uint16_t)is->host, .kind = SPAN_TRANSFER,
                                     .leg = (int8_t)(is->chunks > 1 ? is->chunk : -1),
                                     .part = span_transfer_part(is->sent, is->chunks, is->part)});
}
