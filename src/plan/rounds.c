/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/rounds.h"

#include <stdlib.h>
#include <string.h>

#include "plan/held.h"

static void hold_operands(const struct lane_tree *tree, const int *begin,
                          const struct transfers *t, struct held *held) {
    for (int k = 0; k < t->n_operands; k++) {
        const int lane = lane_tree_first(tree, t->operand[k]);
        int host = 0;
        while (begin[host + 1] <= lane) host++;
        if (t->again[lane] >= 0) host = t->again[lane];
        for (int c = 0; c < held->chunks; c++) held_add(held, host, c, t->operand[k], 0);
    }
}

/* What hosts send and receive in one round. in: by host, sent and received, all zero. Returns how
 * many transfers have moved. */
static int execute(const struct transfers *t, int bucket, struct held *held, struct rounds *r,
                   int *in) {
    int moved = 0, most = 0;
    for (int i = 0; i < t->n; i++) {
        const struct transfer *x = &t->all[i];
        if (x->bucket != bucket || r->round[i] >= 0 ||
            held_since(held, x->from, x->chunk, x->node) > r->n)
            continue;
        r->round[i] = r->n;
        held_add(held, x->to, x->chunk, x->node, r->n + 1);
        r->sent[x->from]++;
        r->received[x->to]++;
        const int out_of = ++in[x->from], into = ++in[t->hosts + x->to];
        most = out_of > most ? out_of : most;
        most = into > most ? into : most;
        moved++;
    }
    r->busiest += most;
    return moved;
}

tri_status rounds_make(const struct lane_tree *tree, const int *begin, const struct transfers *t,
                       int bucket, struct rounds *r) {
    const size_t hosts = (size_t)t->hosts;
    struct held held = {0};
    int todo = 0, *in = calloc(2 * hosts, sizeof *in);
    *r = (struct rounds){.chunks = t->chunks[bucket]};
    r->round = malloc(((size_t)t->n + 1) * sizeof *r->round);
    r->sent = calloc(hosts, sizeof *r->sent);
    r->received = calloc(hosts, sizeof *r->received);
    tri_status status = in && r->round && r->sent && r->received
                            ? held_make(tree, t->n_operands, t->operand, t->hosts, r->chunks, &held)
                            : base_no_memory("a schedule of transfers");
    if (!status) {
        hold_operands(tree, begin, t, &held);
        for (int i = 0; i < t->n; i++) {
            r->round[i] = -1;
            todo += t->all[i].bucket == bucket;
        }
    }
    for (; !status && todo; r->n++) {
        const int moved = execute(t, bucket, &held, r, in);
        CHECK(moved);
        todo -= moved;
        memset(in, 0, 2 * hosts * sizeof *in);
    }
    held_free(&held);
    free(in);
    if (status) rounds_free(r);
    return status;
}

void rounds_free(struct rounds *r) {
    free(r->round);
    free(r->sent);
    free(r->received);
    *r = (struct rounds){0};
}
