/* SPDX-License-Identifier: Apache-2.0
 * Data from texts: blocks of ids, BERT's pairs of sentences, and the messages where these are
 * impossible. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/pretrain.h"
#include "scratch.h"

static void put(const char *name, const char *text) {
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* "text:DIRECTORY/FILES" with options; "%s" in them is the directory of the golden vocabularies. */
static const char *spec(const char *files, const char *options) {
    static char text[2048];
    char path[512];
    snprintf(path, sizeof path, "%s/tokens", getenv("TRI_GOLDEN"));
    size_t n = (size_t)snprintf(text, sizeof text, "text:%s/%s", directory, files);
    const char *where = strstr(options, "%s");
    int before = where ? (int)(where - options) : (int)strlen(options);
    snprintf(text + n, sizeof text - n, "%.*s%s%s", before, options, where ? path : "",
             where ? where + 2 : "");
    return text;
}

static tri_data *opened(const char *files, const char *options, const tri_graph *g) {
    tri_data *d = tri_data_open(spec(files, options), g, 1);
    if (!d) fail_msg("%s", tri_message());
    return d;
}

static void refused(const char *files, const char *options, const char *message) {
    assert_null(tri_data_open(spec(files, options), NULL, 1));
    assert_message(message);
}

#define BERT ",tokenizer=bert:%s/vocab.txt"
#define GPT2 ",tokenizer=gpt2:%s"

/* ---- blocks ---- */

static void blocks(void **state) {
    (void)state;
    put("a.txt", "abcdefghij\xff");
    tri_data *d = opened("a.txt", ",length=4", NULL);
    assert_int_equal(tri_data_size(d), 2);
    const tri_field *f;
    assert_int_equal(tri_data_fields(d, &f), 2);
    assert_string_equal(f[0].name, "input_ids");
    assert_string_equal(f[1].name, "labels");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(f[i].type, TRI_I64);
        assert_true(base_shape_equal(&f[i].shape, &TRI_SHAPE(4)));
    }
    for (int64_t i = 1; i >= 0; i--) {
        int64_t ids[4], labels[4];
        assert_int_equal(tri_data_get(d, i, 3, 4, (void *[]){ids, labels}), TRI_OK);
        for (int k = 0; k < 4; k++) assert_int_equal(ids[k], "abcdefgh"[4 * i + k]);
        assert_memory_equal(ids, labels, sizeof ids);
    }
    assert_non_null(strstr(d->name, "(11 tokens, 0.0 MiB)"));
    tri_data_free(d);
}

/* Byte tokens take bytes as they are; other tokenizers get U+FFFD, and the first place is reported
 * once. */
static void no_utf8(void **state) {
    (void)state;
    FILE *f = fopen(at("bad.txt"), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite("one \xe9t\xe9 \xe2\x82 two", 1, 14, f), 14);
    assert_int_equal(fclose(f), 0);
    put("good.txt", "one \xef\xbf\xbdt\xef\xbf\xbd \xef\xbf\xbd two");
    put("plain.txt", "one two");
    tri_data *d = opened("bad.txt", ",length=14", NULL);
    assert_null(d->about.warning);
    tri_data_free(d);
    for (int k = 0; k < 2; k++) {
        const char *how =
            k ? ",length=2,tokenizer=bert:%s/vocab.txt" : ",length=2,tokenizer=gpt2:%s";
        tri_data *bad = opened("bad.txt", how, NULL), *good = opened("good.txt", how, NULL);
        assert_int_equal(tri_data_size(bad), tri_data_size(good));
        for (int64_t i = 0; i < tri_data_size(bad); i++) {
            int64_t a[4], b[4];
            assert_int_equal(tri_data_get(bad, i, 0, 0, (void *[]){a, a + 2}), TRI_OK);
            assert_int_equal(tri_data_get(good, i, 0, 0, (void *[]){b, b + 2}), TRI_OK);
            assert_memory_equal(a, b, sizeof a);
        }
        assert_null(good->about.warning);
        assert_non_null(
            strstr(bad->about.warning, "invalid UTF-8 at 3 places in 1 file, first in "));
        assert_non_null(strstr(bad->about.warning, "/bad.txt at offset 4: replaced by U+FFFD"));
        tri_data_free(bad);
        tri_data_free(good);
        d = opened("*.txt", how, NULL);
        assert_non_null(strstr(d->about.warning, "invalid UTF-8 at 3 places in 1 file, first in "));
        tri_data_free(d);
    }
}

