/* SPDX-License-Identifier: Apache-2.0
 * The page of `trireme top`, of views given by the test. */
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>

#include "cli/top_view.h"

#define SECOND 1000000000ll

static struct top *t;
static struct crew_head head;

/* Two workers of one thread; another view is `later` seconds after the last one. */
static struct look_view *look(double later) {
    if (!t) t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->pace.look.head = &head;
    const struct look_view none = {.now = 100 * SECOND, .state = LOOK_RUNNING, .opened = 1,
                                   .total = 100, .began = 10 * SECOND, .batch = 8, .lanes = 4,
                                   .ranks = 2, .threads = 1, .places = 2, .loss = 1,
                                   .title = "net", .out = "/runs/a"};
    struct look_view *v = &t->pace.view[t->pace.looks % PACE_LOOKS];
    *v = t->pace.looks ? *pace_latest(&t->pace) : none;
    for (int i = 0; !t->pace.looks && i < 2; i++)
        v->worker[i] = (struct look_worker){.state = CREW_READY, .rank = i, .pid = 100 + i,
                                            .step = 1, .at = CREW_AT_WAIT, .lane = -1,
                                            .item = -1, .core = 40 + i};
    v->now += (int64_t)(later * 1e9);
    t->pace.looks++;
    return v;
}

static const char *page(int columns) {
    static char text[16384];
    struct text out = {0};
    const struct top_page p = {.columns = columns};
    top_draw(t, &p, &out);
    snprintf(text, sizeof text, "%s", out.data);
    text_free(&out);
    return text;
}

static int end(void **state) {
    (void)state;
    free(t);
    t = NULL;
    return 0;
}

static void has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("no \"%s\" in\n%s", part, text);
}

static void lacks(const char *text, const char *part) {
    if (strstr(text, part)) fail_msg("\"%s\" in\n%s", part, text);
}

static size_t longest(const char *text) {
    size_t most = 0;
    for (size_t n; *text; text += n + 1) {
        n = strcspn(text, "\n");
        if (n > most) most = n;
    }
    return most;
}

static void the_name_gives_way(void **state) {
    (void)state;
    struct look_view *v = look(0);
    v->spares = 2, v->threads = 4, v->deaths = 3;
    strcpy(v->title, "transformer:layers=12,width=768,heads=12,vocab=50257,seq=1024");
    snprintf(v->out, sizeof v->out, "/home/somebody/experiments/%0100d/run", 7);
    has(page(80), "transformer:layers=1...  running  1:30  2 workers + 2 spares x 4 threads  3 "
                  "died\n");
    has(page(80), "\n...000");
    has(page(80), "7/run\n");
    has(page(INT_MAX), "seq=1024  running  1:30  2 workers + 2 spares x 4 threads  3 died\n");
    has(page(35), "transformer:layers=12,width=768,...\nrunning  1:30\n"
                  "2 workers + 2 spares x 4 threads\n3 died\n");
}

/* Columns leave in order, and AT has 24 columns where any other can still leave. */
static void columns_leave(void **state) {
    (void)state;
    struct look_view *v = look(0);
    static const char *const leave[] = {" CORE", " PEAK", " LANE"};
    size_t gone = 0;
    for (int columns = 120; columns; columns--) {
        const char *text = page(columns), *at = strstr(text, " AT\n");
        assert_in_range(longest(text), 0, columns);
        while (gone < 3 && !strstr(text, leave[gone])) gone++;
        for (size_t i = gone; i < 3; i++) has(text, leave[i]);
        if (gone < 3) has(text, " STEP");
        if (columns < 43) continue;
        assert_non_null(at);
        while (at > text && at[-1] != '\n') at--;
        assert_in_range(strcspn(at, "\n"), 0, columns - 24 + 2);
    }
    has(page(80), "  #  RANK      PID CMP WAI RED DAT OTH  DONE LOST DIED AT\n");
    v->stages = 2;
    strcpy(v->worker[1].stages, "1,3");
    v->worker[1].turn = 5, v->worker[1].turns = 16;
    lacks(page(INT_MAX), " LANE");
    has(page(80), " STAGE    TURN  DONE AT\n");
    has(page(80), "  1,3    5/16     0 wait\n");
    v->replicas = 1;
    has(page(80), "  #  RANK    SEATS CMP WAI RED DAT STAGE    TURN  DONE AT\n");
}

static void parts_add_up(void **state) {
    (void)state;
    look(0);
    struct look_view *v = look(2);
    v->worker[0].time[SPENT_COMPUTE] = SECOND / 2;
    v->worker[0].time[SPENT_WAIT_LANES] = SECOND / 4;
    v->worker[0].time[SPENT_WAIT_TASKS] = SECOND / 2;
    v->worker[0].time[SPENT_WAIT_SUMS] = SECOND / 8;
    v->worker[0].time[SPENT_WAIT_PAUSE] = SECOND / 64;
    v->worker[0].time[SPENT_SUM] = SECOND / 4;
    v->worker[0].time[SPENT_UPDATE] = SECOND / 4;
    v->worker[1].time[SPENT_COMPUTE] = SECOND;
    v->worker[1].time[SPENT_CALLBACK] = SECOND / 2;
    v->worker[1].time[SPENT_UNKNOWN] = SECOND / 4;
    v->worker[1].time[SPENT_WAIT_TASKS] = SECOND / 64;
    has(page(INT_MAX), "     100  25  45  25   0   0       tasks 25 lanes 12 ");
    has(page(INT_MAX), "     101  50   1   0   0  38                        ");
    v->worker[0].no_core = SECOND / 3; /* while it computes, or at the end of a wait */
    v->worker[1].no_core = SECOND / 64;
    has(page(INT_MAX), "     100  25  45  25   0   0     tasks 25 no core 17 ");
    has(page(INT_MAX), "     101  50   1   0   0  38                        ");
}

static void time_left(void **state) {
    (void)state;
    struct look_view *v = look(0);
    v->committed = 10, v->ended = 90 * SECOND; /* 8 seconds each, from 10 on; now is 100 */
    has(page(80), "ETA 11:52\n");
    has(page(80), "1.0 samples/s  0.12 steps/s");
    look(10); /* the open step is late: the time left does not grow, the rate falls */
    has(page(80), "ETA 11:52\n");
    has(page(80), "0.7 samples/s  0.08 steps/s");
    look(40);
    has(page(80), "ETA -\n");
    v = look(1);
    v->committed = 11, v->ended = v->now; /* nine steps of 8 s and one of 61 */
    lacks(page(80), "ETA -");
}

static void between_hosts(void **state) {
    (void)state;
    struct look_view *v = look(0);
    v->hosts.n = v->hosts.taking = 2, v->hosts.epoch = 1;
    strcpy(v->hosts.self, "h0"), strcpy(v->hosts.teller, "h1");
    v->hosts.sent = v->hosts.received = v->hosts.sent_whole = 1000000;
    lacks(page(80), "MB/s"); /* not known yet */
    v = look(2);
    lacks(page(80), "MB/s"); /* nothing has moved */
    v->hosts.sent += 3000000, v->hosts.sent_whole += 3000000, v->hosts.received += 1000000;
    has(page(80), "epoch 1\nsends 1.5 MB/s  receives 0.5 MB/s\n");
    v->hosts.sent_whole += 3000000;
    has(page(80), "\nsends 1.5 MB/s (50 %)  receives 0.5 MB/s\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_name_gives_way, end),
        cmocka_unit_test_teardown(columns_leave, end), cmocka_unit_test_teardown(parts_add_up, end),
        cmocka_unit_test_teardown(time_left, end), cmocka_unit_test_teardown(between_hosts, end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
