/* SPDX-License-Identifier: Apache-2.0
 * CLONES before a function compiles it for several instruction sets. The loader picks the machine's
 * best, before sanitizers are ready for it. CLONED is defined if this works. For files that are
 * themselves compiled once. */
#ifndef BASE_CLONES_H
#define BASE_CLONES_H

#if defined __x86_64__ && !defined __clang__ && !defined __SANITIZE_ADDRESS__ &&             \
    !defined __SANITIZE_THREAD__ && !defined CPU_ISA
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define CLONED
#else
#define CLONES
#endif

#endif
