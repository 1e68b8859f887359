/* SPDX-License-Identifier: Apache-2.0
 * Options of a command line, similar names, and the machine's limits (from made-up files). */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/host.h"
#include "checkpoint/checkpoint.h"
#include "cli/options.h"
#include "unit/false_root.h"

static void near_names(void **state) {
    (void)state;
    assert_int_equal(nearest_distance("train", "train"), 0);
    assert_int_equal(nearest_distance("tarin", "train"), 1);
    assert_int_equal(nearest_distance("", "eval"), 4);
    assert_int_equal(nearest_distance("Train", "trAin"), 0);
    assert_int_equal(nearest_distance("kitten", "sitting"), 3);
    const char *many = "a name of more than thirty-one letters, which is cut";
    assert_int_equal(nearest_distance(many, many), 0);
}

static void what_is_meant(void **state) {
    (void)state;
    struct nearest n = {.wanted = "modles"};
    assert_string_equal(nearest_meant(&n), "");
    assert_string_equal(nearest_or(&n, "; there are: %s", n.names), "; there are: ");
    assert_false(nearest_offer(&n, "dump"));
    assert_string_equal(nearest_meant(&n), "");
    assert_string_equal(nearest_or(&n, "; there are: %s", n.names), "; there are: dump");
    assert_false(nearest_offer(&n, "models"));
    assert_false(nearest_offer(&n, "modlet")); /* as near; the first counts */
    assert_string_equal(nearest_meant(&n), "; do you mean models?");
    assert_string_equal(nearest_or(&n, "; there are: %s", n.names), "; do you mean models?");
    n.before = "\"*.";
    assert_string_equal(nearest_meant(&n), "; do you mean \"*.models?");
    n.after = "\"";
    assert_string_equal(nearest_meant(&n), "; do you mean \"*.models\"?");
    struct nearest shorter = {.wanted = "ab"}; /* half of the shorter name may differ */
    nearest_offer(&shorter, "abcd");
    assert_string_equal(nearest_meant(&shorter), "");
    nearest_offer(&shorter, "abc");
    assert_string_equal(nearest_meant(&shorter), "; do you mean abc?");
}

static void names_in_a_list(void **state) {
    (void)state;
    struct nearest n = {.wanted = "fc.bias"};
    assert_false(nearest_offer_part(&n, "fc.bias", 2));
    assert_false(nearest_offer_part(&n, "fc.biases", 9));
    assert_true(nearest_offer_part(&n, "fc.biases", 7));
    assert_false(nearest_offer(&n, "FC.BIAS"));
    assert_true(nearest_offer(&n, "fc.bias"));
    assert_false(nearest_offer(&n, "bias"));
    assert_false(nearest_offer(&n, "fc"));
    assert_false(nearest_offer(&n, ""));
    assert_string_equal(n.names, "fc, fc.biases, fc.bias, FC.BIAS, bias");
    assert_int_equal(n.distance, 0);
    assert_string_equal(n.name, "fc.bias");
}

/* A list that does not fit says so, and the nearest name is found all the same. */
static void many_names(void **state) {
    (void)state;
    for (int first = 1; first < 10; first++) {
        struct nearest n = {.wanted = "name 777"};
        char name[32];
        nearest_offer_part(&n, "123456789", (size_t)first);
        for (int i = 0; i < 1000; i++) {
            base_format(name, sizeof name, "name %d", i);
            assert_int_equal(nearest_offer(&n, name), i == 777);
        }
        assert_string_equal(n.name, "name 777");
        assert_non_null(strstr(n.names, ", name 0, name 1, "));
        assert_string_equal(strchr(n.names, '.'), "...");
        assert_in_range(strlen(n.names), sizeof n.names - 16, sizeof n.names - 1);
    }
}

static void long_names(void **state) {
    (void)state;
    char name[257];
    memset(name, 'x', sizeof name);
    name[255] = 0;
    struct nearest n = {.wanted = name};
    assert_true(nearest_offer(&n, name));
    assert_string_equal(n.names, name);
    assert_string_equal(n.name, name);
    name[255] = 'x';
    name[256] = 0;
    n = (struct nearest){.wanted = name};
    assert_true(nearest_offer(&n, name));
    assert_string_equal(n.names, "");
    assert_string_equal(nearest_meant(&n), "");
}

/* ---- options ---- */

#define TAKEN 24

/* A command line split at spaces, as a program receives it. */
struct line {
    char text[256];
    char *word[TAKEN];
    int n;
};

static void cut(struct line *l, const char *text) {
    snprintf(l->text, sizeof l->text, "%s", text);
    l->n = 0;
    for (char *p = strtok(l->text, " "); p; p = strtok(NULL, " ")) l->word[l->n++] = p;
    l->word[l->n] = NULL;
    assert_in_range(l->n, 1, TAKEN - 1);
}

static tri_status take(tri_options *o, struct line *l, const char *text, bool foreign) {
    *o = tri_options_default();
    const struct option_set sets[] = {{options_rows, o}, {0}};
    cut(l, text);
    return options_take(sets, USE_TRAIN, foreign, &l->n, l->word);
}

/* Combination `number` of the words. */
static int picked(int number, const char *text, const char *line, const char *words) {
    const struct option_set sets[] = {{options_rows, NULL}, {0}};
    struct options_picked p = {.number = number};
    struct line l;
    struct text now = {0};
    cut(&l, text);
    assert_int_equal(options_pick(sets, USE_BENCH, l.word, &p), TRI_OK);
    for (int i = 0; i < l.n; i++) text_add(&now, "%s%s", i ? " " : "", l.word[i]);
    assert_string_equal(now.data, line);
    assert_string_equal(p.words.data ? p.words.data : "", words);
    text_free(&now);
    text_free(&p.words);
    arena_free(&p.arena);
    return p.all;
}

static void several_values(void **state) {
    (void)state;
    assert_int_equal(picked(0, "b mlp --lanes 4 --data a,b", "b mlp --lanes 4 --data a,b", ""), 1);
    assert_int_equal(picked(1, "b mlp --lanes 4,8", "b mlp --lanes 8", "--lanes 8"), 2);
    assert_int_equal(picked(1, "b --conv=auto --lr 1 --conv direct",
                            "b --conv=direct --lr 1 --conv direct", "--conv direct"), 2);
    const char *all = "b --plan x --batch=4,8 --plan y --lanes 1 --lanes 2,3";
    assert_int_equal(picked(0, all, "b --plan x --batch=4 --plan x --lanes 1 --lanes 1",
                            "--batch 4 --lanes 1 --plan x"), 12);
    assert_int_equal(picked(3, all, "b --plan x --batch=8 --plan x --lanes 2 --lanes 2",
                            "--batch 8 --lanes 2 --plan x"), 12);
    assert_int_equal(picked(11, all, "b --plan y --batch=8 --plan y --lanes 3 --lanes 3",
                            "--batch 8 --lanes 3 --plan y"), 12);
    assert_int_equal(picked(1, "b --lanes 1,2 -- prog --lanes 1,2",
                            "b --lanes 2 -- prog --lanes 1,2", "--lanes 2"), 2);
    assert_int_equal(picked(1, "b --lanes 1,", "b --lanes ", "--lanes "), 2); /* which is refused */
    assert_int_equal(picked(1, "b --lr 0.1,0.2", "b --lr 0.2", "--lr 0.2"), 2);
    assert_int_equal(picked(0, "b --amp O0,O1", "b --amp O0,O1", ""), 1);
    assert_int_equal(picked(0, "b --lanes", "b --lanes", ""), 1);
}

