/* SPDX-License-Identifier: Apache-2.0
 * A directory with files of /proc and /sys as a test wants them; include it after cmocka.h. */
#ifndef FALSE_ROOT_H
#define FALSE_ROOT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

/* Makes a file there, with its directories. */
static inline void put(const char *path, const char *text) {
    char full[256];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(full, 0777);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* Setup and teardown of a group. */
static inline int make_root(void **state) {
    (void)state;
    strcpy(root, "/tmp/trireme-host-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static inline int remove_root(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command);
}

#endif
