/* SPDX-License-Identifier: Apache-2.0
 * trireme doctor: checks the machine and whether each device trains, or, in doctor_hosts.c, several
 * hosts; and says what to fix. */
#include <jansson.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "cli/cli.h"
#include "cli/doctor.h"
#include "dev/dev.h"
#include "profile/sql.h"

void checkup_print(struct checkup *v, const char *name, struct finding *f) {
    static const char *const words[] = {"ok  ", "warn", "BAD "};
    printf("%s  %-13s %s\n", words[f->health], name, f->what.data ? f->what.data : "");
    fflush(stdout); /* the next check may take long */
    if (f->fix.data && !(v->fixes.data && strstr(v->fixes.data, f->fix.data)))
        text_add(&v->fixes, "  %s: %s\n", name, f->fix.data);
    v->count[f->health]++;
    text_free(&f->what);
    text_free(&f->fix);
}

/* ---- the machine ---- */

static double mib(int64_t bytes) { return (double)bytes / (1024 * 1024); }

static void check_cores(const struct host *h, struct finding *f) {
    text_add(&f->what, "%d online, %d usable", h->cores, h->usable);
    if (h->quota > 0) text_add(&f->what, ", control groups allow the time of %.3g", h->quota);
    if (h->usable < h->cores) {
        f->health = WARNING;
        text_add(&f->fix, "affinity (taskset, a container's cpuset) leaves %d of %d cores",
                 h->usable, h->cores);
    } else if (h->quota > 0 && h->quota < h->usable) {
        f->health = WARNING;
        text_add(&f->fix, "the control group's quota is below the number of cores: more than %d "
                          "workers will be throttled", h->quota < 2 ? 1 : (int)h->quota);
    }
}

static void check_instructions(const struct host *h, struct finding *f) {
    (void)h;
    host_instructions(&f->what);
}

static void check_memory(const struct host *h, struct finding *f) {
    text_add(&f->what, "%.0f MiB, %.0f available", mib(h->memory), mib(h->available));
    int64_t usable = h->available;
    if (h->limit && h->limit < h->memory) {
        text_add(&f->what, ", control groups allow %.0f", mib(h->limit));
        if (h->limit < usable) usable = h->limit;
    }
    if (usable && mib(usable) < 512) {
        f->health = WARNING;
        text_add(&f->fix, "less than 512 MiB can be used: train with a small --batch");
    }
}

static void check_shared(const struct host *h, struct finding *f) {
    if (h->shared < 0)
        text_add(&f->what, "no /dev/shm (not needed)");
    else
        text_add(&f->what, "/dev/shm has %.0f MiB (not needed)", mib(h->shared));
}

static void check_directory(const struct host *h, struct finding *f) {
    (void)h;
    bool writable = !access(".", W_OK);
    text_add(&f->what, "the current one is %swritable", writable ? "" : "not ");
    if (writable) return;
    f->health = WARNING;
    text_add(&f->fix, "`trireme train` writes to ./run: choose another directory with --out DIR");
}

static void check_libraries(const struct host *h, struct finding *f) {
    (void)h;
    text_add(&f->what, "zlib %s, libsodium %s, jansson %s", zlibVersion(), sodium_version_string(),
             jansson_version_str());
#ifdef HAVE_SQLITE
    text_add(&f->what, ", SQLite %s", sql_version());
#endif
    if (sodium_init() >= 0) return;
    f->health = BROKEN;
    text_add(&f->fix, "libsodium does not start: install it again");
}

static const struct {
    const char *name;
    void (*check)(const struct host *h, struct finding *f);
} checks[] = {
    {"cores", check_cores},   {"instructions", check_instructions},
    {"memory", check_memory}, {"shared memory", check_shared},
    {"directory", check_directory}, {"libraries", check_libraries},
};

/* ---- devices ---- */

#define STEPS 3
#define MODEL "mlp:hidden=32"
#define TOLERANCE 1e-3 /* of the loss, between devices */

static tri_status train(const char *device, double loss[STEPS]) {
    tri_options o = tri_options_default();
    o.batch = 16;
    o.steps = STEPS;
    o.device = device;
    o.quiet = true;
    tri_run *run = tri_open(tri_model_open(MODEL, o.batch), &o);
    if (!run) return base_last();
    int n = 0;
    while (tri_step(run)) loss[n++] = tri_value(run, "loss");
    tri_status status = tri_run_status(run);
    tri_close(run);
    return status;
}

