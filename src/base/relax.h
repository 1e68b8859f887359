/* SPDX-License-Identifier: Apache-2.0
 * The pause instruction for loops that wait for another core to change memory. */
#ifndef BASE_RELAX_H
#define BASE_RELAX_H

static inline void base_relax(void) {
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

#endif
