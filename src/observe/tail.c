/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/tail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONGEST (1 << 17) /* bytes read from the end: far more than two lines of metrics */

tri_status tail_mend(int fd, char **last) {
    struct stat st;
    if (last) *last = NULL;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size) return TRI_OK;
    off_t from = st.st_size > LONGEST ? st.st_size - LONGEST : 0;
    char *text = malloc(LONGEST);
    if (!text) return base_no_memory("the end of a file");
    ssize_t n = pread(fd, text, LONGEST, from);
    const char *end = n > 0 ? memrchr(text, '\n', (size_t)n) : NULL;
    tri_status status = n < 0 ? base_fail(TRI_FAILED, "%s", strerror(errno)) : TRI_OK;
    off_t keep = end ? from + (end - text) + 1 : from ? st.st_size : 0;
    if (!status && keep < st.st_size && ftruncate(fd, keep))
        status = base_fail(TRI_FAILED, "%s", strerror(errno));
    if (!status && last && end) {
        const char *before = memrchr(text, '\n', (size_t)(end - text));
        const char *begin = before ? before + 1 : text;
        *last = strndup(begin, (size_t)(end - begin));
        if (!*last) status = base_no_memory("the end of a file");
    }
    free(text);
    return status;
}
