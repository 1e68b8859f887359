/* SPDX-License-Identifier: Apache-2.0
 * The rules that need a profile, the critical path, and comparisons, on made profiles: each rule is
 * provoked, and silent just below its threshold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs these headers */
#include <cmocka.h>

#include <math.h>

#include "profile/against.h"
#include "profile/report.h"
#include "unit/scratch.h"
#include "unit/profile_made.h"

#define STEP 1000000 /* nanoseconds */
#define SPANS 900
#define VARIES (-1)

static const struct made_thread threads[] = {{0, 0, SPAN_COMPUTES}, {1, 0, SPAN_COMPUTES}};

/* ---- profiles of one step of two threads ---- */

/* What a thread does next: `calls` operators of `ns` each, or a wait. What is left of the step is
 * spent on opening it. */
struct part {
    int thread; /* 2: both; -1: the table ends */
    enum spent on;
    int item, calls, ns; /* ns: VARIES: as the test says */
};

static struct made_span made[2 * SPANS + 2];
static int n_made;

static void put_span(int thread, int kind, int item, int begin, int end, int lane) {
    assert_true(n_made < (int)COUNT(made) - 1);
    made[n_made++] = (struct made_span)MADE(thread, (uint8_t)kind, 1000 + begin, 1000 + end, item,
                                            10, (int16_t)lane, SPAN_NOBODY, 0);
}

static int put_part(const struct part *part, int thread, int at, int varies) {
    const int ns = part->ns == VARIES ? varies : part->ns, begin = at;
    const bool waits = spent_rows[part->on].group == SPENT_WAITS;
    for (int i = 0; i < part->calls; i++, at += ns)
        if (part->item >= 0 && !waits) put_span(thread, SPAN_OPERATOR, part->item, at, at + ns,
                                                 2 * i + thread);
    put_span(thread, (int)part->on, waits ? part->item : -1, begin, at, -1);
    return at;
}

static void make_study(struct profile *p, const char *host, const struct part *part, int varies,
                       const char *items) {
    int now[2] = {0, 0};
    n_made = 0;
    for (; part->thread >= 0; part++)
        for (int i = 0; i < 2; i++)
            if (part->thread == i || part->thread == 2)
                now[i] = put_part(part, i, now[i], varies);
    for (int i = 0; i < 2; i++) {
        assert_true(now[i] <= STEP);
        if (now[i] < STEP) put_span(i, SPENT_OPEN, -1, now[i], STEP, -1);
    }
    put_span(0, SPAN_STEP, -1, 0, STEP, -1);
    made[n_made] = (struct made_span){.thread = -1};
    made_profile(host, threads, COUNT(threads), made, items, NULL);
    assert_int_equal(profile_read(at(host), "10", p), TRI_OK);
    assert_int_equal(p->damaged, 0);
    assert_int_equal(study_make(p), TRI_OK);
}

/* ---- rules ---- */

#define HEAD "{\"version\":1,\"lanes\":8,\"tracks\":2,\"rate\":{\"f32\":1e9}"
#define ITEM(operator, rest) \
    "{\"operator\":\"" operator "\",\"name\":\"the " operator "\"," rest "}\n"
#define END {.thread = -1}

static const char sums[] =
    HEAD "}\n" ITEM("conv2d", "\"phase\":\"lane\"")
    ITEM("add", "\"phase\":\"sum\",\"bucket\":0,\"out\":[\"f32[8192]\"]")
    ITEM("add", "\"phase\":\"sum\",\"bucket\":1,\"out\":[\"f32[100]\"]")
    ITEM("add", "\"phase\":\"sum\",\"bucket\":2,\"out\":[\"f32[16384]\"]");
static const char stages[] =
    HEAD ",\"waiting\":0.1111}\n"
    ITEM("conv2d", "\"phase\":\"lane\",\"stage\":0,\"scope\":\"a/0\"")
    ITEM("conv2d", "\"phase\":\"lane\",\"stage\":1,\"scope\":\"b/0\"")
    ITEM("matmul", "\"phase\":\"lane\",\"stage\":1,\"scope\":\"b/1\"")
    ITEM("relu", "\"phase\":\"lane\",\"stage\":1,\"scope\":\"b/0\",\"backward\":true");
