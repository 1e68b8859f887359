/* SPDX-License-Identifier: Apache-2.0
 * The items of a run: the units of all its programs, numbered through. A span names its item by
 * this number, and items.jsonl says what it is (src/profile/read.h). */
#ifndef RUN_ITEMS_H
#define RUN_ITEMS_H

#include "run/run.h"

/* Numbers the items of all executables; of a run that is open. Returns how many there are. */
int items_number(const tri_run *run);
/* Item i. Null: there is none. sums: the tree whose sums it computes, or null. */
struct item_at {
    const struct machine *m;
    const struct program *p;
    size_t i;
    const struct tree *sums;
};
bool items_find(const tri_run *run, int number, struct item_at *out);
/* How many items a step computes, about, and lanes, sums and waits with them. */
int64_t items_in_step(const tri_run *run);
/* Writes FOLDER/items.jsonl, for a profile of these steps. */
tri_status items_write(const tri_run *run, const char *folder, int64_t first, int64_t last);

#endif
