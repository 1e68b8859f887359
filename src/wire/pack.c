/* SPDX-License-Identifier: Apache-2.0
 * The loops over blocks have a fixed length and no branches, so that they vectorise. */
#include "wire/pack.h"

#include <string.h>

#include "base/clones.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "codes are written as in memory");

#define GROUP 16384
#define BLOCK 256 /* divides GROUP */
#define STREAMS 4
#define SYMBOLS 256
#define LONGEST 11 /* bits of a code */
#define AT_ONCE 5  /* codes in 64 bits, with up to 7 bits before them */
#define SPARE 8    /* bytes that put_stream may write beyond its stream */
#define FIXED (1 + 2 * STREAMS + 2) /* bytes of the head before the lengths, with the kind */

enum kind { RAW, CODED, BARE };

/* What pack_put decides for a group, and the group's exponents. */
struct plan {
    uint8_t head[FIXED + SYMBOLS / 2]; /* its first byte is the kind */
    size_t head_bytes;
    uint8_t length[SYMBOLS]; /* of the exponents' codes */
    uint8_t exponent[GROUP];
};

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

size_t pack_most(size_t n) { return n * sizeof(float) + n / GROUP + (n % GROUP != 0); }

/* ---- codes ---- */

/* The lengths with which so many of each symbol take the fewest bits (package-merge). A symbol that
 * is the only one needs no code. */
static void choose_lengths(const uint32_t counts[SYMBOLS], uint8_t length[SYMBOLS]) {
    uint32_t symbol[SYMBOLS]; /* COUNT << 8 | SYMBOL, in ascending order */
    uint32_t weights[2][2 * SYMBOLS];
    bool single[LONGEST][2 * SYMBOLS]; /* a symbol; else a pair of the list before */
    int n = 0, in_list = 0;
    for (int s = 0; s < SYMBOLS; s++) {
        if (!counts[s]) continue;
        const uint32_t entry = counts[s] << 8 | (uint32_t)s;
        int at = n++;
        for (; at && symbol[at - 1] > entry; at--) symbol[at] = symbol[at - 1];
        symbol[at] = entry;
    }
    for (int list = 0; list < LONGEST; list++) {
        const uint32_t *before = weights[list % 2];
        uint32_t *weight = weights[(list + 1) % 2];
        const int pairs = in_list / 2;
        in_list = n + pairs;
        for (int i = 0, s = 0, p = 0; i < in_list; i++) {
            const uint32_t pair = p < pairs ? before[2 * p] + before[2 * p + 1] : UINT32_MAX;
            single[list][i] = s < n && symbol[s] >> 8 <= pair;
            weight[i] = single[list][i] ? symbol[s++] >> 8 : pair;
            p += !single[list][i];
        }
    }
    memset(length, 0, SYMBOLS);
    for (int list = LONGEST, taken = 2 * n - 2; list--;) {
        int singles = 0;
        for (int i = 0; i < taken; i++) singles += single[list][i];
        for (int i = 0; i < singles; i++) length[symbol[i] & 255]++;
        taken = 2 * (taken - singles);
    }
}

/* CODE << 8 | LENGTH for each symbol. Codes are below 1 << LENGTH, whatever the lengths are. */
static void assign_codes(const uint8_t length[SYMBOLS], uint32_t code[SYMBOLS]) {
    uint32_t next = 0;
    memset(code, 0, SYMBOLS * sizeof *code);
    for (int l = 1; l <= LONGEST; l++) {
        next *= 2;
        for (int s = 0; s < SYMBOLS; s++) {
            if (length[s] != l) continue;
            for (int i = 0; i < l; i++) code[s] |= (next >> i & 1) << (8 + l - 1 - i);
            code[s] |= (uint32_t)l;
            next++;
        }
    }
}

/* ---- what becomes of a group ---- */