static const char parts_of_tracks[] =
    HEAD "}\n" ITEM("conv2d", "\"phase\":\"lane\",\"stage\":0,\"scope\":\"a\"")
    ITEM("conv2d", "\"phase\":\"lane\",\"stage\":1,\"scope\":\"b\"")
    ITEM("conv2d", "\"phase\":\"lane\",\"stage\":3,\"scope\":\"c\"");
static const char many_lanes[] = "{\"version\":1,\"lanes\":30,\"waiting\":0.14}\n"
                                 ITEM("conv2d", "\"phase\":\"lane\",\"stage\":5");
static const char two_lanes[] = "{\"version\":1,\"lanes\":2}\n"
                                ITEM("conv2d", "\"phase\":\"lane\"");
static const char seats[] =
    HEAD "}\n"
    ITEM("conv2d", "\"phase\":\"lane\",\"seat\":0,\"out\":[\"f32[8,24,4,4]\"],\"flops\":1e6")
    ITEM("conv2d", "\"phase\":\"lane\",\"seat\":1,\"out\":[\"f32[8,32,4,4]\"],\"flops\":1e6")
    ITEM("all_gather", "\"phase\":\"lane\",\"move\":\"rows of x for grad.y.y_dx\",\"moved\":4096");
static const char rates[] =
    HEAD "}\n"
    ITEM("conv2d", "\"phase\":\"lane\",\"flops\":1000,\"in\":[\"f32[1,3]\"],\"out\":[\"f32[1,8]\"]")
    ITEM("matmul", "\"phase\":\"lane\",\"flops\":2000,\"out\":[\"f32[8]\"]")
    ITEM("relu", "\"phase\":\"lane\",\"in\":[\"f32[8]\"],\"out\":[\"f32[8]\"]")
    ITEM("relu", "\"unit\":\"matmul+relu\",\"in\":[\"f32[8]\"],\"out\":[\"f32[8]\"]");

