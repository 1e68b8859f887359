/* SPDX-License-Identifier: Apache-2.0
 * What a step of a run takes, by the prices of its units. */
#ifndef CLI_PRICE_H
#define CLI_PRICE_H

#include "search/find.h"

/* Adds it for a planned run, as lines or as JSON, after having measured units that are not known,
 * or all. */
tri_status cli_price(const char *model, const tri_run *run, enum find_measure when, bool json,
                     struct text *out);

#endif
