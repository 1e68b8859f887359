/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/state.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/sha256.h"

#define OLDEST_FORMAT 1
#define CHECKED_FORMAT 2 /* from this format on, state.json has a checksum of itself */
#define TEXTS_FORMAT 3   /* from this format on, there are network.tri and plan.txt */

/* ---- the checksum ---- */

#define DIGITS 64
#define OWN "own_sha256"
static const char zeros[DIGITS + 1] =
    "0000000000000000000000000000000000000000000000000000000000000000";

/* The start of the digits; null if there are none. Inside a JSON string the quotes would be
 * escaped, so no name in the file can be mistaken for the key. */
static char *find_digits(const char *text, size_t bytes) {
    static const char before[] = "\"" OWN "\": \"";
    const char *at = memmem(text, bytes, before, sizeof before - 1);
    if (!at) return NULL;
    at += sizeof before - 1;
    return (size_t)(text + bytes - at) > DIGITS && at[DIGITS] == '"' ? (char *)at : NULL;
}

/* Hashes the file with zeros in place of these digits. */
static void hash_around(const char *text, size_t bytes, const char *digits, char hex[65]) {
    struct sha256 h;
    const char *rest = digits + DIGITS;
    sha256_begin(&h);
    sha256_add(&h, text, (size_t)(digits - text));
    sha256_add(&h, zeros, DIGITS);
    sha256_add(&h, rest, (size_t)(text + bytes - rest));
    sha256_end_hex(&h, hex);
}

static tri_status check_digits(const char *path, const char *text, size_t bytes, json_int_t format,
                               bool *checked) {
    const char *digits = find_digits(text, bytes);
    char hex[65];
    *checked = digits;
    if (!digits && format < CHECKED_FORMAT) return TRI_OK;
    if (digits) hash_around(text, bytes, digits, hex);
    if (digits && !memcmp(hex, digits, DIGITS)) return TRI_OK;
    return base_fail(TRI_FAILED, "%s is not what was written: %s", path,
                     digits ? "its hash differs from \"" OWN "\" in it" : "\"" OWN "\" is missing");
}

/* ---- writing ---- */

/* Null if memory is out. */
static json_t *scalars_json(const struct checkpoint_state *s) {
    json_t *all = json_object();
    for (int i = 0; i < s->n_scalars && all; i++) {
        if (!json_object_set_new(all, s->scalar[i].name, json_real((double)s->scalar[i].value)))
            continue;
        json_decref(all);
        all = NULL;
    }
    return all;
}

static json_t *files_json(const struct state_file *w) {
    json_t *all = json_object();
    for (int i = 0; i < CHECKPOINT_FILES && all; i++) {
        json_t *one = json_pack("{s:I,s:s}", "bytes", (json_int_t)w[i].bytes, "sha256", w[i].hash);
        if (!json_object_set_new(all, checkpoint_files[i], one)) continue;
        json_decref(all);
        all = NULL;
    }
    return all;
}

static json_t *judged_json(const struct checkpoint_state *s) {
    const struct policy_state *j = &s->policy_state;
    if (!*s->metric) return json_null();
    return json_pack("{s:s,s:I,s:I,s:I,s:f}", "metric", s->metric, "step", (json_int_t)j->step,
                     "best_step", (json_int_t)j->best_step, "no_better", (json_int_t)j->no_better,
                     "best", j->best);
}

static json_t *options_json(const struct checkpoint_options *o) {
    json_t *all = json_object();
    for (int i = 0; i < o->n && all; i++) {
        if (!json_object_set_new(all, o->one[i].name, json_string(o->one[i].value))) continue;
        json_decref(all);
        all = NULL;
    }
    return all;
}

