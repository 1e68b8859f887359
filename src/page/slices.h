/* SPDX-License-Identifier: Apache-2.0
 * The latest profile of a run, as far as pixels show it. */
#ifndef PAGE_SLICES_H
#define PAGE_SLICES_H

#include "profile/read.h"

/* The profile, which stays until another one is asked for; null with a message, TRI_USAGE if the
 * run has none. */
const struct profile *slices_profile(const char *directory);
void slices_free(void);

/* What threads did from `from` to `to`, in nanoseconds since the profile's begin, on so many
 * columns of pixels:
 *
 *     {"name":"10","begin":0,"end":N,"lost":0,"path":"compute 71 %, ...",
 *      "step":seconds,"steps":[[step,begin,end]],"kinds":["unexplained",...],
 *      "critical":[[number in threads,begin,end]],
 *      "arrows":[[number of the thread that ends a wait,when,number of the one that waits,begin,
 *                 end]],
 *      "threads":[{"host":"","worker":0,"thread":0,"what":"computes",
 *                  "times":[[begin,end,category,kind,whom,step,lane]],
 *                  "operators":[[begin,end,category,item,step,lane]]}],
 *      "items":{"N":{...}}}
 *
 * `whom` is the number of a thread. What is narrower than a pixel is merged: then there is no kind
 * and no item, -1, and the category is chosen so that each has its share of the pixels. */
void slices_add(const struct profile *p, int64_t from, int64_t to, int pixels, struct text *out);
/* Who waits for whom, workers of the first host, in seconds of a step:
 * {"workers":N,"seconds":[[...]]}. */
void slices_waits(const struct profile *p, struct text *out);

#endif
