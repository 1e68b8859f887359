/* SPDX-License-Identifier: Apache-2.0 */
#include "ferry/state.h"

bool state_piece(const struct view *v, uint64_t step, uint32_t piece, char **at, uint64_t *bytes) {
    const struct region *r = v->head->layout.region;
    struct crew_course *c = &v->head->course;
    const struct {
        void *at;
        uint64_t bytes;
    } part[] = {
        {view_region(v, REGION_VALUES, 0), r[REGION_VALUES].bytes},
        {view_region(v, REGION_RESULTS, (int64_t)(step % 2)), r[REGION_RESULTS].bytes},
        {&c->values[step % 2], sizeof c->values[0]},
    };
    uint64_t from = piece * STATE_PIECE;
    for (size_t i = 0; i < COUNT(part); i++) {
        *at = (char *)part[i].at + from;
        *bytes = from < part[i].bytes ? part[i].bytes - from : 0;
        if (*bytes > STATE_PIECE) *bytes = STATE_PIECE;
        if (*bytes) return true;
        from -= (part[i].bytes + STATE_PIECE - 1) / STATE_PIECE * STATE_PIECE;
    }
    return false;
}
