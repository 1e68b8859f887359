/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/coordinate.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crew/messages.h"
#include "launch/coordinator.h"
#include "launch/host_list.h"
#include "launch/links.h"
#include "launch/meeting.h"
#include "launch/requests.h"
#include "launch/run_key.h"
#include "launch/starter.h"
#include "link/control.h"
#include "link/sockets.h"

#define TICK 50 /* milliseconds */

struct coordinating {
    const struct launch *launch;
    struct host_list list;
    struct coordinator_host named[HOSTS_MOST];
    struct control *control;
    uint64_t run; /* its number */
    struct coordinator *coordinator;
    struct starter starter;
    struct started {
        pid_t pid; /* 0: it has ended */
        bool joined;
    } host[HOSTS_MOST];
    int signals;
    sigset_t old_mask;
    int asked; /* how often it was asked to stop */
    bool own_waits; /* this machine's agent is started when its address is known */
    tri_status failed;
};

/* ---- what the coordinator does ---- */

static void say(void *user, const char *line) {
    (void)user;
    fprintf(stderr, "trireme: %s\n", line);
}

static void give_up(struct coordinating *c, tri_status status) {
    if (!status || c->failed) return;
    c->failed = status;
    say(c, tri_message());
}

static void send_message(void *user, int conn, const struct host_message *m) {
    struct coordinating *c = user;
    struct text t = {0};
    tri_status status = host_message_put(m, &t);
    if (!status) status = control_send(c->control, conn, t.data, t.size);
    text_free(&t);
    give_up(c, status);
}

static void close_connection(void *user, int conn) {
    struct coordinating *c = user;
    control_finish(c->control, conn);
}

static void address_text(const struct coordinating *c, const char *host, char to[80]) {
    socket_put_port(to, 80, host, control_port(c->control));
}

static void answer(struct coordinating *c, int conn, const struct host_message *request) {
    static struct request_texts texts;
    struct host_message m = {.kind = HOST_ANSWER, .time = request->time};
    request_answer(c->coordinator, c->list.n, request->text, base_now(), &texts, &m);
    if (coordinator_has(c->coordinator, conn)) send_message(c, conn, &m); /* or it was evicted */
}

static void arrived(struct coordinating *c, const struct control_event *e) {
    struct host_message m = {0};
    if (host_message_get(e->bytes, e->n, &m)) {
        coordinator_ended(c->coordinator, e->conn, tri_message(), base_now());
        control_end(c->control, e->conn);
    } else if (m.kind == HOST_REQUEST && coordinator_has(c->coordinator, e->conn)) {
        answer(c, e->conn, &m);
    } else {
        for (int i = 0; m.kind == HOST_HELLO && i < c->list.n; i++)
            c->host[i].joined |= !strcmp(m.name, c->list.host[i].name);
        coordinator_arrived(c->coordinator, e->conn, &m, base_now());
    }
    host_message_free(&m);
}

/* As another host reaches it: see starter_address_for. */
static tri_status start_own(struct coordinating *c, int conn) {
    char own[LINK_ADDRESS], address[80];
    control_own_address(c->control, conn, own);
    c->own_waits = false;
    address_text(c, own, address);
    tri_status status = starter_start(&c->starter, c->list.host[0].name, address, &c->host[0].pid);
    starter_close(&c->starter);
    return status;
}

static tri_status take_events(struct coordinating *c) {
    for (;;) {
        struct control_event e = {0};
        tri_status status = control_next(c->control, &e);
        if (status || e.what == CONTROL_NOTHING) return status;
        if (e.what == CONTROL_JOINED && c->own_waits) give_up(c, start_own(c, e.conn));
        else if (e.what == CONTROL_ARRIVED) arrived(c, &e);
        else if (e.what == CONTROL_ENDED) coordinator_ended(c->coordinator, e.conn, e.why,
                                                            base_now());
        else if (e.what == CONTROL_REFUSED) say(c, e.why);
    }
}

/* ---- signals, and what it has started ---- */

