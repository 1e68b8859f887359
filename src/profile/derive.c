/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/derive.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "profile/study.h"
#include "profile/trace.h"

/* With several hosts, DIR/profile may be missing, too. */
static tri_status make_folder(const struct profile *p) {
    char parent[4096];
    const char *slash = strrchr(p->folder, '/');
    const int length = (int)(slash - p->folder);
    base_format(parent, sizeof parent, "%.*s", length, p->folder);
    for (int i = 0; i < 2; i++) {
        const char *path = i ? p->folder : parent;
        if (mkdir(path, 0777) && errno != EEXIST)
            return base_fail(TRI_FAILED, "%s: %s", path, strerror(errno));
    }
    return TRI_OK;
}

tri_status profile_derive(struct profile *p) {
    tri_status status = make_folder(p);
    if (!status) status = study_make(p);
    if (!status) status = trace_write(p, p->folder);
    return status ? status : tables_write(p, p->folder);
}
