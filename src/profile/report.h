/* SPDX-License-Identifier: Apache-2.0
 * `trireme report`: what the rules have found, in sentences, worst first. */
#ifndef PROFILE_REPORT_H
#define PROFILE_REPORT_H

#include "profile/rules.h"

#define REPORT_MOST 64

struct report {
    const struct figures *f;
    struct finding finding[REPORT_MOST]; /* worst first; a cause's effects directly after it */
    int depth[REPORT_MOST];              /* 0; of an effect one more than of its cause */
    size_t n;
    bool found[REPORT_MOST]; /* by rule */
};

void report_make(const struct figures *f, struct report *r);
void report_free(struct report *r);
/* "A step takes 412 ms; workers compute for 66 % of it and wait for 19 %, ...". */
void report_sentence(const struct report *r, struct text *out);
void report_text(const struct report *r, struct text *out);
void report_json(const struct report *r, struct text *out);

#endif
