/* SPDX-License-Identifier: Apache-2.0
 * The candidates of --recompute fit are families of cheap operators, such as all gelus of an
 * encoder, and the blocks of the network, such as its layers. What each saves follows from the
 * graph: the results that its gradient reads. They are taken in the order of their cost per byte
 * saved, as many as the limit needs, which is found by planning the run with them. */
#include "run/fit.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/recompute.h"
#include "plan/stages.h"
#include "run/executor.h"
#include "run/node_times.h"
#include "run/trial.h"
#include "run/worker.h"

struct candidate {
    char *pattern;
    double work;  /* of its forward operators; seconds or operations */
    double saves; /* bytes of their results that are kept until the backward pass */
};

struct fit {
    tri_run *run;
    struct node_times times; /* if they are known */
    struct candidate *c;
    size_t n, capacity;
};

/* ---- candidates ---- */

/* The length of the first scope that ends with a number: "layer.3" of "layer.3.fc.matmul"; 0: there
 * is none. */
static size_t block_of(const char *name) {
    for (const char *p = name; *p;) {
        size_t n = strcspn(p, ".");
        bool number = n > 0, whole = !p[n];
        for (size_t i = 0; i < n; i++) number = number && isdigit((unsigned char)p[i]);
        if (number && !whole) return (size_t)(p - name) + n;
        p += n + !whole;
    }
    return 0;
}

/* The name with * for numbers, so that one pattern matches the operator in all layers. */
static char *family_of(const char *name) {
    struct text t = {0};
    for (const char *p = name; *p;) {
        size_t n = strcspn(p, ".");
        bool number = n > 0;
        for (size_t i = 0; i < n; i++) number = number && isdigit((unsigned char)p[i]);
        text_add(&t, "%.*s%s", number ? 1 : (int)n, number ? "*" : p, p[n] ? "." : "");
        p += n + (p[n] != 0);
    }
    if (t.failed) text_free(&t);
    return t.data;
}

/* In seconds if times are known, else in operations. A node that became no unit takes no time. */
static bool add(struct fit *f, char *pattern, const tri_node *n, double saves) {
    size_t i = 0;
    while (pattern && i < f->n && strcmp(f->c[i].pattern, pattern)) i++;
    if (pattern && i < f->n) {
        free(pattern);
    } else if (!pattern || !ARRAY_GROW(f->c, f->n, f->capacity)) {
        free(pattern);
        return false;
    } else {
        f->c[f->n++] = (struct candidate){.pattern = pattern};
    }
    const struct node_time *is = f->times.of ? node_times_at(&f->times, n->name) : NULL;
    f->c[i].work += is             ? is->forward
                    : f->times.of  ? 0
                                   : stages_work(n, f->run->dev->kind->target);
    f->c[i].saves += saves;
    return true;
}

/* What is kept for the gradients, by tensor of the graph with them. */
struct kept {
    const tri_graph *g;
    const tri_node **reader; /* a forward node that reads it, and is not its neighbour; or null */
    bool *kept;
    size_t at; /* where the last node was found */
};

static tri_status find_kept(const tri_graph *g, struct kept *out) {
    *out = (struct kept){.g = g, .reader = calloc((size_t)g->n_tensors + 1, sizeof *out->reader),
                         .kept = calloc((size_t)g->n_tensors + 1, sizeof *out->kept)};
    if (!out->reader || !out->kept) return base_no_memory("--recompute");
    for (size_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->node[i]->n_in; k++) {
            if (!node_reads(g->node[i], k)) continue;
            if (g->node[i]->backward) out->kept[g->node[i]->in[k]->id] = true;
            else out->reader[g->node[i]->in[k]->id] = g->node[i];
        }
    return TRI_OK;
}

/* Bytes that are kept of the node of this name, which passes may have removed. block: the length of
 * the scope that is recomputed, whose own results are kept; 0: the operator alone. */
