/* SPDX-License-Identifier: Apache-2.0
 * The program `trireme`: finds the command and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/launched.h"
#include "launch/probe.h"

static int run(int argc, char **argv) {
    struct text t = {0};
    if (argc < 2) {
        cli_describe_all(&t);
        fprintf(stderr, "%s", t.data ? t.data : "");
        text_free(&t);
        return TRI_USAGE;
    }
    if (!strcmp(argv[1], "ferry")) return cli_ferry(argc, argv);
    if (!strcmp(argv[1], "probe")) return probe_run();
    const struct command *c = command_find(argv[1]);
    if (!c) return cli_fail();
    const char *topic;
    if (options_ask_help(argc - 1, argv + 1, "-h", &topic)) return cli_describe(c, topic);
    return c->run(c, argc - 1, argv + 1);
}

/* The first file that is opened would get the number of a closed standard file, and would receive
 * what is printed. So closed ones are replaced by /dev/null; stdout is opened for reading there, so
 * that writing to it fails and is reported. */
static void hold_standard_files(void) {
    static const int how[] = {O_RDONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd < (int)COUNT(how); fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", how[fd]) != fd) abort();
}

static void ignore(int sig) { (void)sig; }

/* A write beyond the limit on file sizes (ulimit -f) then fails and is reported. A handler rather
 * than SIG_IGN, because child processes would inherit the latter. */
static void fail_on_large_files(void) {
    struct sigaction action = {.sa_handler = ignore, .sa_flags = SA_RESTART};
    sigaction(SIGXFSZ, &action, NULL);
}

int main(int argc, char **argv) {
    hold_standard_files();
    fail_on_large_files();
    launched_is_command();
    cli_words = cli_copy_words(argc, argv);
    return cli_words ? cli_end(run(argc, argv)) : cli_fail();
}
