/* SPDX-License-Identifier: Apache-2.0
 * What may be wrong with a run: a rule is a row with a function from figures to evidence, cost and
 * remedy. */
#ifndef PROFILE_RULES_H
#define PROFILE_RULES_H

#include "profile/figures.h"

/* What a rule has found. Texts are whole sentences. */
struct finding {
    const struct rule *rule;
    struct text evidence, remedy;
    double cost; /* share of a step; of the run if rule->of_run; NaN: not known */
    const char *effect_of; /* names of rules with a blank after each: the first of them that has
                            * found something explains it. Starts as rule->effect_of */
};

struct rule {
    const char *name;
    bool needs_profile; /* it is called only if f->profile is not null */
    bool of_run;        /* its cost is a share of the run */
    bool communicates;  /* its cost is that of communication */
    /* Whether it has found something. The rule adds to the texts only then. */
    bool (*judge)(const struct figures *f, struct finding *found);
    const char *effect_of;
};

/* All rules; one without a name ends them. */
extern const struct rule rules[];

/* Every threshold. Shares are of a step unless it says otherwise; a rule finds something above
 * it. */
extern const struct thresholds {
    double note;        /* a finding that costs less is a note */
    double unexplained; /* time that is printed */
    double explains;     /* a cause costs at least this part of what its effect does */
    double communicates; /* communication with which the report may begin */
    double said;   /* time that the sentence names */
    double change; /* of a comparison: a share of the longer step */
    double listed; /* lost time: a share of the run */
    double useful;      /* a step is useful up to so many times the running median */
    double slow_worker; /* time of a lane, in medians of all workers */
    double no_core, throttled_periods, stolen; /* shares of time and of periods */
    double rival;   /* seconds of the last one in which a process ran on a worker's core */
    double crowded; /* threads per core */
    double short_run; /* seconds in which the system may not have been asked for cores */
    double drift;   /* a step's time in that of the run's best tenth, less 1 */
    double grew;    /* a kind of time, in the time by which steps grew */
    double near;    /* to an event, in the run's time */
    double samples, uneven_lanes;
    double not_worth_it; /* all workers' compute, in steps */
    double saving, evaluating, callback, auditing; /* shares of the run */
    double lost_lanes;  /* share of lanes */
    double least_lanes; /* of a run: fewer say nothing of workers */
    double goodput;    /* below this share of the run */
    double memory_limit, memory_plan; /* share of the limit; above the plan by this share */
    double skipped; /* share of updates */
    double link;       /* time of transfers */
    double link_waits; /* waits for hosts */
    /* Rules that need a profile. */
    double bubble, bubble_most; /* above the formula by this share; or this share in any case */
    double waiting_aim; /* of waits, with the lanes that are advised */
    double uneven_part; /* waits above the formula that uneven stages explain, in parts of them */
    double uneven_stages;       /* the longest stage, in mean stages */
    double seats;
    double slow_split; /* below this share of the rate of the operator's kind */
    int whole_vectors; /* extents that are no multiple */
    double low_rate, low_roofline; /* share of compute, below this share of the roofline */
    double few_samples; /* in a call */
    double amp_gain;    /* rate of bf16 in that of f32 */
    double unfused; /* share of compute */
    double small_sums, small_sums_bytes;
    double small_lanes, small_operator; /* share of a step; seconds, */
    double useful_operator; /* its time with the lanes that are advised, in small ones */
    double operator_itself; /* of which about so many pass if there is next to nothing to compute */
} thresholds;

/* Rules that explain others. */
#define RULES_CAUSES "crowded throttled shared-core "

#define RULES_LANES 65536 /* more are not advised */

/* For sentences: "412 ms", "19 %", "1,240". Each needs a buffer, as (char[RULES_TEXT]){0}. */
#define RULES_TEXT 32
char *rules_time(double seconds, char text[RULES_TEXT]);
char *rules_share(double share, char text[RULES_TEXT]);
char *rules_count(double count, char text[RULES_TEXT]);
#define TIME(x) rules_time((x), (char[RULES_TEXT]){0})
#define SHARE(x) rules_share((x), (char[RULES_TEXT]){0})
#define NUMBER(x) rules_count((x), (char[RULES_TEXT]){0})

const char *rules_loss_name(enum figures_loss loss);

/* Those about threads and cores; rules_cores.c. */
bool rule_slow_worker(const struct figures *f, struct finding *found);
bool rule_shared_core(const struct figures *f, struct finding *found);
bool rule_throttled(const struct figures *f, struct finding *found);
bool rule_crowded(const struct figures *f, struct finding *found);
bool rule_drift(const struct figures *f, struct finding *found);
bool rule_uneven_lanes(const struct figures *f, struct finding *found);
bool rule_not_worth_it(const struct figures *f, struct finding *found);
bool rule_lost_lanes(const struct figures *f, struct finding *found);
/* Those that need a profile; rules_profile.c, rules_split.c. */
bool rule_bubble(const struct figures *f, struct finding *found);
bool rule_uneven_stages(const struct figures *f, struct finding *found);
bool rule_seats(const struct figures *f, struct finding *found);
bool rule_slow_split(const struct figures *f, struct finding *found);
bool rule_low_rate(const struct figures *f, struct finding *found);
bool rule_unfused(const struct figures *f, struct finding *found);
bool rule_small_sums(const struct figures *f, struct finding *found);
bool rule_small_lanes(const struct figures *f, struct finding *found);

#endif
