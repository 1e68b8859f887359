/* SPDX-License-Identifier: Apache-2.0 */
#include "ferry/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void schedule_take_hosts(int n, const struct host_member *member, bool joined,
                         struct schedule_hosts *to) {
    int weights = 0;
    to->n = n;
    for (int h = 0; h < n; h++) {
        to->alive[h] = member[h].alive && (joined || !member[h].report.joins);
        to->weight[h] = to->alive[h] ? member[h].weight : 0;
        weights += to->weight[h];
    }
    for (int h = 0; h < n && !weights; h++) to->weight[h] = to->alive[h];
}

tri_status schedule_check(const struct view *v, int hosts, const struct hosts_opening *o) {
    const struct crew_layout *l = &v->head->layout;
    bool right = o->step && o->shape >= 0 && o->shape < l->n_shapes && o->hosts > 0 &&
                 o->hosts == hosts && !o->begin[0] && isfinite(o->rate);
    for (int h = 0; right && h < o->hosts; h++) right = o->begin[h] <= o->begin[h + 1];
    if (right && o->begin[o->hosts] == l->shape[o->shape].lanes) return TRI_OK;
    return base_fail(TRI_FAILED, "step %llu is opened as no step of this run can be",
                     (unsigned long long)o->step);
}

static bool is_dealt_alike(const struct hosts_opening *a, const struct hosts_opening *b) {
    return a->shape == b->shape && a->hosts == b->hosts &&
           !memcmp(a->begin, b->begin, sizeof *a->begin * (size_t)(a->hosts + 1));
}

bool schedule_is_same(const struct hosts_opening *a, const struct hosts_opening *b) {
    return a->step == b->step && is_dealt_alike(a, b);
}

void schedule_free(struct schedule *s) {
    for (int k = 0; k < 2; k++) transfers_free(&s->phase[k]);
    s->of.step = 0;
}

/* The bits of a phase as bytes, by host, bucket and operand. at: where they begin. */
static tri_status take_bits(int hosts, const struct host_member *member, uint64_t step,
                            uint32_t at, uint32_t n, uint8_t **out) {
    uint8_t *has = *out = calloc((size_t)hosts * n + 1, 1);
    if (!has) return base_no_memory("reports");
    for (int h = 0; h < hosts; h++) {
        const struct hosts_report *r = &member[h].report;
        for (uint32_t i = 0; member[h].alive && r->step == step && i < n && at + i < r->n; i++)
            has[(size_t)h * n + i] = r->has[(at + i) / 8] >> (at + i) % 8 & 1;
    }
    return TRI_OK;
}

static tri_status choose(const struct view_sums *sums, const struct lane_tree *tree,
                         const struct transfer_share *share, const struct schedule_way *way,
                         enum path *path, int *multiple) {
    struct path_price price[PATHS];
    tri_status status = path_prices(tree, share, price);
    for (int b = 0; b < share->buckets && !status; b++) {
        const double bytes = (double)view_wire_bytes(&sums[b]);
        if (sums[b].adds) path[b] = path_taken(price, way->path, &way->link, bytes);
        multiple[b] = path_multiple(bytes, share->hosts);
    }
    return status;
}

/* A step may have been opened just before a host went, whose lanes are then computed again. */
static bool all_are_alive(const struct transfer_share *share) {
    bool all = true;
    for (int h = 0; h < share->hosts; h++)
        all &= !share->alive || share->alive[h] || share->begin[h] == share->begin[h + 1];
    return all;
}

static tri_status make_phase(const struct view *v, const struct host_member *member, int k,
                             const struct schedule_way *way, struct transfer_share *share,
                             uint32_t *at, struct schedule *s) {
    const struct lane_tree *tree = &v->tree[s->of.shape][k];
    tri_status status = TRI_OK;
    uint8_t *has = NULL;
    share->buckets = v->n_sums[s->of.shape][k];
    const int operands = transfers_operands(tree, share->hosts, share->begin, NULL, NULL);
    const uint32_t n = (uint32_t)(share->buckets * (operands + 1)); /* and the root */
    if (member) status = take_bits(share->hosts, member, s->of.step, *at, n, &has);
    share->has = has;
    share->path = NULL;
    share->multiple = NULL;
    const bool asked = way && (way->path || way->link.bandwidth > 0);
    enum path *path = calloc((size_t)share->buckets + 1, sizeof *path);
    int *multiple = calloc((size_t)share->buckets + 1, sizeof *multiple);
    if (!status && !(path && multiple)) status = base_no_memory("paths");
    if (!status && asked && k && !member && all_are_alive(share)) {
        status = choose(v->sums[s->of.shape][k], tree, share, way, path, multiple);
        share->path = path;
        share->multiple = multiple;
    }
    if (!status) status = transfers_make(tree, share, &s->phase[k]);
    *at += n;
    if (!status) share->again = s->phase[k].again;
    free(has);
    free(path);
    free(multiple);
    return status;
}

static tri_status check_reports(int hosts, const struct host_member *member, uint64_t step,
                                uint32_t bits) {
    for (int h = 0; h < hosts; h++)
        if (member[h].alive && member[h].report.step == step && member[h].report.n != bits)
            return base_fail(TRI_FAILED, "host %d reports %u sums of step %llu; there are %u", h,
                             member[h].report.n, (unsigned long long)step, bits);
    return TRI_OK;
}

tri_status schedule_make(const struct view *v, const struct schedule_hosts *hosts,
                         const struct schedule_way *way, const struct hosts_opening *o,
                         const struct host_member *member, struct schedule *s) {
    const bool is_there = s->of.step && is_dealt_alike(&s->of, o);
    uint32_t bits = 0;
    s->of.step = o->step;
    if (is_there && !member) return TRI_OK;
    schedule_free(s);
    s->of = *o;
    struct transfer_share share = {.hosts = o->hosts, .begin = s->of.begin};
    if (hosts) share.alive = hosts->alive, share.weight = hosts->weight;
    tri_status status = TRI_OK;
    for (int k = 0; k < 2 && !status; k++)
        if (v->board[o->shape][k]) status = make_phase(v, member, k, way, &share, &bits, s);
    if (!status && member) status = check_reports(o->hosts, member, o->step, bits);
    if (status) schedule_free(s);
    return status;
}

struct mover_step schedule_step(const struct view *v, const struct schedule *s) {
    struct mover_step step = {.step = s->of.step, .seed = v->head->layout.seed};
    for (int k = 0; k < 2; k++)
        if (v->board[s->of.shape][k])
            step.phase[k] = (struct mover_phase){&v->tree[s->of.shape][k], &s->phase[k],
                                                 v->sums[s->of.shape][k]};
    return step;
}
