/* SPDX-License-Identifier: Apache-2.0
 * The table of a run's options, and setters for such tables. */
#include "plan/option_rows.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

/* ---- setters ---- */

const char *option_count(void *at, const char *value) { /* int64_t */
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (end == value || *end || n < 1) return "a whole number of at least 1";
    if (errno) return "a whole number that is not so large";
    *(int64_t *)at = n;
    return NULL;
}

const char *option_seed(void *at, const char *value) { /* uint64_t */
    char *end;
    errno = 0;
    unsigned long long n = strtoull(value, &end, 10);
    if (!isdigit((unsigned char)*value) || *end || errno)
        return "a whole number from 0 to 2^64 - 1";
    *(uint64_t *)at = n;
    return NULL;
}

/* NaN if `value` is not a finite number. */
static double finite_number(const char *value) {
    char *end;
    double x = base_number(value, &end);
    return end != value && !*end && isfinite(x) ? x : NAN;
}

const char *option_positive(void *at, const char *value) { /* double */
    double x = finite_number(value);
    if (!(x > 0)) return "a number above 0";
    *(double *)at = x;
    return NULL;
}

static const char *not_negative(void *at, const char *value) { /* double */
    double x = finite_number(value);
    if (!(x >= 0)) return "a number of at least 0";
    *(double *)at = x;
    return NULL;
}

/* A field of 0 means the default, so 0 itself is stored as TRI_ZERO. */
static const char *or_zero(void *at, double x) {
    *(double *)at = x > 0 ? x : TRI_ZERO;
    return NULL;
}

static const char *zero_up(void *at, const char *value) { /* double */
    double x = finite_number(value);
    return x >= 0 ? or_zero(at, x) : "a number of at least 0";
}

static const char *below_one(void *at, const char *value) { /* double */
    double x = finite_number(value);
    return x >= 0 && x < 1 ? or_zero(at, x) : "a number of at least 0 and below 1";
}

const char *option_off(void *at, const char *value) { /* bool: true is off */
    if (strcmp(value, "on") && strcmp(value, "off")) return "on or off";
    *(bool *)at = !strcmp(value, "off");
    return NULL;
}

const char *option_given(void *at, const char *value) {
    (void)value;
    *(bool *)at = true;
    return NULL;
}

const char *option_text(void *at, const char *value) {
    if (!*value) return "a text that is not empty";
    *(const char **)at = value;
    return NULL;
}

const char *option_seconds(void *at, const char *value) {
    double x = finite_number(value);
    if (!(x > 0)) return "a number of seconds above 0";
    *(double *)at = x;
    return NULL;
}

const char *option_size(void *at, const char *value) {
    static const char units[] = "KMGT";
    char *end;
    double x = base_number(value, &end);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (end == value || !(x > 0) || (*end && (!unit || end[1]))) return "a size: 900M, 1.5G";
    for (const char *u = units; unit && u <= unit; u++) x *= 1024;
    if (x >= 9e18) return "a size: 900M, 1.5G";
    *(int64_t *)at = (int64_t)x;
    return NULL;
}

static const char *data_threads(void *at, const char *value) { /* int64_t */
    *(int64_t *)at = !strcmp(value, "off") ? -1 : 0;
    if (!strcmp(value, "off") || !strcmp(value, "auto")) return NULL;
    return option_count(at, value) ? "off, auto, or a whole number of at least 1" : NULL;
}

/* --epochs and --steps each set the length of the run and clear the other. */
static const char *epochs(void *at, const char *value) { /* tri_options */
    tri_options *o = at;
    o->steps = 0;
    return option_count(&o->epochs, value);
}

static const char *steps(void *at, const char *value) { /* tri_options */
    tri_options *o = at;
    o->epochs = 0;
    return option_count(&o->steps, value);
}

static const char *count_or_epoch(void *at, const char *value) { /* int64_t; 0: each epoch */
    *(int64_t *)at = 0;
    if (!strcmp(value, "epoch")) return NULL;
    return option_count(at, value) ? "a whole number of at least 1, or epoch" : NULL;
}

