/* SPDX-License-Identifier: Apache-2.0
 * A made profile: what is read from it, its trace, and its tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs these headers */
#include <cmocka.h>

#include <jansson.h>
#include <math.h>

#include "dev/dev.h"
#include "machine/rate.h"
#include "observe/series.h"
#include "profile/derive.h"
#include "profile/study.h"
#include "profile/trace.h"
#include "unit/scratch.h"
#include "unit/profile_made.h"

/* ---- two workers ---- */

static const struct made_thread threads[] = {
    {0, 0, SPAN_COMPUTES}, {0, 1, SPAN_READS}, {1, 0, SPAN_COMPUTES}, {1, 1, SPAN_COMPUTES}};

static const char items[] =
    "{\"version\":1,\"rate\":{\"f32\":1e9},\"bandwidth\":1e9,\"lanes\":4,\"waiting\":0.25,"
    "\"memory\":{\"parameters\":300,\"data\":20}}\n"
    "{\"operator\":\"conv2d\",\"unit\":\"conv2d+relu\",\"name\":\"a.conv\",\"scope\":\"a/0\","
    "\"phase\":\"lane\",\"stage\":0,\"in\":[\"f32[2]\",\"f32[3]\"],\"out\":[\"f32[4]\"],"
    "\"flops\":20,\"bytes\":10,\"live\":64}\n"
    "{\"operator\":\"matmul\",\"name\":\"a.dense\",\"scope\":\"a/1\",\"phase\":\"lane\","
    "\"bytes\":30,\"live\":96}\n"
    "{\"operator\":\"matmul\",\"name\":\"b, \\\"c\\\"\",\"scope\":\"b\",\"phase\":\"lane\"}\n"
    "{\"operator\":\"all_gather\",\"name\":\"gather\",\"phase\":\"lane\",\"move\":\"rows are "
    "split\",\"bytes\":50,\"moved\":40}\n"
    "{\"operator\":\"add\",\"name\":\"sums\",\"phase\":\"sum\",\"bucket\":3,\"bytes\":80}\n"
    "{\"operator\":\"\xff\xc3\xa4\\u0007\\\"\",\"name\":\"\xed\xa0\x80\",\"scope\":\"b\"}\n";

#define LANE(thread, begin, end, lane) \
    MADE(thread, SPAN_LANE, begin, end, -1, 10, lane, SPAN_NOBODY, 0)
#define OP(thread, begin, end, item, lane) \
    MADE(thread, SPAN_OPERATOR, begin, end, item, 10, lane, SPAN_NOBODY, 0)
