/* SPDX-License-Identifier: Apache-2.0
 * trireme predict: the likeliest classes of pictures, which are prepared as for an evaluation. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "cli/cli.h"
#include "data/pictures.h"
#include "run/run.h"

struct own {
    const char *names; /* a file; null: the names are those of the data, or there are none */
    int64_t top;
    bool json;
};

static const struct option_row rows[] = {
    {"--names", "FILE", "names of the classes, one per line (default: those of --data, or none)",
     option_text, offsetof(struct own, names), USE_EVAL, .group = GROUP_NONE},
    {"--top", "K", "classes to print per picture (default: 5)", option_count,
     offsetof(struct own, top), USE_EVAL, .group = GROUP_NONE},
    {"--json", NULL, "print a JSON object per picture, one per line", option_given,
     offsetof(struct own, json), USE_EVAL, .group = GROUP_NONE},
    {0},
};

struct predictor {
    const struct own *own;
    tri_run *run;
    tri_data *data; /* or null */
    const char *prepared; /* options of the data used in training; null: unknown */
    struct augment augment;
    struct augmenter augmenter;
    struct data_file file;
    int64_t batch, classes;
    float *image, *logits; /* [batch, channels, size, size]; [batch, classes] */
    char **name;           /* [classes], or null */
    char *names;           /* the bytes of the file that they point into */
    int failed;            /* files */
};

/* ---- names ---- */

static tri_status read_names(struct predictor *p, const char *path) {
    struct data_file f = {0};
    text_add(&f.name, "%s", path);
    tri_status status = f.name.failed ? base_no_memory(path) : pictures_read_file(&f);
    text_free(&f.name);
    if (status) {
        free(f.bytes);
        return base_fail(TRI_FAILED, "--names %s", tri_message());
    }
    p->names = f.bytes;
    p->names[f.n] = 0;
    p->name = calloc((size_t)p->classes, sizeof *p->name);
    if (!p->name) return base_no_memory("names");
    int64_t n = 0;
    for (char *line = p->names, *next; *line; line = next, n++) {
        next = line + strcspn(line, "\n");
        if (*next) *next++ = 0;
        line[strcspn(line, "\r")] = 0;
        if (n < p->classes) p->name[n] = line;
    }
    if (n == p->classes) return TRI_OK;
    return base_fail(TRI_USAGE, "--names %s has %lld line(s); the network has %lld class(es)", path,
                     (long long)n, (long long)p->classes);
}

static const char *name_of(const struct predictor *p, int64_t class) {
    if (p->name) return p->name[class];
    bool named = p->data && p->data->about.class_name && class < p->data->about.classes;
    return named ? p->data->about.class_name(p->data->user, class) : NULL;
}

/* ---- opening ---- */

/* Sets up the preparation of pictures: that of the data with which the weights were trained. */
static tri_status prepare(struct predictor *p, int64_t size, bool grey) {
    struct arena text = {0};
    struct augment_settings s = AUGMENT_DEFAULTS;
    const struct data_option known[] = {AUGMENT_OPTIONS(&s)};
    const char *prepared = p->prepared ? p->prepared : grey ? "mean=0,std=1" : "";
    struct data_spec from = {.spec = "predict", .options = arena_copy(&text, prepared)};
    s.size = size;
    if (*prepared) s.resize = size; /* a source without this option uses the whole picture */
    tri_status status = TRI_OK;
    if (text.failed)
        status = base_no_memory("predict");
    else
        status = data_parse_options(&from, known, (int)COUNT(known));
    if (!status && p->data && s.size != size)
        status = base_fail(TRI_USAGE, "the network takes pictures of %lld x %lld, but --data makes "
                           "them %lld x %lld: size=%lld", (long long)size, (long long)size,
                           (long long)s.size, (long long)s.size, (long long)size);
    s.size = size;
    if (!status) status = augment_make("predict", &s, false, &p->augment);
    p->augment.grey = grey;
    arena_free(&text);
    return status;
}