static void stop(struct coordinating *c, int sig) {
    if (c->asked++) {
        say(c, "second signal: all hosts are left at once, and nothing is saved");
        c->failed = (tri_status)AGENT_RESUMABLE;
        return;
    }
    fprintf(stderr, "trireme: %s: " RUN_ENDS_SOON "\n",
            sig == SIGINT ? "interrupted" : sig == SIGTERM ? "asked to end" : "hung up");
    coordinator_ask(c->coordinator, HOST_STOP, base_now());
}

static void process_ended(struct coordinating *c, int i, int status) {
    const char *name = c->list.host[i].name;
    int code;
    c->host[i].pid = 0;
    if (c->host[i].joined || c->failed) return; /* its connection ends, too */
    if (coordinator_is_over(c->coordinator, &code)) return;
    if (WIFSIGNALED(status))
        base_fail(TRI_FAILED, "host %s: what was started there was killed by signal %d before it "
                  "joined", name, WTERMSIG(status));
    else if (host_list_is_here(name))
        base_fail(TRI_USAGE, "host %s: what was started there exited with %d before it joined",
                  name, WEXITSTATUS(status));
    else
        base_fail(TRI_USAGE, "host %s: what was started there exited with %d before it joined; "
                  "does `%s %s true` work, and is this program there at the same path?", name,
                  WEXITSTATUS(status), c->launch->launcher ? c->launch->launcher : "ssh", name);
    give_up(c, base_last());
}

static void reap(struct coordinating *c, int how) {
    for (int i = 0; i < c->list.n; i++) {
        int status;
        pid_t pid = c->host[i].pid;
        if (pid && waitpid(pid, &status, how) == pid) process_ended(c, i, status);
    }
}

static void read_signals(struct coordinating *c) {
    struct signalfd_siginfo s;
    while (read(c->signals, &s, sizeof s) == (ssize_t)sizeof s)
        if (s.ssi_signo != SIGCHLD && !c->failed) stop(c, (int)s.ssi_signo);
    reap(c, WNOHANG);
}

static tri_status open_signals(struct coordinating *c) {
    signal(SIGPIPE, SIG_IGN); /* what it starts may end before it has read its key */
    c->signals = launch_block_signals(&c->old_mask);
    return c->signals < 0 ? base_fail(TRI_FAILED, "cannot wait for signals: %s", strerror(errno))
                          : TRI_OK;
}

/* ---- the beginning ---- */

static tri_status check_link(const struct launch *l) {
    const struct link_row *row;
    tri_status status = link_row_find(l->link, &row);
    if (!status && l->wire_open)
        fprintf(stderr, "trireme: --wire-open: whoever reaches the ports of the hosts can change "
                "the sums\n");
    if (!status && l->link == LINK_UCX)
        fprintf(stderr, "trireme: --link ucx: UCX's own ports trust everybody who reaches them; "
                "whoever does can end a host's ferry, which is replaced\n");
    return status;
}

/* What `--path auto` chooses by. With two hosts no path is faster than the exchange. */
static tri_status find_links(const struct host_list *hosts, struct launch *l) {
    struct path_link link;
    tri_status status = launch_check_path(l, hosts->n);
    if (status || l->path || hosts->n < 3) return status;
    status = links_slowest(hosts, &link);
    l->path_latency = link.latency;
    l->path_bandwidth = link.bandwidth;
    l->path_cpu = link.cpu;
    if (!status && !(link.bandwidth > 0) && !l->given)
        fprintf(stderr, "trireme: %s\n", LINKS_UNKNOWN);
    return status;
}

static tri_status listen(struct coordinating *c, const uint8_t *key) {
    struct control_options o = {.key = key, .listens = true, .address = "::"};
    const struct given *g = c->launch->given;
    tri_status status = launch_ports(g && *g->address ? strrchr(g->address, ':') + 1
                                                      : c->launch->ports, o.port);
    return status ? status : control_open(&o, &c->control);
}

