/* SPDX-License-Identifier: Apache-2.0
 * When what a mover has can be published. */
#include "ferry/mover_inside.h"

static bool is_over(const struct mover *m, const struct phase *p, int bucket, int node) {
    const struct lane_node *n = &p->is.tree->node[node];
    return board_is_done(p->is.sums[bucket].board, (uint32_t)m->step, node) ||
           (n->left >= 0 && is_over(m, p, bucket, n->left) && is_over(m, p, bucket, n->right));
}

/* A lane that is over where it is claimed cannot be computed again, which must be possible if
 * another host has gone that had its part of another bucket. So what has come is published there
 * last, and where later legs are claimed before where earlier ones are, which these need. */
static bool is_turn(const struct mover *m, const struct phase *p, int bucket, int node) {
    const struct view_sums *s = p->is.sums;
    for (int b = 0; b < p->is.plan->buckets && s[bucket].leg >= 0; b++)
        if (b != bucket && (s[b].leg < 0 || s[b].leg > s[bucket].leg) && !is_over(m, p, b, node))
            return false;
    return true;
}

/* The next transfer of a bucket, from i on, that has arrived and can be published; -1: none. */
static int next_here(const struct mover *m, const struct phase *p, int bucket, int i) {
    for (; i < p->is.plan->n && p->way[bucket].here; i++) {
        const struct transfer *x = &p->is.plan->all[i];
        if (x->bucket == bucket && p->move[i].state == HERE && is_turn(m, p, bucket, x->node))
            return i;
    }
    return -1;
}

static bool has_root(const struct mover *m, const struct phase *p, int bucket) {
    const struct pieces *pieces = &p->way[bucket].pieces;
    return pieces->tree && !pieces->is_over && !pieces->lacks &&
           is_turn(m, p, bucket, p->is.tree->n_nodes - 1);
}

static bool publish_bucket(struct mover *m, struct phase *p, int b) {
    bool any = has_root(m, p, b);
    if (any) pieces_publish(&p->way[b].pieces);
    for (int i = -1; (i = next_here(m, p, b, i + 1)) >= 0; any = true) {
        board_publish_whole(p->is.sums[b].board, (uint32_t)m->step, m->owner,
                            p->is.plan->all[i].node, p->move[i].slot);
        p->move[i].state = OVER;
        p->way[b].here--;
        m->arriving--;
    }
    return any;
}

/* In an order in which all that can be published is. */
bool mover_publish(struct mover *m, struct phase *p) {
    bool any = false;
    for (int claimed = 0; claimed < 2; claimed++)
        for (int b = p->is.tree ? p->is.plan->buckets : 0; b-- > 0;)
            if ((p->is.sums[b].leg >= 0) == claimed) any |= publish_bucket(m, p, b);
    return any;
}

bool mover_can_publish(const struct mover *m, const struct phase *p) {
    for (int b = p->is.tree ? p->is.plan->buckets : 0; b-- > 0;)
        if (has_root(m, p, b) || next_here(m, p, b, 0) >= 0) return true;
    return false;
}