static void all_options(void **state) {
    (void)state;
    struct line l;
    tri_options o;
    assert_int_equal(take(&o, &l, "p", false), TRI_OK);
    assert_int_equal(o.batch, 0); /* the graph's */
    assert_int_equal(o.steps + o.epochs + o.lanes, 0);
    assert_int_equal(take(&o, &l, "p --data idx:d --steps=7 --batch 32 --lanes 4 --optimizer adam "
                          "--lr 1e-2 --momentum 0.5 --schedule cosine --weight-decay 0 "
                          "--clip-norm 1 --trust 0.01 word", false), TRI_OK);
    assert_string_equal(o.data, "idx:d");
    assert_int_equal(o.steps, 7);
    assert_int_equal(o.batch, 32);
    assert_int_equal(o.lanes, 4);
    assert_string_equal(o.optimizer.name, "adam");
    assert_true(o.optimizer.lr == 1e-2 && o.optimizer.momentum == 0.5);
    assert_string_equal(o.optimizer.schedule, "cosine");
    assert_true(o.optimizer.weight_decay == 0 && o.optimizer.clip_norm == 1);
    assert_true(o.optimizer.trust == 0.01);
    assert_int_equal(take(&o, &l, "p --momentum 0 --beta1 0 --beta2=0.5 --eps 0", false), TRI_OK);
    assert_true(o.optimizer.momentum == TRI_ZERO && o.optimizer.beta1 == TRI_ZERO);
    assert_true(o.optimizer.beta2 == 0.5 && o.optimizer.eps == TRI_ZERO);
    assert_int_equal(take(&o, &l, "p word", false), TRI_OK);
    assert_int_equal(l.n, 2);
    assert_string_equal(l.word[1], "word");
    assert_null(l.word[2]);
    assert_int_equal(take(&o, &l, "p --seed 18446744073709551615 --device ref --shuffle off "
                          "--out d --save s --load=l --quiet --epochs 3", false), TRI_OK);
    assert_true(o.seed == UINT64_MAX && o.no_shuffle && o.quiet);
    assert_string_equal(o.device, "ref");
    assert_string_equal(o.out, "d");
    assert_string_equal(o.save, "s");
    assert_string_equal(o.load, "l");
    assert_int_equal(o.epochs, 3);
    assert_int_equal(take(&o, &l, "p --batch 3 --batch 5 --shuffle=off --shuffle=on", false),
                     TRI_OK);
    assert_int_equal(o.batch, 5);
    assert_false(o.no_shuffle);
    assert_int_equal(take(&o, &l, "p --mesh model=2,rows=2 --strategy megatron,./own --unset whole "
                          "--parallel=semi", false), TRI_OK);
    assert_string_equal(o.mesh, "model=2,rows=2");
    assert_string_equal(o.strategy, "megatron,./own");
    assert_string_equal(o.unset, "whole");
    assert_string_equal(o.parallel, "semi");
}

/* The command line takes precedence over the program. */
static void length_of_a_run(void **state) {
    (void)state;
    struct line l;
    tri_options o = {.steps = 100};
    const struct option_set sets[] = {{options_rows, &o}, {0}};
    cut(&l, "p --epochs 2");
    assert_int_equal(options_take(sets, USE_TRAIN, true, &l.n, l.word), TRI_OK);
    assert_int_equal(o.epochs, 2);
    assert_int_equal(o.steps, 0);
}

static void rest(void **state) {
    (void)state;
    struct line l;
    tri_options o;
    assert_int_equal(take(&o, &l, "p a --mine 3 --lr 1 -v -- --lr --batch", true), TRI_OK);
    static const char *const left[] = {"p", "a", "--mine", "3", "-v", "--lr", "--batch"};
    assert_int_equal(l.n, COUNT(left));
    for (size_t i = 0; i < COUNT(left); i++) assert_string_equal(l.word[i], left[i]);
    assert_true(o.optimizer.lr == 1);
}