static tri_status check_network(struct predictor *p, const char *model) {
    const struct run_input *in = machine_input(p->run->machine, "image");
    const struct run_output *out = machine_output(p->run->machine, "logits");
    const tri_shape *shape = in ? &in->spec.shape : NULL;
    if (!in || in->spec.type != TRI_F32 || shape->rank != 4 ||
        (shape->dim[1] != 3 && shape->dim[1] != 1) || shape->dim[2] != shape->dim[3])
        return base_fail(TRI_USAGE, "%s: predict takes networks with an input \"image\" "
                         "f32[batch,channels,size,size] of 1 or 3 channels", model);
    if (!out || out->spec.type != TRI_F32 || out->spec.shape.rank != 2)
        return base_fail(TRI_USAGE, "%s: predict takes networks with an output \"logits\" "
                         "f32[batch,classes] (tri_output)", model);
    p->batch = shape->dim[0];
    p->classes = out->spec.shape.dim[1];
    return prepare(p, shape->dim[2], shape->dim[1] == 1);
}

static tri_status take_data(struct predictor *p, const tri_graph *g, const tri_options *o) {
    if (!o->data) return TRI_OK;
    p->data = data_open(o->data, g, o->seed, NULL, p->prepared);
    if (!p->data) return base_last();
    p->prepared = p->data->about.prepared;
    if (p->prepared) return TRI_OK;
    return base_fail(TRI_USAGE, "predict reads picture files; --data %s is of another kind: "
                     "expected images:, tar:, cifar: or idx:", o->data);
}

/* Numbers in a prepared picture. */
static int64_t floats(const struct predictor *p) {
    return (p->augment.grey ? INT64_C(1) : 3) * p->augment.size * p->augment.size;
}

static tri_status open_predictor(struct predictor *p, const char *model) {
    tri_status status = check_network(p, model);
    if (!status && p->own->names) status = read_names(p, p->own->names);
    if (!status) status = augmenter_open(&p->augmenter, &p->augment);
    if (status) return status;
    p->image = calloc((size_t)(p->batch * floats(p)), sizeof *p->image);
    p->logits = calloc((size_t)(p->batch * p->classes), sizeof *p->logits);
    return p->image && p->logits ? TRI_OK : base_no_memory("pictures");
}

static void close_predictor(struct predictor *p) {
    augmenter_close(&p->augmenter);
    tri_data_free(p->data);
    text_free(&p->file.name);
    free(p->file.bytes);
    free(p->image);
    free(p->logits);
    free(p->name);
    free(p->names);
}

/* ---- a picture ---- */

/* False if the file is bad, which is then reported. */
static bool read_picture(struct predictor *p, const char *path, float *out) {
    p->file.name.size = 0;
    text_add(&p->file.name, "%s", path);
    tri_status status = p->file.name.failed ? base_no_memory(path) : pictures_read_file(&p->file);
    if (!status)
        status = augment_picture(&p->augment, &p->augmenter, (unsigned char *)p->file.bytes,
                                 p->file.n, path, 0, out);
    if (!status) return true;
    fprintf(stderr, "trireme: %s\n", tri_message());
    p->failed++;
    return false;
}

/* The k classes with the largest logits, in descending order; equal ones in order of number. */
static void find_top(const float *logits, int64_t n, int64_t *top, int64_t k) {
    int64_t found = 0;
    for (int64_t c = 0; c < n; c++) {
        int64_t at = found;
        while (at && logits[c] > logits[top[at - 1]]) at--;
        if (at == k) continue;
        if (found < k) found++;
        for (int64_t i = found - 1; i > at; i--) top[i] = top[i - 1];
        top[at] = c;
    }
}

static double probability(const float *logits, int64_t n, int64_t class, int64_t largest) {
    double sum = 0;
    for (int64_t c = 0; c < n; c++) sum += math_exp((double)(logits[c] - logits[largest]));
    return math_exp((double)(logits[class] - logits[largest])) / sum;
}

static void print_text(const struct predictor *p, const char *path, const float *logits,
                       const int64_t *top, int64_t k) {
    printf("%s\n", path);
    for (int64_t i = 0; i < k; i++) {
        const char *name = name_of(p, top[i]);
        printf("  %6.2f %%  %lld%s%s\n", 100 * probability(logits, p->classes, top[i], top[0]),
               (long long)top[i], name ? "  " : "", name ? name : "");
    }
}

