/* SPDX-License-Identifier: Apache-2.0
 * The checks of an operator. They need only its row. */
#include "check/opcheck.h"

#define THREADS 3 /* threads per operator; the number of its parts is seldom a multiple */

static tri_status check_device(const struct example *e, struct dev *dev, const struct values *in,
                               struct opcheck_report *report) {
    struct values a = {0}, b = {0}, c = {0};
    struct trial t;
    tri_status status = trial_begin(e, 1, &t);
    const char *declined = status ? NULL : dev->kind->declines(t.node);
    bool only_f32 = true;
    for (int i = 0; i < e->n; i++)
        only_f32 &= e->spec[i].type != TRI_BF16 && e->spec[i].type != TRI_F16;
    trial_free(&t);
    if (!status && declined)
        return only_f32 ? example_differs(e, "device %s declines it: %s", dev->kind->name, declined)
                        : TRI_OK;
    if (!status) status = trial_plain(e, dev_find("ref"), 1, 1, in, &a);
    if (!status) status = trial_plain(e, dev, 1, 1, in, &b);
    if (!status) status = values_compare(e, dev->kind->name, &a, &b, 1e-5);
    if (!status) status = trial_plain(e, dev, 1, THREADS, in, &c);
    if (!status) status = values_same(e, "several threads", &b, &c);
    if (!status) status = opcheck_blocks(e, dev, in, &b, &report->blocks);
    if (!status) status = opcheck_shards(e, dev, in, &report->shards);
    values_free(&a);
    values_free(&b);
    values_free(&c);
    return status;
}

static tri_status check_on_ref(const struct example *e, struct values *in,
                               struct opcheck_report *report) {
    bool given = false;
    tri_status status = TRI_OK;
    for (int order = 1; order <= 2 && !status; order++) {
        if (e->op->gradient == tri_grad_none || (order == 2 && !given)) break;
        status = opcheck_derivative(e, in, order, &given);
        report->derivatives[order - 1] += !status && given;
    }
    if (!status) status = opcheck_splits(e, in, &report->splits);
    if (!status) status = opcheck_shards(e, dev_find("ref"), in, &report->shards);
    if (!status) status = opcheck_form(e, in, &report->forms);
    struct values out = {0};
    if (!status) status = trial_plain(e, dev_find("ref"), 1, 1, in, &out);
    values_free(&out);
    return status;
}

static tri_status check_example(const tri_op *op, const char *text, struct dev *dev,
                                struct opcheck_report *report) {
    struct example e;
    struct values in = {0};
    tri_status status = example_read(op, text, &e);
    if (status || !e.n) return status; /* sources have no inputs to vary */
    if (!values_draw(&e, &in))
        status = base_no_memory("an example");
    else
        status = dev == dev_find("ref") ? check_on_ref(&e, &in, report)
                                        : check_device(&e, dev, &in, report);
    values_free(&in);
    return status;
}

tri_status opcheck_run(const tri_op *op, const char *device, struct opcheck_report *report) {
    struct dev *dev = dev_find(device ? device : "ref");
    if (!dev) return base_fail(TRI_USAGE, "there is no device \"%s\"", device);
    tri_status status = dev_open(dev);
    *report = (struct opcheck_report){0};
    if (!op->examples[0]) return base_fail(TRI_USAGE, "operator %s has no examples", op->name);
    for (int i = 0; op->examples[i] && !status; i++, report->examples++)
        status = check_example(op, op->examples[i], dev, report);
    return status;
}

tri_status tri_op_check(const tri_op *op, const char *device) {
    struct opcheck_report report;
    return opcheck_run(op, device, &report);
}
