/* SPDX-License-Identifier: Apache-2.0
 * trireme doctor --hosts: what would hinder a run over these hosts, and how to mend it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/doctor.h"
#include "launch/probes.h"
#include "observe/json.h"

#define ALL_PAIRS 6 /* hosts, up to which all pairs are measured */
#define SECONDS 0.3 /* of each */

struct visit {
    struct checkup *checkup;
    struct probes *p;
    const char *check; /* its name in the lines */
    int faults;        /* of this check */
    struct text list;  /* of what is well: "h0 ..., h1 ..." */
};

/* fix: nullable. */
static void tell(struct visit *v, enum health health, const char *fix, const char *what, ...)
    TRI_PRINTF(4, 5);
static void tell(struct visit *v, enum health health, const char *fix, const char *what, ...) {
    struct finding f = {.health = health};
    char line[2000];
    va_list args;
    va_start(args, what);
    base_format_list(line, sizeof line, what, args);
    va_end(args);
    text_add_escaped(&f.what, line); /* it may have come from a host */
    if (fix) text_add(&f.fix, "%s", fix);
    v->faults += health != WELL;
    checkup_print(v->checkup, v->check, &f);
}

static void list(struct visit *v, const char *name, const char *what) {
    text_add(&v->list, "%s%s%s%s", v->list.size ? ", " : "", name, *what ? " " : "", what);
}

static void begin(struct visit *v, const char *check) {
    text_free(&v->list);
    v->list = (struct text){0};
    v->check = check;
    v->faults = 0;
}

/* The next of the hosts that have answered. */
static struct probe_host *next_host(const struct visit *v, struct probe_host *h) {
    struct probe_host *const end = v->p->host + v->p->n;
    for (h = h ? h + 1 : v->p->host; h < end; h++)
        if (h->about) return h;
    return NULL;
}
#define EACH_HOST(h) struct probe_host *h = next_host(v, NULL); h; h = next_host(v, h)

/* ---- the hosts ---- */

static void how_to_start(const struct visit *v, const struct probe_host *h, char fix[5000]) {
    const char *command = v->p->launch->launcher;
    if (h->code == 126 || h->code == 127)
        base_format(fix, 5000, "install Trireme at the same path on all hosts, here %s",
                    v->p->starter.program);
    else if (strstr(h->said, "unknown command"))
        base_format(fix, 5000, "install the same version on all hosts");
    else if (strstr(h->said, "denied") || strstr(h->said, "verification failed"))
        base_format(fix, 5000, "ssh must ask nothing: accept the host's key once, ssh-keygen, "
                    "ssh-copy-id %s", h->name);
    else
        base_format(fix, 5000, "`%s %s true` must work without a question, and soon", command
                    ? command : "ssh", h->name);
}

static void check_start(struct visit *v) {
    char fix[5000];
    for (const struct probe_host *h = v->p->host; h < v->p->host + v->p->n; h++) {
        if (h->about) list(v, h->name, "");
        else how_to_start(v, h, fix);
        if (!h->about) tell(v, BROKEN, fix, "%s: %s", h->name, h->why);
    }
    if (v->list.size) tell(v, WELL, NULL, "%s: started", v->list.data);
}

/* What hosts say of themselves (launch/probe.h). */
static const struct fact {
    const char *name;
    enum health health; /* if it is wrong, or differs though it should not */
    const char *fix;
    const char *own;     /* what it must be everywhere; null: anything */
    const char *differs; /* what is added if it differs; null: it may */
} facts[] = {
    {"version", BROKEN, "install the same version on all hosts", .own = TRI_VERSION,
     .differs = "; this machine " TRI_VERSION},
    {"instructions", WELL, NULL,
     .differs = ": f32 gives the same bits on all; --math native and bf16 need the same"},
    {"names", WARNING, "a name should lead to the same host everywhere (DNS, /etc/hosts); a run by "
     "ssh needs that on this machine alone, `trireme join NAME:PORT` and launchers on all",
     .own = NULL},
    {"key", BROKEN, "`trireme ckpt key FILE` makes a key; copy it to all hosts, mode 600",
     .own = NULL},
    {"memory", WARNING, "`trireme memory MODEL --hosts NAMES` prints what a host needs",
     .own = NULL},
    {"disk", BROKEN, "make room for logs and checkpoints, or name another place: --out DIR, "
     "--chdir DIR", .own = NULL},
};

static void check_fact(struct visit *v, const struct fact *f) {
    const char *first = f->own;
    bool differ = false;
    begin(v, f->name);
    for (EACH_HOST(h)) {
        const char *has = json_text_of(h->about, f->name),
                   *wrong = json_text_of(json_object_get(h->about, "wrong"), f->name);
        if (*wrong) tell(v, f->health, f->fix, "%s: %s", h->name, wrong);
        if (*wrong || !*has) continue;
        if (!first) first = has;
        differ |= strcmp(first, has) != 0;
        list(v, h->name, has);
    }
    if (!v->list.size) return;
    if (!differ) tell(v, WELL, NULL, "%s on %s", first, v->faults ? "the others" : "all");
    else if (!f->differs) tell(v, WELL, NULL, "%s", v->list.data);
    else tell(v, f->health, f->fix, "%s%s", v->list.data, f->differs);
}

