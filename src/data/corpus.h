/* SPDX-License-Identifier: Apache-2.0
 * Files of text as ids in memory, in the order in which they are named: 2 bytes an id where the
 * tokenizer has at most 65536, else 4. */
#ifndef DATA_CORPUS_H
#define DATA_CORPUS_H

#include "data/token.h"

struct corpus {
    bool wide; /* 4 bytes an id */
    void *id;
    size_t n, capacity;
    /* Where sentences are wanted: the first id of each, then n; the first sentence of each document,
     * then n_sentences. No sentence and no document is empty. */
    size_t *sentence, n_sentences, sentence_capacity;
    size_t *document, n_documents, document_capacity;
    /* Where files are not UTF-8: at how many places, of how many files, and the first. */
    struct corpus_broken {
        size_t places, files, offset;
        char *file;
    } broken;
};

/* files: paths with colons between them, a path may be a pattern of glob(7), whose files are taken in
 * the order of their bytes. A file ends a document; without sentences, the id "<|endoftext|>" stands
 * behind each file, if the vocabulary has it. With sentences, a blank line ends a document, and so
 * does a line "= heading =", which is left out; a line's end or ". " ends a sentence (corpus.c).
 * What is no UTF-8 counts as U+FFFD, unless ids are bytes: where Python's errors="replace" has one.
 * The work is shared by threads (0: one for each core), which change nothing in the result. */
tri_status corpus_read(const char *files, const struct tokenizer *t, bool sentences, int threads,
                       struct corpus *out);
void corpus_free(struct corpus *c);

static inline int64_t corpus_id(const struct corpus *c, size_t i) {
    return c->wide ? ((const uint32_t *)c->id)[i] : ((const uint16_t *)c->id)[i];
}
size_t corpus_bytes(const struct corpus *c); /* of memory */

#endif
