/* SPDX-License-Identifier: Apache-2.0
 * The zoo: names, shapes and counts as in torchvision; specs, arguments and mistakes in them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trireme.h>
#include <unistd.h>

#include "models/models.h"

static tri_graph *open_model(const char *spec, int64_t batch) {
    tri_graph *g = tri_model_open(spec, batch);
    assert_non_null(g);
    if (tri_graph_status(g)) fail_msg("%s: %s", spec, tri_message());
    return g;
}

static void refused(const char *spec, tri_status status, const char *message) {
    tri_graph *g = tri_model_open(spec, 2);
    assert_non_null(g);
    if (tri_graph_status(g) != status || !strstr(tri_message(), message) ||
        strchr(tri_message(), '\n'))
        fail_msg("%s: status %d, \"%s\" lacks \"%s\"", spec, tri_graph_status(g), tri_message(),
                 message);
    tri_graph_free(g);
}

static int64_t count_parameters(const tri_graph *g) {
    int64_t n = 0;
    for (int i = 0; i < tri_param_count(g); i++) {
        tri_shape shape = tri_shape_of(tri_param_at(g, i));
        n += tri_shape_count(&shape);
    }
    return n;
}

static void assert_shape(const tri_graph *g, const char *name, tri_shape want) {
    tri_tensor *t = tri_find(g, name);
    if (!t) fail_msg("there is no %s", name);
    tri_shape shape = tri_shape_of(t);
    assert_int_equal(shape.rank, want.rank);
    for (int i = 0; i < want.rank; i++) assert_int_equal(shape.dim[i], want.dim[i]);
}

/* The counts of parameters that PyTorch prints. */
static void test_counts(void **state) {
    (void)state;
    static const struct {
        const char *spec;
        int64_t parameters;
    } known[] = {
        {"linear", 3},
        {"mlp", 669706},
        {"mlp:hidden=2048,layers=2", 5824522},
        {"mlp:layers=0", 7850},
        {"lenet5", 61706},
        {"cnn", 224826},
        {"resnet18", 11689512},
        {"resnet18:form=small,classes=10", 11173962},
        {"resnet34", 21797672},
        {"resnet50", 25557032},
        {"resnet50:classes=100", 23712932},
        {"resnet101", 44549160},
        {"resnet152", 60192808},
        {"bert-tiny", 4433468},
        {"bert-base", 110106428},
        {"bert-large", 336226108},
        {"bert-base:seq=512,head=every", 110106428},
        {"gpt2-small", 124439808},
        {"gpt2-medium", 354823168},
        {"gpt2-large", 774030080},
        {"gpt2-xl", 1557611200},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        tri_graph *g = open_model(known[i].spec, 2);
        if (count_parameters(g) != known[i].parameters)
            fail_msg("%s has %lld parameters, not %lld", known[i].spec,
                     (long long)count_parameters(g), (long long)known[i].parameters);
        tri_graph_free(g);
    }
}

static void test_table(void **state) {
    (void)state;
    int n = 0;
    for (const struct model *m; (m = model_at(n)) != NULL; n++) {
        tri_graph *g = open_model(m->name, 4);
        assert_non_null(tri_find(g, "loss"));
        assert_ptr_equal(model_find(m->name), m);
        /* the builder knows every option of the row */
        char options[256], spec[300];
        assert_true(strlen(m->options) < sizeof options);
        snprintf(options, sizeof options, "%s", m->options);
        for (char *o = strtok(options, " "); o; o = strtok(NULL, " ")) {
            o[strcspn(o, "|")] = 0;
            snprintf(spec, sizeof spec, "%s:%s", m->name, o);
            tri_graph_free(open_model(spec, 4));
        }
        /* and the input is that of the row */
        tri_tensor *x = tri_find(g, "image"), *ids = tri_find(g, "input_ids");
        char shape[64] = "2";
        if (ids) snprintf(shape, sizeof shape, "%d tokens", (int)tri_dim(ids, 1));
        if (x)
            snprintf(shape, sizeof shape, "%dx%dx%d", (int)tri_dim(x, 1), (int)tri_dim(x, 2),
                     (int)tri_dim(x, 3));
        assert_string_equal(m->input, shape);
        tri_graph_free(g);
    }
    assert_int_equal(n, 20);
    assert_null(model_at(-1));
    assert_null(model_find("resnet"));
    assert_string_equal(model_find("resnet50:classes=3")->name, "resnet50");
}

