/* SPDX-License-Identifier: Apache-2.0
 * A model checker for protocols of claims. Actors call the real code; every order of their calls
 * is tried depth first over the states of the world, with actors paused before any access of a
 * call and killed after any write of one. A paused call is kept as the log of what its accesses
 * gave: to go on, the call is made again and given these first. So a call must change nothing
 * but words and what it changes by seen_effect, before it returns.
 *
 * A test describes its protocol by struct protocol. SLOW=1 tries larger sizes, for some
 * minutes; BOARD_SAY=1 prints how many states there are. */
#ifndef MODEL_H
#define MODEL_H

#include "accesses.h"

#define MOST_ACTORS 6

/* The begin of every protocol's world, which is plain memory. */
struct world {
    int deaths, pauses; /* how many there may still be; deaths < 0: any number */
    int logged[MOST_ACTORS]; /* > 0: the actor is paused in its call */
    uint64_t log[MOST_ACTORS][MOST_LOG];
};

/* A step of one actor: a call, to its end, to a pause or to its death; or (OTHER and more) a
 * change of the world that is the protocol's own. */
enum what { GO, PAUSE, DIE_IN, OTHER };
struct act {
    int who, does; /* does: which call, or which change */
    enum what what;
    int n; /* the access, the write, or the protocol's own */
};

struct protocol {
    size_t bytes; /* of a world */
    int actors;
    /* Offers what may happen next, by model_call and model_other. */
    void (*offer)(const void *world);
    /* Makes a call of the code under test; when it returns, `after` changes the world. */
    int (*call)(void *world, int who, int does);
    void (*after)(void *world, int who, int does, int result);
    void (*die)(void *world, int who);
    void (*other)(void *world, const struct act *a);
    /* What must hold in every state; and, where a state was not seen before. */
    void (*check)(const void *world);
    /* Of all but the world's begin. */
    uint64_t (*hash)(const void *world);
    void (*print)(FILE *to, const void *world, const struct act *a);
    int pause_in; /* only this call is paused; 0: any */
    int pause_at; /* only before this access; 0: any */
};

static struct model {
    const struct protocol *is;
    uint64_t *seen; /* hashes of states; 0: none */
    uint16_t *at;   /* their depth */
    size_t n_seen, capacity;
    struct world **world; /* by depth */
    struct act *act;
    int depth, deepest, limit;
    int accesses, writes; /* of the last call */
    const char *what;     /* is broken */
    jmp_buf out;
} model;

static void shake(void) {}

_Noreturn static void broken(const char *what) {
    if (!model.is) {
        fprintf(stderr, "%s does not hold\n", what);
        abort();
    }
    model.what = what;
    longjmp(model.out, 1);
}

/* The code under test would wait here: the call ends with this result. */
__attribute__((unused)) _Noreturn static void seen_leave(int result) {
    call.result = result;
    longjmp(call.out, LEFT);
}

/* An access of another kind than those of words; true: make it now. Follow it by point_reached. */
__attribute__((unused)) static bool seen_effect(void) {
    if (!call.watched) return true;
    bool now = is_new();
    call.log[call.accesses++] = 0;
    return now;
}

/* An access that only reads. */
__attribute__((unused)) static uint64_t seen_value(uint64_t value) {
    if (!call.watched) return value;
    if (is_new()) call.log[call.accesses] = value;
    return call.log[call.accesses++];
}

static enum ending make_call(struct world *w, const struct act *a, int *result) {
    call = (struct call){.watched = true, .log = w->log[a->who], .logged = w->logged[a->who],
                         .pause = a->what == PAUSE ? a->n : 0, .die = a->what == DIE_IN ? a->n : 0};
    enum ending how = (enum ending)setjmp(call.out);
    if (how == RETURNED) *result = model.is->call(w, a->who, a->does);
    if (how == LEFT) *result = call.result;
    call.watched = false;
    model.accesses = call.accesses;
    model.writes = call.writes;
    return how == LEFT ? RETURNED : how;
}

static void kill_actor(struct world *w, int who) {
    w->logged[who] = 0;
    if (w->deaths > 0) w->deaths--;
    model.is->die(w, who);
}

static void apply(struct world *w, const struct act *a) {
    int result = 0;
    if (a->what == OTHER) {
        model.is->other(w, a);
        return;
    }
    enum ending how = make_call(w, a, &result);
    w->logged[a->who] = how == PAUSED ? model.accesses : 0;
    if (how == PAUSED) w->pauses--;
    if (how == DIED) kill_actor(w, a->who);
    if (how == RETURNED) model.is->after(w, a->who, a->does, result);
}

/* ---- states that were seen ---- */

static size_t place_of(uint64_t hash) {
    size_t i = (size_t)(hash >> 20) & (model.capacity - 1);
    while (model.seen[i] && model.seen[i] != hash) i = (i + 1) & (model.capacity - 1);
    return i;
}

static void grow_seen(void) {
    struct model old = model;
    model.capacity = old.capacity ? 2 * old.capacity : 1 << 16;
    model.seen = calloc(model.capacity, sizeof *model.seen);
    model.at = calloc(model.capacity, sizeof *model.at);
    if (!model.seen || !model.at) abort();
    for (size_t i = 0; i < old.capacity; i++) {
        if (!old.seen[i]) continue;
        size_t to = place_of(old.seen[i]);
        model.seen[to] = old.seen[i];
        model.at[to] = old.at[i];
    }
    free(old.seen);
    free(old.at);
}