static const struct {
    const char *name, *items;
    bool (*judge)(const struct figures *f, struct finding *found);
    const char *option[2];
    struct part part[6];
    int silent, found; /* what varies; found 0: it is silent in any case */
    double cost;
    const char *evidence, *remedy;
} cases[] = {
    {"small-sums", sums, rule_small_sums, {"--bucket", "1"},
     {{2, SPENT_COMPUTE, 0, 1, 100000}, {2, SPENT_SUM, 1, 10, VARIES},
      {2, SPENT_SUM, 2, 10, VARIES}, END}, 2490, 2510, 0.0502,
     "5 % of a step: 2 of them have less than 64 KiB, the largest 32 KiB",
     "Leave out --bucket 1: all 33 KiB of gradients are then summed in one bucket."},
    {"a bucket of 64 KiB", sums, rule_small_sums, {NULL},
     {{2, SPENT_SUM, 1, 10, 20000}, {2, SPENT_SUM, 3, 10, 20000}, END}, 0, 0, 0, NULL, NULL},
    {"small-lanes by sums", sums, rule_small_lanes, {NULL},
     {{2, SPENT_COMPUTE, 0, 100, 1000}, {2, SPENT_SUM, 3, 1, VARIES}, END}, 149000, 151000, 0.18825,
     "an operator takes 1.0 us on average. Sums of lanes take 15 % of a step, and about 10 % goes",
     "Use --lanes 2 instead of 8"},
    {"small-lanes by operators", sums, rule_small_lanes, {NULL},
     {{2, SPENT_SUM, 3, 1, 200000}, {2, SPENT_COMPUTE, 0, 100, VARIES}, END}, 5010, 4990, 0.225,
     NULL, NULL},
    {"small-lanes of large operators", sums, rule_small_lanes, {NULL},
     {{2, SPENT_SUM, 3, 1, VARIES}, {2, SPENT_COMPUTE, 0, 10, 50000}, END}, 249000, 251000, 0.18825,
     "an operator takes 50 us on average. Sums of lanes take 25 % of a step.",
     "Use --lanes 2 instead of 8"},
    {"as many lanes as threads", two_lanes, rule_small_lanes, {NULL},
     {{2, SPENT_SUM, -1, 1, 300000}, {2, SPENT_COMPUTE, 0, 100, 1000}, END}, 0, 0, 0, NULL, NULL},
    {"bubble by the formula", stages, rule_bubble, {NULL},
     {{2, SPENT_WAIT_LEGS, -1, 1, VARIES}, END}, 141000, 142000, 0.142,
     "for legs of the pipeline for 14 % of a step; with stages of equal length it would be 11 %, "
     "as 8 lanes go through 2 tracks", "With --lanes 12 it would be at most 10 %"},
    {"bubble that was to be expected", many_lanes, rule_bubble, {NULL},
     {{2, SPENT_WAIT_LEGS, -1, 1, VARIES}, END}, 149000, 151000, 0.151, "6 tracks", "--lanes 48"},
    {"uneven-stages", stages, rule_uneven_stages, {NULL},
     {{0, SPENT_COMPUTE, 0, 4, 100000}, {1, SPENT_COMPUTE, 1, 1, 60000},
      {1, SPENT_COMPUTE, 3, 1, 10000}, {1, SPENT_COMPUTE, 2, 1, VARIES}, END},
     529000, 531000, 0.1005,
     "Stage 1 takes 1.20 times as long as the mean of all 2: 400 us, 601 us of a step",
     "Move b/0 from stage 1 to stage 0 (tri_stage): they then take 531 us and 470 us of a step."},
    {"stages of a track", parts_of_tracks, rule_uneven_stages, {NULL},
     {{0, SPENT_COMPUTE, 0, 4, 100000}, {1, SPENT_COMPUTE, 1, 1, 100000},
      {1, SPENT_COMPUTE, 2, 1, VARIES}, END}, 499000, 501000, 0.1005,
     "Track 1 takes 1.20 times as long as the mean of all 2: 400 us, 601 us of a step", "stage 3"},
    {"a long operator", stages, rule_uneven_stages, {NULL},
     {{0, SPENT_COMPUTE, 0, 4, 100000}, {1, SPENT_COMPUTE, 2, 1, VARIES}, END}, 599000, 601000,
     0.1005, NULL, "the matmul alone takes 601 us of a step"},
    {"seats", seats, rule_seats, {NULL},
     {{2, SPENT_COMPUTE, 2, 2, 1000}, {2, SPENT_WAIT_SEATS, 2, 1, VARIES}, END}, 29900, 30100,
     0.0321,
     "3 % of a step, and move tensors for 0.2 %. The moves that take longest: rows of x for "
     "grad.y.y_dx (16 KiB and 64 us a step).", "Choose another strategy for y, which then"},
    {"slow-split", seats, rule_slow_split, {NULL},
     {{2, SPENT_COMPUTE, 1, 10, 1000}, {2, SPENT_COMPUTE, 0, 10, VARIES}, END}, 1660, 1670,
     0.0067, "the conv2d (conv2d): a seat has 24 of them, and it computes at 60 % of the rate",
     "Split it by 3, which gives each seat 16"},
    {"low-rate by operators", rates, rule_low_rate, {NULL},
     {{2, SPENT_COMPUTE, 0, 100, VARIES}, {2, SPENT_COMPUTE, 1, 100, 2000}, END}, 1990, 2010, 0.001,
     "50 % of the time of operators goes to 1 operator below 50 %",
     "a larger batch, or fewer --lanes; its first dimension is 1."},
    {"low-rate by their share", rates, rule_low_rate, {NULL},
     {{2, SPENT_COMPUTE, 0, 20, 2500}, {2, SPENT_COMPUTE, 1, 100, VARIES}, END}, 2010, 1990, 0.01,
     "the conv2d (conv2d of f32[1,3]): it reaches 40 %", NULL},
    {"unfused", rates, rule_unfused, {"--passes", "-cse,-fuse"},
     {{2, SPENT_COMPUTE, 1, 10, 9000}, {2, SPENT_COMPUTE, 2, 10, VARIES}, END}, 990, 1010, 0.0101,
     "1 elementwise operator run on their own and take 10 % of", "Take -fuse out of --passes"},
    {"elementwise by plan", rates, rule_unfused, {"--passes", "-cse"},
     {{2, SPENT_COMPUTE, 2, 10, 1000}, END}, 0, 0, 0, NULL, NULL},
    {"fused", rates, rule_unfused, {"--passes", "-all"}, {{2, SPENT_COMPUTE, 3, 10, 1000}, END}, 0,
     0, 0, NULL, NULL},
};