static const char *early_stop(void *at, const char *value) { /* tri_options */
    static const char right[] = "a number of evaluations, and if wanted a change: 3, 3:0.01";
    tri_options *o = at;
    char number[24];
    size_t n = strcspn(value, ":");
    if (n >= sizeof number) return right;
    base_format(number, sizeof number, "%.*s", (int)n, value);
    if (option_count(&o->early_stop, number)) return right;
    return value[n] && not_negative(&o->early_stop_change, value + n + 1) ? right : NULL;
}

/* ---- the table ---- */

#define FIELD(name) offsetof(tri_options, name)
#define PLANNED (USE_TRAIN | USE_DUMP | USE_BENCH | USE_MEMORY)
#define LEARNING (PLANNED | USE_COMPARE)
#define SAMPLING (USE_TRAIN | USE_BENCH | USE_MEMORY | USE_COMPARE)
#define RUNNING (SAMPLING | USE_EVAL)
#define LOADING (USE_TRAIN | USE_EVAL | USE_BENCH | USE_COMPARE)

const struct option_row options_rows[] = {
    {"--data", "SPEC",
     "where samples come from (default: the model's own data, else synthetic):\n"
     "idx:DIR[,split=train|test][,mean=X][,std=X]: files of the MNIST family\n"
     "images:DIR[,split=train|val][,size=N]: JPEG and PNG files, one folder per class\n"
     "tar:PATTERN: JPEG and PNG files in tar archives\n"
     "cifar:DIR: CIFAR-10 or CIFAR-100, the binary version\n"
     "npy:FILE[;FILE]: NumPy arrays\n"
     "text:FILE[:FILE...]: text, as tokens; takes ,tokenizer=KIND ,for=lm|bert ,length=N and "
     ",predictions=N\n"
     "synthetic[:size=N]: random samples in the shapes that the model takes",
     option_text, FIELD(data), RUNNING | SHOWN | RESUME_WARNS, .group = GROUP_DATA},
    {"--tokenizer", "KIND",
     "how --data text becomes tokens: bytes, bert:FILE, bert-cased:FILE or gpt2:DIR (default: "
     "bytes)",
     option_text, FIELD(tokenizer), RUNNING | RESUME_WARNS, .group = GROUP_DATA,
     .state = 16, .without = "bytes"},
    {"--shuffle", "on|off", "use the samples in a new order in every epoch (default: on)",
     option_off, FIELD(no_shuffle), SAMPLING | RESUME_REQUIRES, .group = GROUP_DATA},
    {"--sampler", "KIND",
     "order of the samples (default: shuffled):\n"
     "shuffled: a new random order in every epoch\n"
     "sequential: the order of the data\n"
     "stratified: random; every lane gets its share of each class\n"
     "weighted:balanced: drawn with replacement; all classes are equally likely\n"
     "weighted:classes=X/X...: drawn with replacement, by a weight per class\n"
     "weighted:FILE: drawn with replacement, by a weight per sample",
     option_text, FIELD(sampler), SAMPLING | RESUME_REQUIRES | KEPT_ORDER, .group = GROUP_DATA,
     .usual = "shuffled"},
    {"--subset", "LIST",
     "use only the samples FIRST to END - 1, given as FIRST:END, or those that a file lists",
     option_text, FIELD(subset), RUNNING | RESUME_REQUIRES | KEPT_ORDER, .group = GROUP_DATA},
    {"--share", "K/N[,drop]",
     "use every N-th sample from the K-th (0 to N - 1) on: for N separate runs that divide one "
     "data set",
     option_text, FIELD(share), SAMPLING | RESUME_REQUIRES | KEPT_ORDER, .group = GROUP_DATA},
    {"--tail", "WAY",
     "what to do with the last samples of an epoch if they do not fill a step (default: drop):\n"
     "drop: leave them out\n"
     "keep: make a smaller step\n"
     "pad: make a full step; the samples that fill it up do not count",
     option_text, FIELD(tail), SAMPLING | RESUME_REQUIRES | KEPT_ORDER, .group = GROUP_DATA,
     .words = WORDS("drop", "keep", "pad"), .usual = "drop"},
    {"--data-threads", "N",
     "threads per worker that read the next step's samples during the current step: a number, "
     "off, or auto, which starts one if reading is slow (default: auto)",
     data_threads, FIELD(data_threads), SAMPLING | RESUME_IGNORES, .group = GROUP_DATA},

    {"--epochs", "N", "passes over the data (default: 1)", epochs, 0,
     USE_TRAIN | SHOWN | RESUME_WARNS, .group = GROUP_TRAINING},
    {"--steps", "N", "number of steps, instead of --epochs", steps, 0,
     USE_TRAIN | USE_BENCH | USE_COMPARE | SHOWN | RESUME_WARNS, .group = GROUP_TRAINING,
     .state = 10},
    {"--batch", "N", "samples per step, over all workers together (default: 64)", option_count,
     FIELD(batch), USE_ALL | SHOWN | RESUME_REQUIRES, .group = GROUP_TRAINING,
     .plan = PLAN_BATCH, .most = INT32_MAX},
    {"--lanes", "V",
     "slices of the batch, the unit of scheduling (default: chosen from model and batch)",
     option_count, FIELD(lanes), LEARNING | SHOWN | RESUME_WARNS, .group = GROUP_TRAINING,
     .plan = PLAN_LANES, .most = INT32_MAX},
    {"--seed", "N", "seed of everything random (default: 0)", option_seed, FIELD(seed),
     USE_ALL | SHOWN | RESUME_REQUIRES, .group = GROUP_TRAINING},
    {"--on-nan", "WAY",
     "what to do if the loss is NaN or infinite (default: stop):\n"
     "stop: end the run with exit status 1 and discard the step\n"
     "warn: print a line and continue",
     option_text, FIELD(on_nan), USE_TRAIN | RESUME_IGNORES, .group = GROUP_TRAINING,
     .words = WORDS("stop", "warn")},
    {"--max-time", "S",
     "end the run after S seconds, when the current step is finished; the exit status is 3",
     option_seconds, FIELD(max_time), USE_TRAIN | RESUME_IGNORES, .group = GROUP_TRAINING},

    {"--optimizer", "NAME",
     "the optimizer: sgd, momentum, nesterov, adam, adamw, lars or lamb (default: sgd)",
     option_text, FIELD(optimizer.name), LEARNING | SHOWN | RESUME_REQUIRES,
     .group = GROUP_OPTIMIZER, .state = 11, .without = "sgd"},
    {"--lr", "X", "learning rate (default: 0.01; adam, adamw and lamb 0.001; lars 1)",
     option_positive, FIELD(optimizer.lr), LEARNING | SHOWN | RESUME_WARNS,
     .group = GROUP_OPTIMIZER, .state = 1},
    {"--momentum", "X", "momentum of momentum, nesterov and lars (default: 0.9)", below_one,
     FIELD(optimizer.momentum), LEARNING | RESUME_WARNS, .group = GROUP_OPTIMIZER, .state = 2},
    {"--beta1", "X", "decay of the mean of gradients in adam, adamw and lamb (default: 0.9)",
     below_one, FIELD(optimizer.beta1), LEARNING | RESUME_WARNS, .group = GROUP_OPTIMIZER,
     .state = 3, .bare = true},
    {"--beta2", "X",
     "decay of the mean of squared gradients in adam, adamw and lamb (default: 0.999)", below_one,
     FIELD(optimizer.beta2), LEARNING | RESUME_WARNS, .group = GROUP_OPTIMIZER,
     .state = 4, .bare = true},
    {"--eps", "X",
     "added to the divisor of a step in adam, adamw, lamb and lars (default: 1e-8; lamb 1e-6)",
     zero_up, FIELD(optimizer.eps), LEARNING | RESUME_WARNS, .group = GROUP_OPTIMIZER,
     .state = 5, .bare = true},
    {"--trust", "X", "trust coefficient of lars (default: 0.001)", option_positive,
     FIELD(optimizer.trust), LEARNING | RESUME_WARNS, .group = GROUP_OPTIMIZER, .state = 6},
    {"--schedule", "SPEC",
     "how the learning rate changes: constant, step:every=N,factor=X, poly:power=X,end=X or "
     "cosine:end=X, each with ,warmup=N if wanted (default: constant)",
     option_text, FIELD(optimizer.schedule), LEARNING | RESUME_WARNS, .group = GROUP_OPTIMIZER,
     .state = 12, .without = "constant"},
    {"--weight-decay", "X", "weight decay, but not of norms and biases (default: 0)",
     not_negative, FIELD(optimizer.weight_decay), LEARNING | RESUME_WARNS,
     .group = GROUP_OPTIMIZER, .state = 7},
    {"--clip-norm", "X",
     "scale the gradients so that their common norm is at most X (default: off)",
     option_positive, FIELD(optimizer.clip_norm), LEARNING | RESUME_WARNS,
     .group = GROUP_OPTIMIZER, .state = 9},
    {"decay_all", .set = option_given, .offset = FIELD(optimizer.decay_all), .use = RESUME_WARNS,
     .state = 8}, /* a program's alone */

    {"--amp", "LEVEL",
     "mixed precision (default: O0):\n"
     "O0: none\n"
     "O1: half type for matrix products and convolutions; other operators follow their inputs\n"
     "O2: half type for everything except the parameters and statistics of norms and the loss\n"
     "O3: half type for everything, as far as the loss's operators allow it",
     option_text, FIELD(amp), USE_ALL | SHOWN | RESUME_WARNS, .group = GROUP_PRECISION,
     .words = WORDS("O0", "O1", "O2", "O3"), .usual = "O0", .plan = PLAN_AMP},
    {"--amp-type", "TYPE", "half type: bf16 or f16 (default: bf16)", option_text, FIELD(amp_type),
     USE_ALL | RESUME_WARNS, .group = GROUP_PRECISION,
     .words = WORDS("bf16", "f16"), .usual = "bf16", .plan = PLAN_AMP_TYPE},
    {"--loss-scale", "X",
     "scale the loss by a power of two, dynamic or dynamic:start=X,every=N, or off; an update that "
     "is not finite is skipped, also at scale 1 (default: off; dynamic for f16)",
     option_text, FIELD(optimizer.loss_scale), LEARNING | RESUME_WARNS, .group = GROUP_PRECISION,
     .state = 14, .without = "off"},
    {"--recompute", "PATTERN",
     "save memory: compute these scopes or operators again in the backward pass: "
     "layer1.?,*.relu*; none; full: all blocks; fit: the cheapest that suffice for --memory-limit",
     option_text, FIELD(recompute), LEARNING | RESUME_IGNORES, .group = GROUP_PRECISION,
     .plan = PLAN_RECOMPUTE},
    {"--bucket", "SIZE",
     "sum gradients in buckets of at least this size, during the backward pass (default: 4M)",
     option_size, FIELD(bucket), USE_TRAIN | USE_BENCH | USE_MEMORY | RESUME_IGNORES,
     .group = GROUP_PRECISION,
     .usual = "4M", .plan = PLAN_BUCKET, .most = INT64_MAX},
    {"--wire", "FORMAT[,PATTERN=FORMAT]",
     "format in which gradients of two or more dimensions travel between hosts (default: f32); all "
     "but f32 and pack round sums, also on one host, so that no path or host changes the result:\n"
     "f32: as they are\n"
     "pack: without loss, some 15 % shorter; nothing is rounded\n"
     "fp16: 16 bits, scaled per 256 numbers\n"
     "bf16: 16 bits\n"
     "int8: 8 bits, scaled per 256 numbers, rounded at random\n"
     "topk:R: the share R of the numbers, those that have changed most; each of the W sums keeps "
     "an estimate of the others, and every host sends its sums to every other (no --path)",
     option_text, FIELD(wire), LEARNING | RESUME_WARNS, .group = GROUP_PRECISION, .usual = "f32",
     .plan = PLAN_WIRE},
    {"--wire-nodes", "W",
     "round the W uppermost sums of the lanes' tree, a power of two, and those above: at most so "
     "many hosts can share a step (default: 4)",
     option_count, FIELD(wire_nodes), LEARNING | RESUME_WARNS, .group = GROUP_PRECISION,
     .usual = "4", .plan = PLAN_WIRE_NODES, .most = 4096},
    {"--memory-limit", "SIZE",
     "refuse a run that needs more memory: 900M, 4G (default: what machine and cgroup allow)",
     option_size, FIELD(memory_limit), RUNNING | SHOWN | RESUME_IGNORES, .group = GROUP_PRECISION},

    {"--threads", "T",
     "threads of this process, or of each worker; the result does not depend on them (default: "
     "one per core)",
     option_count, FIELD(threads), RUNNING | SHOWN | RESUME_IGNORES, .group = GROUP_WORKERS,
     .plan = PLAN_THREADS, .most = PLAN_MOST_THREADS},

    {"--mesh", "AXES",
     "split each lane's operators over the seats of a mesh with these axes: model=4,rows=2, or a "
     "number for a network with tuples (default: that of the network, else none)",
     option_text, FIELD(mesh), USE_ALL | SHOWN | RESUME_WARNS, .group = GROUP_MESH},
    {"--strategy", "LIST",
     "how operators are split: files of strategies, or names of ready ones, separated by commas: "
     "megatron and megatron-sp for gpt2 and bert, channels for resnets and mlp",
     option_text, FIELD(strategy), USE_ALL | SHOWN | RESUME_WARNS, .group = GROUP_MESH},
    {"--unset", "WAY",
     "operators that no strategy mentions (default: follow):\n"
     "follow: split as their inputs are, so that little moves\n"
     "batch: split by samples, over as many seats as divide them\n"
     "whole: not split",
     option_text, FIELD(unset), USE_ALL | RESUME_WARNS, .group = GROUP_MESH,
     .words = WORDS("follow", "batch", "whole"), .usual = "follow", .plan = PLAN_UNSET},
    {"--parallel", "WAY",
     "how a network is divided (default: data, or semi with a mesh):\n"
     "data: workers share the lanes\n"
     "semi: besides, a mesh splits operators as strategies say\n"
     "auto: finds workers, threads, stages, recomputation, and writes DIR/plan (--grain)",
     option_text, FIELD(parallel), USE_ALL | RESUME_WARNS, .group = GROUP_MESH,
     .words = WORDS("data", "semi", "auto")},

    {"--stages", "P",
     "a pipeline of so many stages of about the same work, whose micro-batches are the lanes; the "
     "result does not depend on it (default: as the network says, else none)",
     option_count, FIELD(stages), LEARNING | RESUME_IGNORES, .group = GROUP_MESH,
     .plan = PLAN_STAGES, .most = STAGE_MOST},
    {"--cuts", "NAME,...",
     "the operators with which the stages from 1 on begin (default: as prices of this machine say)",
     option_text, FIELD(cuts), LEARNING | RESUME_IGNORES, .group = GROUP_MESH, .plan = PLAN_CUTS},
    {"--pipeline", "ORDER",
     "in which order the legs run (default: 1f1b):\n"
     "1f1b: a backward leg as soon as possible, so that few lanes' results are kept\n"
     "gpipe: all forward legs first\n"
     "interleaved: several stages per track, so that tracks wait less\n"
     "zero-bubble: gradients of weights are legs of their own, which fill waiting time",
     option_text, FIELD(pipeline), LEARNING | RESUME_IGNORES, .group = GROUP_MESH,
     .words = WORDS("1f1b", "gpipe", "interleaved", "zero-bubble"), .usual = "1f1b",
     .plan = PLAN_PIPELINE},
    {"--chunks", "K", "stages per track of --pipeline interleaved (default: 2)", option_count,
     FIELD(chunks), LEARNING | RESUME_IGNORES, .group = GROUP_MESH,
     .usual = "2", .plan = PLAN_CHUNKS, .most = STAGE_MOST},
    {"--steal", "WHEN",
     "compute legs of other workers: late, if these are dead or late, or never (default: late)",
     option_text, FIELD(steal), LEARNING | RESUME_IGNORES, .group = GROUP_MESH,
     .words = WORDS("late", "never"), .usual = "late", .plan = PLAN_STEAL},
    {"--zero", "LEVEL",
     "what is kept; workers share parameters and optimizer state at any level (default: 2):\n"
     "0, 1: sum a lane's gradients when it ends\n"
     "2: sum them in buckets during the backward pass\n"
     "3: besides, compute weights of other types and formats again where they are read",
     option_text, FIELD(zero), LEARNING | RESUME_IGNORES, .group = GROUP_PRECISION,
     .words = WORDS("0", "1", "2", "3"), .plan = PLAN_ZERO},
    {"--plan", "FILE",
     "divide the run as this file says, which --save-plan wrote; batch, lanes, mesh, strategies, "
     "precision and kernels must not be given otherwise; what changes no bit may, as --stages",
     option_text, FIELD(plan), PLANNED | SHOWN | RESUME_IGNORES, .group = GROUP_MESH},
    {"--save-plan", "FILE", "write how this run is divided, as text for --plan", option_text,
     FIELD(save_plan), USE_TRAIN | RESUME_IGNORES, .group = GROUP_MESH},

    {"--save", "FILE", "write the weights at the end of the run (safetensors)", option_text,
     FIELD(save), USE_TRAIN | SHOWN | RESUME_IGNORES, .group = GROUP_WEIGHTS},
    {"--load", "FILE",
     "start with these weights (safetensors); from a directory of checkpoints, with the newest "
     "intact ones",
     option_text, FIELD(load), LOADING | USE_MEMORY | SHOWN | RESUME_REFUSES,
     .group = GROUP_WEIGHTS},
    {"--partial", NULL, "take what fits from the file of --load, and list the rest",
     option_given, FIELD(partial), LOADING | RESUME_REFUSES, .group = GROUP_WEIGHTS},
    {"--ckpt", "DIR", "write checkpoints to this directory; the last step is always saved",
     option_text, FIELD(ckpt), USE_TRAIN | USE_MEMORY | SHOWN | RESUME_IGNORES,
     .group = GROUP_WEIGHTS},
    {"--ckpt-key", "FILE",
     "encrypt checkpoints with the key in this file; --load reads encrypted ones with it "
     "(`trireme ckpt key FILE` makes a key)",
     option_text, FIELD(ckpt_key), LOADING | USE_MEMORY | RESUME_REQUIRES,
     .group = GROUP_WEIGHTS},
    {"--save-every", "N", "write a checkpoint every N steps (default: after the last one only)",
     option_count, FIELD(save_every), USE_TRAIN | SHOWN | RESUME_IGNORES, .group = GROUP_WEIGHTS},
    {"--save-minutes", "M", "write a checkpoint every M minutes", option_positive,
     FIELD(save_minutes), USE_TRAIN | RESUME_IGNORES, .group = GROUP_WEIGHTS},
    {"--keep", "K", "keep only the newest K checkpoints (default: all)", option_count,
     FIELD(keep), USE_TRAIN | RESUME_IGNORES, .group = GROUP_WEIGHTS},
    {"--keep-every", "E", "also keep the checkpoints of steps that are multiples of E",
     option_count, FIELD(keep_every), USE_TRAIN | RESUME_IGNORES, .group = GROUP_WEIGHTS},
    {"--resume", NULL,
     "continue from the newest intact checkpoint, if there is one, as if the run had never "
     "stopped",
     option_given, FIELD(resume), USE_TRAIN | SHOWN | RESUME_IGNORES, .group = GROUP_WEIGHTS},
    {"--changed", NULL,
     "with --resume, continue with another network, data or optimizer: tensors of the same name, "
     "shape and type keep their values, the others are listed",
     option_given, FIELD(changed), USE_TRAIN | RESUME_IGNORES, .group = GROUP_WEIGHTS},

    {"--eval-data", "SPEC",
     "evaluate on this data (as for --data) after each epoch and after the last step", option_text,
     FIELD(eval_data), USE_TRAIN | USE_MEMORY | SHOWN | RESUME_IGNORES, .group = GROUP_EVALUATION},
    {"--eval-every", "N|epoch", "evaluate every N steps instead of every epoch (default: epoch)",
     count_or_epoch, FIELD(eval_every), USE_TRAIN | RESUME_IGNORES, .group = GROUP_EVALUATION},
    {"--best", "METRIC",
     "compare evaluations by this result: top1, loss:min, X:max; the lowest loss and the highest "
     "other metric is best unless stated; with --ckpt, keep the checkpoint of the best one "
     "(default: loss, without that checkpoint)",
     option_text, FIELD(best), USE_TRAIN | RESUME_WARNS, .group = GROUP_EVALUATION},
    {"--early-stop", "N[:X]",
     "end the run when N evaluations in a row did not improve by more than X (default of X: 0)",
     early_stop, 0, USE_TRAIN | RESUME_IGNORES, .group = GROUP_EVALUATION},

    {"--out", "DIR",
     "directory for metrics.jsonl, run.json and logs; those of an earlier run get a number, as "
     "metrics.1.jsonl (default: run; of your own program: none)",
     option_text, FIELD(out), USE_TRAIN | SHOWN | RESUME_IGNORES, .group = GROUP_OUTPUT},
    {"--metrics-every", "N",
     "write a line of metrics for every N steps, with their means (default: for every step, but "
     "at most 100 a second)",
     option_count, FIELD(metrics_every), USE_TRAIN | RESUME_IGNORES, .group = GROUP_OUTPUT},
    {"--profile", "steps=A..B",
     "record what every thread does in these steps, both included, in DIR/profile/A: spans, and "
     "after the last step trace.json and tables",
     option_text, FIELD(profile), USE_TRAIN | RESUME_IGNORES, .group = GROUP_OUTPUT},
    {"--profile-most", "BYTES", "the most that a profile may take (default: 1G)", option_size,
     FIELD(profile_most), USE_TRAIN | RESUME_IGNORES, .group = GROUP_OUTPUT},
    {"--on-event", "CMD", ON_EVENT_HELP, option_text, FIELD(on_event), USE_TRAIN | RESUME_IGNORES,
     .group = GROUP_OUTPUT},
    {"--quiet", NULL, "print no progress", option_given, FIELD(quiet), USE_TRAIN | RESUME_IGNORES,
     .group = GROUP_OUTPUT},

    {"--device", "NAME",
     "the device: cpu, or ref, the slow reference (default: cpu)", option_text,
     FIELD(device), USE_ALL | RESUME_WARNS, .group = GROUP_ADVANCED},
    {"--conv", "WAY",
     "how convolutions are computed (default: auto):\n"
     "auto: by Winograd's transform where that is faster\n"
     "direct: never by Winograd's transform",
     option_text, FIELD(conv), USE_ALL | RESUME_WARNS, .group = GROUP_ADVANCED,
     .words = WORDS("auto", "direct"), .usual = "auto", .plan = PLAN_CONV},
    {"--math", "WAY",
     "how products and convolutions of 16-bit numbers are computed (default: portable):\n"
     "portable: the same bits on every processor\n"
     "native: by the library oneDNN, whose bits follow the processor; for builds with it",
     option_text, FIELD(math), USE_ALL | RESUME_WARNS, .group = GROUP_ADVANCED,
     .words = WORDS("portable", "native"), .usual = "portable", .plan = PLAN_MATH},
    {"--passes", "LIST",
     "leave out graph passes: -cse,-fold, or all but one: -all,+cse (`trireme dump --help` lists "
     "them)",
     option_text, FIELD(passes), (USE_ALL & ~USE_COMPARE) | RESUME_WARNS, .group = GROUP_ADVANCED,
     .state = 15, .without = "all"},
    {"--gradients-mean", "on|off",
     "gradients are the mean over the batch; off multiplies them by the number of lanes (default: "
     "on)",
     option_off, FIELD(optimizer.gradients_sum), LEARNING | RESUME_WARNS, .group = GROUP_ADVANCED,
     .state = 13},
    {"--sink-size", "N", "call the callbacks of your own program every N steps (default: 1)",
     option_count, FIELD(sink_size), USE_TRAIN | RESUME_IGNORES, .group = GROUP_ADVANCED},
    {0},
};