/* Whether a number has a bit set beside its exponent. */
CLONES static bool split(const float *x, size_t n, uint8_t *exponent) {
    uint32_t any = 0;
    for (size_t at = 0; at < n; at += BLOCK) {
        uint32_t bits[BLOCK];
        const size_t here = least(n - at, BLOCK);
        if (here < BLOCK) memset(bits, 0, sizeof bits);
        memcpy(bits, x + at, here * sizeof *x);
        for (int i = 0; i < BLOCK; i++) any |= bits[i] & 0x807fffff;
        for (int i = 0; i < BLOCK; i++) exponent[at + (size_t)i] = (uint8_t)(bits[i] >> 23);
    }
    return any;
}

static size_t stream_numbers(size_t n, int stream) {
    return n / STREAMS + (stream == STREAMS - 1 ? n % STREAMS : 0);
}

/* How often each exponent occurs in each stream, and in all. */
static void count(const uint8_t *exponent, size_t n, uint32_t counts[STREAMS + 1][SYMBOLS]) {
    const size_t each = n / STREAMS;
    memset(counts, 0, (STREAMS + 1) * sizeof *counts);
    for (size_t i = 0; i < each; i++)
        for (size_t k = 0; k < STREAMS; k++) counts[k][exponent[k * each + i]]++;
    for (size_t i = STREAMS * each; i < n; i++) counts[STREAMS - 1][exponent[i]]++;
    for (int k = 0; k < STREAMS; k++)
        for (int s = 0; s < SYMBOLS; s++) counts[STREAMS][s] += counts[k][s];
}

static void make_plan(const float *x, size_t n, struct plan *p) {
    uint32_t counts[STREAMS + 1][SYMBOLS], *all = counts[STREAMS];
    const bool any = split(x, n, p->exponent);
    count(p->exponent, n, counts);
    choose_lengths(all, p->length);
    int first = 0, last = SYMBOLS - 1;
    while (!all[first]) first++;
    while (!all[last]) last--;

    uint8_t *to = p->head;
    size_t bytes = any ? 3 * n : 0;
    *to++ = any ? CODED : BARE;
    for (int k = 0; k < STREAMS; k++) {
        uint32_t bits = 0;
        for (int s = first; s <= last; s++) bits += counts[k][s] * p->length[s];
        const uint16_t stream = (uint16_t)((bits + 7) / 8);
        memcpy(to, &stream, sizeof stream);
        to += sizeof stream;
        bytes += stream;
    }
    *to++ = (uint8_t)first;
    *to++ = (uint8_t)last;
    for (int s = first; s <= last; s += 2)
        *to++ = (uint8_t)(p->length[s] | (s < last ? p->length[s + 1] << 4 : 0));
    p->head_bytes = (size_t)(to - p->head);
    if (p->head_bytes + bytes + n / 16 + SPARE > n * sizeof *x) {
        p->head[0] = RAW;
        p->head_bytes = 1;
    }
}

/* ---- put ---- */

/* Returns the end. */
CLONES static uint8_t *put_stream(const uint8_t *symbol, size_t n, const uint32_t code[SYMBOLS],
                                  uint8_t *to) {
    const uint8_t *end = symbol + n;
    uint64_t bits = 0;
    uint32_t used = 0;
    while (symbol < end) {
        const uint8_t *stop = symbol + least((size_t)(end - symbol), AT_ONCE);
        for (; symbol < stop; symbol++) {
            bits |= (uint64_t)(code[*symbol] >> 8) << used;
            used += code[*symbol] & 255;
        }
        memcpy(to, &bits, sizeof bits);
        to += used / 8;
        bits >>= used & ~7u;
        used &= 7;
    }
    return to + (used > 0);
}

CLONES static void put_planes(const float *x, size_t n, uint8_t *to) {
    for (size_t at = 0; at < n; at += BLOCK) {
        uint32_t bits[BLOCK];
        uint16_t low[BLOCK];
        uint8_t middle[BLOCK];
        const size_t here = least(n - at, BLOCK);
        if (here < BLOCK) memset(bits, 0, sizeof bits);
        memcpy(bits, x + at, here * sizeof *x);
        for (int i = 0; i < BLOCK; i++) middle[i] = (uint8_t)(bits[i] >> 15);
        for (int i = 0; i < BLOCK; i++) low[i] = (uint16_t)(bits[i] << 1 | bits[i] >> 31);
        memcpy(to + at, middle, here);
        memcpy(to + n + 2 * at, low, 2 * here);
    }
}

