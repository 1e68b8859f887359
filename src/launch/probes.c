/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/probes.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/probe.h"
#include "launch/run_key.h"
#include "link/control.h"
#include "link/sockets.h"
#include "observe/json.h"

#define LONGEST (1 << 20)  /* bytes of a line */
#define END_BY_ITSELF 1000 /* milliseconds in which a probe must end when its stdin is closed */

/* ---- what comes from a host ---- */

static void take_line(struct probe_host *h, char *line) {
    json_t *a = h->asked && *line == '{' ? json_loads(line, 0, NULL) : NULL;
    line[strcspn(line, "\r")] = 0;
    if (!a && *line) base_format(h->said, sizeof h->said, "%s", line);
    if (!a) return;
    const int64_t took = base_realtime() - h->asked_at;
    if (!h->fastest || took < h->fastest) {
        h->fastest = took;
        h->ahead = 1e-9 * (double)(json_whole_of(a, "time", 0) - h->asked_at - took / 2);
    }
    h->answer = a;
    h->asked = false;
}

static void read_host(struct probe_host *h) {
    char some[4096], *end;
    ssize_t n;
    while ((n = read(h->out, some, sizeof some)) > 0) {
        text_add_bytes(&h->got, some, (size_t)n);
        while (h->got.size && (end = memchr(h->got.data, '\n', h->got.size))) {
            *end++ = 0;
            take_line(h, h->got.data);
            h->got.size -= (size_t)(end - h->got.data);
            memmove(h->got.data, end, h->got.size);
        }
        if (h->got.size > LONGEST) h->got.size = 0;
    }
    if (!n || errno != EAGAIN) {
        close(h->out);
        h->out = -1;
    }
}

/* What it has said last is complete then. */
static void ended(struct probe_host *h, int status) {
    if (h->out >= 0) read_host(h);
    h->pid = 0;
    h->asked = false;
    if (WIFEXITED(status)) h->code = WEXITSTATUS(status);
    if (*h->why) return;
    if (WIFSIGNALED(status))
        base_format(h->why, sizeof h->why, "what was started there was killed by signal %d",
                    WTERMSIG(status));
    else
        base_format(h->why, sizeof h->why, "what was started there exited with %d%s%s", h->code,
                    *h->said ? ": " : "", h->said);
}

/* Returns whether any process is left. */
static bool take_signals(struct probes *p) {
    struct signalfd_siginfo s;
    bool left = false;
    while (read(p->signals, &s, sizeof s) == (ssize_t)sizeof s)
        p->interrupted |= s.ssi_signo != SIGCHLD;
    for (struct probe_host *h = p->host; h < p->host + p->n; h++) {
        int status;
        if (h->pid && waitpid(h->pid, &status, WNOHANG) == h->pid) ended(h, status);
        left |= h->pid > 0;
    }
    return left;
}

/* ---- questions ---- */

static void ask(struct probe_host *h, json_t *question) {
    char *line = *h->why ? NULL : json_dumps(question, JSON_COMPACT);
    json_decref(question);
    json_decref(h->answer);
    h->answer = NULL;
    h->asked = line;
    h->asked_at = base_realtime();
    if (line) dprintf(h->in, "%s\n", line); /* one that has ended is found by its exit */
    free(line);
}

/* Waits for the answers to what was asked, `seconds` beside the usual patience. */
static tri_status hear(struct probes *p, double seconds) {
    const int64_t end = base_now() + (int64_t)(1e9 * (PROBES_PATIENCE + seconds));
    for (;;) {
        struct pollfd on[HOSTS_MOST + 1];
        bool waits = false;
        take_signals(p);
        if (p->interrupted) return base_fail(TRI_FAILED, "interrupted");
        for (int i = 0; i < p->n; i++) {
            waits |= p->host[i].asked;
            on[i] = (struct pollfd){p->host[i].asked ? p->host[i].out : -1, POLLIN, 0};
        }
        const int64_t left = end - base_now();
        if (!waits || left <= 0) break;
        on[p->n] = (struct pollfd){p->signals, POLLIN, 0};
        poll(on, (nfds_t)p->n + 1, (int)(left / 1000000) + 1);
        for (int i = 0; i < p->n; i++)
            if (on[i].revents) read_host(&p->host[i]);
    }
    for (struct probe_host *h = p->host; h < p->host + p->n; h++) {
        if (h->asked)
            base_format(h->why, sizeof h->why, "it did not answer for %g s%s%s",
                        PROBES_PATIENCE + seconds, *h->said ? ": " : "", h->said);
        h->asked = false;
    }
    return TRI_OK;
}

/* Why the latest question has no answer; null: it has one. */
static const char *failure(const struct probe_host *h) {
    const char *error = json_text_of(h->answer, "error");
    return !h->answer ? *h->why ? h->why : "out of memory" : *error ? error : NULL;
}

/* ---- what the hosts are ---- */

static void file_name(const struct probes *p, int host, char to[64]) {
    base_format(to, 64, ".trireme-%s-%d", p->nonce, host);
}