static void check_clocks(struct visit *v) {
    double most = 0;
    begin(v, "clocks");
    for (EACH_HOST(h)) {
        most = fmax(most, fabs(h->ahead));
        if (fabs(h->ahead) > LAUNCH_LEASE)
            tell(v, WARNING, "set the clocks by NTP: they put the logs of all hosts in order",
                 "that of %s is %.1f s %s this machine's", h->name, fabs(h->ahead),
                 h->ahead > 0 ? "before" : "after");
    }
    if (!v->faults) tell(v, WELL, NULL, "at most %.4f s apart from this machine's", most);
}

static void check_sharing(struct visit *v) {
    const char *out = v->p->launch->out;
    int hosts = 0, shared = 0;
    begin(v, "directory");
    for (EACH_HOST(h)) {
        hosts++;
        for (int k = (int)(h - v->p->host) + 1; k < v->p->n; k++) {
            if (!json_is_true(json_array_get(h->sees, (size_t)k))) continue;
            shared++;
            text_add(&v->list, "%s%s with %s", shared > 1 ? ", " : "", h->name, v->p->host[k].name);
        }
    }
    if (hosts < 2) return;
    if (!shared) tell(v, WELL, NULL, "each host has its own %s; the teller has checkpoints", out);
    else if (shared == hosts * (hosts - 1) / 2) tell(v, WELL, NULL, "the hosts share %s", out);
    else tell(v, WELL, NULL, "some hosts share %s: %s", out, v->list.data);
}

/* ---- the ways between them ---- */

static const char *explained(const json_t *reach) {
    const char *how = json_text_of(reach, "how"), *error = json_text_of(reach, "error");
    return !*how                    ? *error ? error : "it did not answer"
           : !strcmp(how, "refused")  ? "refused: nothing listens, or a firewall answers"
           : !strcmp(how, "silent") ? "silent: a firewall drops what is sent"
           : strcmp(how, "reached") ? how
           : *error                 ? error
                                    : NULL;
}

/* The later host opens the connection, in which the earlier one answers. */
static void check_way(struct visit *v, const struct probe_host *h, int k, const char *to,
                      const char *address, const char *fix) {
    const char *why = h->reach[k] ? explained(h->reach[k]) : NULL;
    const bool needed = k == v->p->n || k < h - v->p->host;
    if (why)
        tell(v, needed ? BROKEN : WARNING, fix, "%s to %s at %s: %s%s", h->name, to, address, why,
             needed ? "" : " (a run does without this direction)");
}

static void check_ports(struct visit *v) {
    const char *ports = v->p->launch->ports;
    char fix[300];
    base_format(fix, sizeof fix, "let TCP%s%s through between all hosts and this machine%s",
                ports ? " to the ports " : "", ports ? ports : "",
                ports ? "" : "; --port A-B limits them, --interface names another network");
    begin(v, "ports");
    for (EACH_HOST(h)) {
        check_way(v, h, v->p->n, "the coordinator here", h->to, fix);
        if (*h->trouble)
            tell(v, BROKEN, "each host needs a free port, this machine two, and a network to the "
                 "others: --port A-B, --interface NAME", "%s: %s", h->name, h->trouble);
        for (int k = 0; k < v->p->n; k++)
            check_way(v, h, k, v->p->host[k].name, v->p->host[k].address, fix);
        list(v, h->name, h->address);
    }
    if (!v->faults) tell(v, WELL, NULL, "each reaches the others and the coordinator: %s",
                         v->list.data);
}

static tri_status check_links(struct visit *v) {
    struct probes *p = v->p;
    struct link_speed link;
    begin(v, "link");
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->n; k++) {
            const bool wanted = p->n <= ALL_PAIRS ? i != k : k == (i + 1) % p->n;
            if (!wanted || !probes_joined(p, i, k)) continue;
            tri_status status = probes_measure(p, i, k, SECONDS, &link);
            if (p->interrupted) return status;
            if (status)
                tell(v, BROKEN, "this network loses what is sent: look at both ends and what is "
                     "between them", "%s to %s: %s", p->host[i].name, p->host[k].name,
                     tri_message());
            else
                tell(v, WELL, NULL, "%s to %s: %.3f ms, %.1f MB/s, %.2f s of processors per GB",
                     link.from, link.to, 1e3 * link.latency, 1e-6 * link.bandwidth, link.cpu);
        }
    return TRI_OK;
}

tri_status checkup_hosts(struct checkup *checkup, const struct launch *l) {
    static struct probes p;
    struct visit visit = {.checkup = checkup, .p = &p}, *v = &visit;
    tri_status status = probes_open(l, &p);
    begin(v, "hosts");
    if (!status) check_start(v);
    const bool any = !status && next_host(v, NULL);
    for (size_t i = 0; any && i < COUNT(facts); i++) check_fact(v, &facts[i]);
    if (any && !v->faults) check_sharing(v); /* all could write */
    if (any) check_clocks(v);
    if (any) status = probes_connect(&p);
    if (any && !status) check_ports(v);
    if (any && !status) status = check_links(v);
    text_free(&v->list);
    probes_close(&p);
    return status;
}
