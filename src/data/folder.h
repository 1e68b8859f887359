/* SPDX-License-Identifier: Apache-2.0
 * The pictures in a folder and the folders below it: where each is, in the order of names. A list
 * can be kept in a file, so that a million pictures are found again at once. */
#ifndef DATA_FOLDER_H
#define DATA_FOLDER_H

#include "base/base.h"

#define FOLDER_DEPTH 8 /* folders below one another */

struct folder_place {
    uint32_t path;         /* in `names`, below the root; "" is the root */
    int64_t seconds, nano; /* when it was changed last */
    int64_t end;           /* its pictures are those from the last place's end up to here */
};

/* Places in the order of their paths' names, each before those within it; so are a place's pictures. */
struct folder {
    char *root;
    struct text names; /* texts, each ended by a zero byte */
    struct folder_place *place;
    size_t n_places, places_capacity;
    uint32_t *picture; /* names in `names` */
    size_t n_pictures, pictures_capacity;
};

void folder_free(struct folder *f);
/* Looks at all that is there. Names that begin with a point do not count. */
tri_status folder_scan(struct folder *f, const char *root);

/* The place that a picture is in. */
size_t folder_place_of(const struct folder *f, int64_t picture);
const char *folder_text(const struct folder *f, uint32_t at);
/* "ROOT/PATH/NAME", at the end of out */
void folder_path(const struct folder *f, int64_t picture, struct text *out);

/* The names of a directory's folders, sorted. *list is freed with free(), the texts with it. */
tri_status folder_list(const char *path, char ***list, size_t *n);

/* ---- lists in files ---- */

/* Reads a list of the same root; false if there is none, or the folders have changed since. */
bool folder_load(struct folder *f, const char *root, const char *file);
/* Written beside it and renamed. Not written where a folder has been changed within the last two
 * seconds: the next change could bear the same time. */
tri_status folder_save(const struct folder *f, const char *file);
/* Where lists are kept unless told otherwise: in the user's folder for such things. False: there is
 * none. */
bool folder_default_file(const char *root, struct text *out);

#endif
