/* SPDX-License-Identifier: Apache-2.0
 * What `trireme doctor` finds, a line for each check, and what is to be mended. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include "base/host.h"
#include "launch/launch.h"

enum health { WELL, WARNING, BROKEN };

/* The result of one check. */
struct finding {
    enum health health;
    struct text what, fix;
};

struct checkup {
    struct host host;
    int count[3]; /* by health */
    struct text fixes;
};

/* Frees the texts. A remedy that another finding has is listed once. */
void checkup_print(struct checkup *v, const char *name, struct finding *f);
/* Those of several hosts. Fails if the options are wrong, and if it is interrupted. */
tri_status checkup_hosts(struct checkup *v, const struct launch *l);

#endif
