/* SPDX-License-Identifier: Apache-2.0
 * trireme plan find: the plans that a run may have, the best first. */
#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "base/host.h"
#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/visit.h"
#include "machine/budget.h"
#include "observe/log.h"
#include "run/executor.h"
#include "run/open.h"
#include "search/find.h"

#define TOP 10

struct own {
    struct launch launch; /* first, for launch_rows */
    const char *top, *save;
    enum find_measure measure;
    int64_t row;
    bool why, json, all;
};

static const char *top_word(void *at, const char *value) {
    int64_t n;
    *(const char **)at = value;
    return strcmp(value, "all") && option_count(&n, value) ? "a whole number of at least 1, or all"
                                                           : NULL;
}

const struct option_row plan_find_rows[] = {
    {"--measure", "WHEN", "run steps on random samples to measure units: always, unknown (those of "
     "good plans that have no price, the default), never", OWN(find_measure_word, measure)},
    {"--top", "N|all", "print so many plans (default: 10); all: also those that cannot be better",
     OWN(top_word, top)},
    {"--why", NULL, "also print why the others are slower, and what was refused",
     OWN(option_given, why)},
    {"--all", NULL, "let no core idle", OWN(option_given, all)},
    {"--json", NULL, "print all plans as JSON", OWN(option_given, json)},
    {"--row", "K", "with --save: of this row, as these options list it (default: 1)",
     OWN(option_count, row)},
    {"--save", "FILE", "write the plan of a row, as text for --plan", OWN(option_text, save)},
    {0},
};

/* ---- the table ---- */

static const char *bits_of(const struct found *p) {
    return !p->same_bits ? "its own" : p->t.options.plan ? "as with --plan" : "as without a plan";
}

static void add_mesh(const struct found *p, struct text *t) {
    const tri_options *o = &p->t.options;
    if (!o->mesh) text_add(t, "-");
    else text_add(t, "%s %s", o->mesh, find_way(p));
}

static void add_stages(const struct found *p, struct text *t) {
    const tri_options *o = &p->t.options;
    if (!o->stages) text_add(t, "-");
    else text_add(t, "%lld%s%s", (long long)o->stages, o->pipeline ? " " : "",
                  o->pipeline ? o->pipeline : "");
}

static void add_kept(const struct found *p, struct text *t) {
    const tri_options *o = &p->t.options;
    text_add(t, "%s%s%s", o->recompute ? o->recompute : o->zero ? "" : "-",
             o->zero ? o->recompute ? ", ZeRO " : "ZeRO " : "", o->zero ? o->zero : "");
}

static bool is_rated(const struct run_price *p) { return p->known < p->units; }

static void add_ms(const struct found *p, struct text *t) {
    const double ms = 1e3 * p->price.step.seconds;
    const bool rated = is_rated(&p->price);
    text_add(t, ms < 10 ? "%s%.3f" : ms < 1000 ? "%s%.1f" : "%s%.0f", rated ? "~" : "", ms);
}

/* Without what takes its time: "moves 14 %, waits 9 %". */
static void add_shares(const struct found *p, struct text *t) {
    const struct step_price *s = &p->price.step;
    const double waits = 1 - (s->units + p->price.overhead + s->exposed) / s->seconds;
    const double moves = p->price.moves * s->units / s->seconds;
    if (moves >= 0.0005) text_add(t, "moves %.1f %%, ", 100 * moves);
    if (s->exposed > 0) text_add(t, "hosts %.1f %%, ", 100 * s->exposed / s->seconds);
    text_add(t, "waits %.1f %%", 100 * (waits > 0 ? waits : 0));
}

static void add_row(const struct found *p, size_t number, bool why, struct text *t) {
    text_add(t, "%zu\t%lld\t", number, (long long)p->lanes);
    add_mesh(p, t);
    text_add(t, "\t");
    add_stages(p, t);
    text_add(t, "\t%d x %d\t", p->workers, p->threads);
    add_kept(p, t);
    text_add(t, "\t");
    budget_mib(p->bytes, t);
    text_add(t, "\t");
    add_ms(p, t);
    if (why) text_add(t, "\t");
    if (why) add_shares(p, t);
    text_add(t, "\t%s\n", bits_of(p));
}

static size_t count(const struct find *f, enum found_how how) {
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) n += f->plan[i].how == how;
    return n;
}

