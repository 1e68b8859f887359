/* SPDX-License-Identifier: Apache-2.0
 * Units with a head come first (follow.c). The others are formed greedily in the order of the
 * nodes: a node joins the units of its producers, as many as the target fuses with it. A unit runs
 * in the place of its last node, so it is closed as soon as a node outside uses one of its
 * results. */
#include "plan/fuse.h"

#include <stdlib.h>

#include "graph/unit.h"
#include "plan/follow.h"

/* The units so far, by the number of their first node. */
struct groups {
    const tri_graph *g;
    const struct target *target;
    int *group;  /* by node: its unit */
    int *next;   /* by node: the next node of its unit, in order; -1: none */
    int *size;   /* by unit */
    bool *closed;
};

/* Nodes in order. */
struct set {
    const tri_node *node[UNIT_MOST];
    int n;
};

static void merge(const struct groups *s, struct set *a, int group) {
    struct set both = {.n = 0};
    int i = 0;
    for (int k = group; k >= 0; k = s->next[k]) {
        while (i < a->n && a->node[i]->id < k) both.node[both.n++] = a->node[i++];
        both.node[both.n++] = s->g->node[k];
    }
    while (i < a->n) both.node[both.n++] = a->node[i++];
    *a = both;
}

static bool holds(const struct groups *s, const struct set *a, int group) {
    for (int i = 0; i < a->n; i++)
        if (s->group[a->node[i]->id] == group) return true;
    return false;
}

/* The latest of the node's producers that is in an open unit and has a number below `before`; -1:
 * there is none. */
static int last_open(const struct groups *s, const tri_node *n, int before) {
    int found = -1;
    for (int i = 0; i < n->n_in; i++) {
        const tri_node *p = n->in[i]->node;
        if (node_runs(p) && !s->closed[s->group[p->id]] && p->id < before && p->id > found)
            found = p->id;
    }
    return found;
}

static void unite(struct groups *s, const struct set *a) {
    int first = a->node[0]->id;
    for (int i = 0; i < a->n; i++) {
        s->group[a->node[i]->id] = first;
        s->next[a->node[i]->id] = i + 1 < a->n ? a->node[i + 1]->id : -1;
    }
    s->size[first] = a->n;
}

/* The node has a unit number from follow.c: it joins the node that runs directly before it. */
static void keep(struct groups *s, const tri_node *n, int before) {
    if (before < 0 || s->g->node[before]->unit != n->unit) return;
    s->group[n->id] = s->group[before];
    s->next[before] = n->id;
    s->size[s->group[before]]++;
    s->closed[s->group[before]] = true;
}

static void add(struct groups *s, const tri_node *n) {
    struct set own = {.node = {n}, .n = 1};
    for (int p = last_open(s, n, n->id); p >= 0; p = last_open(s, n, p)) {
        struct set more = own;
        int group = s->group[p];
        if (holds(s, &own, group) || own.n + s->size[group] > UNIT_MOST) continue;
        merge(s, &more, group);
        if (unit_has_one_owner(more.node, more.n) && s->target->fuses(more.node, more.n))
            own = more;
    }
    unite(s, &own);
}

static void find_groups(struct groups *s) {
    int before = -1;
    for (int i = 0; i < (int)s->g->n_nodes; i++) {
        const tri_node *n = s->g->node[i];
        s->group[i] = i;
        s->next[i] = -1;
        s->size[i] = 1;
        if (!node_runs(n)) continue;
        if (n->unit)
            keep(s, n, before);
        else if (s->target->heads && s->target->heads(n))
            s->closed[i] = true;
        else
            add(s, n);
        for (int k = 0; k < n->n_in; k++) {
            int group = s->group[n->in[k]->node->id];
            s->closed[group] |= group != s->group[i];
        }
        before = i;
    }
}

static void number(const struct groups *s) {
    int unit = 0;
    for (int i = 0; i < (int)s->g->n_nodes; i++) {
        if (s->group[i] != i || s->size[i] < 2) continue;
        unit++;
        for (int k = i; k >= 0; k = s->next[k]) s->g->node[k]->unit = unit;
    }
}

tri_status fuse(tri_graph *g, const struct target *target) {
    if (!g || !target || !target->fuses) return TRI_OK;
    tri_status status = follow(g, target);
    if (status) return status;
    size_t n = g->n_nodes + 1;
    struct groups s = {.g = g, .target = target, .group = calloc(3 * n, sizeof *s.group),
                       .closed = calloc(n, sizeof *s.closed)};
    bool ok = s.group && s.closed;
    if (ok) {
        s.next = s.group + n;
        s.size = s.next + n;
        find_groups(&s);
        number(&s);
    }
    free(s.group);
    free(s.closed);
    return ok ? TRI_OK : base_no_memory("units");
}
