/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/starter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch/host_list.h"
#include "link/control.h"

#define USUAL_LAUNCHER "ssh -o BatchMode=yes"

tri_status starter_open(const struct launch *l, const uint8_t key[32], struct starter *s) {
    *s = (struct starter){.launch = l};
    ssize_t n = readlink(LAUNCH_SELF, s->program, sizeof s->program - 1);
    if (n < 0) return base_fail(TRI_FAILED, "cannot find this program: %s", strerror(errno));
    s->program[n] = 0;
    for (size_t i = 0; i < 32; i++) snprintf(s->key + 2 * i, 3, "%02x", key[i]);
    return TRI_OK;
}

void starter_close(struct starter *s) { explicit_bzero(s->key, sizeof s->key); }

/* ---- starting ---- */

/* The text in single quotes for a shell. */
static void quote(struct text *t, const char *word) {
    text_add(t, "'");
    for (; *word; word++) {
        if (*word == '\'') text_add(t, "'\\''");
        else text_add_bytes(t, word, 1);
    }
    text_add(t, "'");
}

/* In the child, which dies with this process, unless it becomes an agent. */
static void become(const struct starter *s, const char *host, int in, int out, const char *line,
                   pid_t parent) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0); /* signals of the terminal are this process's */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || dup2(in, STDIN_FILENO) < 0) _exit(127);
    if (out >= 0 && (dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)) _exit(127);
    char command[4096] = "eval \"$2\"";
    if (!host_list_is_here(host) && !(s->here && !strcmp(host, s->here)))
        base_format(command, sizeof command, "exec %s \"$@\"",
                    s->launch->launcher ? s->launch->launcher : USUAL_LAUNCHER);
    execl("/bin/sh", "sh", "-c", command, "sh", host, line, (char *)NULL);
    _exit(127);
}

/* Runs this program on a host, with words for the shell. Its stdin is in[0]; out[1] (null: as that
 * of this process) its stdout and stderr. This process keeps the other ends. */
static tri_status start(const struct starter *s, const char *host, const char *words, int in[2],
                        int out[2], pid_t *pid) {
    struct text line = {0};
    tri_status status = TRI_OK;
    in[0] = in[1] = -1;
    text_add(&line, "exec ");
    quote(&line, s->program);
    text_add(&line, " %s", words);
    if (line.failed) status = base_no_memory("the start of a host");
    if (!status && (pipe2(in, O_CLOEXEC) || (out && pipe2(out, O_CLOEXEC))))
        status = base_fail(TRI_FAILED, "cannot start %s: %s", host, strerror(errno));
    const pid_t parent = getpid();
    fflush(NULL);
    *pid = status ? 0 : fork();
    if (!status && !*pid) become(s, host, in[0], out ? out[1] : -1, line.data, parent);
    if (*pid < 0) status = base_fail(TRI_FAILED, "cannot start %s: %s", host, strerror(errno));
    if (*pid > 0) setpgid(*pid, *pid); /* as it does itself, but not yet perhaps */
    text_free(&line);
    if (in[0] >= 0) close(in[0]);
    if (out && in[0] >= 0) close(out[1]);
    return status;
}

tri_status starter_start(const struct starter *s, const char *host, const char *address,
                         pid_t *pid) {
    const char *ports = s->launch->ports; /* digits and - */
    char words[256];
    int key[2];
    base_format(words, sizeof words, "join %s --key - --name %s%s%s", address, host,
                ports ? " --port " : "", ports ? ports : "");
    tri_status status = start(s, host, words, key, NULL, pid);
    /* A pipe has room for it. Whoever has ended already is found by his exit. */
    if (!status && (write(key[1], s->key, STARTER_KEY) < 0 || write(key[1], "\n", 1) < 0))
        errno = 0;
    if (key[1] >= 0) close(key[1]);
    return status;
}

