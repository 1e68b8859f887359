/* SPDX-License-Identifier: Apache-2.0
 * The memory plan: tensors that are live at the same time do not overlap, and none is read after
 * its lifetime. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "machine/budget.h"
#include "run/open.h"
#include "run/run.h"

static const struct {
    const char *model, *optimizer;
    int64_t batch, lanes;
} cases[] = {
    {"linear", "sgd", 8, 1},
    {"mlp:hidden=24", "adamw", 9, 2},
    {"lenet5", "momentum", 6, 1},
    {"cnn:width=4", "adam", 12, 3},
    {"resnet18:form=small,width=8", "momentum", 6, 2},
    {"resnet50:form=small,width=4", "adamw", 4, 1},
};

static tri_run *opened(size_t i, const char *device) {
    tri_options o = {.steps = 3, .lanes = cases[i].lanes, .threads = 1, .device = device,
                     .optimizer = {.name = cases[i].optimizer, .clip_norm = 1}};
    tri_run *run = tri_open(tri_model_open(cases[i].model, cases[i].batch), &o);
    assert_non_null(run);
    return run;
}

/* ---- overlaps ---- */

struct place {
    size_t offset, bytes;
    int begin, end;
};

static size_t places_of(const struct program *p, struct place *out) {
    const struct memory_plan *m = &p->memory;
    size_t n = 0;
    for (size_t i = 0; i < p->n_items; i++) {
        for (int k = 0; k < p->item[i].unit->n_out; k++) {
            const tri_tensor *t = p->item[i].unit->out[k];
            if (m->root[t->id] == t->id && m->offset[t->id] != MEMORY_OUTSIDE)
                out[n++] = (struct place){m->offset[t->id], memory_bytes(t), m->begin[t->id],
                                          m->end[t->id]};
        }
        if (program_scratch(p, i))
            out[n++] = (struct place){m->scratch[i], program_scratch(p, i), (int)i, (int)i};
    }
    return n;
}

static void check_apart(const struct program *p) {
    struct place *at = calloc((size_t)p->g->n_tensors + p->n_items + 1, sizeof *at);
    size_t n = places_of(p, at);
    for (size_t i = 0; i < n; i++) {
        assert_true(at[i].begin <= at[i].end);
        assert_true(at[i].offset + at[i].bytes <= p->memory.total);
        for (size_t k = 0; k < i; k++) {
            bool together = at[i].begin <= at[k].end && at[k].begin <= at[i].end;
            bool apart = at[i].offset + at[i].bytes <= at[k].offset ||
                         at[k].offset + at[k].bytes <= at[i].offset;
            assert_true(apart || !together);
        }
    }
    assert_true(p->memory.peak <= p->memory.total);
    free(at);
}

static void live_tensors_do_not_overlap(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        tri_run *run = opened(i, NULL);
        for (int k = 0; machine_program(run->machine, k); k++)
            if (machine_program(run->machine, k)->g) check_apart(machine_program(run->machine, k));
        assert_int_equal(tri_close(run), TRI_OK);
    }
}

/* ---- poison ---- */

/* Every tensor whose life ends with this item becomes NaN. */
static void poison(const struct program *p, size_t item) {
    const struct memory_plan *m = &p->memory;
    for (size_t i = 0; i <= item; i++)
        for (int k = 0; k < p->item[i].unit->n_out; k++) {
            const tri_tensor *t = p->item[i].unit->out[k];
            if (m->root[t->id] == t->id && m->offset[t->id] != MEMORY_OUTSIDE &&
                m->end[t->id] == (int)item)
                memset(program_value(p, t->id), 0xff, memory_bytes(t));
        }
    memset((char *)p->arena + m->scratch[item], 0xff, program_scratch(p, item));
}

static void train(size_t i, const char *device, bool poisoned, char state[65]) {
    char weights[65];
    tri_run *run = opened(i, device);
    for (int k = 0; poisoned && machine_program(run->machine, k); k++)
        machine_program(run->machine, k)->watch = poison;
    while (tri_step(run)) continue;
    tri_hash(run, weights, state);
    assert_int_equal(tri_close(run), TRI_OK);
}

static void nothing_dead_is_read(void **state) {
    (void)state;
    static const char *const devices[] = {"ref", NULL};
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t d = i < 4 ? 0 : 1; d < COUNT(devices); d++) { /* ref is slow */
            char plain[65], poisoned[65];
            train(i, devices[d], false, plain);
            train(i, devices[d], true, poisoned);
            if (strcmp(plain, poisoned))
                fail_msg("%s on %s reads what has ended", cases[i].model,
                         devices[d] ? devices[d] : "the first device");
        }
}

/* ---- limits ---- */

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    tri_options o = {.steps = 1, .memory_limit = 80 << 20};
    assert_null(tri_open(tri_model_open("resnet18", 4), &o));
    assert_int_equal(base_last(), TRI_USAGE);
    assert_non_null(strstr(tri_message(), " of 80 MiB, --memory-limit: "));
    assert_non_null(strstr(tri_message(), "; the largest tensor, f32["));
}

/* The parts of a budget have the right names: two lanes have half of the batch's activations each,
 * and sums of lanes; adam has two moments for each parameter. */
static void budgets(void **state) {
    (void)state;
    size_t arena = 0;
    for (int64_t lanes = 1; lanes <= 2; lanes++) {
        tri_options o = {.lanes = lanes, .threads = 1, .conv = "direct",
                         .optimizer = {.name = "adam"}};
        tri_run *run = run_plan(tri_model_open("resnet18:form=small,width=8", 32), &o, NULL);
        assert_non_null(run);
        struct budget b = budget_of(run->machine, &run->store);
        assert_int_equal(b.optimizer / b.parameters, 2);
        assert_true(b.data >= 32 * 3 * 32 * 32 * sizeof(float));
        assert_true((b.lane_sums > 0) == (lanes > 1));
        assert_int_equal(b.total, b.parameters + b.states + b.optimizer + b.arena + b.lane_sums +
                                      b.carried + b.data);
        if (lanes == 1)
            arena = b.arena;
        else
            assert_true(b.arena < arena * 6 / 10);
        run_free(run);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_tensors_do_not_overlap),
        cmocka_unit_test(nothing_dead_is_read),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(budgets),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
