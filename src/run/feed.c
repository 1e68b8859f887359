/* SPDX-License-Identifier: Apache-2.0
 * Writes samples to inputs. Fields of data are matched by name, and each sample is checked when it
 * is read. Or the program feeds each batch. */
#include "run/feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/nearest.h"
#include "data/data.h"

/* How to make pictures of the size that the network wants, if only the size differs; else "". */
static const char *size_hint(const tri_data *data, const tri_spec *want, const tri_spec *have,
                             char out[96]) {
    const int64_t *w = want->shape.dim, *h = have->shape.dim;
    bool pictures = data->about.augment && want->type == have->type && want->shape.rank == 3 &&
                    have->shape.rank == 3;
    *out = 0;
    if (pictures && w[0] == h[0] && w[1] == w[2])
        snprintf(out, 96, ": add size=%lld after the directory, as in images:DIR,size=%lld",
                 (long long)w[1], (long long)w[1]);
    return out;
}

/* Whether the input can take the front of a longer sample. */
static bool takes_front(const tri_spec *want, const tri_spec *have) {
    bool front = want->type == have->type && want->shape.rank == have->shape.rank;
    for (int i = 0; front && i < want->shape.rank; i++)
        front = want->shape.dim[i] <= have->shape.dim[i];
    return front;
}

static tri_status match(struct run_input *in, const tri_data *data, const tri_field *fields,
                        int n, bool shorter) {
    char a[SPEC_TEXT], b[SPEC_TEXT], hint[96];
    struct nearest near = {.wanted = in->name};
    tri_spec want = graph_sample_spec(&in->spec);
    in->field = 0;
    while (in->field < n && !nearest_offer(&near, fields[in->field].name)) in->field++;
    if (in->field == n)
        return base_fail(TRI_USAGE, "the network wants \"%s\" %s, which data %s does not have; "
                         "it has: %s%s", in->name, base_spec_text(&want, a), data->name,
                         *near.names ? near.names : "nothing",
                         in->used ? "" : ". This input is unused: leave it out of the network");
    tri_spec have = {fields[in->field].type, fields[in->field].shape};
    bool right = have.type == want.type && base_shape_equal(&have.shape, &want.shape);
    if (right || (shorter && takes_front(&want, &have))) return TRI_OK;
    return base_fail(TRI_USAGE, "the network wants \"%s\" %s per sample, but data %s has %s%s",
                     in->name, base_spec_text(&want, a), data->name, base_spec_text(&have, b),
                     size_hint(data, &want, &have, hint));
}

static bool is_label(const tri_field *f) { return !type_is_float(f->type) && !f->shape.rank; }

/* The field that has the class of a sample: "label", or the only one that can have it; else -1. */
static int label_field(const tri_field *fields, int n) {
    int found = -1, labels = 0;
    for (int i = 0; i < n; i++) {
        if (!is_label(&fields[i])) continue;
        if (!strcmp(fields[i].name, "label")) return i;
        found = i;
        labels++;
    }
    return labels == 1 ? found : -1;
}

/* Fails if a sample has a class that is too large. A part of the data may have fewer classes. */
static tri_status compare_classes(const tri_data *data, int64_t below) {
    char first[96] = "";
    int64_t i = 0;
    while (data->about.label && i < data->size && data->about.label(data->user, i) < below) i++;
    if (i == data->size) return TRI_OK;
    if (data->about.label)
        snprintf(first, sizeof first, " (sample %lld is of class %lld)", (long long)i,
                 (long long)data->about.label(data->user, i));
    long long classes = (long long)data->about.classes;
    return base_fail(TRI_USAGE, "data %s has %lld class(es), the network takes %lld: "
                     "classes=%lld%s", data->name, classes, (long long)below, classes, first);
}

