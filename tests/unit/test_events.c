/* SPDX-License-Identifier: Apache-2.0
 * Commands for events: the environment they get, how many run at once, and how they end. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "observe/events.h"
#include "unit/scratch.h"

static bool says(const char *file, const char *text) {
    char *data;
    size_t n;
    if (base_read_file(at(file), &data, &n)) return false;
    bool found = strstr(data, text);
    free(data);
    return found;
}

static void run(const char *command, const struct event *what) {
    struct events *e;
    assert_int_equal(events_open(command, directory, at("log"), &e), TRI_OK);
    events_start(e, what);
    events_close(e, NULL);
}

static void environment_of_commands(void **state) {
    (void)state;
    char command[600];
    setenv("TRIREME_WORKER", "stale", 1);
    setenv("TRIREME_CODE", "stale", 1);
    snprintf(command, sizeof command, "cd && env | grep ^TRIREME_ | LC_ALL=C sort >%s", at("said"));
    run(command, &(struct event){"death", "it's \"gone\" $HOME", 3, 17, -1, NULL});
    char *data;
    size_t n;
    assert_int_equal(base_read_file(at("said"), &data, &n), TRI_OK);
    char expected[600];
    snprintf(expected, sizeof expected,
             "TRIREME_EVENT=death\nTRIREME_MESSAGE=it's \"gone\" $HOME\nTRIREME_OUT=%s\n"
             "TRIREME_STEP=17\nTRIREME_WORKER=3\n",
             directory);
    assert_string_equal(data, expected);
    free(data);
    run(command, &(struct event){"end", "done", -1, 20, 3, NULL});
    assert_true(says("said", "TRIREME_CODE=3\n") && !says("said", "WORKER"));
    run(command, &(struct event){"host-lost", "it went", -1, 20, -1, "h1"});
    assert_true(says("said", "TRIREME_HOST=h1\n") && !says("said", "CODE"));
    unsetenv("TRIREME_WORKER");
    unsetenv("TRIREME_CODE");
    assert_false(says("log", "on-event"));
}

/* Ctrl-C does not reach it; no signal is blocked; of our files it has only stderr. */
static void isolated_from_the_program(void **state) {
    (void)state;
    char command[600];
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int open = dup(0);
    snprintf(command, sizeof command,
             "(ls /proc/self/fd | wc -l; readlink /proc/$$/fd/0; grep SigBlk /proc/$$/status; "
             "[ $(cut -d' ' -f5 /proc/$$/stat) = $$ ] && echo alone) >%s",
             at("said"));
    run(command, &(struct event){"stall", "", -1, 0, -1, NULL});
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    close(open);
    assert_true(says("said", "4\n/dev/null\n")); /* and ls's own */
    assert_true(says("said", "0000000000000000\nalone\n"));
}

static void failures_are_told(void **state) {
    (void)state;
    run("exit 7", &(struct event){"stall", "", -1, 0, -1, NULL});
    assert_true(
        says("log", "\"event\":\"on-event\",\"about\":\"stall\",\"text\":\"exited with 7\""));
    run("kill -9 $$", &(struct event){"death", "", -1, 0, -1, NULL});
    assert_true(says("log", "\"about\":\"death\",\"text\":\"was killed by signal 9 (Killed)\""));
    run("exit 0", &(struct event){"end", "", -1, 0, 0, NULL});
    assert_false(says("log", "\"about\":\"end\""));
}

static void *close_with_end(void *events) {
    events_close(events, &(struct event){"end", "", -1, 0, 0, NULL});
    return NULL;
}

/* Eight at once, without waiting for any of them; a ninth is refused; none is left as a zombie. */
static void at_most_eight(void **state) {
    (void)state;
    char command[600];
    struct events *e;
    snprintf(command, sizeof command, "echo x >>%s; while [ ! -e %s ]; do sleep 0.01; done",
             at("began"), at("go"));
    assert_int_equal(events_open(command, NULL, at("log"), &e), TRI_OK);
    double begin = base_seconds();
    for (int i = 0; i < 9; i++) events_start(e, &(struct event){"death", "", i, 0, -1, NULL});
    assert_true(base_seconds() - begin < 5);
    assert_true(says("log", "\"about\":\"death\",\"text\":\"is not started: 8 are running\""));
    while (!says("began", "x\nx\nx\nx\nx\nx\nx\nx\n")) usleep(1000);
    assert_false(says("began", "x\nx\nx\nx\nx\nx\nx\nx\nx\n"));
    fclose(fopen(at("go"), "w"));
    events_close(e, NULL);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* However long earlier ones take. */
static void the_end_comes_last(void **state) {
    (void)state;
    char command[900];
    struct events *e;
    snprintf(command, sizeof command,
             "[ $TRIREME_EVENT = end ] || { echo >%s; while [ ! -e %s ]; do sleep 0.01; done; "
             "}; echo $TRIREME_EVENT >>%s",
             at("slow"), at("go-on"), at("order"));
    assert_int_equal(events_open(command, NULL, NULL, &e), TRI_OK);
    events_start(e, &(struct event){"death", "", 1, 0, -1, NULL});
    while (access(at("slow"), F_OK)) usleep(1000);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, close_with_end, e), 0);
    for (int i = 0; i < 50; i++) {
        assert_false(says("order", "end"));
        usleep(1000);
    }
    fclose(fopen(at("go-on"), "w"));
    pthread_join(thread, NULL);
    assert_true(says("order", "death\nend\n"));
}

static void no_command(void **state) {
    (void)state;
    struct events *e;
    assert_int_equal(events_open(NULL, directory, NULL, &e), TRI_OK);
    assert_null(e);
    events_start(e, &(struct event){"end", "", -1, 0, 0, NULL});
    events_close(e, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(environment_of_commands, empty_directory),
        cmocka_unit_test_teardown(isolated_from_the_program, empty_directory),
        cmocka_unit_test_teardown(failures_are_told, empty_directory),
        cmocka_unit_test_teardown(at_most_eight, empty_directory),
        cmocka_unit_test_teardown(the_end_comes_last, empty_directory),
        cmocka_unit_test(no_command),
    };
    return cmocka_run_group_tests_name("events", tests, make_directory, remove_directory);
}
