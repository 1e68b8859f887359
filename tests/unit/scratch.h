/* SPDX-License-Identifier: Apache-2.0
 * A directory for a test's files, and checks of messages; include it after cmocka.h. */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <trireme.h>

static char directory[64];

/* Setup and teardown of a group. */
static inline int make_directory(void **state) {
    (void)state;
    strcpy(directory, "/tmp/trireme-test-XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static inline int remove_directory(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command);
}

/* The path of a file there, valid for the next four calls. */
static inline const char *at(const char *name) {
    static char path[4][512];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", directory, name);
    return p;
}

/* Teardown of each test. */
static inline int empty_directory(void **state) {
    (void)state;
    DIR *d = opendir(directory);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') remove(at(e->d_name));
    return d ? closedir(d) : -1;
}

static inline void assert_message(const char *part) {
    if (!strstr(tri_message(), part) || strchr(tri_message(), '\n'))
        fail_msg("the message is \"%s\", which lacks \"%s\"", tri_message(), part);
}

#endif