tri_status starter_probe(const struct starter *s, const char *host, int *to, int *from,
                         pid_t *pid) {
    int in[2], out[2] = {-1, -1};
    tri_status status = start(s, host, "probe", in, out, pid);
    *to = in[1];
    *from = out[0];
    return status;
}

/* ---- addresses ---- */

static bool print_address(const struct sockaddr *a, char text[64]) {
    socklen_t n = a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                           : sizeof(struct sockaddr_in);
    return !getnameinfo(a, n, text, 64, NULL, 0, NI_NUMERICHOST);
}

static tri_status address_of_interface(const char *name, char text[64]) {
    struct ifaddrs *all, *a;
    bool found = false;
    if (getifaddrs(&all))
        return base_fail(TRI_FAILED, "cannot list network interfaces: %s", strerror(errno));
    for (int family = AF_INET; family && !found; family = family == AF_INET ? AF_INET6 : 0)
        for (a = all; a && !found; a = a->ifa_next)
            found = a->ifa_addr && a->ifa_addr->sa_family == family &&
                    !strcmp(a->ifa_name, name) && print_address(a->ifa_addr, text);
    freeifaddrs(all);
    return found ? TRI_OK
                 : base_fail(TRI_USAGE, "--interface %s: there is no such interface with an "
                             "address; `ip address` lists them", name);
}

/* A datagram socket that is connected sends nothing, but has the address to send from. */
static bool own_address(const struct addrinfo *to, char text[64]) {
    struct sockaddr_storage own;
    socklen_t n = sizeof own;
    int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && !connect(fd, to->ai_addr, to->ai_addrlen) &&
              !getsockname(fd, (struct sockaddr *)&own, &n) &&
              print_address((struct sockaddr *)&own, text) && !control_is_loopback(text);
    if (fd >= 0) close(fd);
    return ok;
}

static bool is_own(const char *address) {
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST}, *a;
    if (getaddrinfo(address, "0", &hints, &a)) return false;
    int fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is = fd >= 0 && !bind(fd, a->ai_addr, a->ai_addrlen);
    if (fd >= 0) close(fd);
    freeaddrinfo(a);
    return is;
}

tri_status starter_address(const char *host, const char *interface, char text[64]) {
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *all = NULL;
    struct in6_addr numeric;
    if (interface && (inet_pton(AF_INET, interface, &numeric) == 1 ||
                      inet_pton(AF_INET6, interface, &numeric) == 1)) {
        base_format(text, 64, "%s", interface);
        return is_own(interface) ? TRI_OK
                                 : base_fail(TRI_USAGE, "--interface %s: this machine has no such "
                                             "address; `ip address` lists them", interface);
    }
    if (interface) return address_of_interface(interface, text);
    int failed = getaddrinfo(host, "9", &hints, &all);
    bool found = false;
    for (const struct addrinfo *a = failed ? NULL : all; a && !found; a = a->ai_next)
        found = own_address(a, text);
    if (all) freeaddrinfo(all);
    if (found) return TRI_OK;
    if (failed)
        return base_fail(TRI_USAGE, "host %s: %s; if the name is right and only ssh knows it, "
                         "--interface says which address of this machine the hosts reach", host,
                         gai_strerror(failed));
    return base_fail(TRI_USAGE, "host %s: no network of this machine leads there; --interface says "
                     "which address of this machine the hosts reach", host);
}

/* This machine's agent must not reach the coordinator by an address that other hosts have not: its
 * ferry tells them that address. */
tri_status starter_address_for(const struct host_list *list, int host, const char *interface,
                               char text[64]) {
    const char *name = list->host[host].name;
    int other = 0;
    if (!host_list_is_here(name)) return starter_address(name, interface, text);
    while (other < list->n && host_list_is_here(list->host[other].name)) other++;
    if (other < list->n) return starter_address(list->host[other].name, interface, text);
    base_format(text, 64, "127.0.0.1");
    return TRI_OK;
}
