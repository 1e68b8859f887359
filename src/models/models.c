/* SPDX-License-Identifier: Apache-2.0
 * The table of the zoo, and tri_model_open, which makes a graph from a name in the table, a textual
 * graph or a shared object. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "graph/graph.h"
#include "models/args.h"
#include "models/models.h"

#define IMAGE_OPTIONS(classes, channels, size) \
    "classes=" classes " channels=" channels " size=" size " smoothing=0 ignore=0"
#define RESNET(layers, about_it)                                                        \
    {                                                                                   \
        .name = "resnet" #layers, .about = about_it, .input = "3x224x224",              \
        .options = "form=imagenet|small width=64 " IMAGE_OPTIONS("1000", "3", "224"),   \
        .build = resnet##layers##_build,                                                \
    }

/* The sizes are texts, because `options` shows the defaults; the builders have them as numbers. */
#define TRANSFORMER(family, size, symbol, about_it, layers, hidden, heads, inner, more, tokens)    \
    {                                                                                       \
        .name = family "-" size, .about = about_it, .input = tokens " tokens",             \
        .options = "seq=" tokens " layers=" layers " hidden=" hidden " heads=" heads        \
                   " inner=" inner " " more " dropout=0.1 logits=0",                        \
        .build = symbol,                                                                    \
    }
#define BERT(size, symbol, about_it, layers, hidden, heads, inner)                          \
    TRANSFORMER("bert", size, symbol, about_it, layers, hidden, heads, inner,               \
                "vocab=30522 positions=512 head=masked|every predictions=20", "128")
#define GPT2(size, symbol, about_it, layers, hidden, heads, inner)                          \
    TRANSFORMER("gpt2", size, symbol, about_it, layers, hidden, heads, inner,               \
                "vocab=50257 positions=1024", "1024")

static const struct model table[] = {
    {
        .name = "linear",
        .about = "z = 2x^2 + 3y^3 + 5 from x^2 and y^3: a regression of one dense layer",
        .options = "",
        .input = "2",
        .build = linear_build,
        .data = linear_data,
    },
    {
        .name = "mlp",
        .about = "dense layers with relu over flattened images",
        .options = "hidden=512 layers=2 " IMAGE_OPTIONS("10", "1", "28"),
        .input = "1x28x28",
        .build = mlp_build,
    },
    {
        .name = "lenet5",
        .about = "LeNet-5 with relu and maximum pooling",
        .options = IMAGE_OPTIONS("10", "1", "28"),
        .input = "1x28x28",
        .build = lenet5_build,
    },
    {
        .name = "cnn",
        .about = "three convolutions with batch norm; learns Fashion-MNIST in two epochs",
        .options = "width=16 " IMAGE_OPTIONS("10", "1", "28"),
        .input = "1x28x28",
        .build = cnn_build,
    },
    RESNET(18, "residual network of basic blocks; form=small is for images of 32x32"),
    RESNET(34, "residual network of basic blocks, deeper"),
    RESNET(50, "residual network of bottleneck blocks (torchvision's, v1.5)"),
    RESNET(101, "residual network of bottleneck blocks, deeper"),
    RESNET(152, "residual network of bottleneck blocks, the deepest"),
    BERT("tiny", bert_tiny_build, "encoder with the heads of its pre-training", "2", "128", "2",
         "512"),
    BERT("mini", bert_mini_build, "the same, larger", "4", "256", "4", "1024"),
    BERT("small", bert_small_build, "the same, larger", "4", "512", "8", "2048"),
    BERT("medium", bert_medium_build, "the same, larger", "8", "512", "8", "2048"),
    BERT("base", bert_base_build, "the same, of the size that was published first", "12", "768",
         "12", "3072"),
    BERT("large", bert_large_build, "the same, larger", "24", "1024", "16", "4096"),
    GPT2("tiny", gpt2_tiny_build, "decoder that predicts the next token", "2", "128", "2", "512"),
    GPT2("small", gpt2_small_build, "the same, of the smallest size published", "12", "768", "12",
         "3072"),
    GPT2("medium", gpt2_medium_build, "the same, larger", "24", "1024", "16", "4096"),
    GPT2("large", gpt2_large_build, "the same, larger", "36", "1280", "20", "5120"),
    GPT2("xl", gpt2_xl_build, "the same, the largest", "48", "1600", "25", "6400"),
};

