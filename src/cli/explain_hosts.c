/* SPDX-License-Identifier: Apache-2.0
 * trireme explain --hosts: by which paths the sums of several hosts would travel, in which formats
 * they could, and what each would take on the links that have been measured. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "cli/cli.h"
#include "cli/explain.h"
#include "launch/links.h"
#include "machine/dealt.h"
#include "plan/explain_path.h"
#include "plan/wire_ask.h"
#include "profile/lines.h"
#include "run/open.h"
#include "run/run.h"

struct hosts {
    struct host_list list; /* without names if a number was given */
    bool named;
    int weight[HOSTS_MOST], weights;
    struct path_link link; /* bandwidth 0: not known */
    int path;              /* enum path, and 1 more; 0: the fastest */
    double step, exposed;  /* seconds of a step in f32, of which threads wait; 0: not known */
};

/* What an earlier run took, but for its first line. */
static tri_status read_earlier(const char *directory, struct hosts *h) {
    struct text path = {0};
    struct lines l = {0};
    double first = NAN, last = 0, exposed = 0, steps = 0;
    text_add(&path, "%s/metrics.jsonl", directory);
    tri_status status = path.failed ? base_no_memory(directory) : lines_open(&l, path.data);
    while (!status && lines_next(&l)) {
        const size_t field = lines_find(&l, "exposed", 0);
        if (field == l.n || isnan(l.value[field])) continue;
        last = l.value[LINES_SECONDS];
        if (isnan(first)) {
            first = last;
            continue;
        }
        steps += isnan(l.value[LINES_STEPS]) ? 1 : l.value[LINES_STEPS];
        exposed += l.value[field];
    }
    if (!status && !(steps > 0))
        status = base_fail(TRI_USAGE, "--out %s: its metrics.jsonl has no two lines of a run over "
                           "several hosts", directory);
    h->step = (last - first) / steps;
    h->exposed = exposed / steps;
    lines_free(&l);
    text_free(&path);
    return status;
}

static tri_status read_hosts(const char *text, struct hosts *h) {
    const size_t digits = strspn(text, "0123456789");
    tri_status status = TRI_OK;
    h->named = !digits || text[digits];
    if (h->named) status = host_list_read(text, &h->list);
    else h->list.n = (int)strtol(text, NULL, 10);
    if (!status && (digits > 5 || h->list.n < 1 || h->list.n > HOSTS_MOST))
        return base_fail(TRI_USAGE, "--hosts %s: 1 to %d hosts", text, HOSTS_MOST);
    for (int i = 0; i < h->list.n && !status; i++) {
        h->weight[i] = h->list.host[i].workers ? h->list.host[i].workers : 1;
        h->weights += h->weight[i];
    }
    return status ? status : links_slowest(h->named ? &h->list : NULL, &h->link);
}

/* ---- a plan for the hosts ---- */

/* With that --wire; null: f32. */
static tri_status plan(struct cli_arguments *a, const struct hosts *h, const char *wire,
                       tri_run **run) {
    struct crew_size size = {.workers = 1, .threads = 1, .most = 1, .hosts = h->list.n,
                             .paths = h->path ? h->path != 1 + PATH_EXCHANGE
                                              : h->list.n > 2 && h->link.bandwidth > 0};
    tri_options o = a->options;
    for (int i = 0; i < h->list.n; i++) {
        size.weight[i] = h->weight[i];
        if (h->weight[i] > size.workers) size.workers = size.most = h->weight[i];
    }
    o.data = "synthetic";
    o.quiet = true;
    o.threads = 1;
    o.wire = wire;
    if (!wire_ask_rounds(&o)) o.wire_nodes = 0;
    tri_status status = crew_check(&size);
    tri_graph *g = status ? NULL : cli_graph(a);
    *run = g ? run_plan(g, &o, &size) : NULL;
    return *run ? TRI_OK : base_last();
}

/* ---- what a step moves ---- */

/* A phase, and its transfers. */
struct moved {
    struct dealt dealt;
    int cut_nodes; /* that are rounded, without those above */
    struct transfers by[PATHS]; /* of one bucket; hosts is 0: not made */
    bool *again[PATHS]; /* by transfer: its sender has sent the same to another host */
};

