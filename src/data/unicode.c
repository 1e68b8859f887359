/* SPDX-License-Identifier: Apache-2.0 */
#include "data/unicode.h"

#include <utf8proc.h>

#include "base/base.h"

static const unsigned char ascii[128] = {
    [0 ... 8] = CHAR_CONTROL,
    ['\t' ... '\r'] = CHAR_CONTROL | CHAR_SPACE,
    [14 ... 31] = CHAR_CONTROL,
    [' '] = CHAR_SPACE,
    ['!' ... '#'] = CHAR_PUNCTUATION,
    ['%' ... '*'] = CHAR_PUNCTUATION,
    [',' ... '/'] = CHAR_PUNCTUATION,
    ['0' ... '9'] = CHAR_NUMBER,
    [':' ... ';'] = CHAR_PUNCTUATION,
    ['?' ... '@'] = CHAR_PUNCTUATION,
    ['A' ... 'Z'] = CHAR_LETTER,
    ['[' ... ']'] = CHAR_PUNCTUATION,
    ['_'] = CHAR_PUNCTUATION,
    ['a' ... 'z'] = CHAR_LETTER,
    ['{'] = CHAR_PUNCTUATION,
    ['}'] = CHAR_PUNCTUATION,
    [127] = CHAR_CONTROL,
};

unsigned char_class(int32_t c) {
    if (c >= 0 && c < 128) return ascii[c];
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CHAR_LETTER;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CHAR_NUMBER;
    case UTF8PROC_CATEGORY_MN: return CHAR_ACCENT;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return CHAR_PUNCTUATION;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return CHAR_SPACE;
    case UTF8PROC_CATEGORY_CC: return CHAR_CONTROL | (c == 0x85 ? CHAR_SPACE : 0);
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN: return CHAR_CONTROL;
    default: return 0;
    }
}

int char_read(const char *p, const char *end, int32_t *c) {
    const unsigned char first = (unsigned char)*p;
    if (first < 0x80) {
        *c = first;
        return 1;
    }
    utf8proc_ssize_t n =
        utf8proc_iterate((const utf8proc_uint8_t *)p, end - p < 4 ? end - p : 4, c);
    if (n > 0) return (int)n;
    *c = -1;
    return 1;
}

int char_broken(const char *p, const char *end) {
    static const struct {
        unsigned char first, last, low, high; /* ranges of the first and the second byte */
        int bytes;
    } begin[] = {{0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
                 {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
                 {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
                 {0xf4, 0xf4, 0x80, 0x8f, 4}};
    const unsigned char *at = (const unsigned char *)p;
    int64_t left = end - p;
    for (size_t i = 0; i < COUNT(begin); i++) {
        if (*at < begin[i].first || *at > begin[i].last) continue;
        if (left < 2 || at[1] < begin[i].low || at[1] > begin[i].high) return 1;
        return begin[i].bytes == 3 || left < 3 || at[2] < 0x80 || at[2] > 0xbf ? 2 : 3;
    }
    return 1;
}

int char_write(int32_t c, char out[4]) {
    return (int)utf8proc_encode_char(c, (utf8proc_uint8_t *)out);
}

int32_t char_lower(int32_t c) {
    if (c < 128) return c >= 'A' && c <= 'Z' ? c + 32 : c;
    return utf8proc_tolower(c);
}

/* ---- properties that utf8proc lacks ---- */

struct range {
    int32_t first, last;
};

static bool in(const struct range *range, size_t n, int32_t c) {
    for (size_t i = 0; i < n; i++)
        if (c >= range[i].first && c <= range[i].last) return true;
    return false;
}

/* Other_Uppercase and Other_Lowercase. */
static const struct range also_cased[] = {
    {0xaa, 0xaa},       {0xba, 0xba},       {0x2b0, 0x2b8},     {0x2c0, 0x2c1},
    {0x2e0, 0x2e4},     {0x345, 0x345},     {0x37a, 0x37a},     {0x1d2c, 0x1d6a},
    {0x1d78, 0x1d78},   {0x1d9b, 0x1dbf},   {0x2071, 0x2071},   {0x207f, 0x207f},
    {0x2090, 0x209c},   {0x2160, 0x217f},   {0x24b6, 0x24e9},   {0x2c7c, 0x2c7d},
    {0xa69c, 0xa69d},   {0xa770, 0xa770},   {0xa7f8, 0xa7f9},   {0xab5c, 0xab5f},
    {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba},
    {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};

bool char_cased(int32_t c) {
    utf8proc_category_t k = utf8proc_category(c);
    return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT ||
           in(also_cased, COUNT(also_cased), c);
}

/* Marks inside words: MidLetter, MidNumLet, Single_Quote. */
static const struct range within_words[] = {
    {0x27, 0x27},     {0x2e, 0x2e},     {0x3a, 0x3a},     {0xb7, 0xb7},     {0x387, 0x387},
    {0x55f, 0x55f},   {0x5f4, 0x5f4},   {0x2018, 0x2019}, {0x2024, 0x2024}, {0x2027, 0x2027},
    {0xfe13, 0xfe13}, {0xfe52, 0xfe52}, {0xfe55, 0xfe55}, {0xff07, 0xff07}, {0xff0e, 0xff0e},
    {0xff1a, 0xff1a}};

bool char_case_ignorable(int32_t c) {
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return in(within_words, COUNT(within_words), c);
    }
}

/* ---- decomposition ---- */

int char_decompose(int32_t c, int32_t out[CHAR_MOST_PARTS]) {
    int boundary = 0;
    utf8proc_ssize_t n =
        c < 128 ? 0
                : utf8proc_decompose_char(c, out, CHAR_MOST_PARTS, UTF8PROC_DECOMPOSE, &boundary);
    CHECK(n <= CHAR_MOST_PARTS);
    if (n > 0) return (int)n;
    out[0] = c;
    return 1;
}

int char_combining(int32_t c) { return c < 128 ? 0 : utf8proc_get_property(c)->combining_class; }
