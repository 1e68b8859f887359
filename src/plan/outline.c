/* SPDX-License-Identifier: Apache-2.0
 * Runs of neighbouring operators are found in the order of the forward pass. Then those are folded
 * whose operators are the same and whose names differ in numbers of scopes alone. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "plan/explain.h"
#include "plan/forward.h"

#define FORM ".split." /* in the names of operators that stand for one that was rebuilt */
#define MOST_RUNS 22   /* in the table; the others are summed up in one more line */

struct run {
    const tri_node *first, *last;
    const char *name[2]; /* of these; of all copies, with * for numbers in which they differ */
    uint64_t content;
    int into; /* the run that shows its moves: itself, the first of its copies, or the one of all
               * others */
    int copies;
    struct move_sums moves;
};

/* The last run is of all others: gradients of whole operators, and what is too much to be shown. */
struct outline {
    const struct dist *d;
    struct run *run;
    int n;
    int *of; /* by node: its run; -1: none */
};

/* ---- runs ---- */

static bool reads_moved(const struct dist *d, const tri_node *n) {
    bool moved = false;
    for (int i = 0; i < n->n_in && !moved; i++)
        moved = node_reads(n, i) && dist_moves(d, n->in[i], dist_need(d, n, i));
    return moved;
}

/* The length of the name of the numbered scope that the operator is in: "transformer.h.0". */
static size_t layer_length(const char *name) {
    size_t length = 0;
    for (const char *p = name, *dot; (dot = strchr(p, '.')); p = dot + 1)
        if (strspn(p, "0123456789") == (size_t)(dot - p)) length = (size_t)(dot - name);
    return length;
}

/* Whether n may share a line with m, the operator before it. */
static bool split_alike(const struct dist *d, const tri_node *m, const tri_node *n) {
    const char *form = d->rebuilt ? strstr(m->name, FORM) : NULL;
    size_t layer = layer_length(n->name);
    if (form && !strncmp(m->name, n->name, (size_t)(form - m->name) + strlen(FORM))) return true;
    bool same_rank = m->out->spec.shape.rank == n->out->spec.shape.rank;
    bool alike = !form && !reads_moved(d, n) && layer == layer_length(m->name) &&
                 !strncmp(m->name, n->name, layer);
    for (int a = 0; a < d->mesh.n && alike; a++) {
        const struct split *x = &d->has[m->out->id].axis[a], *y = &d->has[n->out->id].axis[a];
        alike = x->kind == y->kind && !(same_rank && x->kind == SPLIT && x->dim != y->dim);
    }
    return alike;
}

/* Of the operator and how it is split, without numbers of scopes. */
static uint64_t content_of(const struct dist *d, const tri_node *n, uint64_t h, bool *failed) {
    const char *own = strrchr(n->name, '.');
    struct text t = {0};
    for (const char *p = n->name; *p; p++)
        if (!own || p > own || !isdigit((unsigned char)*p)) text_add_bytes(&t, p, 1);
    text_add(&t, " %s ", n->entry->op->name);
    explain_split(d, n, &t);
    h = t.failed ? h : base_hash(t.data, t.size, h);
    *failed |= t.failed;
    text_free(&t);
    return h;
}

static void find_runs(struct outline *o, bool *failed) {
    const tri_node *before = NULL; /* the operator before, if it is of the last run */
    for (size_t i = 0; i < o->d->g->n_nodes; i++) {
        const tri_node *n = o->d->g->node[i];
        bool splits = explain_is_split(o->d, n);
        o->of[i] = -1;
        if (!n->n_in || n->backward) continue;
        bool joins = before && split_alike(o->d, before, n);
        before = splits || (joins && strstr(n->name, FORM)) ? n : NULL;
        if (!before) continue;
        if (!joins) o->run[o->n] = (struct run){.first = n};
        o->n += !joins;
        struct run *r = &o->run[o->n - 1];
        r->last = n;
        r->content = content_of(o->d, n, r->content, failed);
        o->of[i] = o->n - 1;
    }
}

/* ---- folding ---- */

/* Two names that differ in numbers: with * where they do. */
static const char *common_name(struct arena *a, const char *x, const char *y) {
    struct text t = {0};
    while (*x && *y) {
        size_t n = strspn(x, "0123456789*"), m = strspn(y, "0123456789*");
        if (n == m && !strncmp(x, y, n)) text_add_bytes(&t, x, n);
        else text_add(&t, "*");
        text_add_bytes(&t, x + n, x[n] != 0);
        x += n + (x[n] != 0);
        y += m + (y[m] != 0);
    }
    const char *name = t.failed ? NULL : arena_copy(a, t.data);
    a->failed |= !name;
    text_free(&t);
    return name;
}

static void fold(struct outline *o, struct arena *a) {
    for (int i = 0, shown = 0; i < o->n && !a->failed; i++) {
        struct run *r = &o->run[i];
        int k = 0;
        while (o->run[k].content != r->content) k++;
        bool first = k == i;
        const char *end[] = {r->first->name, r->last->name};
        for (int e = 0; e < 2; e++)
            o->run[k].name[e] = first ? end[e] : common_name(a, o->run[k].name[e], end[e]);
        r->into = first && shown >= MOST_RUNS ? o->n : first ? i : o->run[k].into;
        o->run[r->into].copies++;
        shown += first;
    }
}

/* ---- moves ---- */