/* The variables that remote hosts get, in `env`. */
static tri_status add_variables(const struct launch *l, struct host_texts *env) {
    extern char **environ;
    int n = 0;
    while (environ[n]) n++;
    env->text = calloc((size_t)n + 1, sizeof *env->text);
    if (!env->text) return base_no_memory("variables for the hosts");
    for (int k = 0; k < l->n_env; k++)
        if (!getenv(l->env[k]))
            return base_fail(TRI_USAGE, "--env %s: this process has no such variable%s", l->env[k],
                             strchr(l->env[k], '=') ? "; --env takes a name, and the value that "
                                                      "the variable has here" : "");
    for (int i = 0; i < n; i++) {
        size_t name = strcspn(environ[i], "=");
        bool wanted = !strncmp(environ[i], "TRIREME_", 8);
        for (int k = 0; k < l->n_env && !wanted; k++)
            wanted = strlen(l->env[k]) == name && !strncmp(environ[i], l->env[k], name);
        if (wanted) env->text[env->n++] = environ[i];
    }
    return TRI_OK;
}

static int count_words(char *const *words) {
    int n = 0;
    while (words[n]) n++;
    return n;
}

static tri_status open_coordinator(struct coordinating *c, struct host_texts *env) {
    static char cwd[PATH_MAX]; /* as texts of the launch are, borrowed until the end */
    static struct host_launch launch;
    static struct host_number number[LAUNCH_NUMBERS];
    const struct launch *l = c->launch;
    if (l->chdir) base_format(cwd, sizeof cwd, "%s", l->chdir);
    else if (!getcwd(cwd, sizeof cwd))
        return base_fail(TRI_FAILED, "the working directory has no path: %s", strerror(errno));
    launch = (struct host_launch){
        .program = l->program ? l->program : "", .cwd = cwd, .out = l->out ? l->out : "",
        .title = l->title ? l->title : "", .on_event = l->on_event ? l->on_event : "",
        .argv = {count_words(l->argv), (const char **)(uintptr_t)l->argv}, .env = *env,
        .n_numbers = launch_numbers_put(l, number), .number = number};
    for (int i = 0; i < c->list.n; i++)
        c->named[i] = (struct coordinator_host){
            c->list.host[i].name,
            c->list.host[i].workers ? c->list.host[i].workers : l->workers};
    struct coordinator_options o = {
        .n = c->list.n, .host = c->named, .version = TRI_VERSION, .launch = &launch,
        .lease = (int64_t)(1e9 * (l->lease > 0 ? l->lease : LAUNCH_LEASE)),
        .connect_timeout = (int64_t)(1e9 * (l->given ? l->start_timeout : 60)),
        .start_timeout = (int64_t)(1e9 * l->start_timeout),
        .user = c, .send = send_message, .close = close_connection, .say = say};
    randombytes_buf(&o.run, sizeof o.run);
    c->run = o.run;
    return coordinator_open(&o, base_now(), &c->coordinator);
}

/* Those that a launcher has started find the coordinator, or it is where they have been told. */
static tri_status expect_hosts(struct coordinating *c) {
    const struct launch *l = c->launch;
    char own[64], address[80];
    c->starter.here = c->list.host[0].name;
    c->own_waits = *l->given->address && !l->interface;
    if (c->own_waits) return TRI_OK;
    tri_status status = starter_address(c->list.host[1].name, l->interface, own);
    if (status) return status;
    address_text(c, own, address);
    if (!*l->given->address)
        status = meeting_announce(l->given, l->out, address, l->key ? NULL : c->starter.key);
    return status ? status
                  : starter_start(&c->starter, c->list.host[0].name, address, &c->host[0].pid);
}

static tri_status start_hosts(struct coordinating *c) {
    char own[64], address[80] = "";
    tri_status status = TRI_OK;
    if (c->launch->given) return expect_hosts(c);
    for (int i = 0; i < c->list.n && !status; i++) {
        status = starter_address_for(&c->list, i, c->launch->interface, own);
        if (status) break;
        address_text(c, own, address);
        status = starter_start(&c->starter, c->list.host[i].name, address, &c->host[i].pid);
    }
    if (!status && c->launch->key)
        fprintf(stderr, "trireme: a host that has gone joins again with: trireme join %s --key %s "
                "--name HOST\n", address, c->launch->key);
    return status;
}

/* ---- the loop ---- */