static void mistakes(void **state) {
    (void)state;
    static const struct {
        const char *line, *message;
    } all[] = {
        {"p --batch 0", "--batch 0: expected a whole number of at least 1"},
        {"p --batch -3", "--batch -3: expected a whole number"},
        {"p --batch=", "--batch '': expected a whole number"},
        {"p --batch 64k", "--batch 64k: expected a whole"},
        {"p --steps 99999999999999999999", "a whole number that is not so large"},
        {"p --lr -1", "--lr -1: expected a number above 0"},
        {"p --lr nan", "--lr nan: expected a number above 0"},
        {"p --lr inf", "--lr inf: expected a number above 0"},
        {"p --lr 0,1", "--lr 0,1: expected a number above 0"},
        {"p --weight-decay -1", "a number of at least 0"},
        {"p --momentum -0.1", "of at least 0 and below 1"},
        {"p --momentum 1", "below 1"},
        {"p --eps -1", "a number of at least 0"},
        {"p --seed -1", "from 0 to 2^64 - 1"},
        {"p --shuffle maybe", "--shuffle maybe: expected on or off"},
        {"p --out=", "a text that is not empty"},
        {"p --lr", "--lr lacks its value: --lr X"},
        {"p --lr --batch 3", "--lr lacks its value"},
        {"p --quiet=yes", "--quiet takes no value"},
        {"p --epochs 1 --steps 2", "--epochs and --steps are both given"},
        {"p --shuffle on --sampler sequential",
         "--shuffle on and --sampler sequential are both given"},
        {"p --sampler=sequential --shuffle=on",
         "--shuffle on and --sampler sequential are both given"},
        {"p --epoch 3", "unknown option --epoch; do you mean --epochs?"},
        {"p --bacth=3", "unknown option --bacth; do you mean --batch?"},
    };
    struct line l;
    tri_options o;
    for (size_t i = 0; i < COUNT(all); i++)
        for (int foreign = 0; foreign < 2; foreign++) {
            assert_int_equal(take(&o, &l, all[i].line, foreign), TRI_USAGE);
            if (!strstr(tri_message(), all[i].message))
                fail_msg("%s: the message is \"%s\"", all[i].line, tri_message());
        }
    static const char *const launching[] = {"p -n 2", "p --lr 1 --spares=1",
                                            "p --threads-per-worker 2", "p --no-kill"};
    for (size_t i = 0; i < COUNT(launching); i++) {
        assert_int_equal(take(&o, &l, launching[i], true), TRI_USAGE);
        if (!strstr(tri_message(), "is an option of `trireme run`, which starts several workers: "
                                   "trireme run -n 2 -- ./program"))
            fail_msg("%s: the message is \"%s\"", launching[i], tri_message());
    }
    assert_int_equal(take(&o, &l, "p -- -n 2", true), TRI_OK);
    assert_int_equal(take(&o, &l, "p --xylophone", false), TRI_USAGE);
    assert_string_equal(tri_message(), "unknown option --xylophone; see --help");
}

static void use(void **state) {
    (void)state;
    tri_options o = tri_options_default();
    const struct option_set sets[] = {{options_rows, &o}, {0}};
    struct line l;
    cut(&l, "p --lr 3");
    assert_int_equal(options_take(sets, USE_EVAL, false, &l.n, l.word), TRI_USAGE);
    assert_string_equal(tri_message(), "--lr has no effect on this command; see --help");
}

static void help(void **state) {
    (void)state;
    const char *text = tri_options_help();
    for (const struct option_row *row = options_rows; row->flag; row++) {
        char start[64];
        snprintf(start, sizeof start, "  %s %s", row->flag, row->argument ? row->argument : "");
        if (row->use & USE_TRAIN && !strstr(text, start)) fail_msg("help lacks \"%s\"", start);
        if (row->use & USE_ALL && !row->group) fail_msg("%s is in no group", row->flag);
    }
    assert_non_null(strstr(text, "\n\nOptimizer:\n  --optimizer NAME"));
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_in_range(strcspn(line, "\n"), 0, 79);
    assert_ptr_equal(text, tri_options_help());
}

/* ---- limits of the machine ---- */

static void host_v2(void **state) {
    (void)state;
    struct host h;
    put("/proc/meminfo", "MemTotal:  2048 kB\nMemFree: 1 kB\nMemAvailable:   1024 kB\n");
    put("/proc/self/cgroup", "0::/user/job\n");
    put("/sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/user/cpu.max", "150000 100000\n");
    put("/sys/fs/cgroup/user/job/memory.max", "1000000\n");
    put("/sys/fs/cgroup/user/memory.max", "2000000\n");
    put("/sys/fs/cgroup/user/job/memory.events", "low 0\noom 9\noom_kill 3\noom_group_kill 0\n");
    put("/sys/fs/cgroup/user/memory.events", "oom_kill 2\n");
    put("/proc/vmstat", "nr_free_pages 1\noom_kill 7\n");
    put("/sys/fs/cgroup/user/job/cpu.stat", "usage_usec 9\nnr_periods 7\nnr_throttled 0\n"
        "throttled_usec 0\n");
    put("/sys/fs/cgroup/user/cpu.stat", "nr_periods 50\nnr_throttled 20\n"
        "throttled_usec 1500000\nnr_bursts 0\n");
    host_read(root, &h);
    assert_int_equal(h.periods, 50);
    assert_int_equal(h.throttled_periods, 20);
    assert_true(h.throttled == 1.5);
    assert_int_equal(h.oom_kills, 3);
    assert_true(h.quota == 1.5);
    assert_int_equal(h.limit, 1000000);
    assert_int_equal(h.memory, 2048 * 1024);
    assert_int_equal(h.available, 1024 * 1024);
    assert_int_equal(h.shared, -1);
    assert_in_range(h.usable, 1, h.cores);
}

