/* SPDX-License-Identifier: Apache-2.0
 * trireme ps: this user's runs of several workers, found by the stores that agents have open. */
#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "launch/look.h"
#include "observe/progress.h"

enum column { PID, DIRECTORY, TITLE, WORKERS, STEP, LOSS, STATE, ELAPSED, COLUMNS };
static const struct {
    const char *title;
    bool right;
} heads[COLUMNS] = {{"PID", true},      {"DIRECTORY", false}, {"TITLE", false}, {"WORKERS", true},
                    {"STEP", true},     {"LOSS", true},       {"STATE", false}, {"ELAPSED", true}};

struct row {
    int pid;
    char *cell[COLUMNS];
};

struct table {
    struct row *row;
    size_t n, capacity;
    struct arena arena; /* owns the cells */
};

static void fill(struct row *r, struct arena *a, const struct look_view *v) {
    char spares[16] = "", replicas[24] = "", elapsed[DURATION_TEXT] = "-";
    if (v->spares) snprintf(spares, sizeof spares, "+%d", v->spares);
    if (v->began) progress_duration((double)(v->now - v->began) / 1e9, elapsed);
    r->cell[PID] = arena_text(a, "%d", r->pid);
    r->cell[DIRECTORY] = arena_text(a, "%s", *v->out ? v->out : "-");
    r->cell[TITLE] = arena_text(a, "%s", *v->title ? v->title : "-");
    if (v->replicas)
        snprintf(replicas, sizeof replicas, " in %d replica%s", v->replicas,
                 v->replicas == 1 ? "" : "s");
    r->cell[WORKERS] = arena_text(a, "%d%s%s", v->ranks, spares, replicas);
    r->cell[STEP] = arena_text(a, "%llu/%llu", (unsigned long long)v->committed,
                               (unsigned long long)v->total);
    r->cell[LOSS] = arena_text(a, isnan(v->loss) ? "-" : "%#.4g", v->loss);
    r->cell[STATE] = arena_text(a, "%s", look_state_name(v->state));
    r->cell[ELAPSED] = arena_text(a, "%s", elapsed);
}

static bool add(struct table *t, int pid) {
    struct look l;
    if (!look_open_agent(pid, &l)) return true;
    struct look_view *v = malloc(sizeof *v);
    bool done = v && ARRAY_GROW(t->row, t->n, t->capacity);
    if (done) {
        look_at(&l, v);
        t->row[t->n].pid = pid;
        fill(&t->row[t->n++], &t->arena, v);
    }
    free(v);
    look_close(&l);
    return done && !t->arena.failed;
}

static tri_status list(struct table *t) {
    DIR *d = opendir("/proc");
    if (!d) return base_fail(TRI_FAILED, "cannot read /proc, where runs are found");
    bool done = true;
    for (struct dirent *e; done && (e = readdir(d));)
        if (isdigit((unsigned char)*e->d_name)) done = add(t, atoi(e->d_name));
    closedir(d);
    return done ? TRI_OK : base_no_memory("the list of runs");
}

static int by_pid(const void *a, const void *b) {
    int x = ((const struct row *)a)->pid, y = ((const struct row *)b)->pid;
    return (x > y) - (x < y);
}

static void print(const struct table *t) {
    int width[COLUMNS];
    for (int c = 0; c < COLUMNS; c++) {
        width[c] = (int)strlen(heads[c].title);
        for (size_t i = 0; i < t->n; i++) {
            int n = (int)strlen(t->row[i].cell[c]);
            if (n > width[c]) width[c] = n;
        }
    }
    for (size_t i = 0; i <= t->n; i++)
        for (int c = 0; c < COLUMNS; c++)
            printf("%*s%s", heads[c].right ? width[c] : -width[c],
                   i ? t->row[i - 1].cell[c] : heads[c].title, c + 1 < COLUMNS ? "  " : "\n");
}

static int run(const struct command *c, int argc, char **argv) {
    struct cli_arguments a;
    struct table t = {0};
    if (cli_read(c, argc, argv, NULL, &a)) return cli_fail();
    tri_status status = list(&t);
    if (!status && t.n) {
        qsort(t.row, t.n, sizeof *t.row, by_pid);
        print(&t);
    } else if (!status) {
        printf("you have no runs of several workers\n");
    }
    arena_free(&t.arena);
    free(t.row);
    return status ? cli_fail() : TRI_OK;
}

const struct command command_ps = {
    .name = "ps",
    .arguments = "",
    .help = "list your runs of several workers",
    .run = run,
};