static const struct rule *rule_named(const char *name) {
    const struct rule *r = rules;
    while (r->name && strcmp(r->name, name)) r++;
    assert_non_null(r->name);
    return r;
}

/* Transfers of several threads at once count once. */
static void busy_link(void **state) {
    static const int ends[] = {1590, 1650};
    static const char items[] = "{\"operator\":\"transfer\",\"bytes\":1e6}\n";
    const struct run_read run = {.n_hosts = 2};
    for (int i = 0; i < 2; i++) {
        const struct made_span spans[] = {
            MADE(0, SPAN_STEP, 1000, 2000, -1, 10, -1, SPAN_NOBODY, 0),
            MADE(0, SPAN_TRANSFER, 1000, 1500, 0, 10, -1, SPAN_NOBODY, 1),
            MADE(1, SPAN_TRANSFER, 1100, ends[i], 0, 10, -1, SPAN_NOBODY, 1),
            MADE(1, SPAN_TRANSFER, 1000, 2000, 0, 10, -1, SPAN_NOBODY, 0), {.thread = -1}};
        struct profile p;
        struct finding found = {0};
        made_profile("", threads, COUNT(threads), spans, items, NULL);
        assert_int_equal(profile_read(directory, NULL, &p), TRI_OK);
        const struct figures f = {.profile = &p, .run = &run, .step = 1e-6, .n_hosts = 2};
        assert_int_equal(rule_named("link")->judge(&f, &found), i);
        if (i) assert_non_null(strstr(found.evidence.data, "busy for 65 % of a step: it sends 2.0 "
                                                           "MB in 650 ns."));
        text_free(&found.evidence);
        text_free(&found.remedy);
        profile_free(&p);
        remove_profiles(state);
    }
}

/* A bubble is an effect of uneven stages if these are enough to explain it. */
static void bubbles_of_uneven_stages(void **state) {
    static const struct part even[] = {{2, SPENT_WAIT_LEGS, -1, 1, 300000},
                                       {0, SPENT_COMPUTE, 0, 1, 300000},
                                       {1, SPENT_COMPUTE, 1, 1, 300000}, END},
                             uneven[] = {{2, SPENT_WAIT_LEGS, -1, 1, 300000},
                                         {0, SPENT_COMPUTE, 0, 1, 300000},
                                         {1, SPENT_COMPUTE, 1, 1, 500000}, END};
    for (int round = 0; round < 2; round++) {
        struct profile p;
        struct finding found = {0};
        struct run_read run = {.batch = 8};
        make_study(&p, "", round ? uneven : even, 0, stages);
        assert_true(rule_bubble(&(struct figures){.profile = &p, .run = &run}, &found));
        assert_string_equal(found.effect_of, round ? "uneven-stages " : "");
        text_free(&found.evidence);
        text_free(&found.remedy);
        profile_free(&p);
        remove_profiles(state);
    }
}

static bool judge(const struct profile *p, size_t i, struct finding *found) {
    struct run_read run = {.batch = 96, .n_options = cases[i].option[0] != NULL,
                           .option = (const char **)cases[i].option};
    const struct figures f = {.profile = p, .run = &run};
    *found = (struct finding){0};
    return cases[i].judge(&f, found);
}

