/* SPDX-License-Identifier: Apache-2.0
 * BERT's pre-training: "[CLS] A [SEP] B [SEP]", where B follows A in its document or comes from
 * anywhere, and some places are masked. A sample is a function of (seed, epoch, index); all random
 * choices follow from these. */
#include <string.h>

#include "base/random.h"
#include "data/pretrain.h"

#define AROUND 3 /* [CLS] and two [SEP] */
#define SHORT_PERCENT 10
#define MASKED_PERCENT 15

/* ---- random choices ---- */

/* The sequence of random choices of one sample. */
struct draws {
    uint64_t key, index, next;
};

/* Uniform in [0, n), to 2^-53. */
static size_t draw(struct draws *d, size_t n) {
    size_t x = (size_t)(random_uniform(d->key, d->index, d->next++) * (double)n);
    return x < n ? x : n - 1;
}

/* ---- spans: the sentences of a sample ---- */

static bool add_span(struct pretrain *p, size_t first) {
    if (!ARRAY_GROW(p->span, p->n_spans, p->span_capacity)) return false;
    p->span[p->n_spans++] = first;
    return true;
}

/* Cuts a document wherever a sample is full. Each span has at least two sentences: a single one at
 * the end of a document joins the span before it, and a document of one sentence has no span. */
static bool cut_document(struct pretrain *p, size_t first, size_t end) {
    const size_t *at = p->corpus.sentence;
    size_t limit = (size_t)p->length - AROUND;
    for (size_t i = first; end - i >= 2;) {
        size_t n = 2;
        while (i + n < end && at[i + n] - at[i] < limit) n++;
        if (end - (i + n) == 1) n++;
        if (!add_span(p, i) || !add_span(p, i + n)) return false;
        i += n;
    }
    return true;
}

tri_status pretrain_begin(struct pretrain *p, const char *name) {
    const struct corpus *c = &p->corpus;
    for (size_t d = 0; d < c->n_documents; d++)
        if (!cut_document(p, c->document[d], c->document[d + 1])) return base_no_memory(name);
    p->n_spans /= 2;
    if (!p->n_spans)
        return base_fail(TRI_FAILED, "data '%s': none of its %zu documents has two sentences", name,
                         c->n_documents);
    if (c->n_documents < 2)
        return base_fail(TRI_FAILED,
                         "data '%s': it is a single document; random second sentences come from "
                         "other documents (blank lines separate documents)",
                         name);
    return TRI_OK;
}

/* ---- a pair ---- */

struct run {
    size_t first, n; /* ids of the corpus */
};

static size_t document_of(const struct corpus *c, size_t sentence) {
    size_t low = 0, high = c->n_documents;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (c->document[middle] <= sentence) low = middle;
        else high = middle;
    }
    return low;
}

/* A run from a random sentence of another document until it has `limit` ids or the document
 * ends. */
static struct run elsewhere(const struct corpus *c, struct draws *d, size_t sentence,
                            size_t limit) {
    size_t own = document_of(c, sentence);
    size_t begin = c->document[own], skip = c->document[own + 1] - begin;
    size_t other = draw(d, c->n_sentences - skip);
    if (other >= begin) other += skip;
    size_t end = c->document[document_of(c, other) + 1], last = other + 1;
    while (last < end && c->sentence[last] - c->sentence[other] < limit) last++;
    return (struct run){c->sentence[other], c->sentence[last] - c->sentence[other]};
}

/* Removes ids from the longer run, at a random end, until both together have `limit`. A run longer
 * than `limit` first loses its end. */
static void shorten(struct run *a, struct run *b, size_t limit, struct draws *d) {
    if (a->n > limit) a->n = limit;
    if (b->n > limit) b->n = limit;
    while (a->n + b->n > limit) {
        struct run *longer = a->n > b->n ? a : b;
        longer->n--;
        longer->first += draw(d, 2);
    }
}

/* The words of a sample. A random B is no longer than the following B would be, so that the length
 * does not reveal which it is. */
static size_t words_of(const struct pretrain *p, size_t index) {
    const size_t *at = p->corpus.sentence;
    size_t limit = (size_t)p->length - AROUND,
           words = at[p->span[2 * index + 1]] - at[p->span[2 * index]];
    return words < 2 ? 2 : words < limit ? words : limit;
}

int64_t pretrain_length(const void *user, int64_t index) {
    return (int64_t)words_of(user, (size_t)index) + AROUND;
}

