/* SPDX-License-Identifier: Apache-2.0
 * The pictures in a folder and its subfolders, sorted by name. A list can be kept in a file, so
 * that a million pictures are found at once the next time. */
#ifndef DATA_FOLDER_H
#define DATA_FOLDER_H

#include "base/base.h"

#define FOLDER_DEPTH 8 /* levels of subfolders */

struct folder_place {
    uint32_t path;         /* in `names`, relative to the root; "" is the root */
    int64_t seconds, nano; /* of the last modification */
    int64_t end; /* its pictures end here, and begin where those of the place before end */
};

/* Places are sorted by path, each before the places inside it; so are a place's pictures. */
struct folder {
    char *root;
    struct text names; /* texts, each with a final zero byte */
    struct folder_place *place;
    size_t n_places, places_capacity;
    uint32_t *picture; /* names in `names` */
    size_t n_pictures, pictures_capacity;
};

void folder_free(struct folder *f);
/* Searches the whole tree. Names that begin with a dot are ignored. */
tri_status folder_scan(struct folder *f, const char *root);

/* The place of a picture. */
size_t folder_place_of(const struct folder *f, int64_t picture);
const char *folder_text(const struct folder *f, uint32_t at);
/* Adds "ROOT/PATH/NAME" to out */
void folder_path(const struct folder *f, int64_t picture, struct text *out);

/* The names of a directory's folders, sorted. *list is freed with free(), which frees the names
 * too. */
tri_status folder_list(const char *path, char ***list, size_t *n);

/* ---- lists in files ---- */

/* Reads a list of the same root; false if there is none or folders have changed since. */
bool folder_load(struct folder *f, const char *root, const char *file);
/* Writes a temporary file and renames it. Writes nothing if a folder was changed within the last
 * two seconds, since the next change might get the same time stamp. */
tri_status folder_save(const struct folder *f, const char *file);
/* The default file of a list, in the user's cache directory; false: there is none. */
bool folder_default_file(const char *root, struct text *out);

#endif
