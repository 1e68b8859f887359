/* SPDX-License-Identifier: Apache-2.0
 * The source "text": its options, and blocks of ids for language models. */
#include "data/pretrain.h"

#include <stdlib.h>
#include <string.h>

#include "data/source.h"
#include "graph/graph.h"

#define DEFAULT_LENGTH 128 /* if no graph determines it */
#define DEFAULT_PREDICTIONS 20
#define BYTES 256
#define MOST_LENGTH (INT64_C(1) << 24)

struct text_options {
    const char *tokenizer, *purpose; /* "lm" or "bert" */
    bool nothing_said; /* no tokenizer was named */
    int64_t length, predictions;
};

/* ---- what the graph requires ---- */

static const tri_node *input(const tri_graph *g, const char *name) {
    for (size_t i = 0; g && i < g->n_nodes; i++)
        if (node_is(g->node[i], "input") && !strcmp(source_name(g->node[i]), name))
            return g->node[i];
    return NULL;
}

/* The elements of an input per sample; `other` if there is no such input. */
static int64_t input_size(const tri_graph *g, const char *name, int64_t other) {
    const tri_node *n = input(g, name);
    if (!n) return other;
    tri_spec one = graph_sample_spec(&n->out->spec);
    return tri_shape_count(&one.shape);
}

/* Else a vocabulary that is too large would fail only at one of its last ids. */
static tri_status check_vocabulary(const struct data_spec *s, const struct tokenizer *t,
                                   const char *spec) {
    const tri_node *n = input(s->graph, "input_ids");
    int64_t below = n ? tri_attr_int(n, "below") : 0;
    if (below <= 0 || token_count(t) <= below) return TRI_OK;
    return base_fail(TRI_USAGE,
                     "data '%s': tokenizer %s has %lld token(s), but the network takes %lld: "
                     "vocab=%lld is needed",
                     s->spec, spec, (long long)token_count(t), (long long)below,
                     (long long)token_count(t));
}

/* ---- consecutive blocks of ids ---- */

struct blocks {
    struct corpus corpus;
    size_t length;
};

static int fill_block(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    const struct blocks *b = user;
    (void)epoch;
    (void)seed;
    int64_t *ids = out[0], *labels = out[1];
    for (size_t i = 0; i < b->length; i++)
        ids[i] = labels[i] = corpus_id(&b->corpus, (size_t)index * b->length + i);
    return 0;
}

static void free_blocks(void *user) {
    struct blocks *b = user;
    corpus_free(&b->corpus);
    free(b);
}

/* Warns of invalid UTF-8; notes that ids are bytes if the network takes more ids. */
static void warn(tri_data *d, const struct data_spec *s, const struct text_options *o,
                 const struct corpus *c) {
    const struct corpus_broken *b = &c->broken;
    const tri_node *ids = input(s->graph, "input_ids");
    int64_t below = ids ? tri_attr_int(ids, "below") : 0;
    if (b->places)
        d->about.warning = arena_text(&d->arena,
                                      "data '%s': invalid UTF-8 at %zu place(s) in %zu file(s), "
                                      "first in %s at offset %zu: replaced by U+FFFD",
                                      s->spec, b->places, b->files, b->file, b->offset);
    if (o->nothing_said && below > BYTES)
        d->about.note =
            arena_text(&d->arena,
                       "data '%s': no tokenizer is given, so tokens are bytes: %d of the %lld "
                       "tokens that the network has; for GPT-2's use --tokenizer gpt2:DIR, with "
                       "its vocab.json and merges.txt in DIR",
                       s->spec, BYTES, (long long)below);
}

/* Creates the data: named by the spec, with the size of the corpus. */
static tri_data *make(const struct data_spec *s, const struct text_options *o,
                      const struct corpus *c, int64_t size, const tri_field *fields, int n,
                      tri_fill *fill, void *user, void (*free_user)(void *user)) {
    struct text name = {0};
    text_add(&name, "%s (%zu token(s), %.1f MiB)", s->spec, c->n,
             (double)corpus_bytes(c) / (1 << 20));
    if (name.failed) {
        base_no_memory(s->spec);
        free_user(user);
        return NULL;
    }
    tri_data *d = data_make(name.data, size, fields, n, fill, user, false, free_user);
    text_free(&name);
    if (d) warn(d, s, o, c);
    if (d) d->about.held = corpus_bytes(c);
    return d;
}

static tri_data *open_blocks(const struct data_spec *s, const struct text_options *o,
                             const struct tokenizer *t) {
    struct blocks *b = calloc(1, sizeof *b);
    if (!b) {
        base_no_memory(s->spec);
        return NULL;
    }
    b->length = (size_t)o->length;
    tri_status status = corpus_read(s->rest, t, false, 0, &b->corpus);
    if (!status && b->corpus.n < b->length)
        status = base_fail(TRI_FAILED, "data '%s': %zu token(s), fewer than one sample of %lld",
                           s->spec, b->corpus.n, (long long)o->length);
    if (status) {
        free_blocks(b);
        return NULL;
    }
    const tri_field fields[] = {{"input_ids", TRI_I64, TRI_SHAPE(o->length)},
                                {"labels", TRI_I64, TRI_SHAPE(o->length)}};
    return make(s, o, &b->corpus, (int64_t)(b->corpus.n / b->length), fields, (int)COUNT(fields),
                fill_block, b, free_blocks);
}