static void head(const struct find *f, struct text *t) {
    const int hosts = f->ask.size.hosts;
    if (hosts) text_add(t, "%d host(s) like this machine: %d core(s), ", hosts, host_cores());
    else text_add(t, "this machine: %d core(s), ", host_cores());
    budget_mib(f->limit, t);
    text_add(t, " MiB%s; ", f->own->options.memory_limit ? " asked" : "");
    const double others = f->measured > 0 ? f->others / f->measured : 0;
    if (f->measured > 0) text_add(t, "measured for %.1f s", f->measured);
    if (f->measured > 0 && others < FIND_FEW * host_cores()) text_add(t, ", nothing else ran");
    else if (f->measured > 0)
        text_add(t, ", while others used %.1f cores, so that times are too long: --measure always "
                 "measures again", others);
    else text_add(t, "nothing was measured");
    if (f->error > 0)
        text_add(t, "; the latest run took %.3f times what was predicted", f->error);
    text_add(t, "\n");
}

static void compare_hosts(const struct find *f, struct text *t) {
    const double ratio = f->alone.step.seconds / f->plan[0].price.step.seconds;
    const bool rated = is_rated(&f->alone) || is_rated(&f->plan[0].price);
    if (ratio > 1) text_add(t, "%d hosts are ", f->ask.size.hosts);
    else text_add(t, "one of the hosts alone is ");
    text_add(t, "%s%.2f times as fast%s, with the first plan\n", rated ? "~" : "",
             ratio > 1 ? ratio : 1 / ratio, ratio > 1 ? " as one of them" : "");
}

static void verdict(const struct find *f, struct text *t) {
    const size_t large = count(f, FOUND_TOO_LARGE), refused = count(f, FOUND_REFUSED);
    const size_t cut = count(f, FOUND_CUT);
    size_t rated = 0;
    for (size_t i = 0; i < f->fit; i++)
        rated += is_rated(&f->plan[i].price);
    text_add(t, "the best at these prices of %zu plan(s); %zu did not fit", f->n - refused, large);
    if (cut) text_add(t, ", %zu could not be better", cut);
    if (refused) text_add(t, "; %zu the network does not allow", refused);
    text_add(t, "\n");
    if (f->alone.units) compare_hosts(f, t);
    if (rated) text_add(t, "~: units of %zu plan(s) were not measured, but priced by their "
                        "operations and bytes\n", rated);
}

static void others(const struct find *f, struct text *t) {
    text_add(t, "\n");
    for (size_t i = f->fit; i < f->n; i++) {
        const struct found *p = &f->plan[i];
        find_describe(p, t);
        if (p->how == FOUND_CUT)
            text_add(t, ": at least %.3f ms, without moves and waits\n", 1e3 * p->bound);
        else if (p->how == FOUND_TOO_LARGE) {
            text_add(t, ": ");
            budget_mib(p->bytes, t);
            text_add(t, " MiB do not fit\n");
        } else {
            text_add(t, ": %s\n", p->note ? p->note : "");
        }
    }
}

static void table(const struct find *f, const struct own *own, struct text *t) {
    const size_t top = !own->top ? TOP : strcmp(own->top, "all") ? strtoul(own->top, NULL, 10)
                                                                 : f->n;
    struct text cells = {0};
    head(f, t);
    text_add(&cells, "#\tlanes\tmesh\tstages\tworkers x threads\trecompute\tMiB\tms/step\t"
             "%sbits\n", own->why ? "of which\t" : "");
    for (size_t i = 0; i < f->fit && i < top; i++) add_row(&f->plan[i], i + 1, own->why, &cells);
    columns_add(t, own->why ? "rrllrlrrll" : "rrllrlrrl", &cells);
    verdict(f, t);
    if (own->why) others(f, t);
}

/* ---- JSON ---- */

static void json_plan(const struct found *p, struct text *t) {
    static const char *const hows[] = {"fits", "too large", "cut", "refused"};
    const tri_options *o = &p->t.options;
    text_add(t, "{\"is\":\"%s\",\"lanes\":%lld,\"mesh\":", hows[p->how], (long long)p->lanes);
    log_quote(t, o->mesh ? o->mesh : "");
    text_add(t, ",\"strategy\":");
    log_quote(t, find_way(p));
    text_add(t, ",\"stages\":%lld,\"pipeline\":", (long long)o->stages);
    log_quote(t, o->pipeline ? o->pipeline : "");
    text_add(t, ",\"workers\":%d,\"threads\":%d,\"recompute\":", p->workers, p->threads);
    log_quote(t, o->recompute ? o->recompute : "");
    text_add(t, ",\"zero\":");
    log_quote(t, o->zero ? o->zero : "");
    text_add(t, ",\"same_bits\":%s,\"bytes\":%zu", p->same_bits ? "true" : "false", p->bytes);
    if (p->searched && p->how == FOUND_FITS && p->gap >= 0)
        text_add(t, ",\"gap\":%.6g", p->gap);
    if (p->how == FOUND_CUT) text_add(t, ",\"bound\":%.9g", p->bound);
    if (p->how == FOUND_FITS)
        text_add(t, ",\"seconds\":%.9g,\"units\":%.9g,\"moves\":%.6g,\"measured\":%d,\"of\":%d",
                 p->price.step.seconds, p->price.step.units, p->price.moves, p->price.known,
                 p->price.units);
    if (p->how == FOUND_FITS && p->t.size.hosts)
        text_add(t, ",\"exposed\":%.9g", p->price.step.exposed);
    if (p->how == FOUND_REFUSED) text_add(t, ",\"note\":");
    if (p->how == FOUND_REFUSED) log_quote(t, p->note ? p->note : "");
    text_add(t, "}");
}