/* The ids of all blocks of a source. */
static void check_stream(tri_data *d, const char *want) {
    assert_int_equal(tri_data_size(d), strlen(want) / 2);
    for (int64_t i = 0; i < tri_data_size(d); i++) {
        int64_t ids[2], labels[2];
        assert_int_equal(tri_data_get(d, i, 0, 0, (void *[]){ids, labels}), TRI_OK);
        assert_true(ids[0] == want[2 * i] && ids[1] == want[2 * i + 1]);
    }
    tri_data_free(d);
}

static void several_files(void **state) {
    (void)state;
    put("b1", "one "), put("b2", "two "), put("b10", "ten "), put("b[1]", "set ");
    char both[300];
    snprintf(both, sizeof both, "b2:%s/b1", directory);
    check_stream(opened(both, ",length=2", NULL), "two one ");
    check_stream(opened("b?", ",length=2", NULL), "one two ");
    check_stream(opened("b[0-9]*", ",length=2", NULL), "one ten two "); /* in byte order */
    check_stream(opened("b[1]", ",length=2", NULL), "set "); /* such a file exists */
}

static void end_of_text(void **state) {
    (void)state;
    put("one", "a"), put("two", "b");
    tri_data *d = opened("*", GPT2 ",length=4", NULL);
    int64_t ids[4], labels[4];
    assert_int_equal(tri_data_size(d), 1);
    assert_int_equal(tri_data_get(d, 0, 0, 0, (void *[]){ids, labels}), TRI_OK);
    assert_int_equal(ids[1], ids[3]);
    assert_true(ids[1] > 256 && ids[0] < 256 && ids[2] < 256);
    tri_data_free(d);
}

/* A file in several parts, by one thread and by four, and in one piece. */
static void parts(void **state) {
    (void)state;
    static const char *const kinds[] = {"bytes", "bert:%s/vocab.txt", "gpt2:%s"};
    enum { N = 3500000 };
    char *text = malloc(N + 1);
    assert_non_null(text);
    for (size_t i = 0; i < N; i++) text[i] = "the fox \n's 12 .e"[(i * i / 7 + i / 99) % 17];
    for (size_t i = 0; i + 1 < N; i += 97) memcpy(text + i, "\xc3\xa9", 2);
    text[N] = 0;
    put("large", text);
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (int sentences = 0; sentences < (k == 1 ? 2 : 1); sentences++) {
            struct tokenizer *t;
            struct corpus one, four;
            const char *s = spec("", kinds[k]) + strlen("text:") + strlen(directory) + 1;
            assert_int_equal(token_open(s, &t), TRI_OK);
            assert_int_equal(corpus_read(at("large"), t, sentences, 1, &one), TRI_OK);
            assert_int_equal(corpus_read(at("large"), t, sentences, 4, &four), TRI_OK);
            assert_true(one.n == four.n && !one.wide);
            assert_memory_equal(one.id, four.id, one.n * 2);
            assert_int_equal(one.n_sentences, four.n_sentences);
            if (sentences) {
                assert_true(one.n_sentences > 1000 && one.sentence[one.n_sentences] == one.n);
                assert_memory_equal(one.sentence, four.sentence, one.n_sentences * sizeof(size_t));
            }
            struct ids ids = {0};
            struct encoder *e = encoder_new(t);
            assert_true(e && encoder_add(e, text, N, &ids));
            assert_int_equal(ids.n + (k == 2), one.n); /* with the end of text */
            for (size_t i = 0; i < ids.n; i++) assert_int_equal(ids.data[i], corpus_id(&one, i));
            encoder_free(e);
            free(ids.data);
            corpus_free(&one);
            corpus_free(&four);
            token_close(t);
        }
    free(text);
}

