/* SPDX-License-Identifier: Apache-2.0
 * tar archives from a pipe: pictures are read once, in order, and taken from a window at random. */
#ifndef DATA_TAR_PIPE_H
#define DATA_TAR_PIPE_H

#include "data/source.h"

/* "-", "pipe:COMMAND", or the path of a named pipe. */
bool tar_is_pipe(const char *rest);
/* The same fields as for archives in files. */
tri_data *tar_open_pipe(const struct data_spec *source);

#endif
