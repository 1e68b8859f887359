/* SPDX-License-Identifier: Apache-2.0
 * Meshes: reading, printing and asking for axes. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

#define MESH_RIGHT "a mesh is written as \"model=4,rows=2\", or as a number of seats: \"4\""

static tri_status read_size(const char *mesh, const char *word, int64_t *size) {
    char *end;
    errno = 0;
    *size = strtoll(word, &end, 10);
    if (end == word || *end)
        return base_fail(TRI_USAGE, "mesh \"%s\": \"%s\" is not a number of seats; " MESH_RIGHT,
                         mesh, word);
    if (errno || *size < 1 || *size > MESH_MOST_SEATS)
        return base_fail(TRI_USAGE, "mesh \"%s\": an axis has from 1 to %d seats, not %s", mesh,
                         MESH_MOST_SEATS, word);
    return TRI_OK;
}

static bool is_name(const char *name) {
    bool ok = isalnum((unsigned char)*name) || *name == '_';
    for (; *name; name++) ok &= isalnum((unsigned char)*name) || *name == '_' || *name == '-';
    return ok;
}

/* Reads "model=4" or "4" and adds it as an axis. */
static tri_status read_axis(const char *mesh, char *word, struct mesh *m) {
    char *size = strchr(word, '=');
    const char *name = size ? word : "";
    if (size) *size++ = 0;
    if (*mesh && !*word && !size)
        return base_fail(TRI_USAGE, "mesh \"%s\": an axis is missing %s a comma; " MESH_RIGHT,
                         mesh, *mesh == ',' ? "before" : "after");
    if (m->n == MESH_MOST_AXES)
        return base_fail(TRI_USAGE, "mesh \"%s\": there can be up to %d axes", mesh,
                         MESH_MOST_AXES);
    struct mesh_axis *axis = &m->axis[m->n];
    if ((size && !is_name(name)) || strlen(name) >= sizeof axis->name)
        return base_fail(TRI_USAGE, "mesh \"%s\": an axis is named \"%s\"; a name has up to %d "
                         "letters, digits, - and _", mesh, name, (int)sizeof axis->name - 1);
    if (mesh_axis(m, name) >= 0)
        return base_fail(TRI_USAGE, "mesh \"%s\": two axes are named \"%s\"", mesh, name);
    tri_status status = read_size(mesh, size ? size : word, &axis->size);
    if (!status && !size && strcmp(mesh, word))
        return base_fail(TRI_USAGE, "mesh \"%s\": the axis of %s seats has no name; " MESH_RIGHT,
                         mesh, word);
    snprintf(axis->name, sizeof axis->name, "%s", name);
    m->n++;
    return status;
}

tri_status mesh_parse(const char *text, struct mesh *out) {
    tri_status status = TRI_OK;
    *out = (struct mesh){0};
    for (const char *p = text; p && !status;) {
        char word[64];
        size_t n = strcspn(p, ",");
        snprintf(word, sizeof word, "%.*s", (int)n, p);
        status = read_axis(text, word, out);
        p = p[n] ? p + n + 1 : NULL;
    }
    if (!status && mesh_seats(out) > MESH_MOST_SEATS)
        status = base_fail(TRI_USAGE, "mesh \"%s\" has %lld seats; there can be up to %d", text,
                           (long long)mesh_seats(out), MESH_MOST_SEATS);
    if (status) out->n = 0;
    return status;
}

void mesh_print(const struct mesh *m, struct text *out) {
    for (int i = 0; i < m->n; i++)
        text_add(out, "%s%s%s%lld", i ? "," : "", m->axis[i].name, *m->axis[i].name ? "=" : "",
                 (long long)m->axis[i].size);
}

bool mesh_equal(const struct mesh *a, const struct mesh *b) {
    bool equal = a->n == b->n;
    for (int i = 0; equal && i < a->n; i++)
        equal = a->axis[i].size == b->axis[i].size && !strcmp(a->axis[i].name, b->axis[i].name);
    return equal;
}

/* Sizes are at most MESH_MOST_SEATS and axes MESH_MOST_AXES, so the product may only just not
 * fit: it stays at a value that is too large. */
int64_t mesh_seats(const struct mesh *m) {
    int64_t seats = 1;
    for (int i = 0; i < m->n && seats <= MESH_MOST_SEATS; i++) seats *= m->axis[i].size;
    return seats;
}

int mesh_axis(const struct mesh *m, const char *name) {
    for (int i = 0; i < m->n; i++)
        if (!strcmp(m->axis[i].name, name)) return i;
    return -1;
}

bool mesh_takes_part(const int16_t *owner, const int16_t *at) {
    for (int a = 0; a < MESH_MOST_AXES; a++)
        if (owner[a] >= 0 && owner[a] != at[a]) return false;
    return true;
}

int mesh_members(const struct mesh *m, const int16_t *owner, int members, uint16_t *out) {
    int64_t seats = mesh_seats(m);
    int n = 0;
    for (int64_t s = 0; s < seats; s++) {
        int16_t at[MESH_MOST_AXES] = {0};
        int64_t left = s;
        uint16_t member = (uint16_t)(s * members / seats);
        for (int a = m->n; a-- > 0; left /= m->axis[a].size)
            at[a] = (int16_t)(left % m->axis[a].size);
        if (mesh_takes_part(owner, at) && (!n || out[n - 1] != member)) out[n++] = member;
    }
    return n;
}

/* ---- public functions ---- */

void tri_mesh(tri_graph *g, const char *axes) {
    struct mesh m;
    if (!g || g->status) return;
    if (!axes || mesh_parse(axes, &m)) {
        graph_mistake(g, "tri_mesh: %s", axes ? tri_message() : "its text is a null pointer");
    } else if (g->mesh.n && !mesh_equal(&m, &g->mesh)) {
        struct text before = {0};
        mesh_print(&g->mesh, &before);
        graph_mistake(g, "tri_mesh: \"%s\", but an earlier call says \"%s\"; a network has one "
                      "mesh", axes, before.failed ? "" : before.data);
        text_free(&before);
    } else {
        g->mesh = m;
    }
}

int tri_mesh_axes(const tri_graph *g) { return g ? g->mesh.n : 0; }

const char *tri_mesh_axis(const tri_graph *g, int i, int64_t *size) {
    if (i < 0 || i >= tri_mesh_axes(g)) return NULL;
    if (size) *size = g->mesh.axis[i].size;
    return g->mesh.axis[i].name;
}
