/* SPDX-License-Identifier: Apache-2.0
 * Lines "use NODE USE" of files of strategies and plans: what a node of a lane's graph does,
 * forward or backward, whatever strategies say. USE is "-" (whole along all axes), "form", or for
 * each axis along which the node is not whole FACTOR=AXIS, FACTOR/BLOCKS[:PARTS]=AXIS or
 * partial=AXIS. */
#include <ctype.h>
#include <string.h>

#include "plan/strategy_inside.h"

#define SUMS "partial" /* no factor has this name */

bool use_line_names(const char *pattern, const char *name) {
    for (; *pattern; pattern++) {
        if (*pattern == '*' && isdigit((unsigned char)*name)) {
            while (isdigit((unsigned char)*name)) name++;
        } else if (*pattern != *name++) {
            return false;
        }
    }
    return !*name;
}

const struct strategy_line *strategies_use(const struct strategies *s, const tri_node *n,
                                           bool *seen) {
    const struct strategy_line *last = NULL;
    for (size_t i = 0; i < s->n_uses; i++) {
        if (!use_line_names(s->use[i].pattern, n->name)) continue;
        seen[i] = true;
        last = &s->use[i];
    }
    return last;
}

bool use_line_is_form(const struct strategy_line *l) {
    return !l->n_parts && !strcmp(l->text, USE_IS_FORM);
}

tri_status uses_keep(const struct strategy_lines *all, struct strategies *s, bool *used) {
    for (size_t i = 0; i < all->n; i++) {
        const struct strategy_line *l = &all->line[i];
        if (l->kind != SETTING_USE) continue;
        if (!ARRAY_GROW(s->use, s->n_uses, s->use_capacity)) return base_no_memory("strategies");
        s->use[s->n_uses++] = *l;
        for (int a = 0; a < s->mesh.n && use_line_is_form(l); a++)
            used[a] = true; /* the nodes of the form may be split along any */
        for (int p = 0; p < l->n_parts; p++)
            if (l->part[p].axis >= 0) used[l->part[p].axis] = true;
    }
    return TRI_OK;
}

tri_status uses_check(const struct strategies *s, const bool *seen, const tri_graph *lane) {
    for (size_t i = 0; i < s->n_uses && !s->forward; i++) {
        const struct strategy_line *l = &s->use[i];
        struct nearest near = {.wanted = l->pattern};
        if (seen[i]) continue;
        for (size_t k = 0; k < lane->n_nodes; k++)
            if (lane->node[k]->n_in) nearest_offer(&near, lane->node[k]->name);
        return strategy_fail(l, "a lane has no operator \"%s\"%s", l->pattern,
                             nearest_meant(&near));
    }
    return TRI_OK;
}

static tri_status no_factor(const struct strategy_line *l, const struct mesh *m,
                            const tri_node *n, const struct factors *f, const char *name) {
    struct text legal = {0};
    if (f) strategy_legal(n, f, 1, &legal);
    tri_status status = strategy_fail_at(l, m, n, "it has no factor %s; these can be split: %s",
                                         name, legal.data ? legal.data : "none");
    text_free(&legal);
    return status;
}

/* A factor's places are blocks of parts. */
static tri_status read_factor(const struct strategy_line *l, const struct mesh *m,
                              const tri_node *n, const struct factors *f,
                              const struct strategy_part *p, struct use *u) {
    const uint8_t factor = f ? factor_named(n, f, p->name) : 0;
    if (!factor) return no_factor(l, m, n, f, p->name);
    const int64_t places = f->extent[factor], each = places / p->outer;
    *u = (struct use){USE_FACTOR, factor, p->outer, p->extent ? p->extent : each};
    if (!each || places % p->outer || u->extent > each || each % u->extent)
        return strategy_fail_at(l, m, n, "%lld blocks of %lld parts do not divide the %lld places "
                                "of its factor %s", (long long)p->outer, (long long)u->extent,
                                (long long)places, p->name);
    return TRI_OK;
}

tri_status use_line_read(const struct strategy_line *l, const struct mesh *m, const tri_node *n,
                         const struct factors *f, struct use use[MESH_MOST_AXES]) {
    tri_status status = TRI_OK;
    for (int a = 0; a < MESH_MOST_AXES; a++) use[a] = (struct use){.kind = USE_WHOLE};
    if (use_line_is_form(l) && !n->entry->op->split_form)
        return strategy_fail_at(l, m, n, "it is computed as it is: there is no other form");
    for (int i = 0; i < l->n_parts && !status; i++) {
        const struct strategy_part *p = &l->part[i];
        if (p->axis < 0)
            return strategy_fail_at(l, m, n, "%s=-: axes that are left out are whole", p->name);
        if (use[p->axis].kind != USE_WHOLE)
            return strategy_fail_at(l, m, n, "the axis %s is given twice", m->axis[p->axis].name);
        if (!strcmp(p->name, SUMS)) use[p->axis] = (struct use){.kind = USE_PARTIAL};
        else status = read_factor(l, m, n, f, p, &use[p->axis]);
    }
    return status;
}

/* Whether the seats of all axes that share the factor divide the places of a block as they divide
 * its parts. */
static bool is_plain(const struct factors *f, const struct mesh *m, const struct use *use,
                     const struct use *u) {
    const int64_t each = f->extent[u->factor] / u->outer;
    int64_t seats = 1;
    for (int a = 0; a < m->n; a++)
        if (use_shares(&use[a], u)) seats *= m->axis[a].size;
    return each == u->extent || (each % seats == 0 && u->extent % seats == 0);
}

void use_line_print(const tri_node *n, const struct factors *f, const struct mesh *m,
                    const struct use use[MESH_MOST_AXES], struct text *out) {
    bool any = false;
    for (int a = 0; a < m->n; a++) {
        const struct use *u = &use[a];
        if (u->kind == USE_WHOLE) continue;
        text_add(out, "%s%s", any ? "," : "",
                 u->kind == USE_PARTIAL ? SUMS : factor_name(n, f, u->factor));
        any = true;
        if (u->kind == USE_FACTOR && !is_plain(f, m, use, u))
            text_add(out, "/%lld:%lld", (long long)u->outer, (long long)u->extent);
        else if (u->kind == USE_FACTOR && u->outer > 1)
            text_add(out, "/%lld", (long long)u->outer);
        text_add(out, "=%s", m->axis[a].name);
    }
    if (!any) text_add(out, USE_IS_WHOLE);
}