/* ---- documents and sentences ---- */

static void sentences(void **state) {
    (void)state;
    struct tokenizer *t;
    struct corpus c;
    put("doc",
        " \n = A heading = \n \n The fox. The dog! \"To what?\" He\nthe quick e.g. this\n\x01\n"
        "\nA world.\n = = Another = = \n 19. 20 \n the dog");
    assert_int_equal(
        token_open(spec("", "bert:%s/vocab.txt") + strlen("text:") + strlen(directory) + 1, &t),
        TRI_OK);
    assert_int_equal(corpus_read(at("doc"), t, true, 1, &c), TRI_OK);
    static const char *const want[] = {"the f ##o ##x .",
                                       "the do ##g !",
                                       "\" to w ##h ##a ##t ? \"",
                                       "h ##e",
                                       "the",
                                       "a world .",
                                       "19 .",
                                       "20",
                                       "the do ##g"};
    static const size_t documents[] = {0, 5, 6, 9};
    assert_int_equal(c.n_documents, 3);
    assert_int_equal(c.n_sentences, COUNT(want));
    assert_memory_equal(c.document, documents, sizeof documents);
    for (size_t i = 0; i < COUNT(want); i++) {
        struct text out = {0};
        for (size_t k = c.sentence[i]; k < c.sentence[i + 1]; k++) {
            text_add(&out, "%s", k > c.sentence[i] ? " " : "");
            token_decode(t, &(uint32_t){(uint32_t)corpus_id(&c, k)}, 1, &out);
        }
        if (i != 4) assert_string_equal(out.data, want[i]);
        text_free(&out);
    }
    corpus_free(&c);
    token_close(t);
}

/* ---- BERT's samples ---- */

enum { T = 32, P = 5, SAMPLES = 400 };

struct sample {
    int64_t ids[T], types[T], attended[T], labels[T], places[P], masked[P];
    float weights[P];
    int64_t random;
};

static void draw(tri_data *d, int64_t index, int64_t epoch, uint64_t seed, struct sample *s) {
    memset(s, 0x55, sizeof *s);
    assert_int_equal(tri_data_get(d, index, epoch, seed,
                                  (void *[]){s->ids, s->types, s->attended, s->labels, s->places,
                                             s->masked, s->weights, &s->random}), TRI_OK);
}

/* Documents that have one digit each: "0 a 0 b 0 ..." */
static void put_documents(void) {
    FILE *f = fopen(at("docs"), "w");
    assert_non_null(f);
    for (int d = 0; d < 100; d++) {
        static const char *const digit[] = {"1", "2", "19", "20"};
        for (int s = 0; s < 4 + d % 9; s++) {
            for (int w = 0; w < 2 + (s * 7 + d) % 5; w++)
                fprintf(f, "%s %c ", digit[d % 4], 'a' + (s + w) % 26);
            fprintf(f, ".\n");
        }
        fprintf(f, "\n");
    }
    assert_int_equal(fclose(f), 0);
}

static tri_data *open_documents(void) {
    put_documents();
    return opened("docs", BERT ",for=bert,length=32,predictions=5", NULL);
}

enum { PAD, UNK, CLS, SEP, MASK };

