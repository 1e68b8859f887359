/* SPDX-License-Identifier: Apache-2.0
 * Text files as token ids in memory, in the order of their names in the spec: 2 bytes per id if the
 * tokenizer has at most 65536, else 4. */
#ifndef DATA_CORPUS_H
#define DATA_CORPUS_H

#include "data/token.h"

struct corpus {
    bool wide; /* 4 bytes per id */
    void *id;
    size_t n, capacity;
    /* If sentences are wanted: the first id of each sentence, then n; and the first sentence of
     * each document, then n_sentences. No sentence and no document is empty. */
    size_t *sentence, n_sentences, sentence_capacity;
    size_t *document, n_documents, document_capacity;
    /* Invalid UTF-8: the number of places and of files, and the first of them. */
    struct corpus_broken {
        size_t places, files, offset;
        char *file;
    } broken;
};

/* files: paths separated by colons; each may be a pattern of glob(7), whose files are taken in byte
 * order. A file ends a document. Without sentences, the id "<|endoftext|>" follows each file if the
 * vocabulary has it. With sentences, a blank line ends a document, and so does a line "= heading
 * =", which is left out; the end of a line or ". " ends a sentence (corpus.c). Unless ids are
 * bytes, invalid UTF-8 becomes U+FFFD, in the same places as with Python's errors="replace".
 * `threads` threads share the work (0: one per core); they do not change the result. */
tri_status corpus_read(const char *files, const struct tokenizer *t, bool sentences, int threads,
                       struct corpus *out);
void corpus_free(struct corpus *c);

static inline int64_t corpus_id(const struct corpus *c, size_t i) {
    return c->wide ? ((const uint32_t *)c->id)[i] : ((const uint16_t *)c->id)[i];
}
size_t corpus_bytes(const struct corpus *c); /* in memory */

#endif