static void check_text(size_t i, const struct text *found, const char *expected) {
    if (!expected || (found->data && strstr(found->data, expected))) return;
    fail_msg("%s: \"%s\" lacks \"%s\"", cases[i].name, found->data, expected);
}

static void rules_are_provoked(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int round = 0; round < 2; round++) {
            struct profile p;
            struct finding found;
            if (round && !cases[i].found) continue;
            make_study(&p, "", cases[i].part, round ? cases[i].found : cases[i].silent,
                       cases[i].items);
            if (judge(&p, i, &found) != round)
                fail_msg("%s: %s", cases[i].name, round ? "not found" : found.evidence.data);
            if (round && fabs(found.cost - cases[i].cost) > 1e-4)
                fail_msg("%s: it costs %.5f", cases[i].name, found.cost);
            if (!round) assert_null(found.evidence.data);
            if (round) check_text(i, &found.evidence, cases[i].evidence);
            if (round) check_text(i, &found.remedy, cases[i].remedy);
            assert_int_equal(round, found.remedy.size > 0);
            text_free(&found.evidence);
            text_free(&found.remedy);
            profile_free(&p);
            remove_profiles(state);
        }
}

/* A run with stages and seats of whose rules none finds anything, nor in one without spans. */
static void clean(void **state) {
    static const struct part good[] = {{2, SPENT_COMPUTE, 0, 40, 20000},
                                       {2, SPENT_SUM, 1, 1, 20000},
                                       {2, SPENT_WAIT_LEGS, -1, 1, 100000}, END},
                             nothing[] = {END};
    static const char items[] =
        HEAD ",\"waiting\":0.1}\n"
        ITEM("conv2d", "\"phase\":\"lane\",\"seat\":0,\"out\":[\"f32[8,32,4,4]\"],\"flops\":15000")
        ITEM("add", "\"phase\":\"sum\",\"bucket\":0,\"out\":[\"f32[8192]\"]");
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int round = 0; round < 2; round++) {
            struct profile p;
            struct finding found;
            make_study(&p, "", round ? good : nothing, 0, items);
            if (judge(&p, i, &found)) fail_msg("%s: %s", cases[i].name, found.evidence.data);
            profile_free(&p);
            remove_profiles(state);
        }
}

/* The report says of which steps the profile is, and asks it for whom workers wait only if these
 * are in the recent part of the run. */
static void told(void **state) {
    (void)state;
    static const struct part parts[] = {{1, SPENT_COMPUTE, 0, 40, 20000},
                                        {0, SPENT_WAIT_LANES, -1, 1, 800000}, END};
    const struct run_read run = {.title = "", .version = "", .plan = ""};
    struct figures_worker worker[] = {{.name = "worker 0"}, {.name = "worker 1"}};
    struct figures_host host = {.name = ""};
    struct profile p;
    make_study(&p, "", parts, 0, sums);
    for (struct span *s = p.thread[0].span; s < p.thread[0].span + p.thread[0].n; s++)
        if (s->kind == SPENT_WAIT_LANES) s->whom = 2; /* worker 1 */
    for (int recent = 10; recent <= 11; recent++) {
        const struct figures f = {.profile = &p, .run = &run, .directory = "run", .step = 1e-3,
                                  .worker = worker, .n = 2, .host = &host, .n_hosts = 1,
                                  .threads = 1, .skipped = NAN, .recent = recent,
                                  .spent = {[SPENT_WAIT_SUMS] = 0.2}};
        struct report r;
        struct text text = {0};
        report_make(&f, &r);
        report_text(&r, &text);
        assert_non_null(strstr(text.data, "The profile is of steps 10 to 11."));
        assert_non_null(strstr(text.data, recent > 10 ? "most of that for sums"
                                                      : "most of that for worker 1"));
        text_free(&text);
        report_free(&r);
    }
    profile_free(&p);
}

/* ---- the critical path ---- */

