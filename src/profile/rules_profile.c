/* SPDX-License-Identifier: Apache-2.0
 * Rules that need a profile: lanes, sums, operators. Those of meshes and pipelines are in
 * rules_split.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/rules_items.h"

/* ---- items ---- */

bool each_item(struct each *e) {
    const struct profile *p = e->p;
    for (e->item++; e->host < p->n_hosts; e->item = 0, e->host++)
        for (; e->item < p->host[e->host].n_items; e->item++) {
            e->of = &p->study->item[tables_number(p, e->host, e->item)];
            if (!e->of->calls) continue;
            e->h = &p->host[e->host];
            e->is = &e->h->item[e->item];
            e->comm = tables_comm_of(e->is);
            e->ns = (double)e->of->ns;
            e->share = study_share(p, e->host, e->item);
            return true;
        }
    return false;
}

int rules_spec(const char *spec, int64_t dim[RULES_DIMS], double *bytes) {
    const char *at = spec + strcspn(spec, "[ "), *bits = spec + strcspn(spec, "0123456789[ ");
    int rank = 0;
    *bytes = bits < at ? (double)strtoll(bits, NULL, 10) / 8 : 1;
    for (; (*at == '[' || *at == ',') && rank < RULES_DIMS; rank++) {
        char *end;
        dim[rank] = strtoll(at + 1, &end, 10);
        if (end == at + 1) break;
        *bytes *= (double)dim[rank];
        at = end;
    }
    return rank;
}

static double bytes_out(const struct profile_item *item) {
    int64_t dim[RULES_DIMS];
    double bytes;
    rules_spec(item->out, dim, &bytes);
    return bytes;
}

static bool divides_batch(const struct figures *f, int64_t lanes) {
    const int64_t batch = f->run ? f->run->batch : 0;
    return batch < 1 || batch % lanes == 0;
}

int64_t rules_lanes(const struct figures *f, double least, int64_t multiple) {
    if (!(least <= RULES_LANES)) return 0;
    for (int64_t n = (int64_t)fmax(ceil(least), 1); n <= RULES_LANES; n++)
        if (n % multiple == 0 && divides_batch(f, n)) return n;
    return 0;
}

/* ---- small sums ---- */

struct bucket {
    double bytes, calls, share;
};

/* By bucket of the first host; to be freed. */
static struct bucket *find_buckets(const struct profile *p) {
    const int n = p->n_hosts ? p->host[0].n_items : 0;
    struct bucket *b = calloc((size_t)n + 1, sizeof *b);
    for (struct each e = EACH_ITEM(p); b && each_item(&e) && !e.host;) {
        if (e.comm != COMM_SUM || e.is->bucket < 0 || e.is->bucket >= n) continue;
        struct bucket *to = &b[e.is->bucket];
        to->bytes += bytes_out(e.is);
        to->calls = fmax(to->calls, (double)e.of->calls);
        to->share += e.share;
    }
    return b;
}

bool rule_small_sums(const struct figures *f, struct finding *found) {
    const struct profile *p = f->profile;
    struct bucket *b = find_buckets(p), all = {0}, small = {0};
    int n = 0;
    for (int i = 0; b && i < p->host[0].n_items; i++) {
        const bool is_small = b[i].calls > 0 && b[i].bytes < thresholds.small_sums_bytes;
        all.bytes += b[i].bytes;
        all.calls += b[i].calls;
        n += is_small;
        small.calls += is_small ? b[i].calls : 0;
        small.bytes = is_small ? fmax(small.bytes, b[i].bytes) : small.bytes;
    }
    free(b);
    found->cost = n > 1 ? p->study->spent[SPENT_SUM] * small.calls / all.calls : 0;
    if (found->cost <= thresholds.small_sums) return false;
    text_add(&found->evidence, "Sums of gradients in small buckets take %s of a step: %d of them "
             "have less than %s KiB, the largest %s KiB.", SHARE(found->cost), n,
             NUMBER(thresholds.small_sums_bytes / 1024), NUMBER(ceil(small.bytes / 1024)));
    if (figures_option(f, "--bucket"))
        text_add(&found->remedy, "Leave out --bucket %s: all %s KiB of gradients are then summed "
                 "in %s.", figures_option(f, "--bucket"), NUMBER(ceil(all.bytes / 1024)),
                 all.bytes <= 4 << 20 ? "one bucket" : "buckets of 4 MiB");
    else
        text_add(&found->remedy, "Use fewer --lanes, as each bucket is summed once per lane, or a "
                 "larger batch.");
    return true;
}

