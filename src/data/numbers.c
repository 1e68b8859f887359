/* SPDX-License-Identifier: Apache-2.0 */
#include "data/numbers.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

tri_status numbers_open(struct numbers *n, const char *path) {
    size_t bytes;
    *n = (struct numbers){.path = path, .line = 1};
    tri_status status = base_read_file(path, &n->text, &bytes);
    n->at = n->text;
    return status;
}

bool numbers_next(struct numbers *n, double *out, tri_status *status) {
    for (; isspace((unsigned char)*n->at); n->at++) n->line += *n->at == '\n';
    if (!*n->at) return false;
    char *end;
    *out = base_number(n->at, &end);
    if (end == n->at || (*end && !isspace((unsigned char)*end)) || !isfinite(*out)) {
        *status = base_fail(TRI_FAILED, "%s: line %ld: '%.*s' is not a number", n->path, n->line,
                            (int)strcspn(n->at, " \t\r\n"), n->at);
        return false;
    }
    n->at = end;
    return true;
}

void numbers_close(struct numbers *n) { free(n->text); }