static void json(const struct find *f, struct text *t) {
    text_add(t, "{\"cores\":%d,\"limit\":%zu,\"measured_s\":%.3f", host_cores(), f->limit,
             f->measured);
    if (f->ask.size.hosts)
        text_add(t, ",\"hosts\":%d,\"alone\":%.9g", f->ask.size.hosts,
                 f->alone.step.seconds);
    text_add(t, ",\"plans\":[");
    for (size_t i = 0; i < f->n; i++) {
        if (i) text_add(t, ",\n");
        json_plan(&f->plan[i], t);
    }
    text_add(t, "]}\n");
}

/* ---- the command ---- */

static tri_status save(struct find *f, const struct own *own) {
    const size_t row = own->row ? (size_t)own->row : 1;
    struct text t = {0};
    if (!own->save) return TRI_OK;
    if (row > f->fit)
        return base_fail(TRI_USAGE, "--row %zu: there are %zu plan(s)", row, f->fit);
    tri_status status = find_print(&f->plan[row - 1], &t);
    status = text_write_file(&t, own->save, status);
    return status;
}

static tri_run *plan(struct cli_arguments *a) {
    tri_graph *g = cli_network(a, NULL);
    return g ? run_plan_with_data(g, &a->options, NULL) : NULL;
}

/* A mesh along which operators may do what the search likes. */
static bool is_bare(const tri_options *o) { return !o->strategy && !o->unset && !o->plan; }

static tri_status find(const struct own *own, struct cli_arguments *a, struct prices *p,
                       const struct text *kept, struct text *out) {
    struct find f = {0};
    struct crew_size size;
    if (cli_size(&own->launch, true, &size, &p->link)) return base_last();
    p->path = own->launch.path;
    struct find_ask ask = {
        .workers = own->launch.automatic ? 0 : size.workers, /* also those that --hosts gives */
        .size = size,
        .recompute = a->options.recompute,
        .cuts = a->options.cuts,
        .threads = own->launch.threads ? own->launch.threads : (int)a->options.threads,
        .any = own->launch.grain != 1 + GRAIN_KEEP,
        .all = own->all,
        .solve = own->top && !strcmp(own->top, "all"),
        .measure = own->measure,
        .keep = kept};
    tri_run *run = plan(a);
    if (!run && a->options.mesh && base_last() == TRI_USAGE && is_bare(&a->options)) {
        ask.mesh = a->options.mesh;
        a->options.mesh = NULL;
        run = plan(a);
    }
    if (!run) return base_last();
    tri_status status = find_plans(run, &ask, p, &f);
    if (!status && !f.fit) status = find_none(&f);
    if (!status) status = save(&f, own);
    if (!status) (own->json ? json(&f, out) : table(&f, own, out));
    find_free(&f);
    run_free(run);
    return status;
}

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {.row = 0};
    struct cli_arguments a;
    struct prices p = {0};
    struct text kept = {0}, out = {0};
    if (cli_read(c, argc, argv, &own, &a)) return cli_fail();
    tri_status status = cli_check_launch(&own.launch, &a.options);
    if (!status && own.row && !own.save)
        status = base_fail(TRI_USAGE, "--row %lld names the plan that --save FILE writes",
                           (long long)own.row);
    if (!status && a.program) return visit_start(&a);
    if (!status) status = prices_open(&p, 0, &kept);
    if (!status) status = find(&own, &a, &p, &kept, &out);
    prices_free(&p);
    text_free(&kept);
    if (status) text_free(&out);
    return status || cli_print(&out) ? cli_fail() : 0;
}

static const struct command command = {
    .name = "plan find",
    .arguments = "MODEL [options]",
    .help = "the plans that a run may have, their memory and what a step takes, the best first",
    .takes_model = true,
    .takes_program = true,
    .use = USE_MEMORY | USE_FIND,
    .rows = plan_find_rows,
    .more_rows = launch_rows,
    .run = run,
};

int cli_plan_find(int argc, char **argv) { return run(&command, argc, argv); }