/* ---- small lanes ---- */

/* The largest number that is at most this one; but if there is none, the smallest with a lane for
 * each thread. */
static int64_t fewer_lanes(const struct figures *f, double most) {
    const int64_t threads = (int64_t)fmax(f->profile->study->threads, 1);
    for (int64_t n = (int64_t)fmin(most, RULES_LANES); n >= threads; n--)
        if (divides_batch(f, n)) return n;
    return rules_lanes(f, (double)threads, 1);
}

/* Time that does not shrink with the lanes: between operators, and in them by themselves. */
bool rule_small_lanes(const struct figures *f, struct finding *found) {
    const struct profile *p = f->profile;
    const double *spent = p->study->spent, lanes = (double)p->host[0].lanes;
    double calls = 0, ns = 0, all = 0;
    for (struct each e = EACH_ITEM(p); each_item(&e);) {
        if (e.comm != COMM_SUM && strcmp(e.is->phase, "step")) all += e.ns;
        if (strcmp(e.is->phase, "lane") || e.comm) continue;
        calls += (double)e.of->calls;
        ns += e.ns;
    }
    const double mean = calls > 0 ? 1e-9 * ns / calls : INFINITY,
                 sums = spent[SPENT_SUM] + spent[SPENT_WAIT_SUMS];
    double fixed = 0, part = thresholds.small_sums / sums;
    if (mean < thresholds.small_operator) {
        fixed = fmin(calls * 1e9 * thresholds.operator_itself, ns) / p->study->all +
                fmax(spent[SPENT_COMPUTE] - all / p->study->all, 0);
        part = mean / (thresholds.useful_operator * thresholds.small_operator);
    }
    const int64_t fewer = fewer_lanes(f, lanes * part);
    if (fixed + sums <= thresholds.small_lanes || !fewer || (double)fewer >= lanes) return false;
    found->cost = (fixed + sums) * (1 - (double)fewer / lanes);
    found->effect_of = "small-sums ";
    text_add(&found->evidence, "Lanes are small: an operator takes %s on average. Sums of lanes "
             "take %s of a step", TIME(mean), SHARE(sums));
    if (fixed > 0)
        text_add(&found->evidence, ", and about %s goes to what an operator takes however little "
                 "it computes", SHARE(fixed));
    text_add(&found->evidence, ".");
    text_add(&found->remedy, "Use --lanes %s instead of %s (this changes the bits), or a larger "
             "batch.", NUMBER((double)fewer), NUMBER(lanes));
    return true;
}

/* ---- slow operators ---- */

/* The worst of what a rule has found. */
struct worst {
    struct each e;
    double lost, ratio;
};

static void add_place(struct text *t, const struct profile_item *item) {
    text_add(t, "%s (%s of %s)", item->name, item->operator, *item->in ? item->in : "nothing");
}

static double rate_of(const struct profile_host *h, const char *type) {
    for (int i = 0; i < h->n_rates; i++)
        if (!strcmp(h->rate[i].type, type)) return h->rate[i].flops;
    return 0;
}

