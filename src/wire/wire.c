/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/wire.h"

#include <string.h>

#include "wire/blocks.h"
#include "wire/pack.h"
#include "wire/topk.h"

const char *const wire_names[WIRE_FORMATS + 3] = {"f32", "fp16", "bf16", "int8",
                                                      "topk", "pack"};

static uint64_t blocks_of(const struct wire_part *p) {
    return p->format == WIRE_TOPK ? p->n > 0 : p->n / WIRE_BLOCK + (p->n % WIRE_BLOCK != 0);
}

uint64_t wire_blocks(const struct wire_map *m) {
    uint64_t blocks = 0;
    for (int i = 0; i < m->n; i++) blocks += blocks_of(&m->part[i]);
    return blocks;
}

bool wire_is_plain(const struct wire_map *m) {
    for (int i = 0; i < m->n; i++) {
        const struct wire_part *p = &m->part[i];
        if (p->format != WIRE_F32 || (i && p->at != p[-1].at + 4 * p[-1].n)) return false;
    }
    return true;
}

bool wire_is_packed(const struct wire_map *m) {
    for (int i = 0; i < m->n; i++)
        if (m->part[i].format == WIRE_PACK) return true;
    return false;
}

void wire_chunk(const struct wire_map *m, int chunk, int chunks, uint64_t *first, uint64_t *n) {
    const uint64_t blocks = wire_blocks(m), of = (uint64_t)chunks, c = (uint64_t)chunk;
    *first = blocks * c / of;
    *n = blocks * (c + 1) / of - *first;
}

/* What a range has of a part: whole blocks, and `rest` numbers of a shorter one; or all numbers of
 * topk. */
struct stretch {
    const struct wire_part *part;
    const struct wire_row *row; /* null: topk */
    uint64_t block; /* the first, counted in the part */
    size_t whole, rest;
    uint64_t at;    /* in the slot, in bytes */
};

/* The rest of a range, whose first block is counted from `part` on. */
struct range {
    const struct wire_part *part;
    uint64_t first, n;
};

static struct range range_of(const struct wire_map *m, uint64_t first, uint64_t n) {
    const uint64_t blocks = wire_blocks(m);
    CHECK(first <= blocks && n <= blocks - first);
    return (struct range){m->part, first, n};
}

/* The next stretch; false: there is none. */
static bool next(struct range *r, struct stretch *s) {
    if (!r->n) return false;
    uint64_t blocks;
    while (r->first >= (blocks = blocks_of(r->part))) {
        r->first -= blocks;
        r->part++;
    }
    if (r->part->format == WIRE_TOPK) {
        *s = (struct stretch){.part = r->part, .rest = r->part->n, .at = r->part->at};
        r->first++;
        r->n--;
        return true;
    }
    const uint64_t n = r->n < blocks - r->first ? r->n : blocks - r->first;
    const uint64_t numbers = r->part->n - r->first * WIRE_BLOCK;
    const bool ends = n * WIRE_BLOCK > numbers;
    const uint32_t row = r->part->format == WIRE_PACK ? WIRE_F32 : r->part->format;
    *s = (struct stretch){r->part, &wire_rows[row], r->first, n - ends,
                          ends ? numbers % WIRE_BLOCK : 0,
                          r->part->at + r->first * WIRE_BLOCK * sizeof(float)};
    r->first += n;
    r->n -= n;
    return true;
}

static size_t bytes_of(const struct wire_row *row, size_t numbers) {
    return numbers ? row->head + numbers * row->each : 0;
}

static uint64_t *marks_of(const struct stretch *s, const char *slot) {
    return (uint64_t *)(slot + s->part->marks);
}

static const float *estimate_of(const struct wire_map *m, const struct stretch *s) {
    CHECK(m->estimate);
    return (const float *)(m->estimate + s->part->estimate);
}

/* What is packed begins with its length. */
#define LENGTH sizeof(uint32_t)

static size_t packed(const struct stretch *s) { /* numbers; 0: it is not packed */
    return s->part->format == WIRE_PACK ? s->whole * WIRE_BLOCK + s->rest : 0;
}

static size_t put_packed(const float *x, size_t n, uint8_t *to) {
    const size_t bytes = pack_put(x, n, to + LENGTH);
    for (size_t i = 0; i < LENGTH; i++) to[i] = (uint8_t)(bytes >> 8 * i);
    return LENGTH + bytes;
}

/* Returns how many of the bytes it has taken; 0: they are not what put_packed writes. */
static size_t take_packed(const uint8_t *from, size_t bytes, size_t n, float *x) {
    size_t length = 0;
    for (size_t i = 0; i < LENGTH && bytes >= LENGTH; i++) length |= (size_t)from[i] << 8 * i;
    if (bytes < LENGTH || length > bytes - LENGTH) return 0;
    return pack_take(from + LENGTH, length, x, n) ? LENGTH + length : 0;
}

static size_t whole_bytes(const struct stretch *s) {
    return s->whole * bytes_of(s->row, WIRE_BLOCK);
}

size_t wire_bytes(const struct wire_map *m, uint64_t first, uint64_t n) {
    struct range r = range_of(m, first, n);
    struct stretch s;
    size_t bytes = 0;
    while (next(&r, &s))
        bytes += packed(&s) ? LENGTH + pack_most(packed(&s))
                 : s.row    ? whole_bytes(&s) + bytes_of(s.row, s.rest)
                       : topk_bytes(s.part->n, s.part->kept);
    return bytes;
}

