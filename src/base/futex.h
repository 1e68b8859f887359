/* SPDX-License-Identifier: Apache-2.0
 * Sleeping until a word of shared memory changes: never FUTEX_PRIVATE, as processes share it. */
#ifndef BASE_FUTEX_H
#define BASE_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(atomic_uint) == 4 && ATOMIC_INT_LOCK_FREE == 2,
               "a futex has 32 bits, and processes share no locks");

/* Returns at once if the word is no longer `seen`. most: the longest wait; null: no limit. It may
 * return without cause. */
static inline void base_futex_sleep(atomic_uint *word, unsigned seen, const struct timespec *most) {
    syscall(SYS_futex, word, FUTEX_WAIT, seen, most, NULL, 0);
}

static inline void base_futex_wake(atomic_uint *word) {
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif
