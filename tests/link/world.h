/* SPDX-License-Identifier: Apache-2.0
 * The world of the row `in process`: several hosts in one process and one thread, for tests.
 * Whatever may happen next is a *move*: the world takes the payload of the first message
 * between two hosts that it has not taken, so that its sender may change the memory; half of the
 * first message arrives; or all of it. Messages of a pair arrive in order; all else has none.
 *
 * By itself, link_next makes a move, drawn from the seed, when its host has no event. A model
 * checker turns that off and makes moves by number. */
#ifndef WORLD_H
#define WORLD_H

#include "link/link.h"

struct link_world;
extern const struct link_row link_local;

/* The links that are opened from now on join this world. */
tri_status world_open(int hosts, uint64_t seed, struct link_world **w);
void world_close(struct link_world *w); /* after all links; nullable */
/* Whether link_next makes moves; it does at first. */
void world_by_itself(struct link_world *w, bool by_itself);

int world_moves(const struct link_world *w); /* that are possible now */
void world_move(struct link_world *w, int move);

/* Nothing moves from one host to another as long as this is on. */
void world_delay(struct link_world *w, int from, int to, bool on);
/* Ends the session of two hosts. What is between them is lost; of the first message to each, half
 * of the payload arrives before. */
void world_cut(struct link_world *w, int a, int b);
/* The host is dead: it has no more events. What the world has taken may still arrive; then its
 * peers learn of the end. link_close is the same. */
void world_kill(struct link_world *w, int host);

#endif