static tri_status deal(const tri_run *run, int phase, struct moved *d) {
    const struct tree *t = &run->machine->tree[1];
    *d = (struct moved){0};
    if (t->cut >= 0) d->cut_nodes = lane_tree_cut(&t->shape, t->cut, NULL);
    return dealt_make(run->machine, phase, &d->dealt);
}

static void deal_free(struct moved *d) {
    for (int p = 0; p < PATHS; p++) {
        transfers_free(&d->by[p]);
        free(d->again[p]);
    }
}

static tri_status find_again(const struct lane_tree *tree, const struct transfers *t, bool *again) {
    const size_t chunks = (size_t)t->chunks[0], n = (size_t)tree->n_nodes * chunks;
    int *sender = calloc(n + 1, sizeof *sender); /* the last one of each chunk, and 1 more */
    for (int i = 0; i < t->n && sender; i++) {
        const struct transfer *x = &t->all[i];
        int *of = &sender[(size_t)x->node * chunks + (size_t)x->chunk];
        again[i] = *of == x->from + 1;
        *of = x->from + 1;
    }
    free(sender);
    return sender ? TRI_OK : base_no_memory("a path");
}

static tri_status make_transfers(struct moved *d, enum path path) {
    const struct lane_tree *shape = &d->dealt.tree->shape;
    const struct transfer_share share = {.hosts = d->dealt.hosts, .begin = d->dealt.begin,
                                         .buckets = 1, .path = &path};
    if (d->by[path].hosts) return TRI_OK;
    tri_status status = transfers_make(shape, &share, &d->by[path]);
    if (status) return status;
    d->again[path] = calloc((size_t)d->by[path].n + 1, sizeof(bool));
    return d->again[path] ? find_again(shape, &d->by[path], d->again[path])
                          : base_no_memory("a path");
}

/* Of a step. */
struct traffic {
    struct {
        double sent, received, sent_whole, received_whole; /* bytes */
        double coded, rounded; /* numbers that are coded or decoded, and rounded */
    } host[HOSTS_MOST];
    double seconds; /* on the links, one bucket after the other */
};

static double numbers_rounded(const struct wire_map *m) {
    double n = 0;
    for (int i = 0; i < m->n; i++)
        if (m->part[i].format != WIRE_F32 && m->part[i].format != WIRE_PACK)
            n += (double)m->part[i].n;
    return n;
}

/* What is sent to several hosts is coded once. */
static void add_transfers(const struct moved *d, enum path path, const struct wire_map *map,
                          struct traffic *to) {
    const struct transfers *t = &d->by[path];
    const bool plain = wire_is_plain(map);
    const int *const begin = d->dealt.begin;
    for (int i = 0; i < t->n; i++) {
        const struct transfer *x = &t->all[i];
        uint64_t first, n;
        wire_chunk(map, x->chunk, t->chunks[0], &first, &n);
        const double bytes = dealt_range_bytes(map, first, n),
                     whole = (double)wire_slot_bytes(map, first, n);
        to->host[x->from].sent += bytes;
        to->host[x->from].sent_whole += whole;
        to->host[x->to].received += bytes;
        to->host[x->to].received_whole += whole;
        if (plain) continue;
        to->host[x->to].coded += whole / 4;
        if (!d->again[path][i]) to->host[x->from].coded += whole / 4;
    }
    for (int h = 0; h < t->hosts && !plain; h++) {
        const double own = (double)d->cut_nodes * (begin[h + 1] - begin[h]) /
                           begin[t->hosts],
                     above = d->dealt.tree->shape.n_tops > 1 ? 0 : d->cut_nodes - 1;
        to->host[h].rounded += numbers_rounded(map) *
                               (own + (t->chunks[0] > 1 ? above / t->hosts : above));
    }
}

static tri_status add_bucket(struct moved *d, const struct hosts *h, int bucket,
                             struct traffic *to) {
    const struct wire_map map = tree_map(d->dealt.tree, bucket);
    const enum path path = dealt_path(&d->dealt, h->path, &h->link, bucket);
    tri_status status = make_transfers(d, path);
    if (!status) add_transfers(d, path, &map, to);
    if (!status && h->link.bandwidth > 0)
        to->seconds += dealt_seconds(&d->dealt, &h->link, bucket, path);
    return status;
}

