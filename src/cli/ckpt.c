/* SPDX-License-Identifier: Apache-2.0
 * trireme ckpt: lists, shows, verifies and compares checkpoints, and makes keys for them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/convert.h"
#include "checkpoint/checkpoint.h"
#include "cli/cli.h"

/* Whether `path` is the folder of one checkpoint, rather than a directory of several. */
static bool is_folder(const char *path) {
    return checkpoint_is(path, false) || checkpoint_is(path, true);
}

/* The folder of a checkpoint: `word` itself, or the newest checkpoint in it. */
static tri_status folder_of(const char *word, char path[4096]) {
    int64_t *steps;
    size_t n;
    base_format(path, 4096, "%s", word);
    if (is_folder(word)) return TRI_OK;
    tri_status status = checkpoint_list(word, &steps, &n);
    if (status) return status;
    if (n) checkpoint_path(word, steps[0], path);
    free(steps);
    return n ? TRI_OK : base_fail(TRI_FAILED, "there is no checkpoint in %s", word);
}

/* ---- ls ---- */

static double mib_of(const char *folder) {
    double sum = 0;
    for (int i = 0; i < CHECKPOINT_FILES; i++) {
        char path[4096];
        struct stat st;
        checkpoint_file(folder, checkpoint_files[i], checkpoint_is(folder, true), path);
        if (!stat(path, &st)) sum += (double)st.st_size / (1 << 20);
    }
    return sum;
}

/* A line of `ls`. The newest intact checkpoint, which comes first, says which one is the best. */
static void list_one(const char *directory, const struct seal_key *key, int64_t step,
                     struct checkpoint_state *newest, struct text *out) {
    char path[4096];
    struct checkpoint_state s;
    checkpoint_path(directory, step, path);
    tri_status status = checkpoint_verify(path, checkpoint_key(path, key), &s);
    if (status) {
        text_add(out, "%10lld  %s%s\n", (long long)step, status == TRI_USAGE ? "" : "damaged: ",
                 tri_message());
        return;
    }
    if (newest->step < 0) *newest = s;
    text_add(out, "%10lld  %6lld  %12.6g  %10.1f MiB  %.16s", (long long)s.step,
             (long long)s.epoch, s.loss, mib_of(path), s.weights);
    if (newest->policy_state.best_step && newest->policy_state.best_step == step)
        text_add(out, "  best %s %.6g", newest->metric, newest->policy_state.best);
    text_add(out, s.checked ? "\n" : "  " CHECKPOINT_UNCHECKED "\n");
}

/* In ascending order. */
static tri_status list(char **word, void *key, struct text *out) {
    int64_t *steps;
    size_t n;
    if (is_folder(word[0]))
        return base_fail(TRI_USAGE, "%s is one checkpoint; ls takes a directory of checkpoints: "
                         "trireme ckpt show %s", word[0], word[0]);
    tri_status status = checkpoint_list(word[0], &steps, &n);
    if (status) return status;
    struct checkpoint_state newest = {.step = -1};
    struct text *line = calloc(n + 1, sizeof *line);
    if (!line) status = base_no_memory(word[0]);
    for (size_t i = 0; i < n && line; i++) list_one(word[0], key, steps[i], &newest, &line[i]);
    if (line)
        text_add(out, "%10s  %6s  %12s  %14s  %s\n", "step", "epoch", "loss", "size", "weights");
    for (size_t i = n; i-- > 0 && line;) {
        out->failed |= line[i].failed;
        text_add(out, "%s", line[i].data ? line[i].data : "");
        text_free(&line[i]);
    }
    free(line);
    free(steps);
    return status;
}

/* ---- show ---- */

static void show_tensors(const char *title, const struct safetensors *f, struct text *out) {
    char spec[SPEC_TEXT];
    text_add(out, "\n%s: %zu tensor(s)\n", title, f->n);
    for (size_t i = 0; i < f->n; i++)
        text_add(out, "  %-24s %s\n", base_spec_text(&f->entry[i].spec, spec), f->entry[i].name);
}

