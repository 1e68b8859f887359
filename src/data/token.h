/* SPDX-License-Identifier: Apache-2.0
 * Converts text to ids and back exactly as BERT's and GPT-2's tokenizers do. An open tokenizer is
 * read-only and can be shared by threads; each thread needs its own encoder. */
#ifndef DATA_TOKEN_H
#define DATA_TOKEN_H

#include "base/base.h"

struct tokenizer;
struct encoder;

/* "bytes": ids are bytes. "bert:FILE", "bert-cased:FILE": WordPiece with a file of tokens, one per
 * line; the former converts to lower case without accents. "gpt2:DIR": byte pairs by vocab.json and
 * merges.txt, or encoder.json and vocab.bpe. Special tokens ("[SEP]", "<|endoftext|>") in a text
 * are ordinary text; token_find returns their ids. */
#define TOKEN_KINDS "bytes, bert:FILE, bert-cased:FILE, gpt2:DIR"
tri_status token_open(const char *spec, struct tokenizer **out);
void token_close(struct tokenizer *t);

/* Ids are below this. */
int64_t token_count(const struct tokenizer *t);
/* Whether it works on characters; else on any bytes. */
bool token_reads_characters(const struct tokenizer *t);
/* The id of a token as the vocabulary writes it; -1 if there is none. */
int64_t token_find(const struct tokenizer *t, const char *token);

struct ids {
    uint32_t *data;
    size_t n, capacity;
};

/* Null: out of memory. */
struct encoder *encoder_new(const struct tokenizer *t);
void encoder_free(struct encoder *e);
/* Appends the ids of a text of any bytes; false: out of memory. */
bool encoder_add(struct encoder *e, const char *text, size_t bytes, struct ids *out);

/* Appends the text of ids, which are below token_count. For bytes and byte pairs this is the
 * encoded text; for WordPiece the tokens with spaces between words. Sets text->failed if memory is
 * out. */
void token_decode(const struct tokenizer *t, const uint32_t *id, size_t n, struct text *out);

#endif
