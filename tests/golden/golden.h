/* SPDX-License-Identifier: Apache-2.0
 * Shared by the golden tests: random numbers by name, as in make.py, and comparisons. */
#ifndef GOLDEN_GOLDEN_H
#define GOLDEN_GOLDEN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>
#include <stdio.h>
#include <trireme.h>

#include "io/safetensors.h"

/* Numbers [first, first + n) of the sequence called `name`, uniform in [low, high). */
void draw(const char *name, int64_t first, int64_t n, double low, double high, float *out);
void draw_int(const char *name, int64_t first, int64_t n, double low, double high, int64_t *out);

/* The file in tests/golden/data; fails the test if it cannot be read. */
struct safetensors *golden_open(const char *file);
/* An entry by formatted name; fails the test if it is missing, or of another type or count. */
const struct safetensors_entry *golden_entry(const struct safetensors *file, tri_type type,
                                             int64_t count, const char *fmt, ...) TRI_PRINTF(4, 5);

/* Fails the test where |got - want| is above tolerance times the largest |want|. */
void compare(const char *what, const float *got, const float *want, int64_t n, double tolerance);

/* Fails the test with tri_message() if the status is not TRI_OK. */
void must(tri_status status, const char *what);
void *must_allocate(size_t bytes);

int golden_ops(const char *device);
int golden_models(const char *device);

#endif