static tri_status ask_what_they_are(struct probes *p) {
    const struct launch *l = p->launch;
    char cwd[4096], file[64], hash[PROBE_HASH] = "";
    json_t *names = json_array();
    tri_status status = l->key ? probe_hash_key(l->key, p->nonce, hash) : TRI_OK;
    if (!status && !getcwd(cwd, sizeof cwd))
        status = base_fail(TRI_FAILED, "the current directory: %s", strerror(errno));
    for (int i = 0; i < p->n; i++) json_array_append_new(names, json_text(p->host[i].name));
    for (int i = 0; i < p->n && !status; i++) {
        file_name(p, i, file);
        ask(&p->host[i],
            json_pack("{ss sO si ss ss? ss ss ss? ss}", "ask", "describe", "names", names, "host",
                      i, "directory", l->chdir ? l->chdir : cwd, "out", l->out, "file", file,
                      "nonce", p->nonce, "key", l->key, "hash", hash));
    }
    json_decref(names);
    if (!status) status = hear(p, 0);
    for (int i = 0; i < p->n && !status; i++) {
        struct probe_host *h = &p->host[i];
        if (!failure(h)) h->about = json_incref(h->answer);
        else if (!*h->why) base_format(h->why, sizeof h->why, "%s", failure(h));
    }
    return status;
}

static tri_status ask_what_they_see(struct probes *p) {
    char file[64];
    json_t *files = json_array();
    for (int i = 0; i < p->n; i++) {
        file_name(p, i, file);
        json_array_append_new(files, json_text(file));
    }
    for (int i = 0; i < p->n; i++)
        ask(&p->host[i], json_pack("{ss sO}", "ask", "look", "files", files));
    json_decref(files);
    tri_status status = hear(p, 0);
    for (int i = 0; i < p->n; i++)
        p->host[i].sees = json_incref(json_object_get(p->host[i].answer, "sees"));
    return status;
}

tri_status probes_open(const struct launch *l, struct probes *p) {
    uint8_t key[LINK_KEY];
    *p = (struct probes){.launch = l, .signals = -1};
    tri_status status = host_list_read(l->hosts, &p->list);
    if (!status) status = launch_ports(l->ports, p->port);
    if (!status) status = run_key_make(NULL, key);
    if (!status) status = starter_open(l, key, &p->starter);
    if (status) return status;
    randombytes_buf(key, sizeof key);
    sodium_bin2hex(p->nonce, sizeof p->nonce, key, sizeof p->nonce / 2);
    signal(SIGPIPE, SIG_IGN);
    p->signals = launch_block_signals(&p->mask);
    if (p->signals < 0) return base_fail(TRI_FAILED, "signals: %s", strerror(errno));
    for (; p->n < p->list.n; p->n++) {
        struct probe_host *h = &p->host[p->n];
        *h = (struct probe_host){.name = p->list.host[p->n].name, .code = -1, .in = -1, .out = -1};
        if (starter_probe(&p->starter, h->name, &h->in, &h->out, &h->pid))
            base_format(h->why, sizeof h->why, "%s", tri_message());
        else
            fcntl(h->out, F_SETFL, O_NONBLOCK);
    }
    status = ask_what_they_are(p);
    if (!status && l->out) status = ask_what_they_see(p);
    return status;
}

/* ---- the way between them ---- */

/* Each host reaches the coordinator, as an agent does; or the host that is so many numbers on. */
static tri_status reach(struct probes *p, int apart) {
    bool asked[HOSTS_MOST];
    for (int i = 0; i < p->n; i++) {
        struct probe_host *h = &p->host[i];
        const int k = (i + apart) % p->n;
        const char *to = !apart ? h->to : *h->address ? p->host[k].address : "";
        asked[i] = *to && h->about;
        if (asked[i])
            ask(h, json_pack("{ss ss si}", "ask", "reach", "to", to, "host", apart ? k : p->n));
    }
    tri_status status = hear(p, 3 * PROBE_SILENT);
    for (int i = 0; i < p->n && !status; i++) {
        struct probe_host *h = &p->host[i];
        if (!asked[i]) continue;
        h->reach[apart ? (i + apart) % p->n : p->n] =
            h->answer ? json_incref(h->answer) : json_pack("{ss}", "error", failure(h));
    }
    return status;
}

/* At the address from which the coordinator was reached, as a ferry does. */
static tri_status let_listen(struct probes *p) {
    for (int i = 0; i < p->n; i++) {
        struct probe_host *h = &p->host[i];
        const char *own = json_text_of(h->reach[p->n], "own");
        if (*own)
            ask(h, json_pack("{ss ss s[ii] si si ss sb sI}", "ask", "listen", "address", own,
                             "port", p->port[0], p->port[1], "host", i, "hosts", p->n,
                             "key", p->starter.key, "open", p->launch->wire_open, "most",
                             (json_int_t)p->most));
    }
    tri_status status = hear(p, 0);
    for (int i = 0; i < p->n; i++) {
        struct probe_host *h = &p->host[i];
        if (!*json_text_of(h->reach[p->n], "own")) continue;
        if (failure(h)) base_format(h->trouble, sizeof h->trouble, "%s", failure(h));
        else base_format(h->address, sizeof h->address, "%s", json_text_of(h->answer, "address"));
    }
    return status;
}