/* Null if memory is out, or a text is not UTF-8. */
static json_t *state_json(const struct checkpoint_state *s, const struct state_file *w) {
    char seed[24];
    /* JSON's integers end at 2^53 */
    base_format(seed, sizeof seed, "%llu", (unsigned long long)s->seed);
    json_t *loss = isfinite(s->loss) ? json_real(s->loss) : json_null();
    json_t *rate = isfinite(s->rate) ? json_real(s->rate) : json_null();
    return json_pack("{s:i,s:s,s:I,s:I,s:o,s:o,s:I,s:I,s:s,s:b,s:s,s:{s:s,s:I},s:o,s:o,s:o,s:s,s:s,"
                     "s:s,s:s,s:s,s:o}",
                     "format", CHECKPOINT_FORMAT, OWN, zeros, "step", (json_int_t)s->step, "epoch",
                     (json_int_t)s->epoch, "loss", loss, "rate", rate, "batch",
                     (json_int_t)s->batch, "lanes", (json_int_t)s->lanes, "seed", seed, "shuffle",
                     s->shuffle, "order", s->order, "data", "name", s->data, "size",
                     (json_int_t)s->data_size, "options", options_json(&s->options), "scalars",
                     scalars_json(s), "judged", judged_json(s), "library", s->library, "device",
                     s->device, "weights", s->weights, "state", s->state, "grain", s->grain,
                     "files", files_json(w));
}

tri_status state_write(const struct checkpoint_state *s, const struct state_file *file,
                       struct text *out) {
    char hex[65];
    json_t *object = state_json(s, file);
    char *text = object ? json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(object);
    if (text) text_add(out, "%s\n", text);
    free(text);
    if (!text || out->failed) return base_no_memory(CHECKPOINT_STATE);
    char *digits = find_digits(out->data, out->size);
    CHECK(digits);
    hash_around(out->data, out->size, digits, hex);
    memcpy(digits, hex, DIGITS);
    return TRI_OK;
}

/* ---- reading ---- */

static void copy_text(char *to, size_t bytes, const char *from) {
    base_format(to, bytes, "%s", from ? from : "");
}

static tri_status take_scalars(const char *path, json_t *scalars, struct checkpoint_state *s) {
    const char *name;
    json_t *value;
    json_object_foreach(scalars, name, value) {
        if (s->n_scalars == (int)COUNT(s->scalar) || !json_is_number(value))
            return base_fail(TRI_FAILED, "%s: scalar %.60s is not a number, or there are too many",
                             path, name);
        struct checkpoint_scalar *to = &s->scalar[s->n_scalars++];
        copy_text(to->name, sizeof to->name, name);
        to->value = (float)json_number_value(value);
    }
    return TRI_OK;
}

/* Runs without evaluations have none. */
static tri_status take_judged(const char *path, json_t *object, struct checkpoint_state *s) {
    json_int_t step, best_step, no_better;
    const char *metric;
    double best;
    if (!object || json_is_null(object)) return TRI_OK;
    if (json_unpack(object, "{s:s,s:I,s:I,s:I,s:F}", "metric", &metric, "step", &step, "best_step",
                    &best_step, "no_better", &no_better, "best", &best))
        return base_fail(TRI_FAILED, "%s: \"judged\" is not valid", path);
    copy_text(s->metric, sizeof s->metric, metric);
    s->policy_state = (struct policy_state){
        .step = step, .best_step = best_step, .no_better = no_better, .best = best};
    return TRI_OK;
}

/* Older versions wrote none, newer ones may write others. */
static void take_options(json_t *object, struct checkpoint_options *o) {
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value) {
        if (o->n == (int)COUNT(o->one) || !json_is_string(value)) continue;
        struct checkpoint_option *to = &o->one[o->n++];
        copy_text(to->name, sizeof to->name, name);
        copy_text(to->value, sizeof to->value, json_string_value(value));
    }
}

