/* SPDX-License-Identifier: Apache-2.0 */
#include "run/unit_price.h"

#include "base/host.h"
#include "plan/option_rows.h"
#include "run/executor.h"

const char *unit_price_text(struct arena *a, const tri_run *run, const struct unit *u) {
    struct text t = {0};
    if (run->dev != dev_at(0) || math_is_native(&run->options)) {
        char device[256];
        run_device_text(run, device, sizeof device);
        text_add(&t, "%s: ", device);
    }
    for (int k = 0; k < u->n; k++) {
        text_add(&t, "%s%s", k ? "+" : "", u->node[k]->entry->op->name);
        graph_print_attrs(u->node[k], &t);
    }
    for (int k = 0; k < u->n_in + u->n_out; k++) {
        const tri_tensor *x = k < u->n_in ? u->in[k] : u->out[k - u->n_in];
        char spec[SPEC_TEXT];
        text_add(&t, "%s %s", k == u->n_in ? " ->" : "", base_spec_text(&x->spec, spec));
        if (x->block) text_add(&t, "/%d", x->block);
        if (*x->pack) text_add(&t, "/%s", x->pack);
    }
    const char *text = t.failed ? NULL : arena_copy(a, t.data);
    text_free(&t);
    return text;
}

int unit_all_threads(const tri_run *run) { return run->executor->size(run) * run_threads(run); }

int unit_claimers(const struct machine *m, const tri_run *run, int k, int *threads) {
    const int size = run->executor->size(run);
    /* As worker_team does. */
    const int cores = machine_is_joint(m) ? host_cores() : 0;
    *threads = size < cores || m->lanes < cores ? run_threads(run) : 1;
    if (k && m->members > 1) {
        *threads *= m->members;
        return m->replicas * *threads > unit_all_threads(run) ? 1 : m->replicas;
    }
    return m->n_threads > 1 ? size * run_threads(run) : size;
}

int unit_busy(const tri_run *run, const struct program *p, int lanes) {
    const struct machine *m = run->machine;
    const struct compilation *c = &m->compilation;
    const bool shared = p->g == c->pre || p->g == c->step;
    int threads = 1, claimers = unit_all_threads(run);
    if (!shared)
        claimers = unit_claimers(m, run, p->g == c->lane[0] || p->g == c->lane[1] ||
                                 p->g == c->merge[1], &threads);
    if (!shared && lanes < claimers) claimers = lanes;
    return claimers * threads;
}