/* Checked before training, as the first sample with a label that is too large may come late. */
static tri_status check_classes(const struct machine *m, const tri_data *data,
                                const tri_field *fields, int n) {
    int label = label_field(fields, n);
    tri_status status = TRI_OK;
    for (int i = 0; i < m->n_inputs && !status; i++) {
        const struct run_input *in = &m->input[i];
        if (in->field == label && in->below > 0 && data->about.classes > in->below)
            status = compare_classes(data, in->below);
    }
    return status;
}

static size_t field_bytes(const tri_field *f) {
    return base_spec_bytes(&(tri_spec){f->type, f->shape});
}

static void place_fields(struct machine *m, const tri_field *fields, int n) {
    struct feed *f = &m->feed;
    *f = (struct feed){.n = n};
    for (int i = 0; i < n; i++) {
        size_t bytes = field_bytes(&fields[i]);
        if (bytes > f->spare_bytes) f->spare_bytes = bytes;
        f->first[i] = FEED_NOWHERE;
        f->input[i] = -1;
    }
    for (int i = 0; i < m->n_inputs; i++) {
        int field = m->input[i].field;
        f->first[field] = m->input[i].offset;
        f->step[field] = m->input[i].sample_bytes;
        if (m->input[i].sample_bytes == field_bytes(&fields[field])) continue;
        f->spare_bytes = memory_round(f->spare_bytes);
        f->spare[field] = f->spare_bytes;
        f->spare_bytes += field_bytes(&fields[field]);
        f->input[field] = i;
    }
}

/* Copies the front of each dimension from d on. If the dimensions after d are copied whole, the
 * front of d is contiguous. */
static void copy_front(char *to, const char *from, const tri_shape *some, const tri_shape *all,
                       int d, size_t element) {
    size_t inner_to = element, inner_from = element;
    for (int i = d + 1; i < some->rank; i++) {
        inner_to *= (size_t)some->dim[i];
        inner_from *= (size_t)all->dim[i];
    }
    if (inner_to == inner_from) {
        memcpy(to, from, inner_to * (size_t)some->dim[d]);
        return;
    }
    for (int64_t i = 0; i < some->dim[d]; i++)
        copy_front(to + (size_t)i * inner_to, from + (size_t)i * inner_from, some, all, d + 1,
                   element);
}

static char *in_buffer(const struct feed *f, const struct feed_place *to, int field) {
    return to->buffer + f->first[field] + (size_t)to->row * f->step[field];
}

static void take_fronts(const struct machine *m, const tri_data *data,
                        const struct feed_place *to) {
    const struct feed *f = &m->feed;
    for (int i = 0; i < f->n; i++) {
        if (f->input[i] < 0) continue;
        tri_spec some = graph_sample_spec(&m->input[f->input[i]].spec);
        copy_front(in_buffer(f, to, i), to->spare + f->spare[i], &some.shape,
                   &data->fields[i].shape, 0, tri_type_size(some.type));
    }
}

tri_status feed_match(struct machine *m, const tri_data *data) {
    const tri_field *fields;
    int n = tri_data_fields(data, &fields);
    tri_status status = TRI_OK;
    for (int i = 0; i < m->n_inputs && !status; i++)
        status = match(&m->input[i], data, fields, n, m->shorter);
    if (!status) status = check_classes(m, data, fields, n);
    if (!status) place_fields(m, fields, n);
    return status;
}

static tri_status check_row(const struct run_input *in, const char *row, const char *data,
                            int64_t index) {
    if (in->below <= 0) return TRI_OK;
    const bool real = type_is_float(in->spec.type);
    size_t n = in->sample_bytes / tri_type_size(in->spec.type);
    for (size_t i = 0; i < n; i++) {
        double v = convert_load(in->spec.type, row, i);
        if ((v >= 0 && v < (double)in->below) || (!real && v == DATA_IGNORED)) continue;
        return base_fail(TRI_FAILED, "data %s, sample %lld: \"%s\" is %.*f, but the network takes "
                         "0 to %s%lld", data, (long long)index, in->name, real ? 6 : 0, v,
                         real ? "below " : "", (long long)in->below - !real);
    }
    return TRI_OK;
}

