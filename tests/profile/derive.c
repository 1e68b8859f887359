/* SPDX-License-Identifier: Apache-2.0
 * Reads the profile N of DIR and writes what is derived from it: derive DIR [N]. Prints how many
 * spans there are, and how long that took. */
#include <stdio.h>

#include "profile/derive.h"

int main(int argc, char **argv) {
    struct profile p;
    const double begin = base_seconds();
    tri_status status = argc < 2 ? TRI_USAGE : profile_read(argv[1], argv[2], &p);
    const double read = base_seconds();
    if (!status) status = profile_derive(&p);
    if (status) return fprintf(stderr, "derive: %s\n", tri_message()), 1;
    printf("%zu spans in %d threads: read in %.2f s, written in %.2f s\n", p.spans, p.n_threads,
           read - begin, base_seconds() - read);
    profile_free(&p);
    return 0;
}