static void check_sample(const struct sample *s) {
    int n = 0, separators = 0, labels = 0;
    while (n < T && s->attended[n] == 1) n++;
    for (int i = 0; i < T; i++) {
        assert_int_equal(s->attended[i], i < n);
        assert_in_range(s->ids[i], 0, 167);
        if (i >= n) assert_true(s->ids[i] == PAD && s->types[i] == 0 && s->labels[i] == -100);
        else assert_int_equal(s->types[i], separators > 0);
        separators += i < n && s->ids[i] == SEP && s->labels[i] == -100;
        labels += s->labels[i] != -100;
    }
    assert_int_equal(separators, 2);
    assert_int_equal(s->ids[0], CLS);
    assert_int_equal(s->ids[n - 1], SEP);
    assert_in_range(n, 5, T);
    int masked = (15 * n + 50) / 100;
    assert_int_equal(labels, masked < 1 ? 1 : masked > P ? P : masked);
    for (int i = 0; i < P; i++) {
        assert_true(s->weights[i] == (i < labels ? 1.0f : 0.0f));
        if (i >= labels) {
            assert_true(!s->places[i] && !s->masked[i]);
            continue;
        }
        assert_true(!i || s->places[i] > s->places[i - 1]);
        assert_int_equal(s->labels[s->places[i]], s->masked[i]);
        assert_true(s->masked[i] > MASK || s->masked[i] == UNK);
    }
}

static void pairs(void **state) {
    (void)state;
    tri_data *d = open_documents();
    const tri_field *f;
    assert_int_equal(tri_data_fields(d, &f), 8);
    int64_t size = tri_data_size(d);
    assert_in_range(size, 100, 400);
    int random = 0, samples = 0, masked = 0, masks = 0, same = 0;
    for (int64_t epoch = 0; epoch < 20; epoch++)
        for (int64_t i = 0; i < size; i++, samples++) {
            struct sample s;
            draw(d, i, epoch, 7, &s);
            check_sample(&s);
            random += s.random == 1;
            for (int k = 0; k < P && s.weights[k] > 0; k++, masked++) {
                masks += s.ids[s.places[k]] == MASK;
                same += s.ids[s.places[k]] == s.masked[k];
            }
        }
    /* five standard deviations */
    assert_true(fabs(random - 0.5 * samples) < 2.5 * sqrt(samples));
    assert_true(fabs(masks - 0.8 * masked) < 2 * sqrt(masked) + masked / 1680.0);
    assert_true(fabs(same - 0.1 * masked) < 1.5 * sqrt(masked) + masked / 1680.0);
    tri_data_free(d);
}

/* Both halves of the pair, with the masked tokens restored. */
static void halves(const struct sample *s, int64_t a[T], int *n_a, int64_t b[T], int *n_b) {
    *n_a = *n_b = 0;
    for (int i = 1; i < T && s->attended[i]; i++) {
        int64_t id = s->labels[i] == -100 ? s->ids[i] : s->labels[i];
        if (s->labels[i] == -100 && id == SEP) continue;
        if (s->types[i]) b[(*n_b)++] = id;
        else a[(*n_a)++] = id;
    }
}

/* The place of a run of ids in the corpus, from `from` on; -1: none. */
static int64_t found(const struct corpus *c, int64_t from, const int64_t *id, int n) {
    for (int64_t i = from; i + n <= (int64_t)c->n; i++) {
        int k = 0;
        while (k < n && corpus_id(c, (size_t)(i + k)) == id[k]) k++;
        if (k == n) return i;
    }
    return -1;
}

/* A next sentence follows where A ends, except for what was cut off; a false one comes from the
 * text. */
static void pairs_are_of_the_text(void **state) {
    (void)state;
    tri_data *d = open_documents();
    const struct pretrain *p = d->user;
    int near = 0, follow = 0;
    for (int64_t i = 0; i < tri_data_size(d); i++) {
        struct sample s;
        int64_t a[T], b[T];
        int n_a, n_b;
        draw(d, i, 2, 9, &s);
        halves(&s, a, &n_a, b, &n_b);
        size_t first = p->corpus.sentence[p->span[2 * i]];
        int64_t where = found(&p->corpus, (int64_t)first, a, n_a);
        assert_true(n_a > 0 && n_b > 0 && where >= 0);
        assert_true(where < (int64_t)p->corpus.sentence[p->span[2 * i + 1]]);
        assert_true(found(&p->corpus, 0, b, n_b) >= 0);
        if (s.random) continue;
        follow++;
        int64_t next = found(&p->corpus, where + n_a, b, n_b);
        near += next >= 0 && next < (int64_t)p->corpus.sentence[p->span[2 * i + 1]];
    }
    assert_true(follow > 20);
    assert_int_equal(near, follow);
    tri_data_free(d);
}

