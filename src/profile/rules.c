/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/rules.h"

const struct thresholds thresholds = {
    .note = 0.005, .unexplained = 0.02, .useful = 1.5,
    .slow_worker = 1.15, .no_core = 0.1, .throttled_periods = 0.05, .stolen = 0.05,
    .crowded = 1, .drift = 0.1, .samples = 0.05, .uneven_lanes = 0.1, .not_worth_it = 1.1,
    .saving = 0.01, .evaluating = 0.1, .callback = 0.05, .auditing = 0.05,
    .lost_lanes = 0.05, .goodput = 0.98, .memory_limit = 0.95, .memory_plan = 0.05,
    .skipped = 0.05, .link = 0.6,
    .bubble = 0.03, .bubble_most = 0.15, .uneven_stages = 1.2, .seats = 0.03,
    .slow_split = 0.6, .low_rate = 0.2, .low_roofline = 0.5, .unfused = 0.1,
    .small_sums = 0.05, .small_sums_bytes = 65536, .small_lanes = 0.25, .small_operator = 5e-6};

const struct rule rules[] = {
    {.name = "bubble", .needs_profile = true, .judge = rule_bubble},
    {.name = "uneven-stages", .needs_profile = true, .judge = rule_uneven_stages},
    {.name = "seats", .needs_profile = true, .judge = rule_seats},
    {.name = "slow-split", .needs_profile = true, .judge = rule_slow_split},
    {.name = "low-rate", .needs_profile = true, .judge = rule_low_rate},
    {.name = "unfused", .needs_profile = true, .judge = rule_unfused},
    {.name = "small-sums", .needs_profile = true, .judge = rule_small_sums},
    {.name = "small-lanes", .needs_profile = true, .judge = rule_small_lanes},
    {0},
};