/* Adds the name of the sample's file to the message of a failure. */
static tri_status name_file(tri_status status, const tri_data *data, int64_t index) {
    struct text what = {0}, file = {0};
    text_add(&what, "%s", tri_message());
    data_name_file(data, index, &file);
    base_fail(status, "%s%s%s%s", what.failed ? "out of memory" : what.data, file.size ? " (" : "",
              file.size ? file.data : "", file.size ? ")" : "");
    text_free(&what);
    text_free(&file);
    return status;
}

tri_status feed_row(const struct machine *m, tri_data *data, const struct feed_place *to,
                    int64_t index, int64_t epoch, uint64_t seed) {
    const struct feed *f = &m->feed;
    void *out[TRI_MAX_FIELDS];
    for (int i = 0; i < f->n; i++) {
        bool aside = f->first[i] == FEED_NOWHERE || f->input[i] >= 0;
        out[i] = aside ? to->spare + f->spare[i] : in_buffer(f, to, i);
    }
    tri_status status = tri_data_get(data, index, epoch, seed, out);
    if (status) return status;
    take_fronts(m, data, to);
    for (int i = 0; i < m->n_inputs && !status; i++)
        if (m->input[i].below > 0)
            status = check_row(&m->input[i], in_buffer(f, to, m->input[i].field), data->name,
                               index);
    return status ? name_file(status, data, index) : TRI_OK;
}

void feed_commit(struct machine *m) {
    for (int i = 0; i < m->n_inputs; i++) {
        struct run_input *in = &m->input[i];
        if (in->host != in->memory)
            dev_copy_in(m->dev, in->memory, in->host, base_spec_bytes(&in->spec));
    }
}

/* ---- fed by the program ---- */

tri_status feed_open(tri_run *run) {
    static const char *const order = "the program decides which samples a step has";
    const tri_options *o = &run->options;
    const struct {
        bool given;
        const char *what, *why;
    } refused[] = {
        {o->source, "tri_options.source", "the samples come from one of the two"},
        {o->epochs > 1, "--epochs", "it has none; --steps says how long the run is"},
        {!o->steps, "a run without --steps", "it has no epochs that could end"},
        {o->sampler, "--sampler", order},
        {o->subset, "--subset", order},
        {o->share, "--share", order},
        {o->tail, "--tail", "each step has a whole batch"},
        {run->model->n_shorter, "networks for shorter samples (tri_shorter)",
         "each batch has the full length"},
        {!data_is_usual(o->tokenizer), "--tokenizer", "the program feeds tokens"},
        {o->data_threads > 0, "--data-threads", "nothing is read ahead"},
        {!o->eval_every && (o->best || o->early_stop),
         "--best and --early-stop without --eval-every",
         "it has no epochs after which evaluations would be due"},
        {!run->machine->n_inputs, "a network that has no inputs", "there is nothing to feed"},
    };
    for (size_t i = 0; i < COUNT(refused); i++)
        if (refused[i].given)
            return base_fail(TRI_USAGE, "data \"feed\" cannot be used with %s: %s",
                             refused[i].what, refused[i].why);
    run->fed = true;
    run->total = o->steps;
    run->machine->n_buffers = 1;
    return TRI_OK;
}

tri_status feed_take(tri_run *run, int64_t step) {
    struct machine *m = run->machine;
    char name[48];
    tri_status status = TRI_OK;
    base_format(name, sizeof name, "feed, step %lld", (long long)step);
    for (int i = 0; i < m->n_inputs; i++)
        if (m->input[i].used && !m->input[i].fed)
            return base_fail(TRI_USAGE, "step %lld: input \"%s\" has not been fed since the step "
                             "before (tri_feed)", (long long)step, m->input[i].name);
    for (int i = 0; i < m->n_inputs; i++) {
        struct run_input *in = &m->input[i];
        for (int64_t row = 0; row < m->batch && !status; row++)
            status = check_row(in, in->host + (size_t)row * in->sample_bytes, name, row);
        in->fed = false;
    }
    return status;
}