/* ---- pairs of sentences ---- */

static void free_pretrain(void *user) {
    struct pretrain *p = user;
    corpus_free(&p->corpus);
    free(p->span);
    free(p);
}

static tri_status find_special(struct pretrain *p, const struct data_spec *s,
                               const struct tokenizer *t, const char *spec) {
    const struct {
        const char *token;
        uint32_t *id;
    } special[] = {
        {"[CLS]", &p->cls}, {"[SEP]", &p->sep}, {"[MASK]", &p->mask}, {"[PAD]", &p->pad}};
    for (size_t i = 0; i < COUNT(special); i++) {
        int64_t id = token_find(t, special[i].token);
        if (id < 0)
            return base_fail(TRI_USAGE,
                             "data '%s': the tokenizer %s has no token %s; for=bert takes "
                             "bert:FILE or bert-cased:FILE",
                             s->spec, spec, special[i].token);
        *special[i].id = (uint32_t)id;
    }
    return TRI_OK;
}

static tri_data *open_pretrain(const struct data_spec *s, const struct text_options *o,
                               const struct tokenizer *t) {
    struct pretrain *p = calloc(1, sizeof *p);
    if (!p) {
        base_no_memory(s->spec);
        return NULL;
    }
    p->length = o->length;
    p->predictions = o->predictions;
    p->count = (uint32_t)token_count(t);
    tri_status status = find_special(p, s, t, o->tokenizer);
    if (!status) status = corpus_read(s->rest, t, true, 0, &p->corpus);
    if (!status) status = pretrain_begin(p, s->spec);
    if (status) {
        free_pretrain(p);
        return NULL;
    }
    tri_field fields[PRETRAIN_FIELDS];
    pretrain_fields(p, fields);
    tri_data *d = make(s, o, &p->corpus, (int64_t)p->n_spans, fields, PRETRAIN_FIELDS,
                       pretrain_fill, p, free_pretrain);
    tri_data_lengths(d, pretrain_length);
    if (d) d->about.held += p->span_capacity * sizeof *p->span;
    return d;
}

/* ---- the source ---- */

/* As many masked places as the graph has inputs for; a network with labels everywhere takes any
 * number. */
static int64_t default_predictions(const tri_graph *g, int64_t length) {
    int64_t other = length < DEFAULT_PREDICTIONS ? length : DEFAULT_PREDICTIONS;
    return input_size(g, "masked_lm_positions", input(g, "labels") ? length : other);
}

static tri_status read_options(const struct data_spec *s, struct text_options *o) {
    const char *spec = s->spec, *given = NULL;
    *o = (struct text_options){.purpose = input(s->graph, "token_type_ids") ? "bert" : "lm",
                               .length = input_size(s->graph, "input_ids", DEFAULT_LENGTH)};
    const struct data_option known[] = {
        {"tokenizer", DATA_TEXT, &given}, {"for", DATA_TEXT, &o->purpose},
        {"length", DATA_INT, &o->length}, {"predictions", DATA_INT, &o->predictions}};
    tri_status status = data_parse_options(s, known, (int)COUNT(known));
    if (status) return status;
    if (given && s->tokenizer)
        return base_fail(TRI_USAGE,
                         "data '%s': the tokenizer is given twice, here and by --tokenizer", spec);
    o->nothing_said = !given && !s->tokenizer;
    o->tokenizer = given ? given : s->tokenizer ? s->tokenizer : "bytes";
    bool bert = !strcmp(o->purpose, "bert");
    if (!bert && strcmp(o->purpose, "lm"))
        return base_fail(TRI_USAGE, "data '%s': for=%s is neither lm nor bert", spec, o->purpose);
    if (o->length < (bert ? 8 : 2) || o->length > MOST_LENGTH)
        return base_fail(TRI_USAGE, "data '%s': length is %lld; %d to 2^24 tokens are possible",
                         spec, (long long)o->length, bert ? 8 : 2);
    if (!o->predictions) o->predictions = default_predictions(s->graph, o->length);
    if (o->predictions < 1 || o->predictions > o->length)
        return base_fail(TRI_USAGE,
                         "data '%s': predictions is %lld; 1 to %lld, the length, are possible",
                         spec, (long long)o->predictions, (long long)o->length);
    return TRI_OK;
}

/* The fields are described at tri_data_open. */
static tri_data *text_open(const struct data_spec *s) {
    struct text_options o;
    struct tokenizer *t = NULL;
    tri_data *d = NULL;
    if (!read_options(s, &o) && !token_open(o.tokenizer, &t) &&
        !check_vocabulary(s, t, o.tokenizer))
        d = !strcmp(o.purpose, "bert") ? open_pretrain(s, &o, t) : open_blocks(s, &o, t);
    token_close(t);
    return d;
}

const struct data_source source_text = {
    "text", "file",
    "text:FILE[:FILE...][,tokenizer=KIND][,for=lm|bert][,length=N]"
    "[,predictions=N]",
    text_open, true};