/* What would make this operator faster, by its shape. */
static void advise_rate(const struct figures *f, const struct worst *w, struct finding *found) {
    const struct profile_item *item = w->e.is;
    const struct profile_host *h = w->e.h;
    int64_t dim[RULES_DIMS] = {0};
    double bytes;
    rules_spec(item->in, dim, &bytes);
    const bool f32 = !strncmp(item->out, "f32", 3) && !figures_option(f, "--amp"),
               memory = h->bandwidth > 0 && item->bytes / h->bandwidth >= tables_ideal(h, item);
    const double gain = rate_of(h, "f32") > 0 ? rate_of(h, "bf16") / rate_of(h, "f32") : 0;
    const bool product = item->flops > 0;
    const double takes = 1e-9 * w->e.ns / (double)w->e.of->calls;
    const bool small = (double)dim[0] < thresholds.few_samples || takes < thresholds.small_operator;
    if (small) found->effect_of = "small-lanes " RULES_CAUSES;
    const bool narrow = f32 && (memory || (product && gain > thresholds.amp_gain));
    if (small)
        text_add(&found->remedy, "Give each call more to do: a larger batch, or fewer --lanes; "
                 "its first dimension is %s.", NUMBER((double)dim[0]));
    else if (narrow && memory)
        text_add(&found->remedy, "It is limited by memory; --amp O2 halves the bytes.");
    else if (narrow)
        text_add(&found->remedy, "bf16 (--amp O1) has up to %.1f times the rate here.", gain);
    else if (product)
        text_add(&found->remedy, "Sizes of channels and rows that are multiples of 16 suit the "
                 "kernels best; see other kernels with trireme bench --ops.");
    else text_add(&found->remedy, "See what each operator takes with trireme bench --ops.");
    if (!small && narrow)
        text_add(&found->remedy, " Measure it: trireme bench MODEL --amp O0 --amp O1 --amp O2.");
}

bool rule_low_rate(const struct figures *f, struct finding *found) {
    struct worst w = {.lost = 0};
    double compute = 0, low = 0;
    int n = 0;
    for (struct each e = EACH_ITEM(f->profile); each_item(&e);) {
        const double ideal = 1e9 * tables_ideal(e.h, e.is) * (double)e.of->calls;
        if (e.comm) continue;
        compute += e.ns;
        if (ideal <= 0 || ideal >= thresholds.low_roofline * e.ns) continue;
        const double lost = e.share * (1 - ideal / (thresholds.low_roofline * e.ns));
        low += e.ns;
        found->cost += lost;
        if (!n++ || lost > w.lost) w = (struct worst){e, lost, ideal / e.ns};
    }
    if (!n || low <= thresholds.low_rate * compute) return false;
    text_add(&found->evidence, "%s of the time of operators goes to %d operator(s) below %s of "
             "what arithmetic and memory of this machine allow. The one that loses most is ",
             SHARE(low / compute), n, SHARE(thresholds.low_roofline));
    add_place(&found->evidence, w.e.is);
    text_add(&found->evidence, ": it reaches %s.", SHARE(w.ratio));
    advise_rate(f, &w, found);
    return true;
}

/* ---- operators that are not fused ---- */

/* An operator alone, whose result has the shape of its input, without products. */
static bool is_elementwise(const struct profile_item *item) {
    int64_t in[RULES_DIMS], out[RULES_DIMS];
    double bytes;
    const int rank = rules_spec(item->in, in, &bytes);
    if (item->flops > 0 || strchr(item->unit, '+') || !rank) return false;
    return rank == rules_spec(item->out, out, &bytes) &&
           !memcmp(in, out, (size_t)rank * sizeof *in);
}

/* The entry of --passes that leaves out fusing; null: none. */
static const char *unfused_by(const struct figures *f) {
    static const char *const words[] = {"-fuse", "-all"};
    const char *passes = figures_option(f, "--passes");
    for (size_t i = 0; passes && i < COUNT(words); i++)
        if (strstr(passes, words[i]) && !strstr(passes, "+fuse")) return words[i];
    return NULL;
}

bool rule_unfused(const struct figures *f, struct finding *found) {
    const char *why = unfused_by(f);
    double compute = 0, alone = 0;
    int n = 0;
    for (struct each e = EACH_ITEM(f->profile); why && each_item(&e);) {
        const bool is = is_elementwise(e.is);
        if (e.comm) continue;
        compute += e.ns;
        alone += is ? e.ns : 0;
        found->cost += is ? e.share : 0;
        n += is;
    }
    if (!n || alone <= thresholds.unfused * compute) return false;
    text_add(&found->evidence, "%d elementwise operator(s) run on their own and take %s of the "
             "time of operators.", n, SHARE(alone / compute));
    text_add(&found->remedy, "Take %s out of --passes: the pass fuse makes them parts of the "
             "kernels before them. No bit changes.", why);
    return true;
}
