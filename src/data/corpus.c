/* SPDX-License-Identifier: Apache-2.0
 * Files are encoded in parts that end where no tokenizer looks across. Parts are processed in
 * waves, so that memory holds only the file, one wave and the ids. */
#include "data/corpus.h"

#include <glob.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/unicode.h"

#define PART_BYTES ((size_t)1 << 20)
#define WAVE_PARTS 8 /* per thread */
#define MOST_THREADS 16

struct part {
    const char *text;
    size_t bytes;
    struct ids ids;
    struct mark { /* the start of a sentence, in ids */
        size_t first;
        bool begins_document;
    } *mark;
    size_t n_marks, mark_capacity;
    bool ends_document; /* after its last sentence */
    bool failed;        /* out of memory */
};

struct wave {
    const struct tokenizer *tokenizer;
    bool sentences;
    struct part *part;
    size_t n;
    atomic_size_t next;
};

/* ---- sentences of a part, which consists of whole lines ---- */

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* An empty line, or "= heading =". */
static bool separates_documents(const char *p, const char *end) {
    while (p < end && is_blank(*p)) p++;
    while (p < end && is_blank(end[-1])) end--;
    return p == end || (end - p > 1 && *p == '=' && end[-1] == '=');
}

/* The position after the first of . ! ? and any closing marks, if a blank follows and no lower-case
 * letter after it ("e.g. this"); else the line's end. */
static const char *sentence_end(const char *p, const char *end) {
    while (p < end) {
        char c = *p++;
        if (c != '.' && c != '!' && c != '?') continue;
        while (p < end && strchr(".!?\"')]", *p) && *p) p++;
        const char *next = p;
        while (next < end && is_blank(*next)) next++;
        if (next > p && next < end && !(*next >= 'a' && *next <= 'z')) return p;
    }
    return end;
}

static bool add_sentence(struct part *part, struct encoder *e, const char *p, const char *end) {
    size_t first = part->ids.n;
    if (!encoder_add(e, p, (size_t)(end - p), &part->ids)) return false;
    if (part->ids.n == first) return true;
    if (!ARRAY_GROW(part->mark, part->n_marks, part->mark_capacity)) return false;
    part->mark[part->n_marks++] = (struct mark){first, part->ends_document};
    part->ends_document = false;
    return true;
}

static bool add_lines(struct part *part, struct encoder *e) {
    const char *p = part->text, *end = p + part->bytes;
    while (p < end) {
        const char *line_end = memchr(p, '\n', (size_t)(end - p));
        if (!line_end) line_end = end;
        if (separates_documents(p, line_end)) {
            part->ends_document = true;
            p = line_end;
        }
        while (p < line_end) {
            const char *next = sentence_end(p, line_end);
            if (!add_sentence(part, e, p, next)) return false;
            p = next;
        }
        p += p < end;
    }
    return true;
}

/* ---- a wave ---- */

static void *work(void *user) {
    struct wave *w = user;
    struct encoder *e = encoder_new(w->tokenizer);
    for (size_t i; (i = atomic_fetch_add(&w->next, 1)) < w->n;) {
        struct part *p = &w->part[i];
        p->failed = !e || !(w->sentences ? add_lines(p, e)
                                         : encoder_add(e, p->text, p->bytes, &p->ids));
    }
    encoder_free(e);
    return NULL;
}

/* If a thread cannot be started, the others process its parts. */
static void run_wave(struct wave *w, int threads) {
    pthread_t thread[MOST_THREADS];
    int n = 0;
    while (n < threads - 1 && (size_t)n + 1 < w->n && !pthread_create(&thread[n], NULL, work, w))
        n++;
    work(w);
    while (n) pthread_join(thread[--n], NULL);
}

/* The length of the next part. With sentences: up to the end of a line. Else up to a blank after a
 * visible character: a word ends there, whatever follows. */
static size_t part_length(const char *text, size_t bytes, bool sentences) {
    size_t n = PART_BYTES;
    for (; n < bytes; n++)
        if (sentences ? text[n - 1] == '\n'
                      : is_blank(text[n]) && text[n - 1] > ' ' && text[n - 1] < 0x7f)
            return n;
    return bytes;
}