static double kept_of(struct kept *k, const char *name, size_t block) {
    double bytes = 0;
    for (size_t i = 0; i < k->g->n_nodes; i++) {
        const size_t at = (k->at + i) % k->g->n_nodes;
        const tri_node *n = k->g->node[at];
        if (n->backward || strcmp(n->name, name)) continue;
        k->at = at;
        for (int o = 0; o < n->n_out; o++) {
            const tri_node *reader = k->reader[n->out[o].id];
            const bool leaves = block && reader && (strncmp(reader->name, name, block) ||
                                                    reader->name[block] != '.');
            if (k->kept[n->out[o].id] && !leaves)
                bytes += (double)base_spec_bytes(&n->out[o].spec);
        }
        break;
    }
    return bytes;
}

/* Blocks, in a network without numbered scopes its first scopes, and unless `blocks` is set,
 * families of operators. kept: nullable. */
static tri_status list(struct fit *f, bool blocks, struct kept *kept) {
    const tri_graph *g = f->run->model;
    size_t forward = graph_forward(g);
    bool ok = true, numbered = false;
    for (size_t i = 0; i < forward; i++) numbered |= block_of(g->node[i]->name) > 0;
    for (size_t i = 0; i < forward && ok; i++) {
        const tri_node *n = g->node[i];
        if (!node_runs(n) || !n->n_in) continue;
        size_t block = numbered ? block_of(n->name) : strcspn(n->name, ".");
        if (block)
            ok = add(f, strndup(n->name, block), n, kept ? kept_of(kept, n->name, block) : 0);
        if (ok && !blocks && !n->entry->op->flops)
            ok = add(f, family_of(n->name), n, kept ? kept_of(kept, n->name, 0) : 0);
    }
    return ok ? TRI_OK : base_no_memory("--recompute");
}

/* The work per byte that it saves; the bytes count from 1. */
static int by_cost(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    double p = x->work / (x->saves > 1 ? x->saves : 1), q = y->work / (y->saves > 1 ? y->saves : 1);
    return p != q ? (p < q ? -1 : 1) : strcmp(x->pattern, y->pattern);
}

/* The first n patterns, separated by commas; null: out of memory. */
static char *first(const struct fit *f, size_t n) {
    struct text t = {0};
    for (size_t i = 0; i < n; i++) text_add(&t, "%s%s", i ? "," : "", f->c[i].pattern);
    if (!n) text_add(&t, "%s", "");
    if (t.failed) text_free(&t);
    return t.data;
}

/* ---- trying ---- */

/* The option that stands for these patterns: if they are none, "none", which a plan keeps, unless
 * the network has wishes of its own. */
static const char *chosen(const tri_run *run, const char *patterns) {
    if (patterns && *patterns) return patterns;
    return recompute_is_asked(run->model) ? NULL : "none";
}

/* *bytes: what the run needs if these patterns are recomputed; null: none. */
static tri_status try(const struct fit *f, const char *patterns, double *bytes) {
    struct trial t = trial_of(f->run);
    size_t needs = 0;
    t.options.recompute = chosen(f->run, patterns);
    tri_status status = trial_bytes(f->run, &t, &needs);
    if (!status) *bytes = (double)needs;
    return status;
}

static void forget(struct fit *f) {
    for (size_t i = 0; i < f->n; i++) free(f->c[i].pattern);
    free(f->c);
    node_times_free(&f->times);
}

/* Lists what saves anything, the cheapest first. */
static tri_status rank(struct fit *f, const tri_graph *with_gradients) {
    struct kept k;
    tri_status status = find_kept(with_gradients, &k);
    if (!status) status = list(f, false, &k);
    free(k.reader);
    free(k.kept);
    size_t kept = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (f->c[i].saves > 0) f->c[kept++] = f->c[i];
        else free(f->c[i].pattern);
    }
    f->n = kept;
    if (f->n) qsort(f->c, f->n, sizeof *f->c, by_cost);
    return status;
}

static double mib(double bytes) { return bytes / (1 << 20); }