/* True if B follows A. */
static bool make_pair(const struct pretrain *p, size_t index, struct draws *d, struct run *a,
                      struct run *b) {
    const size_t *at = p->corpus.sentence;
    size_t first = p->span[2 * index], end = p->span[2 * index + 1];
    size_t limit = words_of(p, index);
    if (draw(d, 100) < SHORT_PERCENT) limit = 2 + draw(d, limit - 1);
    size_t middle = first + 1 + draw(d, end - first - 1);
    bool follows = draw(d, 2);
    *a = (struct run){at[first], at[middle] - at[first]};
    if (follows) *b = (struct run){at[middle], at[end] - at[middle]};
    else *b = elsewhere(&p->corpus, d, first, a->n < limit ? limit - a->n : 1);
    shorten(a, b, limit, d);
    return follows;
}

/* ---- a sample ---- */

/* Fields are only written: all that the network does not use may share memory. */
struct sample {
    int64_t *ids, *types, *attended, *labels, *places, *masked, *follows;
    float *weights;
};

static size_t put_run(const struct pretrain *p, struct sample *s, size_t at, struct run run,
                      int64_t type) {
    for (size_t i = 0; i < run.n; i++, at++) {
        s->ids[at] = corpus_id(&p->corpus, run.first + i);
        s->types[at] = type;
    }
    s->ids[at] = p->sep;
    s->types[at] = type;
    return at + 1;
}

/* Of ten masked places eight get [MASK], one a random id, one stays. */
static int64_t masked_as(const struct pretrain *p, int64_t id, struct draws *d) {
    size_t way = draw(d, 10);
    if (way < 8) return p->mask;
    return way == 8 ? (int64_t)draw(d, p->count) : id;
}

/* Masks n of the words: each, in order, with probability (yet to be masked) / (words left). */
static void mask(const struct pretrain *p, struct sample *s, size_t n, struct run a, struct run b,
                 struct draws *d) {
    size_t words = a.n + b.n;
    for (size_t i = 0, k = 0; k < n; i++) {
        if (draw(d, words - i) >= n - k) continue;
        size_t from = i < a.n ? a.first + i : b.first + i - a.n, at = 1 + i + (i >= a.n);
        int64_t id = corpus_id(&p->corpus, from);
        s->places[k] = (int64_t)at;
        s->masked[k] = s->labels[at] = id;
        s->weights[k++] = 1;
        s->ids[at] = masked_as(p, id, d);
    }
}

/* The number of masked places in a sample of n ids, which include three separators. */
static size_t masked_places(const struct pretrain *p, size_t n) {
    size_t places = (n * MASKED_PERCENT + 50) / 100;
    if (places < 1) places = 1;
    if (places > n - AROUND) places = n - AROUND;
    return places < (size_t)p->predictions ? places : (size_t)p->predictions;
}

int pretrain_fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    const struct pretrain *p = user;
    struct sample s = {out[0], out[1], out[2], out[3], out[4], out[5], out[7], out[6]};
    uint64_t key = random_key(random_key(seed, base_hash_text("pretrain")), (uint64_t)epoch);
    struct draws d = {.key = key, .index = (uint64_t)index};
    size_t length = (size_t)p->length, predictions = (size_t)p->predictions;
    struct run a, b;
    *s.follows = !make_pair(p, (size_t)index, &d, &a, &b);
    s.ids[0] = p->cls;
    s.types[0] = 0;
    size_t n = put_run(p, &s, put_run(p, &s, 1, a, 0), b, 1);
    for (size_t i = n; i < length; i++) {
        s.ids[i] = p->pad;
        s.types[i] = 0;
    }
    for (size_t i = 0; i < length; i++) {
        s.attended[i] = i < n;
        s.labels[i] = DATA_IGNORED;
    }
    size_t places = masked_places(p, n);
    mask(p, &s, places, a, b, &d);
    for (size_t i = places; i < predictions; i++) {
        s.places[i] = s.masked[i] = 0;
        s.weights[i] = 0;
    }
    return 0;
}

void pretrain_fields(const struct pretrain *p, tri_field field[PRETRAIN_FIELDS]) {
    const tri_shape tokens = TRI_SHAPE(p->length), masked = TRI_SHAPE(p->predictions);
    const tri_field fields[PRETRAIN_FIELDS] = {
        {"input_ids", TRI_I64, tokens},
        {"token_type_ids", TRI_I64, tokens},
        {"attention_mask", TRI_I64, tokens},
        {"labels", TRI_I64, tokens}, /* of masked places; -100 elsewhere */
        {"masked_lm_positions", TRI_I64, masked},
        {"masked_lm_ids", TRI_I64, masked},
        {"masked_lm_weights", TRI_F32, masked}, /* 1; 0 for unused places */
        {"next_sentence_label", TRI_I64, TRI_SCALAR}, /* 1: B is from anywhere */
    };
    memcpy(field, fields, sizeof fields);
}
