/* SPDX-License-Identifier: Apache-2.0
 * Devices of one kind: two in one process, each with its memory, train as if they were alone. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "dev/dev.h"
#include "run/open.h"

/* ---- the reference, with memory that belongs to the instance ---- */

struct own {
    struct dev dev;
    struct block {
        char *at; /* null: free */
        size_t bytes;
    } block[100];
    int prepared;               /* units */
    atomic_int copies;          /* from or to its memory */
    const char *_Atomic strays; /* the function that was called with other memory; or null */
};

static struct dev_kind kind;

/* The block that the bytes are in; null: none. */
static struct block *find(struct own *o, const void *memory, size_t bytes) {
    const uintptr_t at = (uintptr_t)memory;
    for (size_t i = 0; i < COUNT(o->block); i++) {
        const uintptr_t begin = (uintptr_t)o->block[i].at;
        if (begin && at >= begin && at + bytes <= begin + o->block[i].bytes) return &o->block[i];
    }
    return NULL;
}

static void expect(struct dev *d, const void *memory, size_t bytes, const char *function) {
    struct own *o = (struct own *)d;
    if (find(o, memory, bytes)) atomic_fetch_add(&o->copies, 1);
    else atomic_store(&o->strays, function);
}

static void *allocate(struct dev *d, size_t bytes) {
    struct own *o = (struct own *)d;
    for (size_t i = 0; i < COUNT(o->block); i++) {
        if (o->block[i].at) continue;
        o->block[i] = (struct block){dev_host_allocate(bytes), bytes};
        return o->block[i].at;
    }
    return NULL;
}

static void release(struct dev *d, void *memory, size_t bytes) {
    struct own *o = (struct own *)d;
    struct block *b = find(o, memory, bytes);
    if (!b || b->at != memory || b->bytes != bytes) {
        atomic_store(&o->strays, "release");
        return;
    }
    dev_host_release(memory, bytes);
    *b = (struct block){0};
}

static void copy_in(struct dev *d, void *device, const void *host, size_t bytes) {
    expect(d, device, bytes, "copy_in");
    memcpy(device, host, bytes);
}

static void copy_out(struct dev *d, void *host, const void *device, size_t bytes) {
    expect(d, device, bytes, "copy_out");
    memcpy(host, device, bytes);
}

static void copy(struct dev *d, void *to, const void *from, size_t bytes) {
    expect(d, to, bytes, "copy");
    expect(d, from, bytes, "copy");
    memcpy(to, from, bytes);
}

static tri_status prepare(struct dev *d, const struct unit *u, struct kernel *out) {
    struct dev *ref = dev_find("ref");
    ((struct own *)d)->prepared++;
    return ref->kind->prepare(ref, u, out);
}

static void make_kind(void) {
    kind = *dev_find("ref")->kind;
    kind.allocate = allocate;
    kind.release = release;
    kind.copy_in = copy_in;
    kind.copy_out = copy_out;
    kind.copy = copy;
    kind.prepare = prepare;
}

/* ---- two runs ---- */

static tri_run *open_one(const char *model, uint64_t seed, struct dev *dev) {
    tri_options o = {.steps = 4, .lanes = 2, .threads = 2, .seed = seed, .device = "ref",
                     .quiet = true, .optimizer = {.name = "adamw", .clip_norm = 1}};
    tri_run *run = dev ? run_open_on(tri_model_open(model, 6), &o, dev)
                       : tri_open(tri_model_open(model, 6), &o);
    if (!run) fail_msg("%s: %s", model, tri_message());
    return run;
}

static void two_train(const char *const model[2]) {
    struct own own[2] = {{.dev = {&kind}}, {.dev = {&kind}}};
    char weights[65], alone[2][65], together[65];
    tri_run *run[2];
    for (int i = 0; i < 2; i++) {
        run[i] = open_one(model[i], (uint64_t)i, NULL);
        while (tri_step(run[i])) continue;
        tri_hash(run[i], weights, alone[i]);
        assert_int_equal(tri_close(run[i]), TRI_OK);
    }
    for (int i = 0; i < 2; i++) run[i] = open_one(model[i], (uint64_t)i, &own[i].dev);
    while (tri_step(run[0])) assert_true(tri_step(run[1]));
    assert_false(tri_step(run[1]));
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(run[i]->dev, &own[i].dev);
        tri_hash(run[i], weights, together);
        assert_string_equal(together, alone[i]);
        assert_int_equal(tri_close(run[i]), TRI_OK);
        if (own[i].strays) fail_msg("%s of device %d: memory of another", own[i].strays, i);
        assert_true(own[i].prepared && own[i].copies);
        for (size_t b = 0; b < COUNT(own[i].block); b++) assert_null(own[i].block[b].at);
    }
}

static void two_devices(void **state) {
    (void)state;
    make_kind();
    two_train((const char *const[]){"mlp:hidden=32", "mlp:hidden=32"}); /* of two seeds */
    two_train((const char *const[]){"lenet5", "mlp:hidden=32"});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_devices)};
    return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