/* The fewest candidates in their order that suffice; else all of them. */
static tri_status fewest(struct fit *f, double limit) {
    double with = 0;
    size_t low = 0, high = f->n;
    tri_status status = TRI_OK;
    while (!status && low < high) {
        size_t middle = (low + high) / 2;
        char *patterns = first(f, middle);
        status = patterns ? try(f, patterns, &with) : base_no_memory("--recompute");
        free(patterns);
        if (with <= limit) high = middle;
        else low = middle + 1;
    }
    f->run->fit = first(f, low);
    return !status && !f->run->fit ? base_no_memory("--recompute") : status;
}

/* Takes these patterns instead if the run then needs less. */
static tri_status compare(struct fit *f, char *patterns, double *least) {
    double with = *least;
    tri_status status = patterns ? try(f, patterns, &with) : base_no_memory("--recompute");
    bool better = !status && with < *least;
    free(better ? f->run->fit : patterns);
    if (better) f->run->fit = patterns, *least = with;
    return status;
}

/* The patterns of all blocks. */
static tri_status blocks(const struct fit *f, char **patterns) {
    struct fit all = {.run = f->run};
    tri_status status = list(&all, true, NULL);
    *patterns = status ? NULL : first(&all, all.n);
    forget(&all);
    return status || *patterns ? status : base_no_memory("--recompute");
}

static tri_status choose(struct fit *f, double limit) {
    double none = 0, with = 0;
    struct trial plain = trial_of(f->run);
    plain.options.recompute = chosen(f->run, NULL);
    plain.options.memory_limit = 0;
    plain.options.save_plan = NULL;
    tri_run *run = trial_plan(f->run, &plain);
    tri_status status = run ? TRI_OK : base_last();
    if (run) none = (double)trial_needs(run);
    /* Several hosts choose alike: by fixed costs. */
    if (run && none > limit && !plain.size.hosts)
        status = node_times_open(f->run, run, &f->times);
    if (run && none > limit && !status) status = rank(f, run->machine->whole);
    trial_end(f->run, run);
    if (status || none <= limit) return status;
    char *all = NULL, *every = first(f, f->n);
    if (!every) status = base_no_memory("--recompute");
    if (!status) status = fewest(f, limit);
    if (!status) status = try(f, f->run->fit, &with);
    /* What several blocks keep is not saved by one of them alone. */
    if (!status && with > limit) status = blocks(f, &all);
    if (!status && with > limit) status = compare(f, all, &with);
    if (!status && with > limit) status = compare(f, every, &with), every = NULL;
    free(every);
    if (!status)
        f->run->fit_note = arena_text(&f->run->model->arena,
                                      "--recompute fit: %.1f MiB instead of %.1f, limit %.1f: %s",
                                      mib(with), mib(none), mib(limit), f->run->fit);
    return status;
}

/* "PATTERNS\nNOTE", as another worker has chosen. */
static tri_status take(tri_run *run, const char *choice) {
    size_t n = strcspn(choice, "\n");
    if (!n) return TRI_OK; /* nothing need be recomputed */
    run->fit = strndup(choice, n);
    run->fit_note = arena_text(&run->model->arena, "%s", choice + n + 1);
    return run->fit && run->fit_note ? TRI_OK : base_no_memory("--recompute");
}

/* One worker chooses for all. */
static tri_status choose_once(struct fit *f, double limit) {
    tri_run *run = f->run;
    const char *choice = run->worker ? worker_choice(run->worker, CREW_CHOOSES_FIT) : NULL;
    if (choice) return take(run, choice);
    tri_status status = choose(f, limit);
    struct text t = {0};
    if (!run->worker) return status;
    text_add(&t, "%s\n%s", run->fit ? run->fit : "", run->fit_note ? run->fit_note : "");
    worker_chose(run->worker, CREW_CHOOSES_FIT, status || t.failed ? NULL : t.data);
    text_free(&t);
    return status;
}

