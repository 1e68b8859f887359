/* SPDX-License-Identifier: Apache-2.0
 * Text into ids and back, as the tokenizers of BERT and GPT-2 do it, id for id. An open tokenizer is
 * only read, so that threads may share it; each encodes with an encoder of its own. */
#ifndef DATA_TOKEN_H
#define DATA_TOKEN_H

#include "base/base.h"

struct tokenizer;
struct encoder;

/* "bytes": ids are bytes. "bert:FILE", "bert-cased:FILE": WordPiece by a list of tokens, a line each;
 * the former in lower case, without accents. "gpt2:DIR": byte pairs by vocab.json and merges.txt, or
 * encoder.json and vocab.bpe. Words of special meaning ("[SEP]", "<|endoftext|>") are text like any
 * other; token_find gives their ids. */
#define TOKEN_KINDS "bytes, bert:FILE, bert-cased:FILE, gpt2:DIR"
tri_status token_open(const char *spec, struct tokenizer **out);
void token_close(struct tokenizer *t);

/* Ids are below it. */
int64_t token_count(const struct tokenizer *t);
/* Whether it takes characters; else bytes, whatever they are. */
bool token_reads_characters(const struct tokenizer *t);
/* The id of a token as the vocabulary writes it; -1 if it has none. */
int64_t token_find(const struct tokenizer *t, const char *token);

struct ids {
    uint32_t *data;
    size_t n, capacity;
};

/* Null: memory is out. */
struct encoder *encoder_new(const struct tokenizer *t);
void encoder_free(struct encoder *e);
/* Appends the ids of a text, of any bytes; false: memory is out. */
bool encoder_add(struct encoder *e, const char *text, size_t bytes, struct ids *out);

/* Appends the text of ids, which are below token_count. That of bytes and byte pairs is what was
 * encoded; of WordPiece the tokens with a space between words. A failure sticks to the text. */
void token_decode(const struct tokenizer *t, const uint32_t *id, size_t n, struct text *out);

#endif