static void other_processes(void **state) {
    (void)state;
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    char stat[256];
    int mine = 0, n = 0;
    double then = 0, now = 0;
    while (!CPU_ISSET((size_t)mine, &set)) mine++;
    for (int round = 0; round < 2; round++, then = now, now = host_others(root, &n)) {
        /* The total begins with a number that looks like that of a core of this process. */
        snprintf(stat, sizeof stat, "cpu  %d %d 0 0 0 0 0 0 0\ncpu%d 100000 0 %d 7 %d 0 0 %d\n",
                 mine, 900000 * round, mine, 2000 * round, 5000 * round, 300 * round);
        put("/proc/stat", stat);
    }
    assert_int_equal(n, 1);
    double seconds = 2000.0 / (double)sysconf(_SC_CLK_TCK);
    assert_true(now - then > seconds - 0.5 && now - then <= seconds);
    assert_true(host_stolen(root, &n) == 300.0 / (double)sysconf(_SC_CLK_TCK));
}

static void host_v1(void **state) {
    (void)state;
    struct host h;
    put("/proc/self/cgroup", "5:memory:/docker/1\n4:cpu,cpuacct:/docker/1\n0::/\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu/cpu.stat", "nr_periods 9\nnr_throttled 3\n"
        "throttled_time 2000000000\n");
    put("/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "4096\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/docker/1/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
    host_read(root, &h);
    assert_int_equal(h.oom_kills, 5);
    assert_int_equal(h.throttled_periods, 3);
    assert_true(h.periods == 9 && h.throttled == 2);
    assert_true(h.quota == 0.5);
    assert_int_equal(h.limit, 4096);
}

static void host_free(void **state) {
    (void)state;
    struct host h;
    put("/proc/self/cgroup", "no colons\n4:cpu:/\n5:memory:/\n0::/\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    host_read(root, &h);
    assert_true(h.quota == 0);
    assert_int_equal(h.limit, 0);
    assert_int_equal(h.memory, 0);
    assert_int_equal(h.oom_kills, -1);
    put("/proc/vmstat", "nr_free_pages 1\noom_kill 7\n");
    host_read(root, &h);
    assert_int_equal(h.oom_kills, 7);
}

/* What the guide says of a resume: for every kind of option rows as long as lines may be. */
static void add_rows(struct text *t, unsigned resume, const char *means) {
    size_t from = 0;
    for (const struct option_row *row = options_rows; row->flag; row++) {
        if (!(row->use & resume) || !(row->use & USE_ALL)) continue;
        const bool fits = from && t->size - from + strlen(row->flag) < 96;
        if (from && !fits) text_add(t, "` |\n");
        if (!fits) {
            from = t->size;
            text_add(t, "| %s | `", means);
        }
        text_add(t, "%s%s", fits ? " " : "", row->flag);
    }
    text_add(t, "` |\n");
}

static void resumes(void **state) {
    (void)state;
    const unsigned all = RESUME_REQUIRES | RESUME_WARNS | RESUME_IGNORES | RESUME_REFUSES;
    struct text t = {0};
    char *guide;
    size_t bytes;
    for (const struct option_row *row = options_rows; row->flag; row++) {
        const unsigned has = row->use & all;
        if (!(row->use & USE_ALL)) continue;
        if (!has || has & (has - 1)) fail_msg("%s: what a resume makes of it", row->flag);
    }
    text_add(&t, "| a resume | options |\n|---|---|\n");
    add_rows(&t, RESUME_REQUIRES, "requires");
    add_rows(&t, RESUME_WARNS, "warns");
    add_rows(&t, RESUME_IGNORES, "ignores");
    add_rows(&t, RESUME_REFUSES, "refuses");
    assert_int_equal(base_read_file(getenv("TRI_GUIDE"), &guide, &bytes), TRI_OK);
    if (!strstr(guide, t.data)) fail_msg("docs/checkpoints.md has another table than:\n%s", t.data);
    free(guide);
    text_free(&t);
}

/* A resume can only compare what the checkpoint has. */
static void kept(void **state) {
    (void)state;
    static const char *const otherwise[] = { /* state.json has them beside its options */
        "--data", "--shuffle", "--epochs", "--batch", "--seed", "--best", "--ckpt-key", "--device",
        /* and a plan has these as other lines */
        "--mesh", "--strategy", "--parallel", NULL};
    struct checkpoint_options *o = NULL;
    int n = 0;
    for (const struct option_row *row = options_rows; row->flag; row++) {
        const bool grain = row->plan && row->plan < PLAN_WORKERS;
        const bool compared = row->use & (RESUME_REQUIRES | RESUME_WARNS);
        const int there = (row->state > 0) + !!(row->use & KEPT_ORDER) +
                          (option_word(otherwise, row->flag) >= 0);
        if (there > 1 || compared != (there || grain))
            fail_msg("%s: a resume compares it: %d; kept: %d", row->flag, compared, there + grain);
        if (row->state && option_of_state(row->state) != row)
            fail_msg("%s: another option has its place in state.json", row->flag);
        if (row->set == option_text && row->state) assert_non_null(row->without);
        if (row->use & KEPT_ORDER) assert_ptr_equal(row->set, option_text);
        assert_true(strlen(row->flag) < sizeof o->one->name);
        n += row->state > 0;
    }
    for (int i = 1; i <= n; i++) assert_non_null(option_of_state(i));
    assert_in_range(n, 10, COUNT(o->one));
    assert_null(option_of_state(n + 1));
}

static const struct {
    const char *line, *values;
} kept_values[] = {
    {"p", "0 0 0 0 0 0 0 0 0 0 sgd constant on off all bytes"},
    {"p --lr 1e-30 --momentum 0 --beta1 0.12345678912 --eps 0 --weight-decay 0 --steps 1234567890 "
     "--gradients-mean off --passes -cse --loss-scale 2 --tokenizer bert:x",
     "1e-30 0 0.123456789 0 0 0 0 0 0 1.23456789e+09 sgd constant off 2 -cse bert:x"},
    {"p --gradients-mean on --trust 3 --clip-norm 2 --optimizer lars --schedule cosine --epochs 3",
     "0 0 0 0 0 3 0 1 2 0 lars cosine on off all bytes"},
};

static void values_kept(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(kept_values); i++) {
        struct line l;
        struct text t = {0};
        tri_options o;
        assert_int_equal(take(&o, &l, kept_values[i].line, false), TRI_OK);
        o.optimizer.decay_all = i == 2;
        for (int place = 1; option_of_state(place); place++) {
            char value[64];
            option_keep(option_of_state(place), &o, value, sizeof value);
            text_add(&t, "%s%s", place > 1 ? " " : "", value);
        }
        assert_string_equal(t.data, kept_values[i].values);
        text_free(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_names),
        cmocka_unit_test(what_is_meant),
        cmocka_unit_test(names_in_a_list),
        cmocka_unit_test(many_names),
        cmocka_unit_test(long_names),
        cmocka_unit_test(several_values),
        cmocka_unit_test(all_options),
        cmocka_unit_test(length_of_a_run),
        cmocka_unit_test(resumes),
        cmocka_unit_test(kept),
        cmocka_unit_test(values_kept),
        cmocka_unit_test(rest),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(use),
        cmocka_unit_test(help),
        cmocka_unit_test_setup_teardown(host_v2, make_root, remove_root),
        cmocka_unit_test_setup_teardown(other_processes, make_root, remove_root),
        cmocka_unit_test_setup_teardown(host_v1, make_root, remove_root),
        cmocka_unit_test_setup_teardown(host_free, make_root, remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