static const char **text_at(const tri_options *o, const struct option_row *row) {
    return (const char **)((char *)o + row->offset);
}

const char *option_given_text(const struct option_row *row, const tri_options *o) {
    return row->set == option_text ? *text_at(o, row) : NULL;
}

const struct option_row *option_row(const char *flag) {
    const struct option_row *row = options_rows;
    while (row->flag && strcmp(row->flag, flag)) row++;
    CHECK(row->flag);
    return row;
}

const struct option_row *option_of_plan(enum plan_key key) {
    const struct option_row *row = options_rows;
    while (row->flag && row->plan != key) row++;
    return row->flag ? row : NULL;
}

const struct option_row *option_of_state(int place) {
    const struct option_row *row = options_rows;
    while (row->flag && row->state != place) row++;
    return row->flag ? row : NULL;
}

void option_keep(const struct option_row *row, const tri_options *o, char *text, size_t bytes) {
    const void *at = (const char *)o + row->offset;
    const char *given = option_given_text(row, o);
    if (row->set == option_text)
        base_format(text, bytes, "%s", given ? given : row->without);
    else if (row->set == option_off)
        base_format(text, bytes, "%s", *(const bool *)at ? "off" : "on");
    else if (row->set == option_given)
        base_format(text, bytes, "%d", *(const bool *)at);
    else {
        double x = row->set == steps ? (double)o->steps : *(const double *)at;
        base_format(text, bytes, "%.9g", x == 0 || x == TRI_ZERO ? 0 : x);
    }
}