static tri_status show(char **word, void *given, struct text *out) {
    char folder[4096];
    struct checkpoint_state s;
    tri_status status = folder_of(word[0], folder);
    const struct seal_key *key = status ? NULL : checkpoint_key(folder, given);
    if (!status) status = checkpoint_verify(folder, key, &s);
    if (status) return status;
    text_add(out, "%s\nstep %lld, epoch %lld, loss %.9g\n", folder, (long long)s.step,
             (long long)s.epoch, s.loss);
    text_add(out, "batch %lld in %lld lane(s), seed %llu, shuffle %s%s%s\n", (long long)s.batch,
             (long long)s.lanes, (unsigned long long)s.seed, s.shuffle ? "on" : "off",
             *s.order ? " " : "", s.order);
    text_add(out, "data %s, %lld sample(s)\n%s on %s\nweights sha256:%s\nstate   sha256:%s\n",
             s.data, (long long)s.data_size, s.library, s.device, s.weights, s.state);
    if (*s.metric)
        text_add(out, "evaluated by %s: best %.9g at step %lld, no better in %lld evaluations "
                 "since\n", s.metric, s.policy_state.best, (long long)s.policy_state.best_step,
                 (long long)s.policy_state.no_better);
    if (!isnan(s.rate)) text_add(out, "learning rate %.9g, set by the program\n", s.rate);
    if (key) text_add(out, "sealed\n");
    if (!s.checked) text_add(out, CHECKPOINT_UNCHECKED "\n");
    for (int i = 0; i < s.n_scalars; i++)
        text_add(out, "scalar %s %.9g\n", s.scalar[i].name, (double)s.scalar[i].value);
    for (int i = 0; i < CHECKPOINT_TENSORS && !status; i++) {
        struct safetensors *f;
        status = checkpoint_open(folder, checkpoint_files[i], key, s.step, true, &f);
        if (status) break;
        show_tensors(checkpoint_files[i], f, out);
        safetensors_close(f);
    }
    for (int i = CHECKPOINT_TENSORS; i < s.files && !status; i++) {
        char *text;
        status = checkpoint_read_text(folder, checkpoint_files[i], key, s.step, &text);
        if (status) break;
        text_add(out, "\n%s:\n%s", checkpoint_files[i], text);
        free(text);
    }
    return status;
}

/* ---- verify ---- */

static tri_status verify(char **word, void *key, struct text *out) {
    int64_t *steps = NULL, bad = 0, unread = 0;
    size_t n = 1;
    char path[4096];
    bool one = is_folder(word[0]);
    tri_status status = one ? TRI_OK : checkpoint_list(word[0], &steps, &n);
    for (size_t i = n; i-- > 0 && !status;) {
        base_format(path, sizeof path, "%s", word[0]);
        if (!one) checkpoint_path(word[0], steps[i], path);
        struct checkpoint_state s;
        tri_status found = checkpoint_verify(path, key, &s);
        const char *intact = s.checked ? "intact" : "intact; " CHECKPOINT_UNCHECKED;
        text_add(out, "%s: %s\n", path, found ? tri_message() : intact);
        bad += found == TRI_FAILED;
        unread += found == TRI_USAGE;
    }
    free(steps);
    if (status) return status;
    if (!n) return base_fail(TRI_FAILED, "there is no checkpoint in %s", word[0]);
    if (bad) return base_fail(TRI_FAILED, "%lld of %zu are damaged", (long long)bad, n);
    if (!unread) return TRI_OK;
    return base_fail(TRI_USAGE, "%lld of %zu could not be read", (long long)unread, n);
}

/* ---- diff ---- */

static double largest_difference(const struct safetensors_entry *a,
                                 const struct safetensors_entry *b) {
    size_t n = (size_t)tri_shape_count(&a->spec.shape);
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs(convert_load(a->spec.type, a->data, i) -
                        convert_load(b->spec.type, b->data, i));
        if (d > most || isnan(d)) most = d;
    }
    return most;
}

