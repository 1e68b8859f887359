/* SPDX-License-Identifier: Apache-2.0 */
#include "run/trial.h"

#include "data/data.h"
#include "machine/budget.h"
#include "plan/rebatch.h"
#include "run/evaluate.h"
#include "run/open.h"
#include "run/policy.h"
#include "run/worker.h"

struct trial trial_of(const tri_run *own) {
    struct trial t = {.options = own->options, .batch = own->model->batch};
    if (own->worker) t.size = own->worker->head->size;
    return t;
}

/* Until it is set back to what is returned, no run frees the data. */
static bool lend(tri_data *d, bool kept) {
    bool before = d && d->kept;
    if (d) d->kept = kept;
    return before;
}

tri_status trial_bytes(tri_run *own, const struct trial *t, size_t *bytes) {
    tri_options o = t->options;
    tri_data *data = own->data ? own->data : o.source, *eval = own->policy->data;
    tri_graph *g = graph_duplicate(own->model, t->batch);
    if (!g) return base_last();
    o.batch = t->batch;
    o.memory_limit = 0;
    o.save_plan = NULL;
    o.source = data;
    if (own->data) o.subset = NULL; /* these are the samples of the subset */
    o.eval_source = eval;
    const bool kept = lend(data, true), eval_kept = lend(eval, true);
    tri_run *run = run_plan_with_data(g, &o, t->size.workers ? &t->size : NULL);
    if (run) {
        const struct machine *last = evaluation_machine(run);
        *bytes = budget_with_others(last, &run->store) + budget_program(last);
        if (!data) own->data = run->data, run->data = NULL;
        if (!eval) own->policy->data = run->policy->data, run->policy->data = NULL;
        run_free(run);
    }
    lend(data, kept);
    lend(eval, eval_kept);
    return run ? TRI_OK : base_last();
}