static void samples_are_functions(void **state) {
    (void)state;
    tri_data *d = open_documents(), *other = open_documents();
    struct sample s, t;
    int differ[3] = {0};
    for (int64_t i = 0; i < 50; i++) {
        draw(d, i, 1, 5, &s);
        draw(other, 49 - i, 3, 8, &t); /* another call in between changes nothing */
        draw(other, i, 1, 5, &t);
        assert_memory_equal(&s, &t, sizeof s);
        draw(d, i, 2, 5, &t);
        differ[0] += memcmp(&s, &t, sizeof s) != 0;
        draw(d, i, 1, 6, &t);
        differ[1] += memcmp(&s, &t, sizeof s) != 0;
        draw(d, i + 1, 1, 5, &t);
        differ[2] += memcmp(&s, &t, sizeof s) != 0;
    }
    for (int i = 0; i < 3; i++) assert_int_equal(differ[i], 50);
    tri_data_free(d);
    tri_data_free(other);
}

/* Fields that a network does not take are all written to one place, which must not affect the
 * others. */
static void fields_in_one_place(void **state) {
    (void)state;
    tri_data *d = open_documents();
    for (int64_t i = 0; i < 50; i++)
        for (int field = 0; field < 8; field++) {
            struct sample s, t;
            int64_t spare[T];
            void *out[8];
            draw(d, i, 1, 5, &s);
            memset(&t, 0x55, sizeof t);
            const size_t offset[] = {offsetof(struct sample, ids),
                                     offsetof(struct sample, types),
                                     offsetof(struct sample, attended),
                                     offsetof(struct sample, labels),
                                     offsetof(struct sample, places),
                                     offsetof(struct sample, masked),
                                     offsetof(struct sample, weights),
                                     offsetof(struct sample, random),
                                     sizeof s};
            for (int k = 0; k < 8; k++)
                out[k] = k == field ? (char *)&t + offset[k] : (char *)spare;
            assert_int_equal(tri_data_get(d, i, 1, 5, out), TRI_OK);
            assert_memory_equal((char *)&t + offset[field], (char *)&s + offset[field],
                                field == 6 ? P * sizeof(float) : offset[field + 1] - offset[field]);
        }
    tri_data_free(d);
}

/* ---- with a network ---- */

static void networks(void **state) {
    (void)state;
    put_documents();
    tri_graph *gpt2 = tri_model_open("gpt2-tiny:seq=16,vocab=256", 2);
    tri_graph *bert = tri_model_open("bert-tiny:seq=32,vocab=168,predictions=7", 2);
    tri_graph *every = tri_model_open("bert-tiny:seq=32,vocab=168,head=every", 2);
    tri_graph *small = tri_model_open("gpt2-tiny:seq=16,vocab=255", 2);
    const tri_field *f;
    tri_data *d = opened("docs", "", gpt2);
    assert_int_equal(tri_data_fields(d, &f), 2);
    assert_int_equal(f[0].shape.dim[0], 16);
    tri_data_free(d);
    d = opened("docs", BERT, bert);
    assert_int_equal(tri_data_fields(d, &f), 8);
    assert_true(f[0].shape.dim[0] == 32 && f[4].shape.dim[0] == 7);
    tri_data_free(d);
    d = opened("docs", BERT, every);
    tri_data_fields(d, &f);
    assert_int_equal(f[4].shape.dim[0], 32);
    tri_data_free(d);
    assert_null(tri_data_open(spec("docs", ""), small, 1));
    assert_message(
        "tokenizer bytes has 256 tokens, but the network takes 255: vocab=256 is needed");
    assert_null(tri_data_open(spec("docs", ""), bert, 1));
    assert_message("tokenizer bytes has 256 tokens, but the network takes 168");
    tri_graph_free(gpt2);
    tri_graph_free(bert);
    tri_graph_free(every);
    tri_graph_free(small);
}