/* Adds a line per tensor that differs, and returns how many do. */
static size_t compare(const struct safetensors *a, const struct safetensors *b, struct text *out) {
    size_t differ = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct safetensors_entry *x = &a->entry[i], *y = safetensors_find(b, x->name);
        if (y && base_shape_equal(&x->spec.shape, &y->spec.shape) &&
            x->spec.type == y->spec.type) {
            if (!memcmp(x->data, y->data, base_spec_bytes(&x->spec))) continue;
            text_add(out, "  %s: by up to %.3g\n", x->name, largest_difference(x, y));
        } else {
            text_add(out, y ? "  %s: another shape or type\n" : "  %s: only in the "
                                                                "first\n", x->name);
        }
        differ++;
    }
    for (size_t i = 0; i < b->n; i++) {
        if (safetensors_find(a, b->entry[i].name)) continue;
        text_add(out, "  %s: only in the second\n", b->entry[i].name);
        differ++;
    }
    return differ;
}

/* One of the two checkpoints to compare. */
struct side {
    char folder[4096];
    const struct seal_key *key;
    struct checkpoint_state state;
};

static tri_status compare_file(const char *name, const struct side side[2], size_t *differ,
                               struct text *out) {
    struct safetensors *f[2] = {NULL, NULL};
    struct text list = {0};
    tri_status status = TRI_OK;
    for (int i = 0; i < 2 && !status; i++)
        status = checkpoint_open(side[i].folder, name, side[i].key, side[i].state.step, false,
                                 &f[i]);
    if (!status) {
        size_t n = compare(f[0], f[1], &list);
        *differ += n;
        text_add(out, "%s: %zu of %zu tensor(s) differ\n%s", name, n, f[0]->n,
                 list.data ? list.data : "");
    }
    text_free(&list);
    safetensors_close(f[0]);
    safetensors_close(f[1]);
    return status;
}

static tri_status diff(char **word, void *key, struct text *out) {
    struct side side[2];
    size_t differ = 0;
    tri_status status = TRI_OK;
    for (int i = 0; i < 2 && !status; i++) {
        struct side *s = &side[i];
        status = folder_of(word[i], s->folder);
        if (status) break;
        s->key = checkpoint_key(s->folder, key);
        status = checkpoint_verify(s->folder, s->key, &s->state);
        if (!status) text_add(out, "%s: step %lld\n", s->folder, (long long)s->state.step);
    }
    if (status) return status;
    for (int i = 0; i < CHECKPOINT_TENSORS && !status; i++)
        status = compare_file(checkpoint_files[i], side, &differ, out);
    if (!status && differ) return base_fail(TRI_FAILED, "they are not the same");
    return status;
}

/* ---- key ---- */

static tri_status make_key(char **word, void *key, struct text *out) {
    (void)key;
    tri_status status = seal_key_make(word[0]);
    if (!status)
        text_add(out, "%s has a new key for --ckpt-key. Keep a copy elsewhere: nothing sealed with "
                 "it can be read without it\n", word[0]);
    return status;
}

/* ---- the command ---- */

static const struct cli_action actions[] = {
    {"ls", "DIR", "list the checkpoints in a directory", 1, list},
    {"show", "DIR|FOLDER", "show a checkpoint, or the newest in a directory", 1, show},
    {"verify", "DIR|FOLDER", "compare files with the hashes in their checkpoint", 1, verify},
    {"diff", "A B", "list the tensors that differ between two, and by how much", 2, diff},
    {"key", "FILE", "make a key that seals checkpoints", 1, make_key},
    {0},
};

struct own {
    const char *key; /* file, or null */
};

static const struct option_row rows[] = {
    {"--ckpt-key", "FILE", "file with the key of sealed checkpoints", OWN(option_text, key)},
    {0},
};

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {0};
    struct text out = {0};
    struct seal_key *key = NULL;
    struct cli_arguments a;
    if (cli_read(c, argc, argv, &own, &a)) return cli_fail();
    const struct cli_action *action = cli_action(c, &a);
    if (!action || (own.key && seal_key_open(own.key, &key))) return cli_fail();
    int code = action->run(a.words + 1, key, &out) ? cli_fail() : TRI_OK;
    seal_key_free(key);
    return cli_print(&out) ? cli_fail() : code;
}

const struct command command_ckpt = {
    .name = "ckpt",
    .arguments = "ls|show|verify|diff|key ... [--ckpt-key FILE]",
    .help = "list, show, verify and compare checkpoints",
    .takes_words = "action",
    .actions = actions,
    .rows = rows,
    .run = run,
};
