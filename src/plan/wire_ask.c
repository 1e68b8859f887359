/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/wire_ask.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "plan/option_rows.h"

/* A part of the text. */
struct part {
    char pattern[256]; /* empty: of all that no other part names */
    struct wire_want want;
};

/* "topk:0.01" */
static bool is_topk(const char *name) {
    return strcspn(name, ":") == 4 && !strncmp(name, "topk", 4);
}

static tri_status take_share(const char *name, double *share) {
    const char *text = name + strcspn(name, ":");
    char *end;
    *share = *text ? strtod(text + 1, &end) : 0;
    if (*text && !*end && *share > 0 && *share < 1) return TRI_OK;
    return base_fail(TRI_USAGE, "--wire (tri_options.wire): \"%s\": topk sends a share of the "
                     "numbers, which is more than 0 and less than 1; topk:0.01 sends 1 %%, and f32 "
                     "sends all", name);
}

static tri_status format_named(const char *name, struct wire_want *want) {
    struct nearest near = {.wanted = name};
    if (is_topk(name)) {
        want->format = WIRE_TOPK;
        return take_share(name, &want->share);
    }
    for (int i = 0; i < WIRE_FORMATS; i++) {
        want->format = (enum wire_format)i;
        if (nearest_offer(&near, wire_names[i])) return TRI_OK;
    }
    want->format = WIRE_PACK;
    if (nearest_offer(&near, wire_names[WIRE_PACK])) return TRI_OK;
    nearest_offer(&near, "topk:R");
    return base_fail(TRI_USAGE, "--wire (tri_options.wire): there is no format \"%s\"; there are "
                     "%s%s", name, near.names, nearest_meant(&near));
}

/* The next part; *text goes on after it. */
static tri_status next(const char **text, struct part *p) {
    char word[320];
    const size_t n = strcspn(*text, ",");
    if (!n || n >= sizeof p->pattern)
        return base_fail(TRI_USAGE, "--wire (tri_options.wire): expected FORMAT, or "
                         "FORMAT,PATTERN=FORMAT: bf16,*.wte=f32");
    base_format(word, sizeof word, "%.*s", (int)n, *text);
    *text += n + ((*text)[n] == ',');
    char *format = strrchr(word, '=');
    *p = (struct part){.want.format = WIRE_F32};
    if (!format) return format_named(word, &p->want);
    *format++ = 0;
    if (!*word) return base_fail(TRI_USAGE, "--wire: \"=%s\" names no parameters", format);
    base_format(p->pattern, sizeof p->pattern, "%s", word);
    return format_named(format, &p->want);
}

tri_status wire_ask_check(const tri_options *o) {
    const int64_t w = o->wire_nodes;
    struct part p;
    int parts = 0, usual = 0;
    for (const char *at = o->wire; at && *at; parts++) {
        tri_status status = next(&at, &p);
        if (status) return status;
        usual += !*p.pattern;
    }
    if (usual > 1)
        return base_fail(TRI_USAGE, "--wire %s: two formats for the same gradients; other formats "
                         "for some are PATTERN=FORMAT", o->wire);
    if (parts > WIRE_PARTS_MOST)
        return base_fail(TRI_USAGE, "--wire: more than %d parts", WIRE_PARTS_MOST);
    if (w < 0 || w > WIRE_NODES_MOST || (w & (w - 1)))
        return base_fail(TRI_USAGE, "--wire-nodes %lld: it must be a power of two, from 1 to %d",
                         (long long)w, WIRE_NODES_MOST);
    if (w && !wire_ask_rounds(o))
        return base_fail(TRI_USAGE, "--wire-nodes %lld has no effect: no format of --wire rounds",
                         (long long)w);
    return TRI_OK;
}

bool wire_ask_rounds(const tri_options *o) {
    struct part p;
    for (const char *at = o->wire; at && *at && !o->forward;)
        if (next(&at, &p) || (p.want.format != WIRE_F32 && p.want.format != WIRE_PACK)) return true;
    return false;
}

bool wire_ask_estimates(const tri_options *o) {
    struct part p;
    for (const char *at = o->wire; at && *at && !o->forward && !next(&at, &p);)
        if (p.want.format == WIRE_TOPK) return true;
    return false;
}

int64_t wire_ask_nodes(const tri_options *o) {
    if (!wire_ask_rounds(o)) return 0;
    return o->wire_nodes ? o->wire_nodes : option_usual_count("--wire-nodes");
}

int wire_ask_depth(const tri_options *o) {
    int depth = -1;
    for (int64_t n = wire_ask_nodes(o); n; n /= 2) depth++;
    return depth;
}

tri_status wire_ask_format(const tri_options *o, const char *param, struct wire_want *want,
                           bool *used) {
    struct part p;
    int i = 0;
    bool named = false;
    *want = (struct wire_want){.format = WIRE_F32};
    for (const char *at = o->wire; at && *at; i++) {
        tri_status status = next(&at, &p);
        if (status) return status;
        if (*p.pattern && fnmatch(p.pattern, param, 0)) continue;
        if (*p.pattern && named && (p.want.format != want->format || p.want.share != want->share))
            return base_fail(TRI_USAGE, "--wire %s: two formats for %s, %s and %s", o->wire, param,
                             wire_names[want->format], wire_names[p.want.format]);
        if (!*p.pattern && named) continue;
        *want = p.want;
        named |= *p.pattern;
        used[i] = true;
    }
    return TRI_OK;
}

tri_status wire_ask_used(const tri_options *o, const bool *used) {
    struct part p;
    int i = 0;
    for (const char *at = o->wire; at && *at; i++) {
        tri_status status = next(&at, &p);
        if (status) return status;
        if (!used[i] && (*p.pattern || p.want.format != WIRE_F32))
            return base_fail(TRI_USAGE, "--wire %s: %s names no gradient of f32 that has two or "
                             "more dimensions and is summed over lanes", o->wire,
                             *p.pattern ? p.pattern : wire_names[p.want.format]);
    }
    return TRI_OK;
}
