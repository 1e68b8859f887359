/* SPDX-License-Identifier: Apache-2.0
 * Repairs files of lines whose writer may have been killed in the middle of a line. */
#ifndef OBSERVE_TAIL_H
#define OBSERVE_TAIL_H

#include "base/base.h"

/* Removes an incomplete last line, so that all lines end with a newline. fd must be open for
 * reading and writing; anything but a regular file is left alone. last (nullable): receives the
 * last line without its newline, to be freed, or null if there is none. */
tri_status tail_mend(int fd, char **last);

#endif
