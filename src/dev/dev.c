/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/dev.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/nearest.h"

extern struct dev dev_ref;
extern struct dev dev_cpu;

/* In order of preference. */
static struct dev *const devices[] = {
    &dev_cpu,
    &dev_ref,
};

struct dev *dev_at(int i) { return i >= 0 && i < (int)COUNT(devices) ? devices[i] : NULL; }

struct dev *dev_find(const char *name) {
    struct nearest near = {.wanted = name};
    if (!name) return devices[0];
    for (size_t i = 0; i < COUNT(devices); i++)
        if (nearest_offer(&near, devices[i]->kind->name)) return devices[i];
    base_fail(TRI_USAGE, "there is no device \"%s\"; this build has: %s%s", name, near.names,
              nearest_meant(&near));
    return NULL;
}

tri_status dev_open(struct dev *d) { return d->kind->open ? d->kind->open(d) : TRI_OK; }

const struct dev_row *dev_row_find(const struct dev_row *const *tables, const char *op) {
    for (; *tables; tables++)
        for (const struct dev_row *r = *tables; r->op; r++)
            if (!strcmp(r->op, op)) return r;
    return NULL;
}

static bool fits(const tri_tensor *t, const struct format *l, int *common) {
    if (*t->pack || (l->block != FORMAT_ANY && t->block != l->block)) return false;
    if (l->block != FORMAT_ANY) return true;
    if (*common == FORMAT_ANY) *common = t->block;
    return t->block == *common;
}

static bool is_plain(const tri_tensor *t) { return !t->block && !*t->pack; }

const char *dev_row_refuses(const struct dev_row *r, const tri_node *n) {
    static const char why[] = "it has no kernel for these memory formats";
    struct format in[TRI_MAX_OUTPUTS] = {0}, out[TRI_MAX_OUTPUTS] = {0};
    bool plain = true, fit = true;
    for (int i = 0; i < n->n_in; i++) plain &= !node_reads(n, i) || is_plain(n->in[i]);
    for (int i = 0; i < n->n_out; i++) plain &= is_plain(&n->out[i]);
    if (plain || (r && r->any_order)) return NULL;
    if (!r || !r->formats || n->n_in > (int)COUNT(in)) return why;
    r->formats(n, in, out);
    int common = FORMAT_ANY;
    for (int i = 0; i < n->n_in; i++)
        if (node_reads(n, i)) fit = fit && fits(n->in[i], &in[i], &common);
    for (int i = 0; i < n->n_out; i++) fit = fit && fits(&n->out[i], &out[i], &common);
    return fit ? NULL : why;
}

/* Large blocks get their own huge pages, if the system has them: page faults and misses of the
 * address translation cost a fraction. */
#define HUGE ((size_t)2 << 20)
#define LARGE (2 * HUGE)

static size_t huge_pages(size_t bytes) { return (bytes + HUGE - 1) / HUGE * HUGE; }

/* Maps one huge page more than needed and cuts it to the boundary. Nothing is reserved: a plan that
 * is only printed may need more than there is, and a run's need has been checked (budget.h). */
static void *map_large(size_t bytes) {
    size_t wanted = huge_pages(bytes);
    char *all = mmap(NULL, wanted + HUGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return NULL;
    size_t before = (HUGE - (uintptr_t)all % HUGE) % HUGE;
    if (before) munmap(all, before);
    munmap(all + before + wanted, HUGE - before);
    madvise(all + before, wanted, MADV_HUGEPAGE);
    return all + before;
}

void *dev_host_allocate(size_t bytes) {
    if (bytes >= LARGE) return map_large(bytes);
    bytes = (bytes + 63) / 64 * 64;
    return aligned_alloc(64, bytes ? bytes : 64);
}

void dev_host_release(void *memory, size_t bytes) {
    if (bytes >= LARGE && memory)
        munmap(memory, huge_pages(bytes));
    else
        free(memory);
}

void *dev_allocate(struct dev *d, size_t bytes) {
    return d->kind->allocate ? d->kind->allocate(d, bytes) : dev_host_allocate(bytes);
}

void dev_release(struct dev *d, void *memory, size_t bytes) {
    if (d->kind->release) d->kind->release(d, memory, bytes);
    else dev_host_release(memory, bytes);
}

static void fail(const tri_call *c, const char *fmt, va_list args) {
    char what[sizeof c->fault->text / 2];
    base_format_list(what, sizeof what, fmt, args);
    *c->fault = (struct tri_fault){.failed = true};
    snprintf(c->fault->text, sizeof c->fault->text, "%s (%s): %s", c->node->name,
             c->node->entry->op->name, what);
}

void tri_call_fail(const tri_call *c, const char *fmt, ...) {
    va_list args;
    if (c->fault->failed) return;
    va_start(args, fmt);
    fail(c, fmt, args);
    va_end(args);
}

void call_fail_at(const tri_call *c, int input, int64_t element, const char *fmt, ...) {
    va_list args;
    if (c->fault->failed) return;
    va_start(args, fmt);
    fail(c, fmt, args);
    va_end(args);
    c->fault->node = c->node;
    c->fault->input = input;
    c->fault->element = element;
}

void fault_add(struct tri_fault *fault, const char *fmt, ...) {
    size_t n = strlen(fault->text);
    va_list args;
    va_start(args, fmt);
    base_format_list(fault->text + n, sizeof fault->text - n, fmt, args);
    va_end(args);
}