/* Waits for what comes next, for a TICK at most. */
static tri_status take_all(struct coordinating *c) {
    struct pollfd sources[] = {{c->signals, POLLIN, 0}, {control_fd(c->control), POLLIN, 0}};
    poll(sources, COUNT(sources), TICK);
    tri_status status = take_events(c);
    read_signals(c);
    return status;
}

static int supervise(struct coordinating *c) {
    int code = 1;
    while (!c->failed && !coordinator_is_over(c->coordinator, &code)) {
        give_up(c, take_all(c));
        if (!c->failed) coordinator_tick(c->coordinator, base_now());
    }
    return c->failed ? (int)c->failed : code;
}

static bool any_left(const struct coordinating *c) {
    for (int i = 0; i < c->list.n; i++)
        if (c->host[i].pid) return true;
    return false;
}

#define AT_ONCE 1000000000 /* nanoseconds that hosts have to end when they are not to save */
#define LAST 5000000000    /* and then to be gone */

/* All hosts have been told. What does not end by itself is ended, as whatever has started a host
 * that has gone. */
static void end_hosts(struct coordinating *c) {
    int64_t end = base_now() + (int64_t)(1e9 * c->launch->grace);
    bool told[HOSTS_MOST] = {false}, at_once = false;
    while ((any_left(c) || coordinator_has(c->coordinator, -1)) && base_now() < end + LAST) {
        if (c->failed && !at_once) {
            coordinator_ask(c->coordinator, HOST_KILL, base_now());
            at_once = true;
            end = base_now() + AT_ONCE;
        }
        for (int i = 0; i < c->list.n; i++) {
            const bool waits = coordinator_takes_part(c->coordinator, i) && base_now() < end;
            if (!c->host[i].pid || told[i] || waits) continue;
            kill(-c->host[i].pid, SIGTERM);
            told[i] = true;
        }
        take_all(c); /* also of a host that is too late */
    }
    for (int i = 0; i < c->list.n; i++)
        if (c->host[i].pid) kill(-c->host[i].pid, SIGKILL);
    reap(c, 0);
}

static tri_status list_hosts(const struct launch *l, struct host_list *to) {
    if (!l->given) return host_list_read(l->hosts, to);
    if (!*l->given->address) return meeting_collect(l->given, l->out, l->start_timeout, to);
    to->n = l->given->hosts;
    for (int i = 0; i < to->n; i++) base_format(to->host[i].name, HOSTS_NAME, "host%d", i);
    return TRI_OK;
}

int coordinate(const struct launch *l) {
    struct launch settled = *l;
    struct coordinating c = {.launch = &settled, .signals = -1};
    struct host_texts env = {0};
    uint8_t key[LINK_KEY];
    char directory[PATH_MAX]; /* if this machine has it */
    int earlier;
    base_format(directory, sizeof directory, "%s/%s", l->chdir ? l->chdir : ".", l->out);
    if (*l->out == '/') base_format(directory, sizeof directory, "%s", l->out);
    launch_settle(&settled);
    settled.threads = l->threads; /* 0: each host fills its own cores */
    tri_status status = list_hosts(&settled, &c.list);
    if (!status) status = check_link(l);
    if (!status) status = find_links(&c.list, &settled);
    if (!status) status = run_key_make(l->key, key);
    if (!status) status = listen(&c, key);
    if (!status) status = add_variables(l, &env);
    if (!status) status = open_coordinator(&c, &env);
    if (!status) status = starter_open(&settled, key, &c.starter);
    if (!status) status = open_signals(&c);
    if (!status) status = start_hosts(&c);
    sodium_memzero(key, sizeof key);
    if (!c.own_waits) starter_close(&c.starter);
    give_up(&c, status);
    int code = status ? (int)status : supervise(&c);
    if (c.control && c.signals >= 0) end_hosts(&c);
    if (l->given && !*l->given->address) meeting_end(l->given, l->out);
    if (c.failed) code = (int)c.failed;
    if (agent_has_run(directory, c.run, &earlier)) agent_write_exit(directory, code);
    starter_close(&c.starter);
    coordinator_close(c.coordinator);
    control_close(c.control);
    free(env.text);
    if (c.signals >= 0) {
        close(c.signals);
        sigprocmask(SIG_SETMASK, &c.old_mask, NULL);
    }
    return code;
}
