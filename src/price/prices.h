/* SPDX-License-Identifier: Apache-2.0
 * What units take on this machine, as it was measured while networks ran on it (run/price.h), and
 * the file that keeps it: a line for the machine, lines "unit BUSY SECONDS CALLS UNIT", and last
 * the hash of these. A unit is named by a text: its operators, their attributes, what it reads and
 * writes. */
#ifndef PRICE_PRICES_H
#define PRICE_PRICES_H

#include "plan/path_choice.h"

struct price {
    const char *unit;
    int busy;       /* threads that computed at the same time */
    double seconds; /* of a call, summed over the threads that share it */
    int64_t calls;  /* from which it was taken */
};

struct prices {
    const char *machine; /* processor, cores, instructions, version: all that prices depend on */
    struct price *price; /* by unit, then busy */
    size_t n, capacity;
    struct arena arena;
    /* Not kept in the file. Set by who plans for several hosts: */
    struct path_link link; /* bandwidth 0: it is not known */
    int path;              /* that their sums take, as option --path has it */
};

/* No prices yet, for this machine. cores: that a program may use here; 0: as many as this process,
 * which may be bound to fewer. */
tri_status prices_make(struct prices *p, int cores);
void prices_free(struct prices *p);
/* The machine's file in the user's cache folder, whose folders are made; false: there is no such
 * folder. */
bool prices_file(const struct prices *p, struct text *path);
/* Adds what a file has. One that is damaged or of another machine fails, and the line is named; one
 * that is not there has nothing. */
tri_status prices_read(struct prices *p, const char *path);
/* Adds the last line. */
void prices_seal(struct text *file);
/* Replaces the file as a whole. */
tri_status prices_write(const struct prices *p, const char *path);
/* prices_make, and what the machine's file has; one that cannot be used is said, and made anew by
 * prices_keep. path: of the file; empty if there is no place for one. */
tri_status prices_open(struct prices *p, int cores, struct text *path);
/* Writes it. If that fails, says so. */
void prices_keep(const struct prices *p, const struct text *path);
/* Null: it is not known. */
const struct price *prices_find(const struct prices *p, const char *unit, int busy);
/* Replaces what is known of the unit. The text is copied. */
tri_status prices_add(struct prices *p, const struct price *is);

#endif