tri_status probes_connect(struct probes *p) {
    uint8_t key[LINK_KEY];
    char own[64];
    const struct control_options o = {.key = key, .listens = true, .address = "::",
                                      .port = {p->port[0], p->port[1]}};
    tri_status status = run_key_make(NULL, key);
    if (!status) status = control_open(&o, &p->control);
    for (int i = 0; i < p->n && !status; i++) {
        struct probe_host *h = &p->host[i];
        if (!starter_address_for(&p->list, i, p->launch->interface, own))
            socket_put_port(h->to, sizeof h->to, own, control_port(p->control));
        else base_format(h->trouble, sizeof h->trouble, "%s", tri_message());
    }
    if (!status) status = reach(p, 0);
    if (!status) status = let_listen(p);
    for (int apart = 1; apart < p->n && !status; apart++) status = reach(p, apart);
    return status;
}

bool probes_joined(const struct probes *p, int a, int b) {
    const json_t *reach = p->host[a > b ? a : b].reach[a > b ? b : a];
    return !strcmp(json_text_of(reach, "how"), "reached") && !*json_text_of(reach, "error");
}

tri_status probes_measure(struct probes *p, int from, int to, double seconds,
                          struct link_speed *out) {
    struct probe_host *h = &p->host[from];
    if (!probes_joined(p, from, to))
        return base_fail(TRI_FAILED, "they have no connection; `trireme doctor --hosts NAMES` says "
                         "why");
    ask(h, json_pack("{ss si sf}", "ask", "measure", "host", to, "seconds", seconds));
    tri_status status = hear(p, seconds);
    if (status) return status;
    if (failure(h)) return base_fail(TRI_FAILED, "%s", failure(h));
    *out = (struct link_speed){.latency = json_number_of(h->answer, "latency", 0),
                               .bandwidth = json_number_of(h->answer, "bandwidth", 0),
                               .cpu = json_number_of(h->answer, "cpu", 0)};
    base_format(out->from, sizeof out->from, "%s", h->name);
    base_format(out->to, sizeof out->to, "%s", p->host[to].name);
    return TRI_OK;
}

tri_status probes_sum(struct probes *p, const struct probes_sums *of, struct sum_speed *out) {
    for (int i = 0; i < p->n; i++)
        ask(&p->host[i], json_pack("{ss ss sI si sf}", "ask", "sum", "path", path_name(of->path),
                                   "bytes", (json_int_t)of->bytes, "sums", of->n, "seconds",
                                   of->seconds));
    tri_status status = hear(p, of->seconds);
    double cpu = 0, all = 0;
    *out = (struct sum_speed){0};
    for (int i = 0; i < p->n && !status; i++) {
        const struct probe_host *h = &p->host[i];
        if (failure(h)) return base_fail(TRI_FAILED, "%s: %s", h->name, failure(h));
        const double sent = json_number_of(h->answer, "sent", 0);
        out->seconds = fmax(out->seconds, json_number_of(h->answer, "took", 0));
        out->bytes = fmax(out->bytes, fmax(sent, json_number_of(h->answer, "received", 0)));
        cpu += json_number_of(h->answer, "cpu", 0);
        all += sent;
    }
    out->cpu = 1e9 * cpu / all;
    return status;
}

/* ---- the end ---- */

/* Probes end with their stdin; of those that have not begun, ssh may wait for a host. */
void probes_close(struct probes *p) {
    static const int signals[] = {SIGTERM, SIGKILL};
    for (struct probe_host *h = p->host; h < p->host + p->n; h++)
        if (h->in >= 0) close(h->in);
    for (size_t i = 0; i <= COUNT(signals) && take_signals(p); i++) {
        const int64_t end = base_now() + END_BY_ITSELF * INT64_C(1000000);
        for (int64_t left; take_signals(p) && (left = end - base_now()) > 0;)
            poll(&(struct pollfd){p->signals, POLLIN, 0}, 1, (int)(left / 1000000) + 1);
        for (struct probe_host *h = p->host; h < p->host + p->n && i < COUNT(signals); h++)
            if (h->pid) kill(-h->pid, signals[i]);
    }
    for (struct probe_host *h = p->host; h < p->host + p->n; h++) {
        if (h->out >= 0) close(h->out);
        json_decref(h->about);
        json_decref(h->sees);
        json_decref(h->answer);
        for (int k = 0; k <= p->n; k++) json_decref(h->reach[k]);
        text_free(&h->got);
    }
    control_close(p->control);
    starter_close(&p->starter);
    if (p->signals < 0) return;
    close(p->signals);
    sigprocmask(SIG_SETMASK, &p->mask, NULL);
}
