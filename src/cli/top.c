/* SPDX-License-Identifier: Apache-2.0
 * trireme top: watches a run. A terminal gets a page twice a second, anything else one page. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/top_view.h"

#define INTERVAL 500 /* milliseconds */

static const struct look_view *look_again(struct top *t) {
    bool first = !t->pace.looks;
    const struct look_view *v = pace_look(&t->pace);
    double now = (double)v->now / 1e9;
    if (first) recent_read(&t->loss, v->out, now, v->committed);
    recent_add(&t->loss, now, v->loss);
    return v;
}

/* ---- the terminal ---- */

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static bool knows_utf8(void) {
    const char *l = environment("LC_ALL");
    if (!*l) l = environment("LC_CTYPE");
    if (!*l) l = environment("LANG");
    return strstr(l, "UTF-8") || strstr(l, "utf8") || strstr(l, "UTF8") || strstr(l, "utf-8");
}

struct top_page top_measure(bool terminal) {
    struct winsize size;
    struct top_page page = {.columns = INT_MAX, .unicode = knows_utf8(), .terminal = terminal};
    bool known = isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col;
    int columns = atoi(environment("COLUMNS"));
    page.colours = isatty(STDOUT_FILENO) && !*environment("NO_COLOR") &&
                   strcmp(environment("TERM"), "dumb");
    if (known)
        page.columns = size.ws_col;
    else if (columns > 0)
        page.columns = columns;
    if (known && terminal) page.rows = size.ws_row;
    return page;
}

struct screen {
    struct termios before;
    bool keys; /* stdin is a terminal in raw mode */
    int signals;
    sigset_t old_mask;
};

/* Switches to the alternate screen, without a cursor. `leave` restores the former one. */
static tri_status enter(struct screen *s) {
    static const char begin[] = "\033[?1049h\033[?25l\033[2J";
    sigset_t set;
    sigemptyset(&set);
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
    for (size_t i = 0; i < COUNT(caught); i++) sigaddset(&set, caught[i]);
    sigprocmask(SIG_BLOCK, &set, &s->old_mask);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signals < 0)
        return base_fail(TRI_FAILED, "cannot wait for signals: %s", strerror(errno));
    s->keys = isatty(STDIN_FILENO) && !tcgetattr(STDIN_FILENO, &s->before);
    if (s->keys) {
        struct termios raw = s->before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
        raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* Ctrl-Z would leave the terminal in this mode */
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    printf("%s", begin);
    return TRI_OK;
}

static void leave(struct screen *s) {
    static const char end[] = "\033[0m\033[?25h\033[?1049l";
    printf("%s", end);
    fflush(stdout);
    if (s->keys) tcsetattr(STDIN_FILENO, TCSANOW, &s->before);
    if (s->signals >= 0) close(s->signals);
    sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
}

/* Waits until the next page is due, or for a signal or a key. Returns whether to quit; for a
 * signal, *code is the exit code. */
static bool await(struct screen *s, int *code) {
    struct pollfd sources[] = {{s->signals, POLLIN, 0}, {s->keys ? STDIN_FILENO : -1, POLLIN, 0}};
    struct signalfd_siginfo signal;
    char key[16];
    poll(sources, COUNT(sources), INTERVAL);
    while (read(s->signals, &signal, sizeof signal) == (ssize_t)sizeof signal)
        if (signal.ssi_signo != SIGWINCH) {
            *code = 128 + (int)signal.ssi_signo;
            return true;
        }
    if (!sources[1].revents) return false;
    ssize_t n = read(STDIN_FILENO, key, sizeof key);
    if (n <= 0) s->keys = false; /* closed */
    for (ssize_t i = 0; i < n; i++)
        if (key[i] == 'q' || key[i] == 'Q') return true;
    return false;
}

/* ---- pages ---- */

static tri_status draw(struct top *t, bool terminal) {
    const struct top_page page = top_measure(terminal);
    struct text out = {0};
    top_draw(t, &page, &out);
    tri_status status = cli_print(&out);
    fflush(stdout);
    return status;
}

static void print_end(const struct look_view *v) {
    bool lost = v->state == LOOK_LOST;
    const char *how = lost ? "has ended unfinished" : look_state_name(v->state);
    printf("%s %s after step %llu/%llu", v->title, how, (unsigned long long)v->committed,
           (unsigned long long)v->total);
    if (!isnan(v->loss)) printf(", loss %#.4g", v->loss);
    if (*v->failure) printf(": %s", v->failure);
    printf("\n");
}

static int watch(struct top *t) {
    struct screen s = {.signals = -1};
    int code = 0;
    if (enter(&s)) {
        leave(&s);
        return cli_fail();
    }
    bool quits = false;
    while (!quits) {
        bool alive = look_alive(&t->pace.look);
        look_again(t);
        if (!alive) break;
        draw(t, true);
        quits = await(&s, &code);
    }
    leave(&s);
    if (!quits) print_end(pace_latest(&t->pace));
    return code;
}

static int show(struct top *t) {
    look_again(t);
    nanosleep(&(struct timespec){.tv_nsec = INTERVAL * 1000000L}, NULL);
    const struct look_view *v = look_again(t);
    if (draw(t, false)) return cli_fail();
    if (!look_alive(&t->pace.look)) print_end(v);
    return TRI_OK;
}

struct own {
    bool once;
};

static const struct option_row rows[] = {
    {"--once", NULL, "print one page, as top does if stdout is not a terminal",
     OWN(option_given, once)},
    {0},
};

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {0};
    const struct option_set sets[] = {{rows, &own}, {0}};
    if (options_take(sets, USE_ALL, false, &argc, argv)) return cli_fail();
    if (argc > 2) {
        base_fail(TRI_USAGE, "top: one word too many: '%s'; usage: trireme %s %s", argv[2], c->name,
                  c->arguments);
        return cli_fail();
    }
    struct top *t = calloc(1, sizeof *t);
    if (!t) {
        base_no_memory("a page");
        return cli_fail();
    }
    bool plain = own.once || !isatty(STDOUT_FILENO) || !*environment("TERM") ||
                 !strcmp(environment("TERM"), "dumb");
    int code;
    if (look_open(argc > 1 ? argv[1] : "run", false, &t->pace.look))
        code = cli_fail();
    else
        code = plain ? show(t) : watch(t);
    look_close(&t->pace.look);
    free(t);
    return code;
}

static void describe(struct text *out) {
    options_paragraph("DIR is the directory of the run (default: run). The line of a worker has "
                      "these columns; a narrow page leaves some out, CORE first. The key q quits. "
                      "With NO_COLOR set there are no colours.", out);
    top_describe(out);
}

const struct command command_top = {
    .name = "top",
    .arguments = "[DIR] [--once]",
    .help = "watch a run of several workers",
    .rows = rows,
    .more = describe,
    .run = run,
};
