/* SPDX-License-Identifier: Apache-2.0
 * Character properties for tokenizers; the only user of utf8proc. Characters of a newer Unicode,
 * which utf8proc does not know yet, are CHAR_CONTROL. */
#ifndef DATA_UNICODE_H
#define DATA_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

enum char_class { /* general categories */
    CHAR_LETTER = 1,       /* L */
    CHAR_NUMBER = 2,       /* N */
    CHAR_ACCENT = 4,       /* Mn */
    CHAR_PUNCTUATION = 8,  /* P */
    CHAR_CONTROL = 16,     /* C: controls, formats, private use, unassigned */
    CHAR_SPACE = 32,       /* White_Space, which includes some of the controls */
};
unsigned char_class(int32_t c);

/* The character at p < end; returns its bytes, 1 to 4. *c is -1 for a byte that starts no valid
 * character. */
int char_read(const char *p, const char *end, int32_t *c);
/* At an invalid byte: how many bytes one U+FFFD replaces: an incomplete character as far as it
 * goes, or the byte alone. */
int char_broken(const char *p, const char *end);
int char_write(int32_t c, char out[4]); /* returns its bytes */

int32_t char_lower(int32_t c); /* one character to one */
bool char_cased(int32_t c);
bool char_case_ignorable(int32_t c);

/* The canonical decomposition, at most 4 characters; returns their number. */
#define CHAR_MOST_PARTS 4
int char_decompose(int32_t c, int32_t out[CHAR_MOST_PARTS]);
int char_combining(int32_t c); /* its combining class, 0 to 254 */

#endif
