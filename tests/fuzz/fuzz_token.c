/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a text, for all tokenizers, with the vocabularies of tests/golden/data/tokens; and,
 * depending on the first byte, as one of the files of a vocabulary. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    const char *format; /* of the tokenizer's spec, for a directory */
    bool gives_back;    /* all bytes */
    struct tokenizer *tokenizer;
    struct encoder *encoder;
} kinds[] = {{.format = "bert:%s/vocab.txt"},
             {.format = "bert-cased:%s/vocab.txt"},
             {.format = "gpt2:%s", .gives_back = true},
             {.format = "bytes", .gives_back = true}};

static const char *spec(size_t k, const char *directory) {
    static char text[600];
    const char *hole = strstr(kinds[k].format, "%s");
    int before = hole ? (int)(hole - kinds[k].format) : (int)strlen(kinds[k].format);
    snprintf(text, sizeof text, "%.*s%s%s", before, kinds[k].format, hole ? directory : "",
             hole ? hole + 2 : "");
    return text;
}

/* ---- texts ---- */

/* An encoder without cached words gives the same. */
static void check_fresh(size_t k, const char *text, size_t size, const struct ids *want) {
    struct ids ids = {0};
    struct encoder *e = encoder_new(kinds[k].tokenizer);
    CHECK(e && encoder_add(e, text, size, &ids) && ids.n == want->n);
    CHECK(!ids.n || !memcmp(ids.data, want->data, ids.n * sizeof *ids.data));
    encoder_free(e);
    free(ids.data);
}

static void check_text(size_t k, const char *text, size_t size) {
    struct ids ids = {0};
    struct text back = {0};
    CHECK(encoder_add(kinds[k].encoder, text, size, &ids));
    for (size_t i = 0; i < ids.n; i++)
        CHECK((int64_t)ids.data[i] < token_count(kinds[k].tokenizer));
    if (k == size % COUNT(kinds)) check_fresh(k, text, size, &ids); /* it is slow to build */
    token_decode(kinds[k].tokenizer, ids.data, ids.n, &back);
    CHECK(!back.failed);
    if (kinds[k].gives_back)
        CHECK(back.size == size && (!size || !memcmp(back.data, text, size)));
    text_free(&back);
    free(ids.data);
}

/* ---- vocabularies ---- */

static const char *const files[] = {"vocab.txt", "vocab.json", "merges.txt"};
static char *whole[COUNT(files)]; /* valid files */
static size_t whole_size[COUNT(files)];
static char directory[] = "/tmp/trireme-fuzz-XXXXXX";

static void put(size_t file, const void *data, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "%s/%s", directory, files[file]);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(data, 1, size, f) == size);
    CHECK(!fclose(f));
}

/* It is accepted, or refused with a line. */
static void check_vocabulary(size_t file, const uint8_t *data, size_t size) {
    struct tokenizer *t;
    put(file, data, size);
    if (token_open(spec(file ? 2 : 0, directory), &t))
        CHECK(!t && tri_message()[0] && !strchr(tri_message(), '\n'));
    token_close(t);
    put(file, whole[file], whole_size[file]);
}

static void remove_files(void) {
    char path[64];
    for (size_t i = 0; i < COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", directory, files[i]);
        remove(path);
    }
    rmdir(directory);
}

static void begin(void) {
    CHECK(mkdtemp(directory));
    atexit(remove_files);
    for (size_t i = 0; i < COUNT(files); i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", TOKENS, files[i]);
        CHECK(!base_read_file(path, &whole[i], &whole_size[i]));
        put(i, whole[i], whole_size[i]);
    }
    for (size_t k = 0; k < COUNT(kinds); k++) {
        CHECK(!token_open(spec(k, directory), &kinds[k].tokenizer));
        CHECK(kinds[k].encoder = encoder_new(kinds[k].tokenizer));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!kinds[0].tokenizer) begin();
    if (size && data[0] < COUNT(files)) {
        check_vocabulary(data[0], data + 1, size - 1);
        return 0;
    }
    for (size_t k = 0; k < COUNT(kinds); k++) check_text(k, (const char *)data, size);
    return 0;
}
