/* SPDX-License-Identifier: Apache-2.0
 * NAME.LANES.PASS.out is NAME.tri after that pass with that many lanes ("NAME.eval.PASS.out": for
 * evaluation; "O1", "O1-2": in that precision, with one lane or that many; "2z": two lanes and the
 * schedule zero-bubble). Run as `test_passes DIR`; --write writes the files, to be reviewed before
 * they are committed. The output of a pass, if it is one graph, is read back and must print the
 * same. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/passes.h"

static int passed, failed;

static void say(bool ok, const char *name, const char *why) {
    ok ? passed++ : failed++;
    printf("%s %s%s%s\n", ok ? "ok" : "not ok", name, *why ? ": " : "", why);
}

static bool same_when_read_back(const char *text, const char *name) {
    tri_graph *g = tri_graph_parse(text, strlen(text), name);
    char *again = g ? tri_graph_print(g) : NULL;
    bool same = again && !strcmp(text, again);
    free(again);
    tri_graph_free(g);
    return same;
}

static bool heads(const tri_node *n) { return node_is(n, "matmul"); }

/* This test's own device: arithmetic over one shape is one kernel, with up to six operators; a
 * product may precede it. */
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

static const struct target target = {.fuses = fuses, .heads = heads};

static void check(const char *dir, const char *file, bool write) {
    char name[64], how[16], pass[32], path[512], source[512];
    if (sscanf(file, "%63[^.].%15[^.].%31[^.].out", name, how, pass) != 3) return;
    snprintf(path, sizeof path, "%s/%s", dir, file);
    snprintf(source, sizeof source, "%s/%s.tri", dir, name);
    char amp[3] = {how[0], how[1], 0};
    bool half = how[0] == 'O';
    tri_options o = {.forward = !strcmp(how, "eval"), .lanes = half ? how[2] ? atoi(how + 3) : 1
                                                                    : atoi(how),
                     .amp = half ? amp : NULL,
                     .pipeline = strchr(how, 'z') ? "zero-bubble" : NULL};
    tri_graph *g = tri_graph_read(source, 0);
    char *text = g ? passes_dump(g, &o, &target, pass) : NULL, *expected = NULL;
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
        say(*text != 'g' || same_when_read_back(text, file), file, "");
    free(expected);
    free(text);
    tri_graph_free(g);
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
