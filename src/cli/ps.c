/* SPDX-License-Identifier: Apache-2.0
 * trireme ps: this user's runs of several workers, found by the stores that agents have open. */
#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/columns.h"
#include "cli/cli.h"
#include "launch/look.h"
#include "observe/progress.h"

static void add_run(struct text *cells, int pid, const struct look_view *v) {
    char elapsed[DURATION_TEXT] = "-";
    if (v->began) progress_duration((double)(v->now - v->began) / 1e9, elapsed);
    text_add(cells, "%d\t%s\t%s\t%d", pid, *v->out ? v->out : "-", *v->title ? v->title : "-",
             v->ranks);
    if (v->spares) text_add(cells, "+%d", v->spares);
    if (v->hosts.n) text_add(cells, " on %s", v->hosts.self);
    if (v->replicas) text_add(cells, " in %d replica(s)", v->replicas);
    text_add(cells, "\t%llu/%llu", (unsigned long long)v->committed, (unsigned long long)v->total);
    text_add(cells, isnan(v->loss) ? "\t-" : "\t%#.4g", v->loss);
    text_add(cells, "\t%s\t%s\n", look_state_name(v->state), elapsed);
}

/* The processes that there are, in the order of their numbers. */
struct pids {
    int *pid;
    size_t n, capacity;
};

static int by_number(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static tri_status list(struct pids *p) {
    DIR *d = opendir("/proc");
    if (!d) return base_fail(TRI_FAILED, "cannot read /proc, where runs are found");
    bool done = true;
    for (struct dirent *e; done && (e = readdir(d));) {
        if (!isdigit((unsigned char)*e->d_name)) continue;
        done = ARRAY_GROW(p->pid, p->n, p->capacity);
        if (done) p->pid[p->n++] = atoi(e->d_name);
    }
    closedir(d);
    if (p->n) qsort(p->pid, p->n, sizeof *p->pid, by_number);
    return done ? TRI_OK : base_no_memory("the list of processes");
}

static int run(const struct command *c, int argc, char **argv) {
    struct cli_arguments a;
    struct pids p = {0};
    struct text cells = {0}, out = {0};
    bool any = false;
    if (cli_read(c, argc, argv, NULL, &a)) return cli_fail();
    tri_status status = list(&p);
    struct look_view *v = malloc(sizeof *v);
    if (!status && !v) status = base_no_memory("the list of runs");
    text_add(&cells, "PID\tDIRECTORY\tTITLE\tWORKERS\tSTEP\tLOSS\tSTATE\tELAPSED\n");
    for (size_t i = 0; i < p.n && !status; i++) {
        struct look l;
        if (!look_open_agent(p.pid[i], &l)) continue;
        look_at(&l, v);
        add_run(&cells, p.pid[i], v);
        look_close(&l);
        any = true;
    }
    if (any) columns_add(&out, "rllrrrlr", &cells);
    else text_add(&out, "you have no runs of several workers\n");
    int code = status || cli_print(&out) ? cli_fail() : TRI_OK;
    text_free(&cells);
    text_free(&out);
    free(v);
    free(p.pid);
    return code;
}

const struct command command_ps = {
    .name = "ps",
    .arguments = "",
    .help = "list your runs of several workers",
    .run = run,
};