static tri_status settle(struct fit *f, const char *how) {
    tri_options *o = &f->run->options;
    tri_status status = TRI_OK;
    o->recompute = NULL;
    if (!strcmp(how, "full")) {
        status = blocks(f, &f->run->fit);
    } else {
        if (o->memory_limit <= 0)
            return base_fail(TRI_USAGE, "--recompute fit recomputes as little as --memory-limit "
                             "allows: give a limit, as --memory-limit 4G");
        status = choose_once(f, (double)o->memory_limit);
    }
    o->recompute = chosen(f->run, f->run->fit);
    return status;
}

tri_status fit_settle(tri_run *run) {
    const char *how = run->options.recompute;
    struct fit f = {.run = run};
    bool word = recompute_is_word(how);
    if (!word || run->options.forward) {
        if (word) run->options.recompute = NULL;
        return TRI_OK;
    }
    tri_status status = settle(&f, how);
    forget(&f);
    return status;
}

/* ---- cuts of --stages ---- */

static tri_status cut_by(const tri_graph *g, const struct node_times *times, int stages,
                      struct arena *arena, const char **cuts) {
    double *work = calloc(g->n_nodes + 1, sizeof *work);
    struct text t = {0};
    if (!work) return base_no_memory("stages");
    for (size_t i = 0; i < graph_forward(g); i++) {
        const struct node_time *is = node_times_at(times, g->node[i]->name);
        work[i] = is ? is->all : 0;
    }
    tri_status status = stages_cut(g, work, stages, &t);
    if (!status && !(*cuts = arena_copy(arena, t.data))) status = base_no_memory("stages");
    free(work);
    text_free(&t);
    return status;
}

tri_status fit_cuts(tri_run *own, const struct trial *t, const struct prices *p,
                    struct arena *arena, const char **cuts) {
    struct node_times times = {0};
    struct trial plain = *t;
    plain.options.stages = 1;
    plain.options.cuts = plain.options.pipeline = plain.options.steal = NULL;
    plain.options.chunks = 0;
    if (recompute_is_word(plain.options.recompute)) plain.options.recompute = "none";
    plain.options.memory_limit = 0;
    plain.options.save_plan = NULL;
    *cuts = NULL;
    tri_run *run = p->n ? trial_plan(own, &plain) : NULL;
    if (!run) return p->n && base_last() == TRI_FAILED ? TRI_FAILED : TRI_OK;
    tri_status status = node_times_find(run, p, &times);
    if (!status && times.of)
        status = cut_by(run->machine->whole, &times, (int)t->options.stages, arena, cuts);
    node_times_free(&times);
    trial_end(own, run);
    return status == TRI_USAGE ? TRI_OK : status;
}

/* Whether the run's plan says that stages are cut by fixed costs, as it has no line of theirs. */
static bool plan_cuts(const tri_run *run) {
    return run->plan && plan_number(run->plan, PLAN_STAGES) == run->options.stages;
}

tri_status fit_settle_cuts(tri_run *run) {
    tri_options *o = &run->options;
    const struct trial t = trial_of(run);
    const bool may = o->stages > 1 && o->stages <= STAGE_MOST && !o->cuts && !o->forward;
    if (!may || t.size.hosts || plan_cuts(run)) return TRI_OK;
    const char *choice = run->worker ? worker_choice(run->worker, CREW_CHOOSES_CUTS) : NULL;
    if (choice) {
        o->cuts = *choice ? choice : NULL;
        return TRI_OK;
    }
    struct prices p = {0};
    struct text path = {0};
    tri_status status = prices_open(&p, run->executor->cores(run), &path);
    if (!status) status = fit_cuts(run, &t, &p, &run->model->arena, &o->cuts);
    if (o->cuts && strlen(o->cuts) >= CREW_CHOICE) o->cuts = NULL; /* others could not take it */
    if (run->worker)
        worker_chose(run->worker, CREW_CHOOSES_CUTS, status ? NULL : o->cuts ? o->cuts : "");
    prices_free(&p);
    text_free(&path);
    return status;
}
