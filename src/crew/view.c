/* SPDX-License-Identifier: Apache-2.0 */
#include "crew/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *view_region(const struct view *v, enum region_number r, int64_t i) {
    return region_at(v->head->layout.region, v->base, r, i);
}

const struct crew_board *view_boards(const struct view *v, int shape, int phase) {
    return view_region(v, REGION_BOARDS, v->head->layout.shape[shape].tree[phase].boards);
}

static void bind(struct view *v, int shape, int k, int bucket) {
    const struct crew_layout *l = &v->head->layout;
    const enum region_number phase = (enum region_number)k;
    const struct crew_board *at = &view_boards(v, shape, k)[bucket];
    claim_word *all = view_region(v, REGION_BOARD + phase, 0);
    const struct board_words words = {all, all + l->nodes[k] + at->slot, l->nodes[k], at->slots};
    struct board *b = &v->board[shape][k][bucket];
    board_bind(b, &v->tree[shape][k], &words, at->first, 1);
    if (l->region[REGION_MINE].bytes) b->mine = view_region(v, REGION_MINE, 0);
    if (!at->summed) return;
    if (l->region[REGION_KEEPS].bytes) b->keeps = view_region(v, REGION_KEEPS, k);
    v->sums[shape][k][v->n_sums[shape][k]++] = (struct view_sums){
        .board = b, .slots = (char *)view_region(v, REGION_SLOTS + phase, 0) + at->at,
        .stride = at->stride, .bytes = at->bytes, .parts = at->parts,
        .part = at->parts ? view_region(v, REGION_PARTS, at->part) : NULL, .adds = at->adds,
        .leg = at->leg, .rounds = l->shape[shape].tree[k].rounds,
        .values = view_region(v, REGION_VALUES, 0), .apart = l->shape[shape].tree[k].apart};
}

static tri_status bind_boards(struct view *v, int shape, int k) {
    const struct crew_layout *l = &v->head->layout;
    const int n = l->shape[shape].tree[k].buckets, levels = k ? l->shape[shape].levels : 0;
    if (!n) return TRI_OK;
    tri_status status = lane_tree_make(l->shape[shape].lanes, levels, &v->tree[shape][k]);
    v->board[shape][k] = calloc((size_t)n, sizeof *v->board[shape][k]);
    v->sums[shape][k] = calloc((size_t)n, sizeof *v->sums[shape][k]);
    if (!status && (!v->board[shape][k] || !v->sums[shape][k])) status = base_no_memory("boards");
    for (int b = 0; b < n && !status; b++) bind(v, shape, k, b);
    return status;
}

tri_status view_map(struct view *v) {
    const struct crew_layout *l = &v->head->layout;
    if (v->base || !atomic_load(&l->published)) return TRI_OK;
    v->bytes = l->store_bytes;
    char *at = mmap(NULL, v->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd,
                    (off_t)crew_head_bytes());
    if (at == MAP_FAILED) return base_fail(TRI_FAILED, "cannot map the store: %s", strerror(errno));
    tri_status status = TRI_OK;
    v->base = at;
    for (int i = 0; i < l->n_shapes; i++)
        for (int k = 0; k < 2 && !status; k++) status = bind_boards(v, i, k);
    if (status) view_unmap(v);
    return status;
}

size_t view_wire_bytes(const struct view_sums *s) {
    const struct wire_map m = {.part = s->part, .n = s->parts};
    return s->part ? wire_bytes(&m, 0, wire_blocks(&m)) : s->bytes;
}

void view_unmap(struct view *v) {
    if (v->base) munmap(v->base, v->bytes);
    for (int i = 0; i < CREW_MOST_SHAPES; i++)
        for (int k = 0; k < 2; k++) {
            lane_tree_free(&v->tree[i][k]);
            free(v->board[i][k]);
            free(v->sums[i][k]);
        }
    *v = (struct view){.head = v->head, .fd = v->fd};
}

void view_recover(struct view *v, uint64_t step, int owner) {
    const struct crew_layout *l = &v->head->layout;
    for (int i = 0; v->base && i < l->n_shapes; i++)
        for (int k = 0; k < 2; k++)
            for (int b = 0; b < l->shape[i].tree[k].buckets; b++)
                board_recover(&v->board[i][k][b], (uint32_t)step, owner);
}