static void check_device(struct dev *d, struct finding *f, double loss[STEPS]) {
    char text[256] = "";
    double begin = base_seconds();
    if (dev_open(d) || train(d->kind->name, loss)) {
        f->health = BROKEN;
        text_add(&f->what, "%s", tri_message());
        text_add(&f->fix, "it cannot train: mend the cause above, or choose another --device");
        return;
    }
    d->kind->describe(d, false, text, sizeof text);
    text_add(&f->what, "%s", text);
    if (d->kind->instructions) {
        const char *remark, *isa = d->kind->instructions(d, &remark);
        text_add(&f->what, ", kernels for %s%s%s", isa, remark ? ", " : "", remark ? remark : "");
    }
    text_add(&f->what, ": %d steps in %.3f s, loss", STEPS, base_seconds() - begin);
    for (int i = 0; i < STEPS; i++) {
        text_add(&f->what, " %.4f", loss[i]);
        if (!isfinite(loss[i])) f->health = BROKEN;
    }
    if (f->health) text_add(&f->fix, "it computes NaN or infinity: do not use it");
}

/* Compares all devices with the last one, the reference. */
static void check_devices(struct checkup *v) {
    double expected[STEPS] = {0};
    struct finding reference = {0};
    int last = 0;
    while (dev_at(last + 1)) last++;
    const char *name = dev_at(last)->kind->name;
    check_device(dev_at(last), &reference, expected);
    bool known = reference.health == WELL;
    checkup_print(v, name, &reference);
    for (int i = 0; i < last; i++) {
        double loss[STEPS] = {0};
        struct finding f = {0};
        check_device(dev_at(i), &f, loss);
        for (int k = 0; k < STEPS && known && f.health == WELL; k++) {
            if (fabs(loss[k] - expected[k]) <= TOLERANCE * fabs(expected[k])) continue;
            f.health = BROKEN;
            text_add(&f.fix, "its loss of step %d differs from that of %s: report this, and train "
                     "with --device %s", k + 1, name, name);
        }
        checkup_print(v, dev_at(i)->kind->name, &f);
    }
}

/* ---- the command ---- */

static const struct option_row rows[] = {
    {"--out", "DIR", "with --hosts: the directory of the run that is to come (default: run)",
     option_text, offsetof(struct launch, out), USE_DOCTOR, .group = GROUP_HOSTS},
    {0},
};

static void check_machine(struct checkup *v) {
    host_read("", &v->host);
    for (size_t i = 0; i < COUNT(checks); i++) {
        struct finding f = {0};
        checks[i].check(&v->host, &f);
        checkup_print(v, checks[i].name, &f);
    }
    check_devices(v);
}

static int run(const struct command *c, int argc, char **argv) {
    struct launch l = {0};
    struct checkup v = {0};
    const struct option_set sets[] = {{launch_rows, &l}, {rows, &l}, {0}};
    if (options_take(sets, USE_DOCTOR, false, &argc, argv)) return cli_fail();
    tri_status status = TRI_OK;
    if (argc > 1)
        status = base_fail(TRI_USAGE, "%s: one word too many: '%s'; usage: trireme %s %s", c->name,
                           argv[1], c->name, c->arguments);
    else if (!l.hosts && (l.launcher || l.key || l.ports || l.interface || l.chdir || l.out))
        status = base_fail(TRI_USAGE, "the options of doctor are for several hosts: add --hosts "
                           "NAMES");
    if (status) return cli_fail();
    if (!l.out) l.out = "run";
    if (!l.hosts) check_machine(&v);
    if (l.hosts) status = checkup_hosts(&v, &l);
    if (v.fixes.data) printf("to fix:\n%s", v.fixes.data);
    text_free(&v.fixes);
    if (status) return cli_fail();
    printf("%s\n", v.count[BROKEN]    ? "something is broken"
                   : v.count[WARNING] ? "it works, with the warnings above"
                                      : "all is well");
    return v.count[BROKEN] ? TRI_FAILED : TRI_OK;
}

static void more(struct text *out) {
    options_describe((const struct option_row *const[]){launch_rows, rows, NULL}, USE_DOCTOR, "all",
                     out);
    options_paragraph("With --hosts it checks several hosts instead, before a run over them: a "
                      "process of this program on each answers what it has, and tries the ways to "
                      "all others.", out);
    options_paragraph("The exit status is 1 if something is broken. Warnings do not count.", out);
}

const struct command command_doctor = {
    .name = "doctor",
    .arguments = "[--hosts NAMES [options]]",
    .help = "check this machine and its devices, or several hosts; say what to fix",
    .more = more,
    .run = run,
};
