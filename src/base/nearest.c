/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

#include <ctype.h>
#include <stdio.h>
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

static void list(struct nearest *n, const char *name) {
    size_t used = strlen(n->names), length = strlen(name);
    for (const char *p = n->names; (p = strstr(p, name)) != NULL; p += length)
        if ((p == n->names || p[-1] == ' ') && (!p[length] || p[length] == ',')) return;
    snprintf(n->names + used, sizeof n->names - used, "%s%s", used ? ", " : "", name);
}

bool nearest_offer_part(struct nearest *n, const char *name, size_t length) {
    char copy[sizeof n->name];
    bool found = !strncmp(n->wanted, name, length) && !n->wanted[length];
    if (!length || length >= sizeof copy) return found;
    snprintf(copy, sizeof copy, "%.*s", (int)length, name);
    list(n, strlen(n->names) + length + sizeof ", , ..." > sizeof n->names ? "..." : copy);
    size_t distance = nearest_distance(n->wanted, copy);
    if (!*n->name || distance < n->distance) {
        memcpy(n->name, copy, sizeof copy);
        n->distance = distance;
    }
    return found;
}

bool nearest_offer(struct nearest *n, const char *name) {
    return nearest_offer_part(n, name, strlen(name));
}

const char *nearest_meant(struct nearest *n) {
    bool near = *n->name && n->distance * 2 <= strlen(n->wanted) &&
                n->distance * 2 <= strlen(n->name);
    *n->text = 0;
    if (near)
        snprintf(n->text, sizeof n->text, "; do you mean %s%s%s?", n->before ? n->before : "",
                 n->name, n->after ? n->after : "");
    return n->text;
}

const char *nearest_or(struct nearest *n, const char *otherwise, ...) {
    if (*nearest_meant(n)) return n->text;
    va_list args;
    va_start(args, otherwise);
    base_format_list(n->text, sizeof n->text, otherwise, args);
    va_end(args);
    return n->text;
}
