/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

#include <ctype.h>
#include <string.h>

#define COMPARED 31

static bool same(char a, char b) {
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

size_t nearest_distance(const char *a, const char *b) {
    /* cost[i][k]: from the first i bytes of a to the first k bytes of b */
    size_t cost[COMPARED + 1][COMPARED + 1];
    size_t m = strnlen(a, COMPARED), n = strnlen(b, COMPARED);
    for (size_t i = 0; i <= m; i++)
        for (size_t k = 0; k <= n; k++) {
            if (!i || !k) {
                cost[i][k] = i + k;
                continue;
            }
            size_t best = cost[i - 1][k - 1] + !same(a[i - 1], b[k - 1]);
            best = smaller(best, smaller(cost[i - 1][k], cost[i][k - 1]) + 1);
            if (i > 1 && k > 1 && same(a[i - 1], b[k - 2]) && same(a[i - 2], b[k - 1]))
                best = smaller(best, cost[i - 2][k - 2] + 1);
            cost[i][k] = best;
        }
    return cost[m][n];
}

void nearest_offer(struct nearest *n, const char *candidate) {
    size_t d = nearest_distance(n->wanted, candidate);
    if (n->name && d >= n->distance) return;
    n->name = candidate;
    n->distance = d;
}

const char *nearest_name(const struct nearest *n) {
    bool near = n->name && n->distance * 2 <= strlen(n->wanted) &&
                n->distance * 2 <= strlen(n->name);
    return near ? n->name : NULL;
}
