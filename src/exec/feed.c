/* SPDX-License-Identifier: Apache-2.0
 * Data into inputs: fields are matched by name, samples are checked as they come. */
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "data/data.h"
#include "exec/run.h"

static tri_status match(struct run_input *in, const tri_data *data, const tri_field *fields,
                        int n) {
    char a[SPEC_TEXT], b[SPEC_TEXT];
    struct text names = {0};
    tri_spec want = graph_sample_spec(&in->spec);
    tri_status status = TRI_OK;
    for (in->field = 0; in->field < n && strcmp(fields[in->field].name, in->name); in->field++)
        text_add(&names, "%s%s", in->field ? ", " : "", fields[in->field].name);
    if (in->field == n) {
        status = base_fail(TRI_USAGE, "the network wants \"%s\" %s, which data %s does not have; it "
                           "has: %s", in->name, base_spec_text(&want, a), data->name,
                           names.data ? names.data : "nothing");
    } else {
        tri_spec have = {fields[in->field].type, fields[in->field].shape};
        if (have.type != want.type || !base_shape_equal(&have.shape, &want.shape))
            status = base_fail(TRI_USAGE, "the network wants \"%s\" %s a sample, but data %s has %s",
                               in->name, base_spec_text(&want, a), data->name,
                               base_spec_text(&have, b));
    }
    text_free(&names);
    return status;
}

/* Fields that the network does not take are all written to one place, sample after sample. */
static tri_status place_fields(struct machine *m, const tri_field *fields, int n) {
    struct feed *f = &m->feed;
    size_t spare = 0;
    *f = (struct feed){.n = n};
    for (int i = 0; i < n; i++) {
        size_t bytes = base_spec_bytes(&(tri_spec){fields[i].type, fields[i].shape});
        if (bytes > spare) spare = bytes;
    }
    f->spare = malloc(spare + 1);
    if (!f->spare) return base_no_memory("a sample");
    for (int i = 0; i < n; i++) f->first[i] = f->spare;
    for (int i = 0; i < m->n_inputs; i++) {
        f->first[m->input[i].field] = m->input[i].host;
        f->step[m->input[i].field] = m->input[i].sample_bytes;
    }
    return TRI_OK;
}

tri_status feed_match(struct machine *m, const tri_data *data) {
    const tri_field *fields;
    int n = tri_data_fields(data, &fields);
    tri_status status = TRI_OK;
    feed_free(m);
    for (int i = 0; i < m->n_inputs && !status; i++) status = match(&m->input[i], data, fields, n);
    return status ? status : place_fields(m, fields, n);
}

void feed_free(struct machine *m) {
    free(m->feed.spare);
    m->feed.spare = NULL;
}

#define IGNORED (-100) /* the label of a place that does not count */

static tri_status check_row(const struct run_input *in, const char *row, const tri_data *data,
                            int64_t index) {
    if (in->below <= 0) return TRI_OK;
    const bool real = type_is_float(in->spec.type);
    size_t n = in->sample_bytes / tri_type_size(in->spec.type);
    for (size_t i = 0; i < n; i++) {
        double v = convert_load(in->spec.type, row, i);
        if ((v >= 0 && v < (double)in->below) || (!real && v == IGNORED)) continue;
        return base_fail(TRI_FAILED, "data %s, sample %lld: \"%s\" is %.*f, but the network takes 0 "
                         "to %s%lld", data->name, (long long)index, in->name, real ? 6 : 0, v,
                         real ? "below " : "", (long long)in->below - !real);
    }
    return TRI_OK;
}

tri_status feed_sample(struct machine *m, tri_data *data, int64_t row, int64_t index,
                       int64_t epoch, uint64_t seed) {
    const struct feed *f = &m->feed;
    void *out[TRI_MAX_FIELDS];
    for (int i = 0; i < f->n; i++) out[i] = f->first[i] + (size_t)row * f->step[i];
    tri_status status = tri_data_get(data, index, epoch, seed, out);
    for (int i = 0; i < m->n_inputs && !status; i++)
        status = check_row(&m->input[i], out[m->input[i].field], data, index);
    return status;
}

void feed_commit(struct machine *m) {
    for (int i = 0; i < m->n_inputs; i++) {
        struct run_input *in = &m->input[i];
        if (in->host != in->memory)
            m->dev->copy_in(in->memory, in->host, base_spec_bytes(&in->spec));
    }
}
