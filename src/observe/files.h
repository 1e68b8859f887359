/* SPDX-License-Identifier: Apache-2.0
 * Which files a run has. Its directory DIR has them itself, or those of each host are in
 * DIR/hosts/NAME. Versions before had them in DIR/NAME. */
#ifndef OBSERVE_FILES_H
#define OBSERVE_FILES_H

#include <glob.h>

#include "base/base.h"

/* That of --out, and those above it, unless they are there. */
tri_status files_make_directory(const char *path);
/* Adds the paths DIR/PATTERN that there are, as for "worker-*.log", by name: h2 before h10.
 * *found starts as zeroes; globfree frees it. */
tri_status files_match(const char *directory, const char *pattern, glob_t *found);

struct run_folders {
    struct run_folder {
        char *path;
        const char *host; /* in path; "" for DIR itself */
    } *of;
    size_t n, capacity;
};

/* DIR if it has files of a run, then those of its hosts that have. Free it in any case. */
tri_status run_folders(const char *directory, struct run_folders *f);
void run_folders_free(struct run_folders *f);
/* Adds the files in all of these that match the pattern. */
tri_status run_files(const char *directory, const char *pattern, glob_t *found);

/* Patterns of logs; null ends them. They match those of earlier runs, too, which have a number. */
extern const char *const run_logs[];
/* Whether a file of a run has a number before its ending, as observe/earlier.h gives. */
bool run_has_number(const char *path);

#endif