size_t wire_slot_bytes(const struct wire_map *m, uint64_t first, uint64_t n) {
    struct range r = range_of(m, first, n);
    struct stretch s;
    size_t bytes = 0;
    while (next(&r, &s)) bytes += (s.whole * WIRE_BLOCK + s.rest) * sizeof(float);
    return bytes;
}

/* A shorter block is handled as a whole one, with zeros at its end. */
struct padded {
    float x[WIRE_BLOCK];
    uint8_t bytes[1 + WIRE_BLOCK * sizeof(float)];
};

void wire_round(const struct wire_map *m, const struct wire_key *key, uint64_t first, uint64_t n,
                char *slot) {
    struct range r = range_of(m, first, n);
    struct stretch s;
    while (next(&r, &s)) {
        const uint64_t words[] = {key->seed, key->step, (uint64_t)key->node, s.part->name};
        const uint64_t draws = base_hash(words, sizeof words, 0);
        float *x = (float *)(slot + s.at);
        if (!s.row) {
            topk_round(x, estimate_of(m, &s), s.part->n, s.part->kept, marks_of(&s, slot));
            continue;
        }
        s.row->round(x, s.whole, draws, s.block);
        if (!s.rest) continue;
        struct padded p = {0};
        x += s.whole * WIRE_BLOCK;
        memcpy(p.x, x, s.rest * sizeof *x);
        s.row->round(p.x, 1, draws, s.block + s.whole);
        memcpy(x, p.x, s.rest * sizeof *x);
    }
}

size_t wire_put(const struct wire_map *m, const char *slot, uint64_t first, uint64_t n,
                uint8_t *to) {
    struct range r = range_of(m, first, n);
    struct stretch s;
    const uint8_t *const begin = to;
    while (next(&r, &s)) {
        const float *x = (const float *)(slot + s.at);
        if (!s.row) {
            topk_put(x, marks_of(&s, slot), s.part->n, s.part->kept, to);
            to += topk_bytes(s.part->n, s.part->kept);
            continue;
        }
        if (packed(&s)) {
            to += put_packed(x, packed(&s), to);
            continue;
        }
        s.row->put(x, s.whole, to);
        to += whole_bytes(&s);
        if (!s.rest) continue;
        struct padded p = {0};
        memcpy(p.x, x + s.whole * WIRE_BLOCK, s.rest * sizeof *x);
        s.row->put(p.x, 1, p.bytes);
        memcpy(to, p.bytes, bytes_of(s.row, s.rest));
        to += bytes_of(s.row, s.rest);
    }
    return (size_t)(to - begin);
}

/* Takes a stretch from at most so many bytes. Returns how many; SIZE_MAX: put writes no such. */
static size_t take(const struct wire_map *m, const struct stretch *s, const uint8_t *from,
                   size_t bytes, char *slot) {
    float *x = (float *)(slot + s->at);
    if (packed(s)) {
        const size_t taken = take_packed(from, bytes, packed(s), x);
        return taken ? taken : SIZE_MAX;
    }
    const size_t want = s->row ? whole_bytes(s) + bytes_of(s->row, s->rest)
                               : topk_bytes(s->part->n, s->part->kept);
    if (bytes < want) return SIZE_MAX;
    if (!s->row)
        return topk_take(from, estimate_of(m, s), s->part->n, s->part->kept, x, marks_of(s, slot))
                   ? want : SIZE_MAX;
    if (!s->row->take(from, s->whole, x)) return SIZE_MAX;
    if (!s->rest) return want;
    struct padded p = {0};
    memcpy(p.bytes, from + whole_bytes(s), bytes_of(s->row, s->rest));
    if (!s->row->take(p.bytes, 1, p.x)) return SIZE_MAX;
    memcpy(x + s->whole * WIRE_BLOCK, p.x, s->rest * sizeof *x);
    return want;
}

tri_status wire_take(const struct wire_map *m, const uint8_t *from, size_t bytes, uint64_t first,
                     uint64_t n, char *slot) {
    struct range r = range_of(m, first, n);
    struct stretch s;
    const size_t want = wire_bytes(m, first, n);
    if (bytes > want || (bytes < want && !wire_is_packed(m)))
        return base_fail(TRI_FAILED, "%zu bytes came for numbers that take %zu", bytes, want);
    while (next(&r, &s)) {
        const size_t taken = take(m, &s, from, bytes, slot);
        if (taken == SIZE_MAX)
            return base_fail(TRI_FAILED, "what came are no numbers in the format %s",
                             wire_names[s.part->format]);
        from += taken;
        bytes -= taken;
    }
    return !bytes ? TRI_OK : base_fail(TRI_FAILED, "%zu bytes too many came", bytes);
}

void wire_add(const struct wire_map *m, const char *left, const char *right, uint64_t first,
              uint64_t n, char *to) {
    struct range r = range_of(m, first, n);
    struct stretch s;
    while (next(&r, &s)) {
        const float *a = (const float *)(left + s.at), *b = (const float *)(right + s.at);
        float *sum = (float *)(to + s.at);
        wire_add_blocks(a, b, s.whole, sum);
        for (size_t i = s.whole * WIRE_BLOCK; i < s.whole * WIRE_BLOCK + s.rest; i++)
            sum[i] = a[i] + b[i];
    }
}
