/* SPDX-License-Identifier: Apache-2.0
 * The text of `explain --factors`: what each row calls its factors, shown by its first example. */
#include <stdio.h>
#include <string.h>

#include "plan/strategy.h"
#include "plan/use.h"

/* "f32[2,3]@0.5:2, i64[4] {axis=1}" as a graph, whose last node is the example. */
static tri_graph *example_graph(const tri_op *op, const char *text) {
    struct text t = {0};
    const char *p = text;
    int n = 0;
    text_add(&t, "graph {batch=1}\n");
    for (p += strspn(p, ", "); *p && *p != '{'; p += strspn(p, ", "), n++) {
        int type = (int)strcspn(p, "["), shape = (int)strcspn(p + type, "]") + 1;
        text_add(&t, "%%i%d = state() {name=\"i%d\", type=%.*s, shape=%.*s}\n", n, n, type, p,
                 shape, p + type);
        p += type + shape;
        if (*p == '@') p += strcspn(p, " ,{");
    }
    text_add(&t, "%%y = %s(", op->name);
    for (int i = 0; i < n; i++) text_add(&t, "%s%%i%d", i ? ", " : "", i);
    text_add(&t, ") %s @ \"example\"\n", p);
    tri_graph *g = t.failed ? NULL : tri_graph_parse(t.data, t.size, "example");
    text_free(&t);
    return g;
}

static bool any_has(const struct factor_operand *o, int n, int c) {
    for (int i = 0; i < n; i++)
        if (operand_has(&o[i], (uint8_t)c)) return true;
    return false;
}

/* "m rows, k in (summed), n out; fixed: d" */
static void add_names(struct text *t, const tri_node *n, const struct factors *f) {
    static const char *const joined[] = {[TRI_PARTIAL_SUM] = "summed",
                                         [TRI_PARTIAL_MAX] = "maximum", [TRI_PARTIAL_AND] = "and"};
    const tri_op *op = n->entry->op;
    for (int fixed = 0, shown = 0; fixed < 2; fixed++, shown = 0)
        for (int i = 0; i < MAX_FACTORS; i++) {
            int c = MAX_FACTORS - 1 - i; /* the first of an ellipsis first, then letters */
            if (c <= 'z') c = 'z' - c;
            bool in = any_has(f->in, f->n_in, c), out = any_has(f->out, f->n_out, c);
            if ((!in && !out) || f->fixed[c] != (bool)fixed) continue;
            const char *rebuilt = op->split_form ? " (by its split form)" : "";
            text_add(t, "%s", shown++ ? ", " : fixed ? "; fixed: " : "");
            if (c <= 'z') text_add(t, "%c ", c);
            const char *name = factor_name(n, f, (uint8_t)c);
            text_add(t, "%s%s", name, fixed && name[1] ? rebuilt : "");
            if (!out && !fixed) text_add(t, " (%s)", joined[op->partial]);
        }
}

static bool add_row(struct text *t, const tri_op *op) {
    tri_graph *g = example_graph(op, op->examples[0]);
    if (!g) return !base_no_memory("a list");
    struct factors f;
    bool ok = !tri_graph_status(g);
    const tri_node *n = ok ? g->node[g->n_nodes - 1] : NULL;
    if (ok && n->n_in) ok = factors_of(n, &f);
    if (ok && n->n_in) {
        char rule[1024] = "by sample";
        if (op->factors) snprintf(rule, sizeof rule, "%s", op->factors);
        if (op->factor_fn) op->factor_fn(n, rule, sizeof rule);
        text_add(t, "%-16s %-32s ", op->name, rule);
        add_names(t, n, &f);
        text_add(t, "\n");
        factors_free(&f);
    }
    tri_graph_free(g);
    return ok;
}

char *factors_list(void) {
    struct text t = {0};
    bool ok = true;
    for (int i = 0; ok && registry_at(i); i++) {
        const tri_op *op = registry_at(i)->op;
        bool split = op_has_factors(op);
        ok = !op->examples[0] || !split || add_row(&t, op);
    }
    if (ok && !t.failed) return t.data;
    if (ok) base_no_memory("a list");
    text_free(&t);
    return NULL;
}