static tri_status add_step(const tri_run *run, const struct hosts *h, struct traffic *to) {
    tri_status status = TRI_OK;
    *to = (struct traffic){0};
    for (int k = 0; k < 2 && !status; k++) {
        struct moved d;
        const struct tree *t = &run->machine->tree[k];
        if (!t->g) continue;
        status = deal(run, k, &d);
        for (int b = 0; b < t->buckets.n && !status; b++)
            if (dealt_moves(&d.dealt, b)) status = add_bucket(&d, h, b, to);
        deal_free(&d);
    }
    return status;
}

/* ---- what coding takes ---- */

#define SAMPLE 262144 /* numbers */
#define TRIES 3

/* The largest part of the plan that is coded; null: there is none. */
static const struct wire_part *coded_part(const tri_run *run) {
    const struct tree *t = &run->machine->tree[1];
    const struct wire_part *largest = NULL;
    for (int b = 0; b < t->buckets.n; b++)
        for (size_t i = 0; i < t->bucket[b].n_parts; i++) {
            const struct wire_part *p = &t->bucket[b].part[i];
            if (p->format != WIRE_F32 && (!largest || p->n > largest->n)) largest = p;
        }
    return largest;
}

static int64_t least(int64_t a, int64_t b) { return !a || b < a ? b : a; }

/* Seconds of a core for each number in the part's format: to round it; to code it and decode it. */
static tri_status measure(const struct wire_part *like, double *rounds, double *codes) {
    struct wire_part part = {.n = SAMPLE, .format = like->format, .marks = SAMPLE * sizeof(float)};
    part.kept = SAMPLE * like->kept / like->n;
    if (!part.kept) part.kept = 1;
    char *slot = calloc(part.marks + SAMPLE / 8, 1), *estimate = calloc(SAMPLE, sizeof(float));
    const struct wire_map map = {&part, 1, estimate};
    const uint64_t blocks = wire_blocks(&map);
    uint8_t *wire = malloc(wire_bytes(&map, 0, blocks));
    int64_t round = 0, code = 0;
    tri_status status = slot && estimate && wire ? TRI_OK : base_no_memory("gradients");
    for (int k = 0; k < TRIES && !status; k++) {
        for (uint32_t i = 0; i < SAMPLE; i++)
            ((float *)(void *)slot)[i] = 1e-3f * (float)(int32_t)((i + 1) * 2654435761u);
        const int64_t begin = base_now();
        wire_round(&map, &(struct wire_key){1, 1, 1}, 0, blocks, slot);
        const int64_t rounded = base_now();
        const size_t bytes = wire_put(&map, slot, 0, blocks, wire);
        status = wire_take(&map, wire, bytes, 0, blocks, slot);
        code = least(code, base_now() - rounded);
        round = least(round, rounded - begin);
    }
    free(slot);
    free(estimate);
    free(wire);
    *rounds = 1e-9 * (double)round / SAMPLE;
    *codes = 1e-9 * (double)code / SAMPLE;
    return status;
}

/* Of the host that has most of it. */
static tri_status coding_seconds(const struct traffic *t, int hosts, const struct wire_part *like,
                                 double *seconds) {
    double rounds = 0, codes = 0;
    tri_status status = like ? measure(like, &rounds, &codes) : TRI_OK;
    *seconds = 0;
    for (int h = 0; h < hosts; h++) {
        const double one = t->host[h].rounded * rounds + t->host[h].coded * codes / 2;
        if (one > *seconds) *seconds = one;
    }
    return status;
}

/* ---- text ---- */

/* About three digits. */
static void put(char to[32], double x) {
    base_format(to, 32, "%.*f", !(x > 0) ? 0 : x < 0.0995 ? 4 : x < 9.95 ? 2 : x < 995 ? 1 : 0, x);
}

static void add_range(struct text *cells, double least, double most) {
    char a[32], b[32];
    put(a, least);
    put(b, most);
    text_add(cells, "\t%s", a);
    if (strcmp(a, b)) text_add(cells, " to %s", b);
}

