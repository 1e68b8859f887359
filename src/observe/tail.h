/* SPDX-License-Identifier: Apache-2.0
 * Files of lines whose writer may be killed in the middle of one, and another goes on with them. */
#ifndef OBSERVE_TAIL_H
#define OBSERVE_TAIL_H

#include "base/base.h"

/* Cuts off a line at the end of the file that has no end, so that all lines are whole ones; fd must be
 * open for reading and writing. What is no regular file stays as it is. last (nullable): the last whole
 * line without its end, to be freed; null: there is none. */
tri_status tail_mend(int fd, char **last);

#endif