#define SPEND(thread, what, begin, end, step) \
    MADE(thread, SPENT_##what, begin, end, -1, step, -1, SPAN_NOBODY, 0)
#define WAIT(thread, what, begin, end, item, whom) \
    MADE(thread, SPENT_WAIT_##what, begin, end, item, 10, -1, whom, 0)

static const struct made_span spans[] = {
    /* worker 0: lanes 0 and 1, without a pause in computing; a move; the sum; then it waits */
    SPEND(0, OPEN, 1000, 1010, 10),
    OP(0, 1020, 1050, 0, 0),
    OP(0, 1050, 1060, 1, 0),
    OP(0, 1070, 1080, 1, 0),
    OP(0, 1080, 1100, 2, 0),
    LANE(0, 1010, 1110, 0),
    OP(0, 1110, 1140, 0, 1),
    OP(0, 1140, 1150, 3, 1),
    SPEND(0, COMPUTE, 1010, 1160, 10),
    OP(0, 1165, 1175, 4, 1),
    OP(0, 1175, 1178, 4, 1),
    SPEND(0, SUM, 1160, 1180, 10),
    LANE(0, 1110, 1180, 1),
    WAIT(0, LANES, 1180, 1305, 4, 2),
    MADE(0, SPAN_STEP, 1000, 1310, -1, 10, -1, SPAN_NOBODY, 0),
    SPEND(0, OPEN, 1305, 1320, 11),
    OP(0, 1320, 1330, 5, 0),
    SPEND(0, COMPUTE, 1320, 1400, 11),
    MADE(0, SPAN_STEP, 1315, 1400, -1, 11, -1, SPAN_NOBODY, 0),
    /* the reader */
    MADE(1, SPAN_PIECE, 1000, 1500, -1, 11, -1, SPAN_NOBODY, 0),
    /* worker 1: a lane that takes long, with a wait for a seat in it */
    WAIT(2, OPENING, 1000, 1015, -1, 0),
    OP(2, 1020, 1200, 0, 2),
    SPEND(2, COMPUTE, 1015, 1210, 10),
    WAIT(2, SEATS, 1210, 1230, 3, 0),
    OP(2, 1235, 1295, 3, 2),
    SPEND(2, COMPUTE, 1230, 1300, 10),
    LANE(2, 1010, 1300, 2),
    WAIT(2, OPENING, 1300, 1400, -1, 0),
    /* its other thread computes during that, and moves something, in part after that */
    OP(3, 1030, 1100, 1, 3),
    OP(3, 1150, 1220, 3, 3),
    {.thread = -1}};

static void open_made(struct profile *p) {
    made_profile("", threads, COUNT(threads), spans, items, NULL);
    assert_int_equal(profile_read(directory, "10", p), TRI_OK);
}

/* ---- reading ---- */

static void reads(void **state) {
    (void)state;
    struct profile p;
    open_made(&p);
    assert_int_equal(p.n_hosts, 1);
    assert_int_equal(p.n_threads, 4);
    assert_int_equal(p.spans, COUNT(spans) - 1);
    assert_int_equal(p.lost + p.cut + p.damaged, 0);
    assert_int_equal(p.begin, 1000);
    assert_int_equal(p.end, 1500);
    const struct profile_host *h = &p.host[0];
    assert_int_equal(h->n_items, 6);
    assert_string_equal(h->item[0].in, "f32[2] f32[3]");
    assert_string_equal(h->item[1].unit, "matmul");
    assert_null(h->item[0].move);
    assert_string_equal(h->item[3].move, "rows are split");
    assert_int_equal(h->item[4].bucket, 3);
    assert_int_equal(h->item[4].seat, -1);
    assert_string_equal(h->item[5].operator, "?\xc3\xa4\\x07\"");
    assert_string_equal(h->item[5].name, "???");
    assert_int_equal(h->n_steps, 2);
    assert_int_equal(h->step[0].step, 10);
    assert_int_equal(h->step[0].next, 1315);
    assert_int_equal(h->step[1].next, 1400);
    assert_int_equal(profile_thread_at(&p, 0, 1, 0)->pid, 1001);
    assert_null(profile_thread_at(&p, 0, 1, 2));
    profile_free(&p);
}

/* items.jsonl that ends anywhere: the items before are read, and nothing else changes. */
static void cut_items(void **state) {
    (void)state;
    struct profile p;
    made_profile("", threads, COUNT(threads), spans, NULL, NULL);
    for (size_t i = 0; i < sizeof items; i++) {
        remove(at("profile/10/items.jsonl"));
        FILE *f = fopen(at("profile/10/items.jsonl"), "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(items, 1, i, f), i);
        fclose(f);
        assert_int_equal(profile_read(directory, NULL, &p), TRI_OK);
        int lines = 0;
        for (size_t k = 0; k < i; k++) lines += items[k] == '\n';
        assert_int_equal(p.host[0].n_items, lines ? lines - 1 : 0);
        assert_int_equal(p.cut, i && items[i - 1] != '\n');
        assert_int_equal(p.spans, COUNT(spans) - 1);
        if (i % 400 == 0) assert_int_equal(profile_derive(&p), TRI_OK);
        profile_free(&p);
    }
}

/* A line that is no item keeps its number. */
static void damaged_items(void **state) {
    (void)state;
    struct profile p;
    made_profile("", threads, COUNT(threads), spans,
                 "{\"operator\":\"a\",\"stage\":-4293967296,\"leg\":2147483648,\"seat\":1e15,"
                 "\"bucket\":2147483647}\nno item\n{\"operator\":\"b\"}\n[]\n", NULL);
    assert_int_equal(profile_read(directory, NULL, &p), TRI_OK);
    assert_int_equal(p.host[0].n_items, 4);
    assert_int_equal(p.damaged, 2);
    const struct profile_item *item = p.host[0].item;
    assert_true(item->stage == -1 && item->leg == -1 && item->seat == -1);
    assert_int_equal(item->bucket, 2147483647);
    assert_string_equal(item[2].name, "b");
    assert_int_equal(p.thread[0].span[4].item, 2);
    profile_free(&p);
}

static void mistakes(void **state) {
    (void)state;
    struct profile p;
    assert_int_equal(profile_read(directory, NULL, &p), TRI_USAGE);
    assert_message("it has no profile; train with --profile steps=10..20");
    profile_free(&p);
    made_profile("", threads, COUNT(threads), spans, "{\"version\":2}\n", NULL);
    assert_int_equal(profile_read(directory, NULL, &p), TRI_FAILED);
    assert_message("items.jsonl: its format is version 2; this program reads version 1");
    profile_free(&p);
    assert_int_equal(profile_read(directory, "11", &p), TRI_USAGE);
    assert_message("it has no profile 11");
    profile_free(&p);
    static const char *const wrong[] = {"", ".", "..", "10.", ".1", "10.1.1", "10/../10", "x"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(profile_read(directory, wrong[i], &p), TRI_USAGE);
        assert_message("is no name of a profile");
        profile_free(&p);
    }
    assert_int_equal(mkdir(at("profile/99."), 0777), 0);
    made_profile("", threads, COUNT(threads), spans, items, NULL);
    assert_int_equal(profile_read(directory, NULL, &p), TRI_OK);
    assert_string_equal(p.name, "10.1");
    profile_free(&p);
}

/* ---- the trace ---- */

static json_t *read_trace(void) {
    json_error_t error;
    json_t *trace = json_load_file(at("profile/10/trace.json"), 0, &error);
    if (!trace) fail_msg("trace.json:%d: %s", error.line, error.text);
    return trace;
}

static int64_t ns_of(const json_t *event, const char *key) {
    return llround(json_number_value(json_object_get(event, key)) * 1000);
}

static const char *text_in(const json_t *event, const char *key) {
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

/* "category name begin-end" of each slice of a track, in the order of the file, indented. Slices
 * nest. */
static void describe_track(const json_t *trace, int tid, struct text *out) {
    int64_t until[32];
    int depth = 0;
    size_t i;
    const json_t *e;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, e) {
        if (json_integer_value(json_object_get(e, "tid")) != tid) continue;
        if (strcmp(text_in(e, "ph"), "X")) continue;
        const int64_t begin = ns_of(e, "ts"), end = begin + ns_of(e, "dur");
        while (depth && until[depth - 1] <= begin) depth--;
        assert_true(!depth || end <= until[depth - 1]);
        text_add(out, "%*s%s|%s %lld-%lld\n", 2 * depth, "", text_in(e, "cat"), text_in(e, "name"),
                 (long long)begin, (long long)end);
        until[depth++] = end;
    }
}

/* By name of the track. */
static int track_of(const json_t *trace, const char *name, int nth) {
    size_t i;
    const json_t *e;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, e)
        if (!strcmp(text_in(json_object_get(e, "args"), "name"), name) && !nth--)
            return (int)json_integer_value(json_object_get(e, "tid"));
    fail_msg("there is no track %s", name);
    return 0;
}

static void check_track(const json_t *trace, const char *name, int nth, const char *expected) {
    struct text found = {0};
    describe_track(trace, track_of(trace, name, nth), &found);
    assert_string_equal(found.data ? found.data : "", expected);
    text_free(&found);
}

static void draws(void **state) {
    (void)state;
    struct profile p;
    open_made(&p);
    assert_int_equal(profile_derive(&p), TRI_OK);
    profile_free(&p);
    json_t *trace = read_trace();
    check_track(trace, "worker 0 (pid 1000)", 0,
                "open|open 0-10\n"
                "lane|lane 0 10-110\n"
                "  scope|a 20-80\n"
                "    scope|0 20-50\n"
                "      operator|conv2d+relu 20-50\n"
                "    scope|1 50-80\n"
                "      operator|matmul 50-60\n"
                "      operator|matmul 70-80\n"
                "  scope|b 80-100\n"
                "    operator|matmul 80-100\n"
                "lane|lane 1 110-180\n"
                "  scope|a 110-140\n"
                "    scope|0 110-140\n"
                "      operator|conv2d+relu 110-140\n"
                "  move|all_gather 140-150\n"
                "  sum|sum 160-180\n"
                "    operator|add 165-175\n"
                "    operator|add 175-178\n"
                "wait-lanes|waits for lanes 180-305\n"
                "open|open 305-320\n"
                "compute|compute 320-400\n"
                "  scope|b 320-330\n"
                "    operator|?\xc3\xa4\\x07\" 320-330\n");
    check_track(trace, "thread 0", 1,
                "wait-opening|waits for opening 0-10\n"
                "lane|lane 2 10-300\n"
                "  wait-opening|waits for opening 10-15\n"
                "  scope|a 20-200\n"
                "    scope|0 20-200\n"
                "      operator|conv2d+relu 20-200\n"
                "  wait-seats|waits for seats 210-230\n"
                "  move|all_gather 235-295\n"
                "wait-opening|waits for opening 300-400\n");
    check_track(trace, "reader 1", 0, "piece|piece 0-500\n");
    check_track(trace, "steps", 0, "step|step 10 0-310\nstep|step 11 315-400\n");
    json_decref(trace);
}

/* "begin>end" of each arrow, in the order of the file. */
static void describe_arrows(const json_t *trace, struct text *out) {
    size_t i, k;
    const json_t *all = json_object_get(trace, "traceEvents"), *from, *to;
    json_array_foreach(all, i, from) {
        if (strcmp(text_in(from, "ph"), "s")) continue;
        json_array_foreach(all, k, to)
            if (!strcmp(text_in(to, "ph"), "f") &&
                json_equal(json_object_get(from, "id"), json_object_get(to, "id")))
                text_add(out, "%lld>%lld ", (long long)ns_of(from, "ts"),
                         (long long)ns_of(to, "ts"));
    }
}

static void points(void **state) {
    (void)state;
    struct profile p;
    struct text found = {0};
    open_made(&p);
    assert_int_equal(trace_write(&p, p.folder), TRI_OK);
    profile_free(&p);
    json_t *trace = read_trace();
    describe_arrows(trace, &found);
    /* the wait for lanes by lane 2; for the opening by what worker 0 did; not for the seat, as
     * nothing ended meanwhile; for the second opening by computing, which ended at its end */
    assert_string_equal(found.data, "299>304 9>14 399>399 ");
    text_free(&found);
    json_decref(trace);
}

/* ---- the tables ---- */

static void check_table(const char *name, const char *expected) {
    char path[64], *data;
    size_t bytes;
    snprintf(path, sizeof path, "profile/10/%s", name);
    assert_int_equal(base_read_file(at(path), &data, &bytes), TRI_OK);
    assert_string_equal(data, expected);
    free(data);
}

/* Worker 1 has taken 8 MiB, in a frame that ends after the spans. */
static void make_series(const struct profile *p) {
    const struct series_column column = {"memory-kib", SERIES_MOST, 0};
    const struct series_frame frame = {.step = 10, .covers = 1000, .steps = 1};
    const double value[] = {0, 8192.0 / 1024};
    struct series_writer w;
    assert_true(p->host[0].realtime > 0);
    const int64_t shift = p->host[0].realtime; /* spans are of the time 1000, not of now */
    assert_int_equal(series_create(&w, at("workers.series"), base_now(), 2, &column, 1), TRI_OK);
    w.offset = 2000 + shift - base_now();
    assert_int_equal(series_add(&w, base_now(), &frame, value), TRI_OK);
    series_writer_close(&w);
}

/* The rates are in a file of their own, which may be damaged. */
static void rates(void **state) {
    (void)state;
    struct profile p;
    struct dev *dev = dev_find("ref");
    assert_int_equal(dev_open(dev), TRI_OK);
    const char *folder = made_profile("", threads, COUNT(threads), spans,
                                      "{\"version\":1}\n{\"operator\":\"a\"}\n", NULL);
    for (int round = 0; round < 2; round++) {
        if (round) assert_int_equal(truncate(at("profile/10/rates.json"), 30), 0);
        else assert_int_equal(rate_write(dev, folder), TRI_OK);
        assert_int_equal(profile_read(directory, NULL, &p), TRI_OK);
        assert_int_equal(p.host[0].n_rates, round ? 0 : 2);
        assert_true(round || (p.host[0].rate[1].flops > 1e6 && p.host[0].bandwidth > 1e8));
        assert_int_equal(p.damaged, round);
        profile_free(&p);
    }
}

static void tables(void **state) {
    (void)state;
    struct profile p;
    open_made(&p);
    make_series(&p);
    assert_int_equal(study_make(&p), TRI_OK);
    assert_int_equal(tables_write(&p, p.folder), TRI_OK);
    profile_free(&p);
    check_table(
        "ops.csv",
        "level,operator,unit,name,scope,phase,host,stage,leg,seat,size,calls,seconds,share,gflops,"
        "gbytes,roofline,in,out\n"
        "kind,conv2d,,,,,,,,,,3,0.000000240,0.467836,0.25,0.125,0.25,,\n"
        "kind,all_gather,,,,,,,,,,3,0.000000140,0.272904,,1.07143,1.07143,,\n"
        "kind,matmul,,,,,,,,,,3,0.000000110,0.214425,,0.545455,0.545455,,\n"
        "kind,add,,,,,,,,,,2,0.000000013,0.0253411,,12.3077,12.3077,,\n"
        "kind,\"?\xc3\xa4\\x07\"\"\",,,,,,,,,,1,0.000000010,0.0194932,,,,,\n"
        "instance,conv2d,conv2d+relu,a.conv,a/0,lane,,0,,,,3,0.000000240,0.467836,0.25,0.125,0.25,"
        "f32[2] f32[3],f32[4]\n"
        "instance,all_gather,all_gather,gather,,lane,,,,,,3,0.000000140,0.272904,,1.07143,1.07143,,"
        "\n"
        "instance,matmul,matmul,a.dense,a/1,lane,,,,,,2,0.000000090,0.175439,,0.666667,0.666667,,"
        "\n"
        "instance,matmul,matmul,\"b, \"\"c\"\"\",b,lane,,,,,,1,0.000000020,0.0389864,,,,,\n"
        "instance,add,add,sums,,sum,,,,,,2,0.000000013,0.0253411,,12.3077,12.3077,,\n"
        "instance,\"?\xc3\xa4\\x07\"\"\",\"?\xc3\xa4\\x07\"\"\",???,b,,,,,,,1,"
        "0.000000010,0.0194932,,,,,\n");
    check_table("comm.csv",
                "kind,operator,name,scope,host,why,in,out,bucket,times,bytes,seconds,rate,exposed,"
                "waited,most,whole\n"
                "move,all_gather,gather,,,rows are split,,,,3,120,0.000000140,8.57143e+08,"
                "0.000000090,0.000000020,1,\n"
                "sum,add,sums,,,,,,3,2,160,0.000000013,1.23077e+10,0.000000013,0.000000125,0,\n");
    check_table("buckets.csv", "bucket,host,bytes,steps,first,ready,crossed,sums,sends\n"
                "3,,0,1,0.000000165,0.000000175,0.000000178,0.000000013,0.000000000\n");
    check_table("memory.csv",
                "step,host,worker,seconds,lane,live,parameters,optimizer,slots,carried,data,"
                "measured,name,scope\n"
                "10,,0,0.000000020,0,64,300,,,,20,,a.conv,a/0\n"
                "10,,0,0.000000050,0,96,300,,,,20,,a.dense,a/1\n"
                "10,,0,0.000000070,0,96,300,,,,20,,a.dense,a/1\n"
                "10,,0,0.000000110,1,64,300,,,,20,,a.conv,a/0\n"
                "10,,1,0.000000020,2,64,300,,,,20,8192,a.conv,a/0\n");
}

/* The times of a step add up to the step's, but for what was not recorded. */
static void adds_up(void **state) {
    (void)state;
    static const struct {
        int place, step;
        enum spent on;
        int64_t time;
    } cases[] = {{0, 0, SPENT_OPEN, 20},       {0, 0, SPENT_COMPUTE, 150},
                 {0, 0, SPENT_SUM, 20},        {0, 0, SPENT_WAIT_LANES, 125},
                 {0, 1, SPENT_OPEN, 5},        {0, 1, SPENT_COMPUTE, 80},
                 {1, 0, SPENT_COMPUTE, 265},   {1, 0, SPENT_WAIT_OPENING, 30},
                 {1, 0, SPENT_WAIT_SEATS, 20}, {1, 1, SPENT_WAIT_OPENING, 85}};
    static const int64_t whole[] = {315, 85};
    struct profile p;
    open_made(&p);
    for (int place = 0; place < 2; place++) {
        int64_t *sum = tables_spent(&p, 0, place), all[2] = {0};
        assert_non_null(sum);
        for (int i = 0; i < 2 * SPENTS; i++) all[i / SPENTS] += sum[i];
        for (size_t i = 0; i < COUNT(cases); i++)
            if (cases[i].place == place)
                assert_int_equal(sum[cases[i].step * SPENTS + (int)cases[i].on], cases[i].time);
        for (int i = 0; i < 2; i++) assert_int_equal(all[i], whole[i]);
        assert_int_equal(tables_threads(&p, 0, place), 1 + place);
        free(sum);
    }
    profile_free(&p);
}

/* ---- several hosts ---- */

static const struct made_thread ferry[] = {{0, 0, SPAN_COMPUTES}, {2, 0, SPAN_FERRIES}};

#define TRANSFER(begin, end, node, sent, host) \
    MADE(1, SPAN_TRANSFER, begin, end, 0, 10, node, host, sent)

static const struct made_span sends[] = {
    OP(0, 5000, 5100, 1, 0), TRANSFER(5010, 5060, 7, 1, 1), TRANSFER(5020, 5090, 8, 1, 1),
    TRANSFER(5100, 5200, 9, 1 + 2 * 4 + (51 << 8), 1),
    {.thread = -1}}; /* the last: one of four chunks, of which packing has left 80 % */
static const struct made_span receives[] = {
    TRANSFER(900000, 900055, 7, 0, 0), TRANSFER(900040, 900085, 8, 0, 0), {.thread = -1}};
static const char transfer[] =
    "{\"operator\":\"transfer\",\"name\":\"bucket 0\",\"bucket\":0,\"bytes\":1000,\"wire\":400}\n"
    "{\"operator\":\"conv2d\",\"name\":\"a\"}\n";

/* A clock that is 895,000 ns ahead, and said to be 894,990 +- 20. */
static void hosts(void **state) {
    (void)state;
    struct profile p;
    struct text found = {0};
    char *data;
    size_t bytes;
    assert_int_equal(mkdir(at("hosts"), 0777), 0);
    assert_int_equal(mkdir(at("hosts/h0"), 0777), 0);
    assert_int_equal(mkdir(at("hosts/h1"), 0777), 0);
    made_profile("hosts/h0", ferry, 2, sends, transfer, NULL);
    made_profile("hosts/h1", ferry, 2, receives, transfer,
                 "{\"host\":\"h1\",\"offset_ns\":-894990,\"uncertainty_ns\":20}");
    for (int round = 0; round < 2; round++) { /* the second time, DIR/profile exists */
        assert_int_equal(profile_read(directory, NULL, &p), TRI_OK);
        assert_int_equal(p.n_hosts, 2);
        assert_string_equal(p.host[1].name, "h1");
        assert_int_equal(p.host[1].uncertainty, 20);
        assert_int_equal(p.thread[p.n_threads - 1].span[0].begin, 5010);
        assert_int_equal(profile_derive(&p), TRI_OK);
        profile_free(&p);
    }
    json_t *trace = read_trace();
    describe_arrows(trace, &found);
    assert_string_equal(found.data, "10>64 20>94 ");
    check_track(trace, "transfers", 0, "transfer|transfer 10-60\ntransfer|transfer 100-200\n");
    check_track(trace, "transfers", 1, "transfer|transfer 20-90\n");
    track_of(trace, "h1 ferry 2 (pid 1002)", 0);
    const json_t *clock =
        json_array_get(json_object_get(json_object_get(trace, "otherData"), "clocks"), 1);
    assert_int_equal(json_integer_value(json_object_get(clock, "offset_ns")), -894990);
    assert_int_equal(json_integer_value(json_object_get(clock, "uncertainty_ns")), 20);
    assert_int_equal(base_read_file(at("profile/10/comm.csv"), &data, &bytes), TRI_OK);
    assert_non_null(strstr(data, "transfer,transfer,bucket 0,,h0,,,,0,3,880,0.000000220,"
                                 "4e+09,0.000000100,0.000000000,,2250\n"));
    assert_non_null(strstr(data, "transfer,transfer,bucket 0,,h1,,,,0,2,800,"));
    text_free(&found);
    free(data);
    json_decref(trace);
}

/* The second host has died before it knew the others' clock. */
static void no_clock(void **state) {
    (void)state;
    struct profile p;
    assert_int_equal(mkdir(at("hosts"), 0777), 0);
    assert_int_equal(mkdir(at("hosts/h0"), 0777), 0);
    assert_int_equal(mkdir(at("hosts/h1"), 0777), 0);
    made_profile("hosts/h0", ferry, 2, sends, transfer,
                 "{\"host\":\"h0\",\"offset_ns\":1000000000000,\"uncertainty_ns\":20}");
    made_profile("hosts/h1", ferry, 2, receives, transfer, NULL);
    assert_int_equal(profile_read(directory, NULL, &p), TRI_OK);
    assert_false(p.host[1].clock);
    assert_int_equal((p.host[1].offset + 500000000) / 1000000000, 1000);
    profile_free(&p);
}

#define TEST(name) cmocka_unit_test_teardown(name, remove_profiles)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(reads), TEST(cut_items), TEST(damaged_items), TEST(mistakes), TEST(draws),
        TEST(points), TEST(tables), TEST(rates), TEST(adds_up), TEST(hosts),
        TEST(no_clock)};
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