const struct model *model_at(int i) {
    return i >= 0 && (size_t)i < COUNT(table) ? &table[i] : NULL;
}

const struct model *model_find(const char *spec) {
    size_t n = strcspn(spec, ":");
    for (size_t i = 0; i < COUNT(table); i++)
        if (strlen(table[i].name) == n && !memcmp(table[i].name, spec, n)) return &table[i];
    return NULL;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n > m && !strcmp(text + n - m, end);
}

/* Fails with the nearest name, or with all names if none is near. */
static void unknown_model(tri_graph *g, const char *name) {
    struct nearest near = {.wanted = name};
    for (size_t i = 0; i < COUNT(table); i++) nearest_offer(&near, table[i].name);
    if (ends_with(name, ".c"))
        graph_fail(g, TRI_USAGE, "\"%s\" is C: make it a shared object, FILE.so, with cc -shared "
                   "-fPIC $(pkg-config --cflags trireme)", name);
    else if (strchr(name, '/') && !access(name, X_OK))
        graph_fail(g, TRI_USAGE, "%s is a program: trireme run -n N -- %s trains it, and commands "
                   "such as memory also take it after --", name, name);
    else
        graph_fail(g, TRI_USAGE, "no model is called \"%s\"%s", name,
                   nearest_or(&near, "; there are: %s (or give a .tri or .so file)", near.names));
}

/* The builder that a shared object exports. The object stays loaded, as it may register rows. */
static tri_builder *load_builder(tri_graph *g, const char *path) {
    const char *at = strchr(path, '/') ? path : arena_text(&g->arena, "./%s", path);
    int fd = at ? base_open(at, O_RDONLY, NULL) : -1; /* dlopen would block on a pipe */
    if (at && fd < 0) {
        graph_fail(g, TRI_FAILED, "cannot load the model %s", tri_message());
        return NULL;
    }
    if (fd >= 0) close(fd);
    void *object = at ? dlopen(at, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!object) {
        const char *why = at ? dlerror() : "out of memory";
        graph_fail(g, TRI_FAILED, "cannot load the model %s: %s", path, why ? why : "unknown");
        return NULL;
    }
    union {
        void *data;
        tri_builder *function;
    } symbol = {.data = dlsym(object, "tri_model")};
    if (!symbol.data)
        graph_fail(g, TRI_FAILED,
                   "%s exports no function tri_model; it should have "
                   "void tri_model(tri_graph *g, tri_args *args)",
                   path);
    return symbol.function;
}

bool model_is_named(const char *spec) {
    const size_t name = strcspn(spec, ":");
    const struct model *zoo = model_find(spec);
    return zoo || (name > 4 && !memcmp(spec + name - 4, ".tri", 4)) ||
           (name > 3 && !memcmp(spec + name - 3, ".so", 3));
}

static void build(tri_graph *g, const char *name, const char *arguments) {
    const struct model *model = model_find(name);
    tri_builder *builder = NULL;
    if (model)
        builder = model->build;
    else if (ends_with(name, ".so"))
        builder = load_builder(g, name);
    else
        unknown_model(g, name);
    if (!builder) return;
    tri_args *args = args_open(g, name, arguments);
    if (!args) {
        graph_fail(g, TRI_FAILED, "out of memory for the model %s", name);
        return;
    }
    tri_here(NULL, 0);
    builder(g, args);
    args_close(args);
    if (!model) g->spec = NULL; /* the name is a path */
}

static tri_graph *read_textual(const char *path, const char *arguments, int64_t batch) {
    tri_graph *g = *arguments ? NULL : tri_graph_read(path, batch);
    if (g) return g;
    g = tri_graph_new(batch > 0 ? batch : 1);
    if (!g) return NULL;
    if (*arguments)
        graph_fail(g, TRI_USAGE, "%s is a textual graph; it takes no arguments such as \"%s\"",
                   path, arguments);
    else
        graph_fail(g, TRI_FAILED, "%s", tri_message());
    return g;
}

static tri_graph *open_one(const char *name, const char *arguments, int64_t batch) {
    if (ends_with(name, ".tri")) return read_textual(name, arguments, batch);
    tri_graph *g = tri_graph_new(batch);
    if (g) build(g, name, arguments);
    return g;
}

/* ---- several lengths: "seq=128/64/32" ---- */