/* Worker 1 waits for samples, then computes a lane that worker 0 waits for. */
#define LANES_WAIT(whom) MADE(0, SPENT_WAIT_LANES, 1300, 1700, -1, 10, -1, whom, 0)
#define SPEND(thread, what, begin, end) \
    MADE(thread, SPENT_##what, begin, end, -1, 10, -1, SPAN_NOBODY, 0)
#define OP(thread, item, begin, end) \
    MADE(thread, SPAN_OPERATOR, begin, end, item, 10, 0, SPAN_NOBODY, 0)

static void path(void **state) {
    static const uint16_t whom[] = {2, SPAN_NOBODY, 7};
    static const char items[] = ITEM("a", "\"phase\":\"lane\"") ITEM("b", "\"phase\":\"lane\"");
    for (size_t i = 0; i < COUNT(whom); i++) {
        const struct made_span spans[] = {
            OP(0, 0, 1000, 1200), SPEND(0, COMPUTE, 1000, 1300), LANES_WAIT(whom[i]),
            SPEND(0, SUM, 1700, 1800), MADE(0, SPAN_STEP, 1000, 1900, -1, 10, -1, SPAN_NOBODY, 0),
            SPEND(0, OPEN, 1800, 1890), OP(1, 1, 1000, 1100), SPEND(1, COMPUTE, 1000, 1100),
            SPEND(1, WAIT_SAMPLES, 1100, 1250), OP(1, 1, 1250, 1690),
            SPEND(1, COMPUTE, 1250, 1690), {.thread = -1}};
        struct profile p;
        struct text told = {0};
        made_profile("", threads, COUNT(threads), spans, items, NULL);
        assert_int_equal(profile_read(directory, "10", &p), TRI_OK);
        assert_int_equal(study_make(&p), TRI_OK);
        const struct path *is = &p.study->path;
        const bool known = i < 2; /* thread 7 is none */
        assert_int_equal(is->all, 900);
        assert_int_equal(is->turns, known);
        assert_int_equal(is->time[SPENT_UNKNOWN], 10);
        assert_int_equal(is->time[SPENT_OPEN], 90);
        assert_int_equal(is->time[SPENT_SUM], 100);
        assert_int_equal(is->time[SPENT_WAIT_LANES], known ? 10 : 400);
        assert_int_equal(is->time[SPENT_COMPUTE], known ? 540 : 300);
        assert_int_equal(is->time[SPENT_WAIT_SAMPLES], known ? 150 : 0);
        assert_int_equal(is->item[0], known ? 0 : 200);
        assert_int_equal(is->item[1], known ? 540 : 0);
        path_tell(is, &told);
        if (known)
            assert_string_equal(told.data, "compute 60 %, waits for samples 17 %, sum 11 %, "
                                           "open 10 %, unexplained 1 %, waits for lanes 1 %");
        text_free(&told);
        profile_free(&p);
        remove_profiles(state);
    }
}

/* Two that wait for each other, as damaged files may say: it ends, and adds up. */
static void path_in_a_circle(void **state) {
    (void)state;
    const struct made_span spans[] = {
        SPEND(0, COMPUTE, 1000, 1300), LANES_WAIT(2), SPEND(1, COMPUTE, 1000, 1200),
        MADE(1, SPENT_WAIT_SUMS, 1200, 1700, -1, 10, -1, 0, 0),
        MADE(0, SPAN_STEP, 1000, 1700, -1, 10, -1, SPAN_NOBODY, 0), {.thread = -1}};
    struct profile p;
    int64_t sum = 0;
    made_profile("", threads, COUNT(threads), spans, NULL, NULL);
    assert_int_equal(profile_read(directory, "10", &p), TRI_OK);
    assert_int_equal(study_make(&p), TRI_OK);
    for (int i = 0; i < SPENTS; i++) sum += p.study->path.time[i];
    assert_int_equal(sum, 700);
    assert_int_equal(p.study->path.time[SPENT_WAIT_LANES] + p.study->path.time[SPENT_WAIT_SUMS],
                     400);
    profile_free(&p);
}

/* ---- comparisons ---- */

static void against(void **state) {
    (void)state;
    static const char before[] =
        ITEM("conv2d", "\"phase\":\"lane\",\"scope\":\"a/0\"")
        ITEM("conv2d", "\"phase\":\"lane\",\"scope\":\"a/1\",\"seat\":1")
        ITEM("relu", "\"phase\":\"step\"");
    static const char after[] =
        ITEM("conv2d", "\"phase\":\"lane\",\"scope\":\"a/1\",\"seat\":1")
        ITEM("conv2d", "\"phase\":\"lane\",\"scope\":\"a/0\"")
        ITEM("gelu\\u001b", "\"phase\":\"sum\",\"scope\":\"b\"");
    static const struct part
        slow[] = {{2, SPENT_COMPUTE, 0, 1, 100000}, {2, SPENT_COMPUTE, 1, 2, 200000},
                  {0, SPENT_SUM, 2, 1, 7000}, {1, SPENT_WAIT_LANES, -1, 1, 300000}, END},
        quick[] = {{2, SPENT_COMPUTE, 0, 1, 100000}, {2, SPENT_COMPUTE, 1, 1, 100000},
                   {0, SPENT_UPDATE, 2, 1, 50000}, END};
    struct profile a, b;
    struct text out = {0};
    assert_int_equal(mkdir(at("a"), 0777), 0);
    assert_int_equal(mkdir(at("b"), 0777), 0);
    make_study(&a, "a", slow, 0, after);
    make_study(&b, "b", quick, 0, before);
    assert_int_equal(against_print(&a, &b, &out), TRI_OK);
    assert_string_equal(out.data, 
        "A step takes 1.0 ms instead of 1.0 ms, 0 % more.\n\n"
        "Changed, as time of all threads in a step: the change, now, before\n"
        "  -857 us  693 us  1.6 ms  open\n"
        "  +600 us  800 us  200 us  conv2d a/0\n"
        "\nAdded\n"
        "  +300 us  waits for lanes\n"
        "  +7.0 us  gelu\\x1b b, phase sum\n"
        "\nRemoved\n"
        "  -50 us  relu, phase step\n");
    text_free(&out);
    a.lost = 3;
    b.host[0].n_steps = 2;
    b.study->threads = 1;
    assert_int_equal(against_print(&a, &b, &out), TRI_OK);
    assert_non_null(strstr(out.data, "It is of 1 step, the profile before of 2.\n"
                                     "2 threads compute, in the profile before 1.\n"
                                     "3 spans of it were lost, and 0 of the profile before: "));
    text_free(&out);
    profile_free(&a);
    profile_free(&b);
}

/* All that was added is listed. */
static void many_added(void **state) {
    (void)state;
    static const struct part part[] = {{2, SPENT_COMPUTE, 0, 1, 100000}, END};
    static const char none[] = ITEM("conv2d", "\"phase\":\"lane\"");
    struct text items = {0}, out = {0};
    struct part parts[31];
    struct profile a, b;
    for (int i = 0; i < 30; i++) {
        text_add(&items, "{\"operator\":\"op%d\",\"phase\":\"lane\"}\n", i);
        parts[i] = (struct part){2, SPENT_COMPUTE, i, 1, 1000};
    }
    parts[30] = (struct part)END;
    assert_int_equal(mkdir(at("c"), 0777) | mkdir(at("d"), 0777), 0);
    make_study(&a, "c", parts, 0, items.data);
    make_study(&b, "d", part, 0, none);
    assert_int_equal(against_print(&a, &b, &out), TRI_OK);
    for (int i = 0; i < 30; i++) {
        char name[16];
        snprintf(name, sizeof name, "us  op%d\n", i);
        assert_non_null(strstr(out.data, name));
    }
    text_free(&items);
    text_free(&out);
    profile_free(&a);
    profile_free(&b);
}

#define TEST(name) cmocka_unit_test_teardown(name, remove_profiles)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(rules_are_provoked), TEST(clean), TEST(busy_link),
                                       TEST(told),
                                       TEST(bubbles_of_uneven_stages), TEST(path),
                                       TEST(path_in_a_circle), TEST(against),
                                       TEST(many_added)};
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