static void test_names(void **state) {
    (void)state;
    tri_graph *g = open_model("resnet50", 2);
    assert_shape(g, "image", TRI_SHAPE(2, 3, 224, 224));
    assert_shape(g, "label", TRI_SHAPE(2));
    assert_shape(g, "logits", TRI_SHAPE(2, 1000));
    assert_shape(g, "conv1.weight", TRI_SHAPE(64, 3, 7, 7));
    assert_shape(g, "bn1.running_mean", TRI_SHAPE(64));
    assert_shape(g, "layer1.0.downsample.0.weight", TRI_SHAPE(256, 64, 1, 1));
    assert_shape(g, "layer1.0.downsample.1.running_var", TRI_SHAPE(256));
    assert_shape(g, "layer2.0.conv2.weight", TRI_SHAPE(128, 128, 3, 3));
    assert_shape(g, "layer4.2.bn3.bias", TRI_SHAPE(2048));
    assert_shape(g, "fc.weight", TRI_SHAPE(1000, 2048));
    assert_null(tri_find(g, "layer1.1.downsample.0.weight"));
    assert_null(tri_find(g, "conv1.bias"));
    assert_non_null(tri_find(g, "top1"));
    assert_non_null(tri_find(g, "top5"));
    tri_graph_free(g);

    g = open_model("resnet18:form=small,classes=5,channels=1", 2);
    assert_shape(g, "image", TRI_SHAPE(2, 1, 32, 32));
    assert_shape(g, "conv1.weight", TRI_SHAPE(64, 1, 3, 3));
    assert_null(tri_find(g, "layer1.0.downsample.0.weight"));
    assert_null(tri_find(g, "top5"));
    tri_graph_free(g);
}

/* Those of Hugging Face's BertForPreTraining and GPT2LMHeadModel. */
static void test_transformers(void **state) {
    (void)state;
    tri_graph *g = open_model("bert-base", 2);
    assert_shape(g, "bert.embeddings.word_embeddings.weight", TRI_SHAPE(30522, 768));
    assert_shape(g, "bert.embeddings.position_embeddings.weight", TRI_SHAPE(512, 768));
    assert_shape(g, "bert.embeddings.token_type_embeddings.weight", TRI_SHAPE(2, 768));
    assert_shape(g, "bert.embeddings.LayerNorm.bias", TRI_SHAPE(768));
    assert_shape(g, "bert.encoder.layer.0.attention.self.query.weight", TRI_SHAPE(768, 768));
    assert_shape(g, "bert.encoder.layer.5.attention.self.value.bias", TRI_SHAPE(768));
    assert_shape(g, "bert.encoder.layer.5.attention.output.dense.weight", TRI_SHAPE(768, 768));
    assert_shape(g, "bert.encoder.layer.5.attention.output.LayerNorm.weight", TRI_SHAPE(768));
    assert_shape(g, "bert.encoder.layer.11.intermediate.dense.weight", TRI_SHAPE(3072, 768));
    assert_shape(g, "bert.encoder.layer.11.output.dense.weight", TRI_SHAPE(768, 3072));
    assert_shape(g, "bert.pooler.dense.weight", TRI_SHAPE(768, 768));
    assert_shape(g, "cls.predictions.bias", TRI_SHAPE(30522));
    assert_shape(g, "cls.predictions.transform.LayerNorm.weight", TRI_SHAPE(768));
    assert_shape(g, "cls.predictions.decoder.weight", TRI_SHAPE(30522, 768));
    assert_shape(g, "cls.predictions.decoder.bias", TRI_SHAPE(30522));
    assert_shape(g, "cls.seq_relationship.weight", TRI_SHAPE(2, 768));
    assert_shape(g, "masked_lm_positions", TRI_SHAPE(2, 20));
    assert_null(tri_find(g, "labels"));
    assert_non_null(tri_find(g, "masked_lm_accuracy"));
    assert_null(tri_find(g, "bert.encoder.layer.12.output.dense.weight"));
    tri_graph_free(g);

    g = open_model("gpt2-small:seq=16,logits=1", 3);
    assert_shape(g, "transformer.wte.weight", TRI_SHAPE(50257, 768));
    assert_shape(g, "transformer.wpe.weight", TRI_SHAPE(1024, 768));
    assert_shape(g, "transformer.h.0.ln_1.weight", TRI_SHAPE(768));
    assert_shape(g, "transformer.h.11.attn.c_attn.weight", TRI_SHAPE(768, 2304));
    assert_shape(g, "transformer.h.11.attn.c_proj.bias", TRI_SHAPE(768));
    assert_shape(g, "transformer.h.11.mlp.c_fc.weight", TRI_SHAPE(768, 3072));
    assert_shape(g, "transformer.h.11.mlp.c_proj.weight", TRI_SHAPE(3072, 768));
    assert_shape(g, "transformer.ln_f.bias", TRI_SHAPE(768));
    assert_shape(g, "lm_head.weight", TRI_SHAPE(50257, 768));
    assert_shape(g, "logits", TRI_SHAPE(3, 16, 50257));
    tri_graph_free(g);
    refused("bert-tiny:heads=3", TRI_USAGE, "heads=3: expected a divisor of 128");
    refused("bert-tiny:hidden=15", TRI_USAGE, "heads=2: expected a divisor of 15");
    refused("bert-tiny:seq=513", TRI_USAGE, "seq=513: expected 2 to 512");
    refused("bert-tiny:seq=16,predictions=17", TRI_USAGE, "predictions=17: expected 1 to 16");
    refused("gpt2-tiny:positions=8,seq=9", TRI_USAGE, "seq=9: expected 2 to 8");
    refused("gpt2-tiny:dropout=1", TRI_USAGE, "dropout");
    refused("bert", TRI_USAGE, "there are: linear");
}