/* ---- joining the parts ---- */

static bool reserve(struct corpus *c, size_t more) {
    size_t width = c->wide ? 4 : 2;
    while (c->capacity - c->n < more)
        if (!base_grow(&c->id, c->capacity, &c->capacity, width)) return false;
    return true;
}

static bool append_ids(struct corpus *c, const uint32_t *id, size_t n) {
    if (!reserve(c, n)) return false;
    for (size_t i = 0; i < n; i++) {
        if (c->wide) ((uint32_t *)c->id)[c->n + i] = id[i];
        else ((uint16_t *)c->id)[c->n + i] = (uint16_t)id[i];
    }
    c->n += n;
    return true;
}

static bool add_sentence_at(struct corpus *c, size_t first) {
    if (!ARRAY_GROW(c->sentence, c->n_sentences, c->sentence_capacity)) return false;
    c->sentence[c->n_sentences++] = first;
    return true;
}

static bool add_document_at(struct corpus *c, size_t first) {
    if (!ARRAY_GROW(c->document, c->n_documents, c->document_capacity)) return false;
    c->document[c->n_documents++] = first;
    return true;
}

/* *fresh: a document ended before this part. */
static bool append(struct corpus *c, const struct part *p, bool *fresh) {
    for (size_t i = 0; i < p->n_marks; i++) {
        if ((p->mark[i].begins_document || (!i && *fresh)) && !add_document_at(c, c->n_sentences))
            return false;
        if (!add_sentence_at(c, c->n + p->mark[i].first)) return false;
    }
    *fresh = p->ends_document || (!p->n_marks && *fresh);
    return append_ids(c, p->ids.data, p->ids.n);
}

static bool encode_file(struct corpus *c, struct wave *w, int threads, const char *text,
                        size_t bytes) {
    bool ok = true, fresh = true;
    size_t most = (size_t)threads * WAVE_PARTS;
    for (size_t at = 0; ok && at < bytes;) {
        for (w->n = 0; w->n < most && at < bytes; w->n++) {
            size_t n = part_length(text + at, bytes - at, w->sentences);
            w->part[w->n] = (struct part){.text = text + at, .bytes = n};
            at += n;
        }
        atomic_init(&w->next, 0);
        run_wave(w, threads);
        for (size_t i = 0; i < w->n; i++) {
            struct part *p = &w->part[i];
            ok = ok && !p->failed && append(c, p, &fresh);
            free(p->ids.data);
            free(p->mark);
        }
    }
    return ok;
}

/* ---- invalid UTF-8 ---- */

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* The next invalid byte from `at` on; `bytes` if there is none. */
static size_t find_broken(const char *text, size_t at, size_t bytes) {
    int32_t c;
    while (at < bytes) {
        int n = (unsigned char)text[at] < 0x80 ? 1 : char_read(text + at, text + bytes, &c);
        if ((unsigned char)text[at] >= 0x80 && c < 0) return at;
        at += (size_t)n;
    }
    return bytes;
}

/* Replaces each invalid place by U+FFFD, which may be longer. */
static tri_status mend(struct corpus *c, const char *path, char **text, size_t *bytes) {
    size_t first = find_broken(*text, 0, *bytes), places = 0, to = 0, from = 0;
    if (first == *bytes) return TRI_OK;
    for (size_t at = first; at < *bytes; at = find_broken(*text, at, *bytes), places++)
        at += (size_t)char_broken(*text + at, *text + *bytes);
    char *mended = malloc(*bytes + places * strlen(REPLACEMENT) + 1);
    if (mended && !c->broken.file) {
        c->broken.file = strdup(path);
        c->broken.offset = first;
    }
    if (!mended || !c->broken.file) {
        free(mended);
        return base_no_memory(path);
    }
    while (from < *bytes) {
        size_t next = find_broken(*text, from, *bytes);
        memcpy(mended + to, *text + from, next - from);
        to += next - from;
        from = next;
        if (next == *bytes) break;
        memcpy(mended + to, REPLACEMENT, strlen(REPLACEMENT));
        to += strlen(REPLACEMENT);
        from += (size_t)char_broken(*text + next, *text + *bytes);
    }
    free(*text);
    *text = mended;
    *bytes = to;
    c->broken.places += places;
    c->broken.files++;
    return TRI_OK;
}

