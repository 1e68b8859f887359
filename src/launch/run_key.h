/* SPDX-License-Identifier: Apache-2.0
 * The key of a run over several hosts. */
#ifndef LAUNCH_RUN_KEY_H
#define LAUNCH_RUN_KEY_H

#include "link/link.h"

/* Of a file, of the digits on standard input (path "-"), or, path null, of LINK_KEY bytes, which
 * are cleared; in memory that no dump has, and that sodium_free clears. */
tri_status run_key_hold(const char *path, uint8_t *bytes, uint8_t **key);
/* Of a file, or path null, a new one. */
tri_status run_key_make(const char *path, uint8_t key[LINK_KEY]);

#endif
