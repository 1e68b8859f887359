/* SPDX-License-Identifier: Apache-2.0
 * Reads tri_options.wire: "bf16", or with other formats for some parameters,
 * "bf16,transformer.wte=f32". */
#ifndef PLAN_WIRE_ASK_H
#define PLAN_WIRE_ASK_H

#include "base/base.h"
#include "wire/wire.h"

#define WIRE_NODES_MOST 4096

/* Whether texts and number can be read. */
tri_status wire_ask_check(const tri_options *o);
/* Whether a format loses something, so that nodes are rounded. */
bool wire_ask_rounds(const tri_options *o);
/* The nodes of the lanes' tree with at most so many sums above them are rounded; -1: none is. */
int wire_ask_depth(const tri_options *o);
int64_t wire_ask_nodes(const tri_options *o); /* 0: none is rounded */
/* Whether a format keeps estimates of the nodes at that depth: then the step sums these nodes. */
bool wire_ask_estimates(const tri_options *o);
struct wire_want {
    enum wire_format format;
    double share; /* topk: of the numbers that are kept */
};
/* What is wanted for a parameter's gradient. used: by part of the text, whether it has named one;
 * at most WIRE_PARTS_MOST. Fails if two parts want two formats for it. */
#define WIRE_PARTS_MOST 64
tri_status wire_ask_format(const tri_options *o, const char *param, struct wire_want *want,
                           bool *used);
/* Fails if a part has named no parameter. */
tri_status wire_ask_used(const tri_options *o, const bool *used);

#endif