static tri_status read_file(struct corpus *c, struct wave *w, int threads, const char *path) {
    char *text;
    size_t bytes, before = c->n;
    tri_status status = base_read_file(path, &text, &bytes);
    if (status) return status;
    int64_t end = w->sentences ? -1 : token_find(w->tokenizer, "<|endoftext|>");
    if (token_reads_characters(w->tokenizer)) status = mend(c, path, &text, &bytes);
    if (!status && !encode_file(c, w, threads, text, bytes)) status = base_no_memory(path);
    free(text);
    if (status) return status;
    if (c->n == before)
        return base_fail(TRI_FAILED, "%s: %s", path,
                         bytes ? "there is no text in it" : "the file is empty");
    if (end >= 0 && !append_ids(c, &(uint32_t){(uint32_t)end}, 1)) return base_no_memory(path);
    return TRI_OK;
}

/* ---- files by name ---- */

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static tri_status read_pattern(struct corpus *c, struct wave *w, int threads, const char *pattern) {
    glob_t found;
    int code = glob(pattern, GLOB_NOSORT, NULL, &found);
    if (code == GLOB_NOSPACE) return base_no_memory(pattern);
    if (code) return base_fail(TRI_FAILED, "%s: no file matches", pattern);
    qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_bytes);
    tri_status status = TRI_OK;
    for (size_t i = 0; !status && i < found.gl_pathc; i++)
        status = read_file(c, w, threads, found.gl_pathv[i]);
    globfree(&found);
    return status;
}

/* list: a copy of the names, which is modified. */
static tri_status read_list(struct corpus *c, struct wave *w, int threads, char *list) {
    tri_status status = TRI_OK;
    for (char *next, *path = list; !status && path; path = next) {
        if ((next = strchr(path, ':'))) *next++ = 0;
        if (!*path)
            status = base_fail(TRI_USAGE, "text: a file name is missing before or after a colon");
        else if (strpbrk(path, "*?[") && access(path, F_OK))
            status = read_pattern(c, w, threads, path);
        else
            status = read_file(c, w, threads, path);
    }
    return status;
}

static tri_status finish(struct corpus *c, bool sentences) {
    void *less = realloc(c->id, c->n * (c->wide ? 4 : 2));
    if (less) {
        c->id = less;
        c->capacity = c->n;
    }
    if (!sentences) return TRI_OK;
    if (!add_sentence_at(c, c->n) || !add_document_at(c, c->n_sentences - 1))
        return base_no_memory("text");
    c->n_sentences--;
    c->n_documents--;
    return TRI_OK;
}

tri_status corpus_read(const char *files, const struct tokenizer *t, bool sentences, int threads,
                       struct corpus *out) {
    if (threads < 1) threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    threads = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads;
    *out = (struct corpus){.wide = token_count(t) > 65536};
    struct wave w = {.tokenizer = t, .sentences = sentences};
    char *list = strdup(files);
    w.part = malloc((size_t)threads * WAVE_PARTS * sizeof *w.part);
    tri_status status =
        list && w.part ? read_list(out, &w, threads, list) : base_no_memory("text");
    free(list);
    free(w.part);
    if (!status) status = finish(out, sentences);
    if (status) corpus_free(out);
    return status;
}

void corpus_free(struct corpus *c) {
    free(c->id);
    free(c->sentence);
    free(c->document);
    free(c->broken.file);
    *c = (struct corpus){0};
}

size_t corpus_bytes(const struct corpus *c) {
    return c->capacity * (c->wide ? 4 : 2) +
           (c->sentence_capacity + c->document_capacity) * sizeof(size_t);
}