static void add_links(struct text *t, const struct hosts *h) {
    char ms[32], rate[32];
    struct text line = {0};
    put(ms, 1e3 * h->link.latency);
    put(rate, 1e-6 * h->link.bandwidth);
    if (h->link.bandwidth > 0)
        text_add(&line, "the slowest of %s that `trireme bench links` has measured: %s ms there "
                 "and back, %s MB/s, %.2f s of processors per GB\n",
                 h->named ? "their links" : "all links", ms, rate, h->link.cpu);
    else if (h->path || h->list.n < 3)
        text_add(&line, "what it takes is not known: `trireme bench links` has not measured the "
                 "links of these hosts\n");
    else
        text_add(&line, LINKS_UNKNOWN "\n");
    columns_fill(t, &line);
}

static void add_head(struct text *t, const char *model, const tri_run *run, const struct hosts *h,
                     const int *begin) {
    int least = INT_MAX, most = 0;
    for (int i = 0; i < h->list.n; i++) {
        const int n = begin[i + 1] - begin[i];
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    text_add(t, "%s, batch %lld: %lld lanes on %d host%s, ", model, (long long)run_batch(run),
             (long long)run_lanes(run), h->list.n, h->list.n == 1 ? "" : "s");
    text_add(t, least < most ? "%d to %d each\n" : "%d each\n", least, most);
}

/* Buckets that follow one another and go by the same path. */
struct alike {
    int first, last; /* from 1 on; 0: there is none */
    enum path path;
    double bytes[2], seconds[PATHS][2];
};

static void add_group(struct text *cells, const struct alike *g, bool timed) {
    text_add(cells, g->first < g->last ? "%d-%d" : "%d", g->first, g->last);
    add_range(cells, 1e-6 * g->bytes[0], 1e-6 * g->bytes[1]);
    text_add(cells, "\t%s", path_name(g->path));
    for (int p = 0; p < PATHS && timed; p++) {
        if (g->seconds[p][0] < 0) text_add(cells, "\t-");
        else add_range(cells, 1e3 * g->seconds[p][0], 1e3 * g->seconds[p][1]);
    }
    text_add(cells, "\n");
}

static void widen(double range[2], double x, bool first) {
    if (first || x < range[0]) range[0] = x;
    if (first || x > range[1]) range[1] = x;
}

static void add_to_group(struct alike *g, int number, enum path path, double bytes,
                         const double seconds[PATHS]) {
    const bool first = !g->first;
    if (first) *g = (struct alike){.first = number, .path = path};
    g->last = number;
    widen(g->bytes, bytes, first);
    for (int p = 0; p < PATHS; p++) widen(g->seconds[p], seconds[p], first);
}

/* A row for each bucket, or in short for those that follow one another and go by the same path. */
static void add_buckets(struct text *t, const struct dealt *d, const struct hosts *h, bool full) {
    struct text cells = {0};
    struct alike g = {0};
    const bool timed = h->link.bandwidth > 0;
    text_add(&cells, "bucket\tMB\tpath");
    for (int p = 0; p < PATHS && timed; p++) text_add(&cells, "\t%s", path_name((enum path)p));
    text_add(&cells, "\n");
    for (int b = 0, n = 0; b < d->tree->buckets.n; b++) {
        double seconds[PATHS];
        if (!dealt_moves(d, b)) continue;
        const enum path path = dealt_path(d, h->path, &h->link, b);
        for (int p = 0; p < PATHS; p++)
            seconds[p] = p == (int)path || (!h->path && d->tree->bucket[b].adds)
                             ? dealt_seconds(d, &h->link, b, (enum path)p) : -1;
        if (g.first && (full || path != g.path)) add_group(&cells, &g, timed), g.first = 0;
        add_to_group(&g, ++n, path, dealt_bytes(d, b), seconds);
    }
    if (g.first) add_group(&cells, &g, timed);
    text_add(t, "\nbuckets of gradients, in the order in which they leave%s\n",
             timed ? ", and the milliseconds of each alone" : "");
    columns_add(t, timed ? "  rrlrrrr" : "  rrl", &cells);
}

/* What a step moves in a format, and takes with it. */
struct offer {
    double sent, of_sent, received, of_received, seconds, coding;
};

static tri_status make_offer(const tri_run *run, const struct hosts *h, struct offer *o) {
    struct traffic t;
    tri_status status = add_step(run, h, &t);
    *o = (struct offer){.seconds = t.seconds};
    for (int i = 0; i < h->list.n; i++) {
        if (t.host[i].sent > o->sent) o->sent = t.host[i].sent, o->of_sent = t.host[i].sent_whole;
        if (t.host[i].received > o->received)
            o->received = t.host[i].received, o->of_received = t.host[i].received_whole;
    }
    return status ? status : coding_seconds(&t, h->list.n, coded_part(run), &o->coding);
}

/* What a step gains by the format. What computation hides is no gain. */
static double gain_of(const struct offer *o, const struct offer *f32, const struct hosts *h) {
    const double saved = f32->seconds - o->seconds;
    return (h->step > 0 ? fmin(saved, h->exposed) : saved) - o->coding;
}

static void add_offer(struct text *cells, const char *format, const struct offer *o,
                      const struct offer *f32, const struct hosts *h) {
    const bool timed = h->link.bandwidth > 0;
    const double gain = o == f32 ? 0 : gain_of(o, f32, h),
                 mb[] = {o->sent, o->of_sent, o->received, o->of_received};
    char ms[32];
    text_add(cells, "%s", format);
    for (size_t i = 0; i < COUNT(mb); i++) add_range(cells, 1e-6 * mb[i], 1e-6 * mb[i]);
    add_range(cells, 1e3 * o->coding, 1e3 * o->coding);
    if (timed) add_range(cells, 1e3 * o->seconds, 1e3 * o->seconds);
    if (timed && h->step > 0) add_range(cells, 1e3 * (h->step - gain), 1e3 * (h->step - gain));
    put(ms, 1e3 * fabs(gain));
    if (timed && o == f32) text_add(cells, "\t-");
    else if (timed) text_add(cells, "\t%s %s", gain < 0 ? "loses" : "gains", ms);
    text_add(cells, "\n");
}

/* Of --wire: this format for what has another one, and what the user wants for some parameters. */
static void wire_with(const char *format, const char *asked, struct text *to) {
    to->size = 0;
    text_add(to, "%s", format);
    for (const char *at = asked; at && *at;) {
        const size_t n = strcspn(at, ",");
        if (memchr(at, '=', n)) text_add(to, ",%.*s", (int)n, at);
        at += n + (at[n] == ',');
    }
}

#define OFFERS (WIRE_FORMATS + 2) /* topk, pack */

static tri_status add_formats(struct text *t, struct cli_arguments *a, const struct hosts *h) {
    const char *const asked = a->options.wire;
    const bool timed = h->link.bandwidth > 0;
    struct text cells = {0}, notes = {0};
    struct offer all[OFFERS];
    struct text wire = {0};
    char topk[64] = "topk:0.01";
    tri_status status = TRI_OK;
    if (asked && !strncmp(asked, "topk", 4))
        base_format(topk, sizeof topk, "%.*s", (int)strcspn(asked, ","), asked);
    text_add(&cells, "format\tsends\tof\treceives\tof\tcoding%s\n",
             !timed ? "" : h->step > 0 ? "\ttransfer\tstep\t" : "\ttransfer\t");
    for (int f = 0; f < OFFERS && !status; f++) {
        const char *const format = f == WIRE_TOPK ? topk : wire_names[f];
        tri_run *run = NULL;
        wire_with(format, asked, &wire);
        const bool can = !plan(a, h, f == WIRE_F32 ? NULL : wire.data, &run);
        if (can) status = make_offer(run, h, &all[f]);
        if (can) add_offer(&cells, format, &all[f], &all[WIRE_F32], h);
        else if (!notes.size) text_add(&notes, "no other format: %s\n", tri_message());
        if (run) run_free(run);
    }
    text_add(t, "\na host and step, at most, in each format of --wire: MB, and of how many in "
             "memory; milliseconds\n");
    columns_add(t, !timed ? "  lrrrrr" : h->step > 0 ? "  lrrrrrrrl" : "  lrrrrrrl", &cells);
    text_add(&notes, "coding: to round, code and decode, on one core here.%s pack: about, as "
             "the numbers are. f32 and pack lose nothing; the others change the result, and are "
             "taken only if --wire says so\n",
             !timed ? ""
             : h->step > 0
                 ? " transfer: of all buckets, one after the other. step: that of the earlier run, "
                   "less what the format saves of its waits for hosts, and with coding."
                 : " transfer: of all buckets, one after the other; a run sends what it can "
                   "during its backward pass. A format gains what it saves of transfer, less "
                   "coding.");
    columns_fill(t, &notes);
    text_free(&wire);
    return status;
}

/* ---- all ---- */

static tri_status check(const struct cli_arguments *a, const struct own *own) {
    if (!own->hosts && !own->asks_path)
        return base_fail(TRI_USAGE, "--out %s: over which hosts? Add --hosts h0,h1", own->out);
    if (!own->hosts)
        return base_fail(TRI_USAGE, "--path %s: of how many hosts? Add --hosts 4, or h0,h1",
                         path_words[own->path]);
    if (own->devices || own->measure || own->match || own->json)
        return base_fail(TRI_USAGE, "--devices, --measure, --match and --json are for meshes and "
                         "stages: leave out --hosts");
    if (own->out && !a->model)
        return base_fail(TRI_USAGE, "--out %s is of a run of a MODEL: add one", own->out);
    if (a->options.plan && wire_ask_rounds(&a->options))
        return base_fail(TRI_USAGE, "--plan %s says --wire %s, and --hosts compares all formats: "
                         "leave out the plan", a->options.plan, a->options.wire);
    if (!a->model && !own->path)
        return base_fail(TRI_USAGE, "--hosts without a MODEL: add one, or a --path");
    return TRI_OK;
}

static tri_status explain_bare(const struct cli_arguments *a, const struct own *own,
                               const struct hosts *h, struct text *t) {
    const int64_t lanes = a->options.lanes ? a->options.lanes : h->weights;
    struct lane_tree tree;
    int32_t begin[HOSTS_MOST + 1];
    tri_status status = lane_tree_make(lanes, 0, &tree);
    if (status) return status;
    hosts_deal(&tree, -1, h->list.n, h->weight, begin);
    status = explain_path(&tree, h->list.n, begin, (enum path)(own->path - 1), t);
    lane_tree_free(&tree);
    return status;
}

static tri_status explain_plan(const struct own *own, const struct hosts *h, const char *model,
                               const tri_run *run, struct text *t) {
    struct dealt d;
    tri_status status = dealt_make(run->machine, 1, &d);
    if (status) return status;
    add_head(t, model, run, h, d.begin);
    add_links(t, h);
    if (!own->path) {
        add_buckets(t, &d, h, own->full);
        return TRI_OK;
    }
    text_add(t, "\n");
    return explain_path(&d.tree->shape, h->list.n, d.begin, (enum path)(own->path - 1), t);
}

static tri_status explain_with(struct cli_arguments *a, const struct own *own,
                               const struct hosts *h, struct text *t) {
    tri_run *run = NULL;
    tri_status status = plan(a, h, a->options.wire, &run);
    if (!status && run_lanes(run) < 2)
        status = base_fail(TRI_USAGE, "%s has one lane, which one host computes: add --lanes %d",
                           a->model, h->weights > 1 ? h->weights : 2);
    if (!status) status = explain_plan(own, h, a->model, run, t);
    if (run) run_free(run);
    return status ? status : add_formats(t, a, h);
}

tri_status explain_hosts(struct cli_arguments *a, const struct own *own) {
    struct hosts h = {.path = own->path};
    struct text t = {0};
    tri_status status = check(a, own);
    if (!status) status = read_hosts(own->hosts, &h);
    if (!status && own->path && !path_allows((enum path)(own->path - 1), h.list.n))
        status = explain_path(NULL, h.list.n, NULL, (enum path)(own->path - 1), &t);
    a->options.bucket = own->bucket;
    if (!status && own->out) status = read_earlier(own->out, &h);
    if (!status && own->out && !(h.link.bandwidth > 0))
        status = base_fail(TRI_USAGE, "--out %s: what formats would save of a step is not known, "
                           "as `trireme bench links` has not measured the links", own->out);
    if (!status) status = a->model ? explain_with(a, own, &h, &t) : explain_bare(a, own, &h, &t);
    if (!status) return cli_print(&t);
    text_free(&t);
    return status;
}
