/* SPDX-License-Identifier: Apache-2.0
 * NAME.LANES.PASS.out is NAME.tri after that pass with that many lanes ("NAME.eval.PASS.out": for
 * evaluation; "O1", "O1-2": in that precision, with one lane or that many). A word after it sets an
 * option: see the table below ("2z": two lanes and the schedule zero-bubble). Run as `test_passes
 * DIR`; --write writes the files, to be reviewed before they are committed. Each graph that a pass
 * gives is read back and must print the same. Lines after the graphs tell what their text does not:
 * how `dist` splits each node, and which results overwrite what after `in-place`.
 *
 * The device is this test's own, so the outputs do not depend on the processor. */
#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/explain.h"
#include "plan/memory.h"
#include "plan/passes.h"

static int passed, failed;

static void say(bool ok, const char *name, const char *why) {
    ok ? passed++ : failed++;
    printf("%s %s%s%s\n", ok ? "ok" : "not ok", name, *why ? ": " : "", why);
}

/* The text is that of one graph, or of the phases. Lines that begin with # are none of theirs. */
static bool same_when_read_back(const char *text, const char *name) {
    bool same = true;
    while (*text && same) {
        if (*text == '#') {
            text = strchr(text, '\n') + 1;
            continue;
        }
        const char *end = strstr(text, "\n#");
        size_t n = end ? (size_t)(end + 1 - text) : strlen(text);
        tri_graph *g = tri_graph_parse(text, n, name);
        char *again = tri_graph_print(g);
        same = again && strlen(again) == n && !memcmp(text, again, n);
        free(again);
        tri_graph_free(g);
        text += n;
    }
    return same;
}

/* ---- this test's own device ---- */

static bool heads(const tri_node *n) { return node_is(n, "matmul"); }

/* Arithmetic over one shape is one kernel, with up to six operators; a product may precede it. */
static bool fuses(const tri_node *const *node, int n) {
    static const char *const ops[] = {"add", "sub", "mul", "relu", "exp", "neg"};
    for (int i = 0; i < n; i++) {
        size_t k = 0;
        while (k < COUNT(ops) && !node_is(node[i], ops[k])) k++;
        if (i == 0 && n > 1 && heads(node[i])) continue;
        if (k == COUNT(ops) || !base_shape_equal(&node[i]->out->spec.shape,
                                                 &node[0]->out->spec.shape))
            return false;
    }
    return n <= 6;
}

/* Winograd's algorithm, where it may be that, for weights of 3 x 3 and two channels, but not for
 * their own gradients; another way for those of one channel. */
static int convolution(const tri_node *n, bool winograd) {
    enum { FEW = WAY_OF_DEVICE, OTHER = WAY_OF_DEVICE + 2 };
    const tri_shape *w = &n->in[1]->spec.shape;
    if (node_is(n, "conv2d_dw")) return OTHER;
    if (w->dim[1] == 1) return FEW;
    return winograd && w->dim[1] == 2 && w->dim[2] == 3 ? WAY_WINOGRAD : OTHER;
}

/* Convolutions want blocks of 4 channels and packed weights, if 4 divides the channels; arithmetic
 * takes any block; the rest wants plain tensors. */
static void formats(const tri_node *n, struct format *in, struct format *out) {
    if (node_is(n, "conv2d") && n->in[0]->spec.shape.dim[1] % 4 == 0 &&
        n->out->spec.shape.dim[1] % 4 == 0) {
        in[0].block = out[0].block = 4;
        memcpy(in[1].pack, "ABcd4b4a", sizeof "ABcd4b4a");
    }
    if (!fuses(&n, 1) || n->out->spec.shape.rank != 4) return;
    out[0].block = FORMAT_ANY;
    for (int i = 0; i < n->n_in; i++)
        if (base_shape_equal(&n->in[i]->spec.shape, &n->out->spec.shape))
            in[i].block = FORMAT_ANY;
}

/* Arithmetic may overwrite what it reads. */
static bool shares(const void *unit, int out, int in) {
    const struct unit *u = unit;
    return !out && in >= 0 && fuses((const tri_node *const *)u->node, u->n);
}

static const struct target target = {.fuses = fuses, .heads = heads, .convolution = convolution,
                                     .formats = formats};

/* ---- what the text of a graph does not say ---- */

static void add_splits(struct text *t, const struct compilation *c) {
    const struct dist *d = &c->dist[0];
    text_add(t, "# what a seat computes\n");
    for (size_t i = 0; d->g && i < d->g->n_nodes; i++) {
        if (!d->g->node[i]->n_in) continue;
        text_add(t, "# %s: ", d->g->node[i]->name);
        explain_split(d, d->g->node[i], t);
        text_add(t, "\n");
    }
    text_add(t, "# what moves between seats\n");
    for (size_t i = 0; i < d->n_moves; i++) {
        const struct move *m = &d->move[i];
        text_add(t, "# %s, for %s: ", explain_tensor(d, m)->node->name,
                 m->node < 0 ? "the store" : d->g->node[m->node]->name);
        move_text(&d->mesh, &m->from, &m->to, t);
        text_add(t, "\n");
    }
}

