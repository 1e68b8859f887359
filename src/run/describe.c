/* SPDX-License-Identifier: Apache-2.0 */
#include "run/describe.h"

#include <stdlib.h>
#include <string.h>

#include "observe/run_file.h"
#include "machine/budget.h"
#include "plan/option_rows.h"
#include "run/evaluate.h"

#define MOST_OPTIONS 256

/* The text of an option whose value is another than in `usual`; null: it is not, or it has a type
 * of its own. */
static const char *value_of(const struct option_row *row, const tri_options *o,
                            const tri_options *usual, struct arena *a) {
    const void *at = (const char *)o + row->offset, *was = (const char *)usual + row->offset;
    char number[NUMBER_TEXT];
    if (row->set == option_text) return option_given_text(row, o);
    if (row->set == option_off || row->set == option_given) {
        const bool is = *(const bool *)at;
        if (is == *(const bool *)was) return NULL;
        return row->set == option_off ? (is ? "off" : "on") : (is ? "yes" : "no");
    }
    if (memcmp(at, was, 8) == 0) return NULL; /* all others have 8 bytes */
    if (row->set == option_count || row->set == option_size || row->set == option_seed)
        return arena_text(a, "%lld", *(const long long *)at);
    if (row->set != option_positive && row->set != option_seconds) return NULL;
    return arena_copy(a, base_number_text(*(const double *)at, number));
}

/* Those that are not as tri_options_default has them; `what` gets names and values in turn. */
static int list_options(const tri_options *o, struct arena *own, const char **what) {
    const tri_options usual = tri_options_default();
    int n = 0;
    for (const struct option_row *row = options_rows; row->flag && n < MOST_OPTIONS; row++) {
        const char *value = value_of(row, o, &usual, own);
        if (!value) continue;
        what[2 * n] = row->flag;
        what[2 * n++ + 1] = value;
    }
    return n;
}

void run_describe(const tri_run *run, size_t most, struct text *out) {
    const char *option[2 * MOST_OPTIONS];
    char device[256], hash[PLAN_PARTS][PLAN_DIGITS];
    struct arena own = {0};
    struct text plan = {0};
    char *checkpoints = run->options.ckpt ? realpath(run->options.ckpt, NULL) : NULL;
    const struct dev_kind *kind = run->dev->kind;
    const bool planned = run->own_plan.name != NULL;
    for (int i = 0; i < PLAN_PARTS && planned; i++)
        plan_hash(&run->own_plan, (enum plan_part)i, hash[i]);
    if (planned) plan_print(&run->own_plan, &plan);
    run_device_text(run, device, sizeof device);
    struct run_about about = {.option = option, .plan = plan.failed ? NULL : plan.data,
                              .grain = planned ? hash[PLAN_GRAIN] : NULL,
                              .placement = planned ? hash[PLAN_PLACEMENT] : NULL,
                              .device = device, .checkpoints = checkpoints,
                              .isa = kind->instructions ? kind->instructions(run->dev, NULL) : NULL,
                              .steps = run->total, .lanes = run_lanes(run),
                              .batch = run_batch(run), .parameters = run_parameter_elements(run)};
    about.memory = (int64_t)budget_verdict(evaluation_machine(run), &run->store, 0).needs;
    about.n_options = list_options(&run->options, &own, option);
    run_file_about(&about, out);
    about.plan = NULL;
    if (out->size > most) {
        text_free(out);
        run_file_about(&about, out);
    }
    text_free(&plan);
    free(checkpoints);
    arena_free(&own);
}
