/* SPDX-License-Identifier: Apache-2.0
 * Compares the split form of an example with the operator itself, on the reference device. */
#include "check/opcheck.h"

/* Builds the graph whose outputs are those of the form. *given: whether there is one. */
static tri_status build(const struct example *e, struct trial *t, bool *given) {
    tri_tensor *out[TRI_MAX_OUTPUTS] = {NULL};
    tri_status status = trial_begin(e, 1, t);
    *given = !status && e->op->split_form(t->node, out);
    if (!status && t->g->status) return example_differs(e, "its split form: %s", t->g->error);
    for (int i = 0; *given && i < t->node->n_out; i++) {
        const tri_spec *want = &t->node->out[i].spec;
        if (!out[i] || out[i]->spec.type != want->type ||
            !base_shape_equal(&out[i]->spec.shape, &want->shape))
            return example_differs(e, "output %d of its split form has another type or shape", i);
    }
    if (*given) trial_outputs(out, t->node->n_out);
    return status;
}

tri_status opcheck_form(const struct example *e, const struct values *in, int *forms) {
    struct trial t = {0};
    struct values row = {0}, form = {0};
    bool given = false;
    if (!e->op->split_form) return TRI_OK;
    tri_status status = build(e, &t, &given);
    if (given && !status) status = trial_compile(&t, dev_find("ref"), NULL);
    if (given && !status) status = trial_run(&t, in, &form);
    if (given && !status) status = trial_plain(e, dev_find("ref"), 1, 1, in, &row);
    if (given && !status) status = values_compare(e, "its split form", &row, &form, 2e-5);
    *forms += given && !status;
    values_free(&row);
    values_free(&form);
    trial_free(&t);
    return status;
}
