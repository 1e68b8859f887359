/* SPDX-License-Identifier: Apache-2.0
 * Public names of factors: from the row, else from the dimension that the factor is. */
#include <ctype.h>
#include <string.h>

#include "plan/strategy.h"

/* By rank and dimension. */
static const char *const positions[TRI_MAX_RANK + 1][TRI_MAX_RANK] = {
    [1] = {"batch"},
    [2] = {"batch", "features"},
    [3] = {"batch", "seq", "features"},
    [4] = {"batch", "features", "height", "width"},
    [5] = {"batch", "dim1", "dim2", "dim3", "dim4"},
    [6] = {"batch", "dim1", "dim2", "dim3", "dim4", "dim5"},
    [7] = {"batch", "dim1", "dim2", "dim3", "dim4", "dim5", "dim6"},
    [8] = {"batch", "dim1", "dim2", "dim3", "dim4", "dim5", "dim6", "dim7"},
};
static const char letters[] = "a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0n\0o\0p\0q\0r\0s\0t\0u\0v\0w"
                              "\0x\0y\0z";

struct naming {
    const char *of[MAX_FACTORS];
};

static const struct factor_operand *operand(const struct factors *f, int i) {
    return i < f->n_in ? &f->in[i] : &f->out[i - f->n_in];
}

static void find_present(const struct factors *f, bool *present) {
    for (int i = 0; i < f->n_in + f->n_out; i++)
        for (int d = 0; d < operand(f, i)->rank; d++)
            for (int k = 0; k < operand(f, i)->dim[d].n; k++)
                present[operand(f, i)->dim[d].f[k]] = true;
}

/* The name of the dimension that the factor is in the operand of highest rank. Null: it is only
 * part of dimensions. */
static const char *position(const struct factors *f, int factor) {
    const char *name = NULL;
    int rank = 0;
    for (int i = 0; i < f->n_in + f->n_out; i++)
        for (int d = 0; d < operand(f, i)->rank; d++) {
            const struct factor_dim *dim = &operand(f, i)->dim[d];
            if (dim->n != 1 || dim->f[0] != factor || operand(f, i)->rank <= rank) continue;
            rank = operand(f, i)->rank;
            name = positions[rank][d];
        }
    return name;
}

static bool taken(const struct naming *names, const char *name) {
    for (int c = 0; c < MAX_FACTORS; c++)
        if (names->of[c] && !strcmp(names->of[c], name)) return true;
    return false;
}

/* Names that the row gives. A factor of extent 1 leaves a name that two factors have to the other;
 * the dimensions of an ellipsis have the highest numbers, from its first on. */
static void take_labels(const struct op_entry *e, const struct factors *f, const bool *present,
                        struct naming *names) {
    int first = MAX_FACTORS - 1;
    while (first && !present[first]) first--;
    for (int i = 0; i < e->n_labels; i++) {
        const struct factor_label *l = &e->label[i];
        int c = l->letter ? l->letter : first - l->place;
        if (c <= 0 || !present[c] || (!l->letter && c <= 'z') || taken(names, l->name)) continue;
        bool other = false;
        for (int k = i + 1; k < e->n_labels; k++) other |= !strcmp(e->label[k].name, l->name);
        if (!other || f->extent[c] != 1) names->of[c] = l->name;
    }
}

/* No two factors of a node have the same name. */
static struct naming names_of(const tri_node *n, const struct factors *f) {
    struct naming names = {{NULL}};
    bool present[MAX_FACTORS] = {false};
    find_present(f, present);
    take_labels(n->entry, f, present, &names);
    for (int i = 0; i < MAX_FACTORS; i++) {
        int c = (i + 'z' + 1) % MAX_FACTORS; /* those of an ellipsis first */
        if (!present[c] || names.of[c]) continue;
        const char *name = position(f, c);
        if (name && !taken(&names, name)) names.of[c] = name;
        else if (islower(c)) names.of[c] = &letters[2 * (c - 'a')];
    }
    return names;
}

const char *factor_name(const tri_node *n, const struct factors *f, uint8_t factor) {
    return names_of(n, f).of[factor];
}

uint8_t factor_named(const tri_node *n, const struct factors *f, const char *name) {
    struct naming names = names_of(n, f);
    for (int c = 1; c < MAX_FACTORS; c++)
        if (names.of[c] && !strcmp(names.of[c], name)) return (uint8_t)c;
    return 0;
}

bool factor_is_name(const char *name) {
    if (islower((unsigned char)*name) && !name[1]) return true;
    for (int d = 0; d < TRI_MAX_RANK; d++)
        for (int rank = d + 1; rank <= TRI_MAX_RANK; rank++)
            if (!strcmp(positions[rank][d], name)) return true;
    for (int i = 0; registry_at(i); i++)
        for (int k = 0; k < registry_at(i)->n_labels; k++)
            if (!strcmp(registry_at(i)->label[k].name, name)) return true;
    return false;
}
