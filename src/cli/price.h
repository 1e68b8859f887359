/* SPDX-License-Identifier: Apache-2.0
 * What a step of a run takes, by the prices of its units. */
#ifndef CLI_PRICE_H
#define CLI_PRICE_H

#include "search/find.h"

struct price_ask {
    enum find_measure when; /* units are measured: all, or those that are not known */
    bool json;
    struct path_link link;  /* as in struct prices */
    int path;
};

/* Adds it for a planned run, as lines or as JSON. */
tri_status cli_price(const char *model, const tri_run *run, const struct price_ask *ask,
                     struct text *out);

#endif