/* ---- words ---- */

int option_word(const char *const *words, const char *value) {
    for (int i = 0; words[i]; i++)
        if (!strcmp(words[i], value)) return i;
    return -1;
}

int option_choice(const char *flag, const char *value) {
    const struct option_row *row = option_row(flag);
    if (!value) value = row->usual;
    return value ? option_word(row->words, value) : -1;
}

/* "--conv (tri_options.conv) is "x"; it can be auto or direct" */
static tri_status no_word(const struct option_row *row, const char *value) {
    struct text words = {0};
    struct nearest near = {.wanted = value};
    char name[32];
    base_format(name, sizeof name, "%s", row->flag + 2);
    for (char *p = name; *p; p++)
        if (*p == '-') *p = '_';
    for (const char *const *w = row->words; *w; w++) {
        text_add(&words, "%s%s", w == row->words ? "" : w[1] ? ", " : " or ", *w);
        nearest_offer(&near, *w);
    }
    base_fail(TRI_USAGE, "%s (tri_options.%s) is \"%s\"; it can be %s%s", row->flag, name, value,
              words.data ? words.data : "", nearest_meant(&near));
    text_free(&words);
    return TRI_USAGE;
}

tri_status options_check(const tri_options *o) {
    const char *schedule = o->optimizer.schedule;
    for (const struct option_row *row = options_rows; row->flag; row++) {
        const char *value = option_given_text(row, o);
        if (value && row->words && option_word(row->words, value) < 0) return no_word(row, value);
    }
    if (schedule && option_choice("--pipeline", schedule) >= 0)
        return base_fail(TRI_USAGE, "a schedule is one of the learning rate; the order of a "
                         "pipeline's legs is --pipeline %s (tri_options.pipeline)", schedule);
    return TRI_OK;
}

