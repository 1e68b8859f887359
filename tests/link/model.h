/* SPDX-License-Identifier: Apache-2.0
 * What a model checker of ferries must see inside: hashes of what decides what comes next. */
#ifndef MODEL_H
#define MODEL_H

#include "base/base.h"

struct ferry;
struct mover;
struct link;
struct link_world;

uint64_t model_of_ferry(const struct ferry *f, uint64_t seed);
uint64_t model_of_mover(const struct mover *m, uint64_t seed);
int model_path_of(const struct mover *m);
uint64_t model_of_world(const struct link_world *w, uint64_t seed);

/* The path (enum path) of the last bucket of lanes in the step that the ferry is at; -1: none, or
 * it is the step in which the epoch began. */
int model_path(const struct ferry *f);

/* A rule that ferries do not keep: what belongs to an old epoch ends with it. */
extern bool model_keeps_sessions;
void model_end(struct link *l, int host);
tri_status model_peer(struct link *l, int host, uint32_t epoch, const char *address);

#define ADD(h, x) ((h) = base_hash(&(x), sizeof(x), (h)))

#endif
