/* SPDX-License-Identifier: Apache-2.0
 * trireme-page DIR PORT HOST TOKEN-FILE [NAME ...]: the server of `trireme dashboard`, which starts
 * it. HOST and TOKEN-FILE are "" if they are not given. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "page/http.h"
#include "page/kept.h"
#include "page/routes.h"
#include "page/runs.h"
#include "page/slices.h"

#define FINDS 3 /* seconds from one search for new runs to the next */

static void make_token(char token[HTTP_TOKEN + 1]) {
    unsigned char random[HTTP_TOKEN / 2];
    randombytes_buf(random, sizeof random);
    sodium_bin2hex(token, HTTP_TOKEN + 1, random, sizeof random);
}

/* A file keeps the link the same from one start to the next. */
static tri_status take_token(const char *path, char token[HTTP_TOKEN + 1]) {
    struct stat is;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || fstat(fd, &is))
        return base_fail(TRI_USAGE, "--token-file %s: %s", path, strerror(errno));
    tri_status status = TRI_OK;
    if (is.st_mode & 077)
        status = base_fail(TRI_USAGE, "--token-file %s can be read by others: chmod 600 %s", path,
                           path);
    ssize_t n = status ? 0 : read(fd, token, HTTP_TOKEN);
    if (!status && !n) {
        make_token(token);
        n = write(fd, token, HTTP_TOKEN);
    }
    token[HTTP_TOKEN] = 0;
    if (n < 0) status = base_fail(TRI_FAILED, "--token-file %s: %s", path, strerror(errno));
    if (!status && (n != HTTP_TOKEN || strspn(token, "0123456789abcdef") != HTTP_TOKEN))
        status = base_fail(TRI_USAGE, "--token-file %s has no token of trireme dashboard; remove "
                           "it, and a new one is made", path);
    close(fd);
    return status;
}

static void print_link(const struct http_options *o) {
    char own[256] = "this host";
    gethostname(own, sizeof own - 1);
    if (o->host) {
        printf("The connection is not encrypted: everyone on the way can read it. Better:\n"
               "    ssh -L %d:localhost:%d %s\nand no --host.\n", o->port, o->port, own);
        printf("http://%s:%d/?token=%s\n", o->n_names ? o->name[0] : o->host, o->port, o->token);
    } else {
        printf("http://localhost:%d/?token=%s\n", o->port, o->token);
    }
    fflush(stdout);
}

/* What fails is said once, until something else does. */
static void find(const char *directory) {
    static char said[512];
    const char *now = runs_find(directory) ? tri_message() : "";
    if (*now && strncmp(said, now, sizeof said - 1)) http_log("%s", now);
    base_format(said, sizeof said, "%s", now);
}

static tri_status serve(const char *directory, const struct http_options *o) {
    sigset_t ends;
    struct timespec pause = {.tv_nsec = 1000000000 / RUNS_LOOKS};
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);
    tri_status status = http_start(o);
    if (status) return status;
    print_link(o);
    if (!runs_path(0)) printf("There are no runs in %s yet; new ones appear by themselves.\n",
                              directory);
    fflush(stdout);
    for (int look = 1; sigtimedwait(&ends, NULL, &pause) < 0; look++) {
        if (look % (RUNS_LOOKS * FINDS) == 0) find(directory);
        runs_look();
        http_wake();
    }
    http_stop();
    return TRI_OK;
}

int main(int argc, char **argv) {
    struct http_options o = {.answer = routes_answer, .event = routes_event};
    if (argc < 5 || sodium_init() < 0) {
        fprintf(stderr, "trireme-page is started by `trireme dashboard`\n");
        return TRI_USAGE;
    }
    o.port = atoi(argv[2]);
    o.host = *argv[3] ? argv[3] : NULL;
    o.name = (const char **)(argv + 5);
    o.n_names = argc - 5;
    char *directory = realpath(argv[1], NULL);
    tri_status status = directory ? TRI_OK
                                  : base_fail(TRI_USAGE, "%s: %s", argv[1], strerror(errno));
    if (!status && *argv[4]) status = take_token(argv[4], o.token);
    else if (!status) make_token(o.token);
    if (!status) status = runs_find(directory);
    if (!status) status = serve(directory, &o);
    if (status) fprintf(stderr, "trireme: %s\n", tri_message());
    kept_free();
    slices_free();
    runs_free();
    free(directory);
    return (int)status;
}
