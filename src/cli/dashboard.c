/* SPDX-License-Identifier: Apache-2.0
 * trireme dashboard: starts trireme-page, a program of its own, which alone is linked with
 * libmicrohttpd. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

#define NAMES 16

struct own {
    int64_t port;
    const char *host, *token_file, *name;
};

static tri_status check(const struct own *own, int n, char **words) {
    if (n > 1)
        return base_fail(TRI_USAGE, "dashboard: one word too many: '%s'; name a directory above "
                         "both", words[1]);
    if (own->port > 65535)
        return base_fail(TRI_USAGE, "--port is %lld; it can be 1 to 65535", (long long)own->port);
    if (own->name && !own->host)
        return base_fail(TRI_USAGE, "--name is for --host: this machine alone is localhost");
    return TRI_OK;
}

static tri_status start(const struct own *own, const char *directory) {
    char program[PATH_MAX], port[16];
    const char *words[8 + NAMES] = {program, directory, port, own->host ? own->host : "",
                                    own->token_file ? own->token_file : ""};
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    char own_name[256] = "", host[300], *names = own->name ? strdup(own->name) : NULL, *rest = NULL;
    int k = 5;
    program[n > 0 ? n : 0] = 0;
    char *slash = strrchr(program, '/');
    if (!slash || slash - program + 16 > (long)sizeof program)
        return base_fail(TRI_FAILED, "/proc does not say where this program is");
    base_format(slash, sizeof program - (size_t)(slash - program), "/trireme-page");
    base_format(port, sizeof port, "%lld", (long long)own->port);
    for (char *name = names ? strtok_r(names, ",", &rest) : NULL; name;
         name = strtok_r(NULL, ",", &rest)) {
        if (k == 5 + NAMES) {
            free(names);
            return base_fail(TRI_USAGE, "--name: more than %d names", NAMES);
        }
        words[k++] = name;
    }
    const bool any = own->host && (!strcmp(own->host, "0.0.0.0") || !strcmp(own->host, "::"));
    base_format(host, sizeof host, own->host && strchr(own->host, ':') ? "[%s]" : "%s",
                own->host ? own->host : "");
    if (own->host && !any) words[k++] = host;
    if (own->host && !gethostname(own_name, sizeof own_name - 1)) words[k++] = own_name;
    execv(program, (char **)words);
    const int error = errno;
    free(names);
    if (error == ENOENT)
        return base_fail(TRI_FAILED, "the page is not built, as libmicrohttpd was missing "
                         "(Debian: libmicrohttpd-dev); install it and run make again");
    return base_fail(TRI_FAILED, "%s: %s", program, strerror(error));
}

static const struct option_row rows[] = {
    {"--port", "N", "the port of the page (default 8080)", option_count, offsetof(struct own, port),
     USE_ALL, .group = GROUP_NONE},
    {"--host", "ADDR", "an address of this machine at which the page is served, instead of "
     "localhost; the connection is not encrypted", option_text, offsetof(struct own, host), USE_ALL,
     .group = GROUP_NONE},
    {"--name", "NAME,...", "with --host, other names of this machine", option_text,
     offsetof(struct own, name), USE_ALL, .group = GROUP_NONE},
    {"--token-file", "F", "keep the secret part of the link in F, so that the link stays the same",
     option_text, offsetof(struct own, token_file), USE_ALL, .group = GROUP_NONE},
    {0},
};

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {.port = 8080};
    const struct option_set sets[] = {{c->rows, &own}, {0}};
    tri_status status = options_take(sets, USE_ALL, false, &argc, argv);
    if (!status) status = check(&own, argc - 1, argv + 1);
    if (!status) status = start(&own, argc > 1 ? argv[1] : ".");
    return status ? cli_fail() : TRI_OK;
}

static void more(struct text *out) {
    options_paragraph("DIR has the directories of runs (--out), or is one; default: the current "
                      "one. The page shows those that go on as they grow. It is reached from this "
                      "machine alone, by the link that is printed; from another one, through ssh "
                      "-L 8080:localhost:8080 HOST.", out);
}

const struct command command_dashboard = {
    .name = "dashboard",
    .arguments = "[DIR] [options]",
    .help = "serve a page that shows runs, and what slows them",
    .rows = rows,
    .more = more,
    .run = run,
};