/* ---- all fields ---- */

#define FIELD_BYTES sizeof(int64_t)
_Static_assert(sizeof(const char *) == FIELD_BYTES, "texts and counts have the same size");

int64_t option_usual_count(const char *flag) {
    const struct option_row *row = option_row(flag);
    int64_t n = 0;
    CHECK(!row->set(&n, row->usual));
    return n;
}

void options_forget_usual(tri_options *o) {
    for (const struct option_row *row = options_rows; row->flag; row++) {
        const char **text = text_at(o, row);
        int64_t *count = (int64_t *)text;
        if (!row->usual) continue;
        if (row->set == option_text) {
            if (*text && !strcmp(*text, row->usual)) *text = NULL;
        } else if (*count == option_usual_count(row->flag)) {
            *count = 0;
        }
    }
}

void options_restore_usual(tri_options *o, const tri_options *before) {
    for (const struct option_row *row = options_rows; row->flag; row++) {
        char *to = (char *)o + row->offset;
        if (row->usual && !memcmp(to, &(int64_t){0}, FIELD_BYTES))
            memcpy(to, (const char *)before + row->offset, FIELD_BYTES);
    }
}

tri_status options_keep_texts(tri_options *o, struct arena *a) {
    for (const struct option_row *row = options_rows; row->flag; row++) {
        const char **text = text_at(o, row);
        if (row->set == option_text && *text && !(*text = arena_copy(a, *text)))
            return base_no_memory("the options");
    }
    return TRI_OK;
}