static tri_status print_json(const struct predictor *p, const char *path, const float *logits,
                             const int64_t *top, int64_t k) {
    json_t *list = json_array(), *all = json_pack("{s:s,s:O}", "file", path, "top", list);
    for (int64_t i = 0; i < k && list; i++) {
        const char *name = name_of(p, top[i]);
        double share = probability(logits, p->classes, top[i], top[0]);
        json_array_append_new(list, json_pack("{s:I,s:s?,s:f}", "class", (json_int_t)top[i], "name",
                                              name, "probability", share));
    }
    char *line = all ? json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    if (line) printf("%s\n", line);
    free(line);
    json_decref(all);
    json_decref(list);
    return line ? TRI_OK : base_fail(TRI_FAILED, "%s: out of memory, or a name that is not "
                                                 "UTF-8", path);
}

static tri_status print_all(const struct predictor *p, char **path, int64_t n) {
    int64_t k = p->own->top < p->classes ? p->own->top : p->classes;
    int64_t *top = calloc((size_t)k, sizeof *top);
    if (!top) return base_no_memory("classes");
    tri_status status = TRI_OK;
    for (int64_t i = 0; i < n && !status; i++) {
        const float *logits = p->logits + i * p->classes;
        for (int64_t c = 0; c < p->classes && !status; c++)
            if (!isfinite(logits[c]))
                status = base_fail(TRI_FAILED, "%s: the score of class %lld is %g: the network "
                                   "or its weights are broken", path[i], (long long)c, logits[c]);
        if (status) break;
        find_top(logits, p->classes, top, k);
        if (p->own->json)
            status = print_json(p, path[i], logits, top, k);
        else
            print_text(p, path[i], logits, top, k);
    }
    free(top);
    return status;
}

/* Predicts up to a batch of pictures and moves *paths past them. */
static tri_status predict_batch(struct predictor *p, char ***paths, char **end) {
    int64_t n = 0, each = floats(p);
    char **good = calloc((size_t)p->batch, sizeof *good);
    if (!good) return base_no_memory("pictures");
    for (; *paths < end && n < p->batch; ++*paths)
        if (read_picture(p, **paths, p->image + n * each)) good[n++] = **paths;
    tri_status status = TRI_OK;
    if (n)
        status = tri_feed(p->run, "image", p->image,
                          (size_t)(p->batch * each) * sizeof *p->image);
    if (n && !status) status = tri_forward(p->run);
    if (n && !status)
        status = tri_read(p->run, "logits", p->logits,
                          (size_t)(p->batch * p->classes) * sizeof *p->logits);
    if (!status) status = print_all(p, good, n);
    free(good);
    return status;
}

static tri_status predict(struct predictor *p, const char *model, char **paths, int n) {
    char **end = paths + n;
    tri_status status = open_predictor(p, model);
    while (!status && paths < end) status = predict_batch(p, &paths, end);
    run_fail(p->run, status);
    return status;
}

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {.top = 5};
    struct cli_arguments a;
    struct predictor p = {.own = &own};
    if (cli_read(c, argc, argv, &own, &a)) return cli_fail();
    struct weights_about about;
    if (cli_read_about(c, &a, &about)) {
        weights_about_free(&about);
        return cli_fail();
    }
    p.prepared = about.prepared;
    if (!a.options.batch) a.options.batch = a.n_words < 64 ? a.n_words : 64;
    a.options.forward = true;
    tri_graph *g = cli_graph(&a);
    if (!g || take_data(&p, g, &a.options)) {
        tri_graph_free(g);
        close_predictor(&p);
        weights_about_free(&about);
        return cli_fail();
    }
    a.options.data = NULL; /* the run reads no data */
    p.run = tri_open(g, &a.options);
    int code = p.run ? (int)predict(&p, a.model, a.words, a.n_words) : cli_fail();
    if (p.run) code = (int)tri_close(p.run);
    close_predictor(&p);
    weights_about_free(&about);
    if (!code && p.failed)
        fprintf(stderr, "trireme: %d of %d files could not be read\n", p.failed, a.n_words);
    return code ? code : p.failed ? (int)TRI_FAILED : TRI_OK;
}

const struct command command_predict = {
    .name = "predict",
    .arguments = "[MODEL] --load FILE [--names FILE] PICTURE...",
    .help = "print the likeliest classes of pictures",
    .takes_model = true,
    .model_optional = true,
    .takes_words = "PICTURE",
    .use = USE_EVAL,
    .rows = rows,
    .more = cli_describe_model,
    .run = run,
};