/* Which results of the step are in the place of other tensors. */
static void add_places(struct text *t, const struct compilation *c) {
    const tri_graph *g = c->step;
    struct units units = {0};
    struct memory_plan p = {0};
    t->failed |= units_of(g, &units) != TRI_OK;
    struct memory_item *item = calloc(units.n + 1, sizeof *item);
    bool *outside = calloc((size_t)g->n_tensors + 1, sizeof *outside);
    for (size_t i = 0; item && i < units.n; i++)
        item[i] = (struct memory_item){.unit = &units.unit[i], .shares = shares,
                                       .state = &units.unit[i]};
    if (outside) memory_mark_outside(g, false, outside);
    t->failed |= !item || !outside || !memory_plan(g, item, units.n, outside, 1, &p);
    text_add(t, "# which results overwrite what\n");
    for (size_t i = 0; i < g->n_nodes && !t->failed; i++) {
        const tri_tensor *out = g->node[i]->out;
        if (p.root[out->id] != out->id)
            text_add(t, "# %s (%%%d) is in the place of %%%d\n", out->node->name, out->id,
                     p.root[out->id]);
    }
    memory_plan_free(&p);
    units_free(&units);
    free(item);
    free(outside);
}

/* Null with a message, as passes_dump. */
static char *after_pass(const char *source, const tri_options *o, const char *pass) {
    void (*add)(struct text *t, const struct compilation *c) =
        !strcmp(pass, "dist") ? add_splits : !strcmp(pass, "in-place") ? add_places : NULL;
    struct text t = {0};
    tri_graph *g = tri_graph_read(source, 0);
    char *dump = g ? passes_dump(g, o, &target, pass) : NULL;
    tri_graph_free(g);
    if (!dump || !add) return dump;
    text_add(&t, "%s", dump);
    free(dump);
    g = tri_graph_read(source, 0);
    struct compilation c = {.options = o, .target = &target, .model = g};
    t.failed |= !g || passes_run(&c, pass);
    if (!t.failed) add(&t, &c);
    passes_free(&c);
    tri_graph_free(g);
    if (t.failed) text_free(&t);
    return t.data;
}

/* ---- names of files ---- */

static const struct {
    const char *word;
    size_t field; /* of tri_options: a text */
    const char *value;
} words[] = {
    {"z", offsetof(tri_options, pipeline), "zero-bubble"},
    {"-direct", offsetof(tri_options, conv), "direct"},
    {"-zero3", offsetof(tri_options, zero), "3"},
    {"-batch", offsetof(tri_options, unset), "batch"},
    {"-whole", offsetof(tri_options, unset), "whole"},
    {"-channels", offsetof(tri_options, strategy), "channels"},
};

/* "2z", "O1-2", "eval"; amp: room for a word. False: it has another form. */
static bool read_how(const char *how, tri_options *o, char amp[3]) {
    if (*how == 'O') {
        base_format(amp, 3, "%.2s", how);
        o->amp = amp;
        how = how[2] ? how + 3 : "1";
    }
    o->forward = !strncmp(how, "eval", 4);
    const char *rest = how + (o->forward ? 4 : strspn(how, "0123456789"));
    if (!o->forward) o->lanes = atoi(how);
    for (size_t i = 0; i < COUNT(words); i++)
        if (!strcmp(rest, words[i].word))
            *(const char **)((char *)o + words[i].field) = words[i].value, rest = "";
    return !*rest && (o->forward || o->lanes > 0);
}

static void check(const char *dir, const char *file, bool write) {
    char name[64], how[16] = "", pass[32], path[512], source[512];
    if (sscanf(file, "%63[^.].%15[^.].%31[^.].out", name, how, pass) != 3) return;
    snprintf(path, sizeof path, "%s/%s", dir, file);
    snprintf(source, sizeof source, "%s/%s.tri", dir, name);
    char amp[3];
    tri_options o = {0};
    if (!read_how(how, &o, amp)) {
        say(false, file, "its name has a word that is no option");
        return;
    }
    char *text = after_pass(source, &o, pass), *expected = NULL;
    size_t bytes;
    if (text && write) {
        FILE *f = fopen(path, "w");
        if (f) fputs(text, f), fclose(f);
    }
    if (!text)
        say(false, file, tri_message());
    else if (base_read_file(path, &expected, &bytes))
        say(false, file, tri_message());
    else if (strcmp(text, expected))
        say(false, file, "the pass gives something else");
    else
        say(*text == '%' || same_when_read_back(text, file), file, "");
    free(expected);
    free(text);
}

int main(int argc, char **argv) {
    const char *dir = argc > 1 ? argv[1] : "tests/passes";
    bool write = argc > 2 && !strcmp(argv[2], "--write");
    struct dirent **entries;
    int n = scandir(dir, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (strstr(entries[i]->d_name, ".out")) check(dir, entries[i]->d_name, write);
        free(entries[i]);
    }
    if (n >= 0) free(entries);
    printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed;
}