static void tokenizer_from_outside(void **state) {
    (void)state;
    put("a", "abcd");
    assert_null(data_open(spec("a", ",length=2,tokenizer=bytes"), NULL, 1, "bytes", NULL));
    assert_message("the tokenizer is given twice, here and by --tokenizer");
    assert_null(data_open("synthetic", NULL, 1, "gpt2:b", NULL));
    assert_message("a tokenizer (--tokenizer gpt2:b) applies only to text");
    assert_null(data_open(spec("a", ",length=2"), NULL, 1, "byte", NULL));
    assert_message("tokenizer 'byte': unknown kind");
    tri_data *d = data_open(spec("a", ",length=2"), NULL, 1, "bytes", NULL);
    assert_int_equal(tri_data_size(d), 2);
    tri_data_free(d);
}

/* ---- mistakes ---- */

static void mistakes(void **state) {
    (void)state;
    put("a", "abcd"), put("empty", ""), put("nothing", "\x01 \n\n"),
        put("line", "the fox. The dog.");
    put("short", "the\n\nfox\n\ndog\n"), put("vocab.txt", "[PAD]\n[UNK]\n");
    refused("a", ",length=8", "4 tokens, fewer than one sample of 8");
    refused("a", ",length=1", "length is 1; 2 to 2^24 tokens are possible");
    refused("a", ",length=x", "length=x is not a whole number");
    refused("a", ",for=gpt", "for=gpt is neither lm nor bert");
    refused("a", ",what=1", "unknown option 'what'; known: tokenizer, for, length, predictions");
    refused("a", ",for=bert", "the tokenizer bytes has no token [CLS]; for=bert takes bert:FILE");
    refused("a", ",for=bert,length=7" BERT, "length is 7; 8 to 2^24 tokens are possible");
    refused("a", ",for=bert,predictions=129" BERT, "predictions is 129; 1 to 128, the length");
    refused("none", "", "none: No such file or directory");
    refused("none*", "", "none*: no file matches");
    refused("a:", "", "a file name is missing before or after a colon");
    refused("", "", "not a regular file");
    refused("empty", "", "empty: the file is empty");
    refused("nothing", BERT, "nothing: there is no text in it");
    refused("line", ",for=bert" BERT, "it is a single document");
    refused("short", ",for=bert" BERT, "none of its 3 documents has two sentences");
    char own[600];
    snprintf(own, sizeof own, ",tokenizer=bert:%s/vocab.txt", directory);
    refused("a", own, "vocab.txt: none of its 2 lines is [CLS]");
    assert_null(tri_data_open("text:", NULL, 1));
    assert_message("the file is missing; text:FILE");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(blocks, empty_directory),
        cmocka_unit_test_teardown(no_utf8, empty_directory),
        cmocka_unit_test_teardown(several_files, empty_directory),
        cmocka_unit_test_teardown(end_of_text, empty_directory),
        cmocka_unit_test_teardown(parts, empty_directory),
        cmocka_unit_test_teardown(sentences, empty_directory),
        cmocka_unit_test_teardown(pairs, empty_directory),
        cmocka_unit_test_teardown(pairs_are_of_the_text, empty_directory),
        cmocka_unit_test_teardown(samples_are_functions, empty_directory),
        cmocka_unit_test_teardown(fields_in_one_place, empty_directory),
        cmocka_unit_test_teardown(networks, empty_directory),
        cmocka_unit_test_teardown(tokenizer_from_outside, empty_directory),
        cmocka_unit_test_teardown(mistakes, empty_directory),
    };
    return cmocka_run_group_tests_name("text", tests, make_directory, remove_directory);
}
