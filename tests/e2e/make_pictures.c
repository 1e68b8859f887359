/* SPDX-License-Identifier: Apache-2.0
 * Pictures for scripts: make_pictures DIR CLASS N WIDTH HEIGHT writes N JPEGs to
 * DIR/train/CLASS. */
#include "unit/pictures_made.h"

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    for (int i = 0; i < atoi(argv[3]); i++) {
        char path[4096];
        struct made m = made_rgb_jpeg(atoi(argv[4]), atoi(argv[5]), i + 31 * argv[2][0]);
        snprintf(path, sizeof path, "%s/train/%s/%03d.jpg", argv[1], argv[2], i);
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(m.bytes, 1, m.n, f) != m.n || fclose(f)) return 1;
        free(m.bytes);
    }
    return 0;
}