/* The run of a forward operator, or that which makes the result whose gradient it computes. */
static int run_of(const struct outline *o, tri_node *const *forward, const tri_node *n) {
    const char *of = n->of;
    while (n && n->backward) n = forward[n->id];
    int run = n ? o->of[n->id] : -1;
    for (size_t i = 0; !n && of && i < o->d->g->n_nodes && run < 0; i++) { /* of a form? */
        const char *name = o->d->g->node[i]->name;
        size_t length = strlen(of);
        if (!strncmp(name, of, length) && !strncmp(name + length, FORM, strlen(FORM)))
            run = o->of[i];
    }
    return run < 0 ? o->n : o->run[run].into;
}

/* ---- text ---- */

/* The length of what precedes the dot after the last * that both names have: "transformer.h.*". */
static size_t repeated(const struct run *r) {
    size_t n = 0, star = 0;
    for (size_t i = 0; r->name[0][i] && r->name[0][i] == r->name[1][i]; i++) {
        if (r->name[0][i] == '*') star = i + 1;
        if (r->name[0][i] == '.' && star) n = i, star = 0;
    }
    return n;
}

/* "attn.c_attn.matmul .. attention" */
static void add_name(struct text *t, const struct run *r) {
    size_t n = repeated(r), skip = n + (n > 0), shared = 0;
    const char *first = r->name[0] + skip, *last = r->name[1] + skip, *form = strstr(first, FORM);
    for (size_t i = 0; first[i] && first[i] == last[i]; i++)
        if (first[i] == '.') shared = i + 1;
    text_add(t, n ? "  " : "");
    if (!strcmp(first, last)) text_add(t, "%s", first);
    else if (form && shared >= (size_t)(form - first) + strlen(FORM))
        text_add(t, "%.*s%s*", (int)(form - first), first, FORM);
    else text_add(t, "%s .. %s", first, last + shared);
    if (!n && r->copies > 1) text_add(t, " x%d", r->copies);
}

/* A line for each kind of move. */
static void add_moves(struct text *t, const struct move_sums *s) {
    bool any = false;
    for (int k = 0; k < MOVE_KINDS; k++) {
        int forward = s->of[MOVE_FORWARD][k].n, backward = s->of[MOVE_BACKWARD][k].n;
        if (forward + backward)
            text_add(t, "%s\t%d+%d %s\t%.0f\t%.0f\n", any ? "\t" : "", forward, backward,
                     move_kinds[k], s->of[MOVE_FORWARD][k].bytes, s->of[MOVE_BACKWARD][k].bytes);
        any |= forward + backward > 0;
    }
    if (!any) text_add(t, "\n");
}

static void add_table(struct outline *o, struct text *t) {
    const struct move_sums all = explain_sums(o->d);
    struct text cells = {0};
    const struct run *before = NULL, *rest = &o->run[o->n];
    text_add(&cells, "operators split alike\tsplit\tmoves of a lane\tbytes forward\tbackward\n");
    for (int i = 0; i < o->n; i++) {
        const struct run *r = &o->run[i];
        if (r->into != i) continue;
        size_t n = repeated(r);
        if (n && !(before && before->copies == r->copies && repeated(before) == n &&
                   !strncmp(before->name[0], r->name[0], n)))
            text_add(&cells, "%.*s x%d\n", (int)n, r->name[0], r->copies);
        before = r;
        add_name(&cells, r);
        text_add(&cells, "\t");
        explain_split(o->d, r->first, &cells);
        add_moves(&cells, &r->moves);
    }
    if (rest->copies || rest->moves.all[MOVE_FORWARD].n || rest->moves.all[MOVE_BACKWARD].n) {
        text_add(&cells, "others\t");
        add_moves(&cells, &rest->moves);
    }
    text_add(&cells, "in all\t\t%d+%d\t%.0f\t%.0f\n", all.all[MOVE_FORWARD].n,
             all.all[MOVE_BACKWARD].n, all.all[MOVE_FORWARD].bytes, all.all[MOVE_BACKWARD].bytes);
    columns_add(t, "  cclrr", &cells);
}

/* "whole: 76 of 227 operators, because ..." */
static void add_whole(const struct dist *d, struct text *t) {
    int all = 0, whole = 0;
    for (size_t i = 0; i < d->g->n_nodes; i++) {
        const tri_node *n = d->g->node[i];
        if (!n->n_in || n->backward) continue;
        all++;
        whole += !explain_is_split(d, n);
    }
    if (whole)
        text_add(t, "whole: %d of %d operators, because no strategy splits them or they do not "
                 "divide\n", whole, all);
}

void explain_outline(const struct dist *d, struct text *out) {
    struct arena a = {0};
    struct outline o = {.d = d};
    tri_node **forward = forward_nodes(d->g);
    o.run = arena_alloc(&a, sizeof *o.run * (d->g->n_nodes + 1));
    o.of = arena_alloc(&a, sizeof *o.of * (d->g->n_nodes + 1));
    a.failed |= !forward;
    if (!a.failed) find_runs(&o, &a.failed);
    fold(&o, &a);
    for (size_t i = 0; i < d->n_moves && !a.failed; i++) {
        int run = run_of(&o, forward, explain_tensor(d, &d->move[i])->node);
        explain_sum(d, &d->move[i], &o.run[run].moves);
    }
    if (!a.failed) add_table(&o, out), add_whole(d, out);
    out->failed |= a.failed;
    arena_free(&a);
    free(forward);
}