static uint64_t hash_of_world(const struct world *w) {
    uint64_t h = mix(model.is->hash(w), (uint64_t)(w->deaths + 1) << 8 | (uint64_t)w->pauses);
    for (int i = 0; i < model.is->actors; i++) {
        h = mix(h, (uint64_t)w->logged[i]);
        for (int k = 0; k < w->logged[i]; k++) h = mix(h, w->log[i][k]);
    }
    return h ? h : 1;
}

/* With a limit, a state that is reached by a shorter path is explored again. */
static bool is_seen(const struct world *w) {
    if (2 * model.n_seen >= model.capacity) grow_seen();
    uint64_t hash = hash_of_world(w);
    size_t i = place_of(hash);
    if (model.seen[i] && (model.limit == INT32_MAX || model.at[i] <= model.depth)) return true;
    model.n_seen += !model.seen[i];
    model.seen[i] = hash;
    if (model.limit < INT32_MAX) model.at[i] = (uint16_t)model.depth;
    return false;
}

/* ---- all states ---- */

static void make_level(int depth) {
    if (depth < model.deepest) return;
    model.world = realloc(model.world, (size_t)(depth + 1) * sizeof *model.world);
    model.act = realloc(model.act, (size_t)(depth + 1) * sizeof *model.act);
    if (!model.world || !model.act) abort();
    size_t bytes = (model.is->bytes + 63) / 64 * 64;
    model.world[depth] = aligned_alloc(64, bytes); /* words may be on lines of their own */
    if (!model.world[depth]) abort();
    memset(model.world[depth], 0, bytes);
    model.deepest = depth + 1;
}

static void explore(void) {
    const struct world *w = model.world[model.depth];
    model.is->check(w);
    if (model.depth >= model.limit || is_seen(w)) return;
    make_level(model.depth + 1);
    model.is->offer(model.world[model.depth]);
}

/* Only logs that are in use: they are most of a world. */
static void copy_world(struct world *to, const struct world *from) {
    memcpy(to, from, offsetof(struct world, log));
    for (int i = 0; i < model.is->actors; i++)
        memcpy(to->log[i], from->log[i], (size_t)from->logged[i] * sizeof from->log[i][0]);
    memcpy(to + 1, from + 1, model.is->bytes - sizeof *to);
}

static void follow(const struct act *act) {
    int d = model.depth;
    model.act[d] = *act;
    copy_world(model.world[d + 1], model.world[d]);
    apply(model.world[d + 1], act);
    int accesses = model.accesses, writes = model.writes;
    model.depth++;
    explore();
    model.depth--;
    model.accesses = accesses;
    model.writes = writes;
}

/* A call: to its end; if it may be paused, to a pause before each access; if the actor may die, to
 * a death after each write. */
static void model_call_of(int who, int does, bool pauses, bool dies) {
    const struct world *w = model.world[model.depth];
    int logged = w->logged[who], at = model.is->pause_at;
    follow(&(struct act){who, does, GO, 0});
    int accesses = model.accesses, writes = model.writes;
    pauses &= w->pauses > 0 && (!model.is->pause_in || model.is->pause_in == does);
    for (int k = at ? at : logged + 1; pauses && k < accesses && (!at || k == at); k++)
        follow(&(struct act){who, does, PAUSE, k});
    dies &= w->deaths != 0;
    for (int n = 1; dies && n <= writes; n++) follow(&(struct act){who, does, DIE_IN, n});
}

__attribute__((unused)) static void model_call(int who, int does) {
    model_call_of(who, does, true, true);
}

static void model_other(int who, int does, int n) { follow(&(struct act){who, does, OTHER, n}); }

static void model_free(void) {
    for (int i = 0; i < model.deepest; i++) free(model.world[i]);
    free(model.world);
    free(model.act);
    free(model.seen);
    free(model.at);
    model = (struct model){0};
}

static void print_path(void) {
    static const char *const how[] = {"", "paused before access", "dies after write", ""};
    fprintf(stderr, "does not hold: %s\n", model.what);
    for (int i = 0; i <= model.depth && i < model.limit && i < model.deepest; i++) {
        const struct act *a = &model.act[i];
        fprintf(stderr, "  actor %d: ", a->who);
        model.is->print(stderr, model.world[i], a);
        fprintf(stderr, " %s %d\n", how[a->what], a->n);
    }
}

/* False: something is broken. */
static bool search(const struct protocol *is, const struct world *begin, int limit) {
    model = (struct model){.is = is, .limit = limit};
    claim_point = point_reached;
    make_level(0);
    memcpy(model.world[0], begin, is->bytes);
    if (!setjmp(model.out)) {
        explore();
        return true;
    }
    call.watched = false;
    return false;
}

/* Tries everything; fails with the shortest path to what is broken. Returns the number of
 * states. */
static size_t model_check(const struct protocol *is, const struct world *begin) {
    if (!search(is, begin, INT32_MAX)) {
        bool found = false;
        fprintf(stderr, "broken: %s; looking for the shortest path\n", model.what);
        for (int limit = 1; !found && limit <= 60; limit++) {
            model_free();
            found = !search(is, begin, limit);
        }
        if (found) print_path();
        model_free();
        fail();
    }
    size_t states = model.n_seen;
    model_free();
    if (getenv("BOARD_SAY")) fprintf(stderr, "%zu states\n", states);
    return states;
}

#endif