/* Finds a value with a '/', such as 128/64/32: its offset and its length. */
static bool find_list(const char *arguments, size_t *at, size_t *n) {
    for (const char *value = arguments; (value = strchr(value, '=')) != NULL;) {
        *n = strspn(++value, "0123456789/");
        *at = (size_t)(value - arguments);
        bool ends = !value[*n] || value[*n] == ',';
        if (ends && memchr(value, '/', *n)) return true;
    }
    return false;
}

static const char *with_number(struct arena *scratch, const char *arguments, size_t at, size_t n,
                               int64_t number) {
    return arena_text(scratch, "%.*s%lld%s", (int)at, arguments, (long long)number,
                      arguments + at + n);
}

#define MOST_LENGTHS (GRAPH_MOST_SHORTER + 1)

/* Reads the lengths, the longest first, and returns their number; 0: the text is no valid list. */
static int read_lengths(const char *text, size_t n, int64_t length[MOST_LENGTHS]) {
    int count = 0;
    for (const char *end = text + n; text < end; text++) {
        char *rest;
        int64_t number = strtoll(text, &rest, 10);
        if (rest == text || count == MOST_LENGTHS || (*rest == '/' && rest + 1 == end)) return 0;
        int at = count++;
        for (; at > 0 && length[at - 1] <= number; at--) {
            if (length[at - 1] == number) return 0;
            length[at] = length[at - 1];
        }
        length[at] = number;
        text = rest;
    }
    return count;
}

/* Writes all lengths into the spec of g, the network for the longest samples. */
static void note_lengths(tri_graph *g, const char *arguments, size_t at, const int64_t *length,
                         int n) {
    struct text spec = {0};
    size_t key = at;
    while (key && arguments[key - 1] != ',') key--;
    const size_t name = strcspn(g->spec, ":");
    text_add(&spec, "%.*s:%.*s%lld", (int)name, g->spec, (int)(at - key), arguments + key,
             (long long)length[0]);
    for (int i = 1; i < n; i++) text_add(&spec, "/%lld", (long long)length[i]);
    for (const char *item = g->spec + name; *item;) { /* at ':' or ',' */
        const size_t end = 1 + strcspn(item + 1, ",");
        if (strncmp(item + 1, arguments + key, at - key))
            text_add(&spec, ",%.*s", (int)end - 1, item + 1);
        item += end;
    }
    g->spec = spec.failed ? NULL : arena_copy(&g->arena, spec.data);
    if (!g->spec) graph_fail(g, TRI_FAILED, "out of memory for the arguments of a model");
    text_free(&spec);
}

static tri_graph *open_all(struct arena *scratch, const char *name, const char *arguments,
                           int64_t batch) {
    size_t at, n;
    int64_t length[MOST_LENGTHS];
    if (!find_list(arguments, &at, &n)) return open_one(name, arguments, batch);
    int count = read_lengths(arguments + at, n, length);
    const char *text = with_number(scratch, arguments, at, n, count ? length[0] : 0);
    tri_graph *g = text ? count ? open_one(name, text, batch) : tri_graph_new(batch) : NULL;
    if (!text) base_no_memory("the arguments of a model");
    if (g && !count)
        graph_fail(g, TRI_USAGE,
                   "%s: \"%.*s\" is no list of lengths; 2 to %d numbers are, as in 128/64/32", name,
                   (int)n, arguments + at, MOST_LENGTHS);
    for (int i = 1; g && !tri_graph_status(g) && i < count; i++) {
        text = with_number(scratch, arguments, at, n, length[i]);
        tri_graph *shorter = text ? open_one(name, text, tri_batch(g)) : NULL;
        if (!text) base_no_memory("the arguments of a model");
        tri_shorter(g, length[i], shorter);
    }
    if (g && g->spec && !tri_graph_status(g)) note_lengths(g, arguments, at, length, count);
    return g;
}

tri_graph *tri_model_open(const char *spec, int64_t batch) {
    size_t n = strcspn(spec, ":");
    const char *arguments = spec[n] ? spec + n + 1 : "";
    struct arena scratch = {0};
    const char *name = arena_text(&scratch, "%.*s", (int)n, spec);
    tri_graph *g = NULL;
    if (!name)
        base_no_memory("the name of a model");
    else
        g = open_all(&scratch, name, arguments, batch);
    arena_free(&scratch);
    return g;
}