static tri_status take_files(const char *path, json_t *object, int n, struct state_file *w) {
    for (int i = 0; i < n; i++) {
        json_int_t bytes;
        const char *hash;
        if (json_unpack(object, "{s:{s:I,s:s}}", checkpoint_files[i], "bytes", &bytes, "sha256",
                        &hash))
            return base_fail(TRI_FAILED, "%s: \"files\" lacks %s", path, checkpoint_files[i]);
        w[i].bytes = (size_t)bytes;
        copy_text(w[i].hash, sizeof w[i].hash, hash);
    }
    return TRI_OK;
}

/* Reads the checked object; *w: what it says about the files. */
static tri_status take_state(const char *path, json_t *object, int format,
                             struct checkpoint_state *s, struct state_file *w) {
    json_error_t error;
    json_int_t step, epoch, batch, lanes, size;
    const char *seed, *order = "", *data, *library, *device, *weights, *state;
    json_t *scalars, *loss, *files;
    json_t *rate = json_object_get(object, "rate"); /* older versions wrote none, nor a grain */
    const char *grain = json_string_value(json_object_get(object, "grain"));
    int shuffle;
    if (json_unpack_ex(object, &error, 0,
                       "{s:I,s:I,s:o,s:I,s:I,s:s,s:b,s?s,s:{s:s,s:I},s:o,s:s,s:s,s:s,s:s,s:o}",
                       "step", &step, "epoch", &epoch, "loss", &loss, "batch", &batch, "lanes",
                       &lanes, "seed", &seed, "shuffle", &shuffle, "order", &order, "data", "name",
                       &data, "size", &size, "scalars", &scalars, "library", &library, "device",
                       &device, "weights", &weights, "state", &state, "files", &files))
        return base_fail(TRI_FAILED, "%s: %s", path, error.text);
    *s = (struct checkpoint_state){.format = format,
                                   .files = format < TEXTS_FORMAT ? CHECKPOINT_TENSORS
                                                                  : CHECKPOINT_FILES,
                                   .step = step, .epoch = epoch, .batch = batch, .lanes = lanes,
                                   .data_size = size, .shuffle = shuffle,
                                   .loss = json_is_number(loss) ? json_number_value(loss) : NAN,
                                   .rate = json_is_number(rate) ? json_number_value(rate) : NAN};
    s->seed = strtoull(seed, NULL, 10);
    copy_text(s->order, sizeof s->order, order);
    copy_text(s->data, sizeof s->data, data);
    copy_text(s->library, sizeof s->library, library);
    copy_text(s->device, sizeof s->device, device);
    copy_text(s->weights, sizeof s->weights, weights);
    copy_text(s->state, sizeof s->state, state);
    copy_text(s->grain, sizeof s->grain, grain);
    if (s->step < 0 || s->batch < 1 || s->lanes < 1)
        return base_fail(TRI_FAILED, "%s: impossible numbers", path);
    take_options(json_object_get(object, "options"), &s->options);
    tri_status status = take_files(path, files, s->files, w);
    if (!status) status = take_judged(path, json_object_get(object, "judged"), s);
    return status ? status : take_scalars(path, scalars, s);
}

tri_status state_read(const char *path, const char *text, size_t bytes, struct checkpoint_state *s,
                      struct state_file *file) {
    json_error_t error;
    json_int_t format = 0;
    bool checked = false;
    json_t *object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!object)
        return base_fail(TRI_FAILED, "%s is damaged: line %d: %s", path, error.line, error.text);
    tri_status status = TRI_OK;
    if (json_unpack(object, "{s:I}", "format", &format) || format < OLDEST_FORMAT ||
        format > CHECKPOINT_FORMAT)
        status = base_fail(TRI_FAILED, "%s: format %lld; this version reads %d to %d", path,
                           (long long)format, OLDEST_FORMAT, CHECKPOINT_FORMAT);
    if (!status) status = check_digits(path, text, bytes, format, &checked);
    if (!status) status = take_state(path, object, (int)format, s, file);
    if (!status) s->checked = checked;
    json_decref(object);
    return status;
}
