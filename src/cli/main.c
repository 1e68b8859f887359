/* SPDX-License-Identifier: Apache-2.0
 * The program `trireme`: finds the command and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/cli.h"

const struct command *command_find(const char *name) {
    static const struct {
        const char *flag;
        const struct command *command;
    } flags[] = {{"--help", &command_help}, {"-h", &command_help}, {"--version", &command_version}};
    for (size_t i = 0; i < COUNT(flags); i++)
        if (!strcmp(flags[i].flag, name)) return flags[i].command;
    for (const struct command *const *c = commands; *c; c++)
        if (!strcmp((*c)->name, name)) return *c;
    struct nearest near = {.wanted = name};
    for (const struct command *const *c = commands; *c; c++) nearest_offer(&near, (*c)->name);
    if (nearest_name(&near))
        base_fail(TRI_USAGE, "unknown command %s; do you mean %s?", name, near.name);
    else
        base_fail(TRI_USAGE, "unknown command %s; `trireme help` lists them", name);
    return NULL;
}

const struct command *command_of_words(int argc, char **argv, int *n) {
    const struct command *c = command_find(argv[0]);
    const struct command *other = c ? c->instead : NULL;
    bool instead = other && argc > 1 && !strcmp(strrchr(other->name, ' ') + 1, argv[1]);
    *n = instead ? 2 : 1;
    return instead ? other : c;
}

static bool asks_for_help(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) return true;
    return false;
}

static int run(int argc, char **argv) {
    int words = 0;
    const struct command *c = &command_help;
    if (argc > 1) c = command_of_words(argc - 1, argv + 1, &words);
    if (!c) return cli_fail();
    if (argc < 2) {
        struct text t = {0};
        cli_describe_all(&t);
        fprintf(stderr, "%s", t.data ? t.data : "");
        text_free(&t);
        return TRI_USAGE;
    }
    if (asks_for_help(argc - 1, argv + 1)) {
        struct text t = {0};
        cli_describe(c, &t);
        return cli_print(&t) ? cli_fail() : TRI_OK;
    }
    return c->run(c, argc - words, argv + words);
}

/* What was closed would be given to the first file that is opened, and what is printed would go there. So
 * something is put in its place; for stdout something that cannot be written to, which is told. */
static void hold_standard_files(void) {
    static const int how[] = {O_RDONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd < (int)COUNT(how); fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", how[fd]) != fd) abort();
}

static void go_on(int sig) { (void)sig; }

/* A write beyond the limit of a file's size (ulimit -f) fails then, and is told of. What is started from here does not
 * inherit a handler, as it would that the signal is ignored. */
static void fail_on_large_files(void) {
    sigaction(SIGXFSZ, &(const struct sigaction){.sa_handler = go_on, .sa_flags = SA_RESTART}, NULL);
}

int main(int argc, char **argv) {
    hold_standard_files();
    fail_on_large_files();
    int code = run(argc, argv);
    errno = 0;
    if ((fflush(stdout) || ferror(stdout)) && !code) {
        base_fail(TRI_FAILED, "cannot write to stdout: %s", strerror(errno));
        code = cli_fail();
    }
    return code;
}
