/* SPDX-License-Identifier: Apache-2.0
 * Plans that a search leaves out, as their bounds say that they cannot be better, are not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#include "run/open.h"
#include "search/find.h"

/* Of two plans, the simpler one is better if the other is no faster than by this factor. */
#define SIMPLER 1.02

static const struct {
    const char *model;
    int64_t batch;
} networks[] = {
    {"linear", 16},
    {"mlp", 64},
    {"lenet5", 32},
    {"cnn", 16},
    {"resnet18:form=small,size=32,width=16,classes=10", 16},
    {"bert-tiny:seq=16,vocab=512", 8},
    {"bert-tiny:seq=64,vocab=512,layers=3", 8},
    {"gpt2-tiny:seq=16,vocab=512", 8},
    {"gpt2-tiny:seq=32,vocab=256,layers=6,hidden=64,heads=4", 4},
    {"gpt2-tiny:seq=64,vocab=96,layers=1,hidden=96,heads=2", 12},
};

static void find(size_t i, bool solve, struct find *f, struct prices *p, tri_run **run) {
    tri_options o = tri_options_default();
    const struct find_ask ask = {.workers = 2, .threads = 1, .any = true,
                                 .measure = FIND_NEVER, .solve = solve};
    o.batch = networks[i].batch;
    o.data = "synthetic";
    o.quiet = true;
    run_leave_nothing(&o);
    assert_int_equal(prices_make(p, 0), TRI_OK);
    tri_graph *g = tri_model_open(networks[i].model, networks[i].batch);
    assert_non_null(g);
    *run = run_plan_with_data(g, &o, NULL);
    assert_non_null(*run);
    assert_int_equal(find_plans(*run, &ask, p, f), TRI_OK);
    assert_true(f->fit > 0);
}

static void end(struct find *f, struct prices *p, tri_run *run) {
    find_free(f);
    prices_free(p);
    run_free(run);
}

static size_t cut_of(const struct find *f) {
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) n += f->plan[i].how == FOUND_CUT;
    return n;
}

static void none_that_is_cut_is_better(void **state) {
    size_t cut = 0;
    (void)state;
    const size_t next = getenv("FEW") ? 4 : 1; /* under a sanitizer */
    for (size_t i = 0; i < COUNT(networks); i += next) {
        struct find found, all;
        struct prices p, q;
        tri_run *run, *other;
        find(i, false, &found, &p, &run);
        find(i, true, &all, &q, &other);
        const double best = found.plan[0].price.step.seconds;
        assert_int_equal(cut_of(&all), 0);
        for (size_t k = 0; k < all.fit; k++)
            if (!(all.plan[k].price.step.seconds * SIMPLER >= best))
                fail_msg("%s: plan %zu of all takes %g s, the best that was found %g",
                         networks[i].model, k, all.plan[k].price.step.seconds, best);
        cut += cut_of(&found);
        print_message("%s: %zu of %zu plans are cut\n", networks[i].model, cut_of(&found), found.n);
        end(&found, &p, run);
        end(&all, &q, other);
    }
    assert_true(cut > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(none_that_is_cut_is_better)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