static uint8_t *put_group(const float *x, size_t n, uint8_t *to) {
    struct plan p;
    make_plan(x, n, &p);
    memcpy(to, p.head, p.head_bytes);
    to += p.head_bytes;
    if (p.head[0] == RAW) {
        memcpy(to, x, n * sizeof *x);
        return to + n * sizeof *x;
    }
    uint32_t code[SYMBOLS];
    assign_codes(p.length, code);
    const uint8_t *symbol = p.exponent;
    for (int k = 0; k < STREAMS; k++) {
        to = put_stream(symbol, stream_numbers(n, k), code, to);
        symbol += stream_numbers(n, k);
    }
    if (p.head[0] == BARE) return to;
    put_planes(x, n, to);
    return to + 3 * n;
}

size_t pack_put(const float *x, size_t n, uint8_t *to) {
    uint8_t *end = to;
    for (size_t at = 0; at < n; at += GROUP) end = put_group(x + at, least(n - at, GROUP), end);
    return (size_t)(end - to);
}

/* ---- take ---- */

/* The bits from `bit` on, at least 57; zeros beyond the end. */
static inline uint64_t peek(const uint8_t *from, size_t bytes, size_t bit) {
    const size_t at = bit / 8;
    uint64_t bits = 0;
    if (at + sizeof bits <= bytes)
        memcpy(&bits, from + at, sizeof bits);
    else if (at < bytes)
        memcpy(&bits, from + at, bytes - at);
    return bits >> bit % 8;
}

/* Takes a code's symbol; `decode` has for the next LONGEST bits SYMBOL << 8 | LENGTH. */
static inline uint64_t take_code(uint64_t bits, size_t *bit, const uint16_t *decode, uint8_t *to) {
    const uint32_t found = decode[bits & ((1 << LONGEST) - 1)], length = found & 255;
    *to = (uint8_t)(found >> 8);
    *bit += length;
    return bits >> length;
}

/* Four streams at a time, since each code has to wait for the one before it in its stream. `bit` is
 * where they begin in `from`, and then where they end. */
CLONES static void take_streams(const uint8_t *from, size_t bytes, const uint16_t *decode, size_t n,
                                size_t bit[STREAMS], uint8_t *symbol) {
    const size_t each = n / STREAMS;
    size_t bit0 = bit[0], bit1 = bit[1], bit2 = bit[2], bit3 = bit[3], i = 0;
    uint8_t *to0 = symbol, *to1 = to0 + each, *to2 = to1 + each, *to3 = to2 + each;
    while (i < each) {
        const size_t stop = i + least(each - i, AT_ONCE);
        uint64_t bits0 = peek(from, bytes, bit0), bits1 = peek(from, bytes, bit1);
        uint64_t bits2 = peek(from, bytes, bit2), bits3 = peek(from, bytes, bit3);
        for (; i < stop; i++) {
            bits0 = take_code(bits0, &bit0, decode, to0 + i);
            bits1 = take_code(bits1, &bit1, decode, to1 + i);
            bits2 = take_code(bits2, &bit2, decode, to2 + i);
            bits3 = take_code(bits3, &bit3, decode, to3 + i);
        }
    }
    uint64_t bits3 = peek(from, bytes, bit3);
    for (; i < stream_numbers(n, 3); i++) bits3 = take_code(bits3, &bit3, decode, to3 + i);
    bit[0] = bit0, bit[1] = bit1, bit[2] = bit2, bit[3] = bit3;
}