static void test_arguments(void **state) {
    (void)state;
    tri_graph_free(open_model("mlp:", 2));
    refused("mlp:depth=3", TRI_USAGE,
            "mlp takes no argument \"depth\"; it knows classes, channels, size, layers, hidden, "
            "smoothing");
    refused("mlp:hidden", TRI_USAGE, "key=value");
    refused("mlp:hidden=", TRI_USAGE, "key=value");
    refused("mlp:=3", TRI_USAGE, "key=value");
    refused("mlp:hidden=3,,layers=1", TRI_USAGE, "key=value");
    refused("mlp:hidden=3,hidden=4", TRI_USAGE, "hidden is given twice");
    refused("mlp:hidden=many", TRI_USAGE, "hidden=many: expected a whole number");
    refused("mlp:hidden=0", TRI_USAGE, "hidden=0: expected 1 to");
    refused("mlp:hidden=99999999999999999999", TRI_USAGE, "expected a whole number");
    refused("mlp:smoothing=nan", TRI_USAGE, "smoothing=nan: expected a number");
    refused("mlp:smoothing=3", TRI_USAGE, "smoothing");
    refused("resnet18:form=tiny", TRI_USAGE, "form=tiny: expected one of imagenet small");
    refused("linear:classes=3", TRI_USAGE, "linear takes no argument \"classes\"; it knows none");
    refused("lenet5:size=4", TRI_USAGE, "conv2");
}

static void test_unknown(void **state) {
    (void)state;
    refused("resnet51", TRI_USAGE, "do you mean resnet50?");
    refused("lenet", TRI_USAGE, "do you mean lenet5?");
    refused("zeppelin", TRI_USAGE, "there are: linear, mlp, lenet5, cnn, resnet18");
    refused("", TRI_USAGE, "no model is called \"\"");
    refused("/nowhere/g.tri", TRI_FAILED, "/nowhere/g.tri");
    refused("g.tri:classes=3", TRI_USAGE, "takes no arguments");
    refused("none-of-this.so", TRI_FAILED, "./none-of-this.so");
    tri_graph *g = tri_model_open("cnn", -1);
    assert_int_equal(tri_graph_status(g), TRI_USAGE);
    tri_graph_free(g);
}

static void test_shared_object(void **state) {
    (void)state;
    /* a library that is not a model, under a name that looks like one */
    Dl_info info;
    assert_int_not_equal(dladdr((void *)(uintptr_t)_cmocka_run_group_tests, &info), 0);
    char path[64], real[4096];
    snprintf(path, sizeof path, "/tmp/trireme-no-model-%d.so", (int)getpid());
    assert_non_null(realpath(info.dli_fname, real));
    assert_int_equal(symlink(real, path), 0);
    tri_graph *g = tri_model_open(path, 2);
    unlink(path);
    assert_int_equal(tri_graph_status(g), TRI_FAILED);
    assert_non_null(strstr(tri_message(), "exports no function tri_model"));
    tri_graph_free(g);

    const char *own = getenv("TRI_TEST_MODEL");
    if (!own) skip();
    char spec[4200];
    snprintf(spec, sizeof spec, "%s:width=7,name=mine", own);
    g = open_model(spec, 5);
    assert_shape(g, "mine.weight", TRI_SHAPE(7, 2));
    tri_graph_free(g);
    snprintf(spec, sizeof spec, "%s:height=7", own);
    refused(spec, TRI_USAGE, "it knows width, name, scale");
}

static void test_linear_data(void **state) {
    (void)state;
    tri_data *d = model_find("linear")->data();
    assert_non_null(d);
    double squares = 0, sum = 0;
    float last = 0;
    int64_t n = tri_data_size(d);
    for (int64_t i = 0; i < n; i++) {
        float features[2], target, again[2], target_again;
        assert_int_equal(tri_data_get(d, i, 0, 7, (void *[]){features, &target}), TRI_OK);
        assert_int_equal(tri_data_get(d, i, 0, 7, (void *[]){again, &target_again}), TRI_OK);
        assert_memory_equal(features, again, sizeof features);
        assert_memory_equal(&target, &target_again, sizeof target);
        assert_true(features[0] >= 0 && features[0] <= 1 && fabsf(features[1]) <= 1);
        assert_true(i == 0 || target != last);
        last = target;
        double noise = (double)target - 2 * (double)features[0] - 3 * (double)features[1] - 5;
        squares += noise * noise;
        sum += noise;
    }
    assert_true(fabs(sqrt(squares / (double)n) - 0.03) < 0.002);
    assert_true(fabs(sum / (double)n) < 0.003);
    float a[3], b[3];
    assert_int_equal(tri_data_get(d, 0, 0, 7, (void *[]){a, a + 2}), TRI_OK);
    assert_int_equal(tri_data_get(d, 0, 0, 8, (void *[]){b, b + 2}), TRI_OK);
    assert_true(a[0] != b[0]);
    tri_data_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),    cmocka_unit_test(test_table),
        cmocka_unit_test(test_names),     cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_unknown),   cmocka_unit_test(test_shared_object),
        cmocka_unit_test(test_linear_data),
        cmocka_unit_test(test_transformers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