/* The planes are nullable: zeros. */
CLONES static void join(const uint8_t *exponent, const uint8_t *planes, size_t n, float *x) {
    for (size_t at = 0; at < n; at += BLOCK) {
        uint32_t bits[BLOCK];
        uint16_t low[BLOCK] = {0};
        uint8_t middle[BLOCK] = {0};
        const size_t here = least(n - at, BLOCK);
        if (planes) memcpy(middle, planes + at, here);
        if (planes) memcpy(low, planes + n + 2 * at, 2 * here);
        for (int i = 0; i < BLOCK; i++) {
            bits[i] = (uint32_t)exponent[at + (size_t)i] << 24 | (uint32_t)middle[i] << 16 | low[i];
            bits[i] = bits[i] >> 1 | bits[i] << 31;
        }
        memcpy(x + at, bits, here * sizeof *x);
    }
}

/* Makes the table for take_code of the lengths in a head. If they are not those of a code, the
 * numbers will have other ones. */
static void read_codes(const uint8_t *lengths, int first, int last,
                       uint16_t decode[1 << LONGEST]) {
    uint8_t length[SYMBOLS] = {0};
    uint32_t code[SYMBOLS];
    for (int s = first; s <= last; s++)
        length[s] = lengths[(s - first) / 2] >> (s - first) % 2 * 4 & 15;
    assign_codes(length, code);
    for (int i = 0; i < 1 << LONGEST; i++) decode[i] = (uint16_t)(first << 8);
    for (int s = first; s <= last; s++)
        for (uint32_t i = code[s] >> 8; length[s] && i < 1 << LONGEST; i += 1u << length[s])
            decode[i] = (uint16_t)(s << 8 | length[s]);
}

/* Returns the bytes of a group that is not raw; 0: it is none. */
static size_t take_coded(const uint8_t *from, size_t bytes, uint8_t exponent[GROUP], size_t n,
                         float *x) {
    if (bytes < FIXED) return 0;
    const int first = from[FIXED - 2], last = from[FIXED - 1];
    if (first > last) return 0;
    size_t at = FIXED + (size_t)(last - first) / 2 + 1;
    if (at > bytes) return 0;
    uint16_t decode[1 << LONGEST], stream[STREAMS];
    size_t bit[STREAMS], end[STREAMS];
    memcpy(stream, from + 1, sizeof stream);
    read_codes(from + FIXED, first, last, decode);
    for (int k = 0; k < STREAMS; k++) {
        bit[k] = 8 * at;
        end[k] = at += stream[k];
    }
    const size_t planes = from[0] == CODED ? 3 * n : 0;
    if (at + planes > bytes) return 0;
    take_streams(from, bytes, decode, n, bit, exponent);
    for (int k = 0; k < STREAMS; k++) {
        const size_t rest = 8 * end[k] - bit[k]; /* bits after the last code, which are 0 */
        if (rest > 7 || (rest && from[end[k] - 1] >> (8 - rest))) return 0;
    }
    join(exponent, planes ? from + at : NULL, n, x);
    return at + planes;
}

/* Returns the bytes of a group; 0: it is none. */
static size_t take_group(const uint8_t *from, size_t bytes, size_t n, float *x) {
    struct plan p;
    size_t used = 0;
    if (!bytes) return 0;
    if (from[0] != RAW) {
        used = take_coded(from, bytes, p.exponent, n, x);
    } else if (bytes > n * sizeof *x) {
        memcpy(x, from + 1, n * sizeof *x);
        used = 1 + n * sizeof *x;
    }
    if (!used) return 0;
    /* There are other ways to write the same numbers, and heads that make no sense. pack_put writes
     * this one, which is not longer than what was used. */
    make_plan(x, n, &p);
    return memcmp(from, p.head, p.head_bytes) ? 0 : used;
}

bool pack_take(const uint8_t *from, size_t bytes, float *x, size_t n) {
    for (size_t at = 0; at < n; at += GROUP) {
        const size_t used = take_group(from, bytes, least(n - at, GROUP), x + at);
        if (!used) return false;
        from += used;
        bytes -= used;
    }
    return !bytes;
}
