#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An installation is complete: the header's program and a C++ file can be built and run outside the
# tree, a model in a shared object trains, a textual graph can be read. Usage: test_install.sh BUILD
build=$(realpath "$1") || exit 1
sources=$(realpath "$(dirname "$0")/../..")
. "$(dirname "$0")/cases.sh"
CC=${CC:-cc} CXX=${CXX:-c++}

option() { # command names from the build's configuration
    meson introspect "$build" --buildoptions | python3 -c 'import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == sys.argv[1]))' "$1"
}
if [ "$(option b_sanitize)" != none ]; then
    echo 'ok install # skipped: a program needs the sanitizer that its library has'
    exit 0
fi

# Installed into a staging directory, which pkg-config is told about.
check 'install' meson install -C "$build" --no-rebuild --quiet --destdir "$work/root"
prefix=$work/root$(option prefix)
library=$(dirname "$(find "$prefix" -name libtrireme.so)")
header=$prefix/include/trireme.h
program=$prefix/bin/trireme
export PKG_CONFIG_PATH="$library/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$work/root"
export LD_LIBRARY_PATH="$library"

check 'the program' "$program" version
check 'the header' test -f "$header"
# The page's libraries are the page's alone.
alone() { ! ldd "$program" | grep -e microhttpd -e gnutls; }
check 'the program has no server in it' alone
if [ -x "$prefix/bin/trireme-page" ]; then
    mkdir runs
    port=$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
    timeout 20 "$program" dashboard runs --port "$port" >link 2>&1 &
    page=$!
    linked() {
        for _ in $(seq 200); do grep -q '?token=' link && return; sleep 0.02; done
        cat link
        false
    }
    check 'it starts the page' linked
    kill "$page" 2>/dev/null
    wait "$page" 2>/dev/null
fi
check 'the man page' test -f "$prefix/share/man/man1/trireme.1"
doc=$prefix/share/doc/trireme
check 'the documents' test -f "$doc/README.md" -a -f "$doc/docs/guide.md"
check 'the examples' sh -c \
    "cd '$sources' && for f in examples/*.c; do cmp \$f '$doc'/\$f || exit 1; done"
check 'the ready strategies' cmp "$sources/strategies/megatron" \
    "$prefix/share/trireme/strategies/megatron"
check 'without their build file' test ! -e "$doc/examples/meson.build"
check 'a soname' sh -c "readelf -d '$library/libtrireme.so' | grep -q 'soname: \[libtrireme.so.0\]'"
of_header() { [ "$(pkg-config --modversion trireme)" = "$1" ]; }
check 'its version' of_header "$(sed -n 's/^#define TRI_VERSION "\(.*\)"$/\1/p' "$header")"
tri_alone() {
    nm -D --defined-only "$library/libtrireme.so" | awk \
        '$3 !~ /^tri_/ { print; n++ } END { exit n }'
}
check 'the library exports only tri_ names' tri_alone

# The program in the header's first comment is one of the examples.
sed -n '/^ \*     #include <stdio.h>/,/^ \* Build it with/{/Build it with/d;s/^ \* \{0,5\}//;p;}' \
    "$header" >prog.c
check 'quickstart.c is the header'\''s program' sh -c \
    "sed 1,2d '$sources/examples/quickstart.c' | diff -B - prog.c"
sed -n '/^```c$/,/^```$/{/^```/d;p;}' "$sources/README.md" >readme.c
check 'and that of the README' diff -B readme.c prog.c
line=$(sed -n 's/^ \* Build it with: cc prog.c \(.*\)$/\1/p' "$header")
check 'the header'\''s line builds it' sh -c "$CC -Wall -Wextra -Werror prog.c $line -o prog"
if [ -d /usr/share/datasets/fashion-mnist ]; then
    ./prog --lr 0.1 | grep '^loss' >learned # of the steps 100 to 900; the last five count
    learns() { awk 'NR > 4 { top1 += $4 } END { exit !(NR == 9 && top1 / 5 > 0.75) }' learned; }
    check 'it learns the pictures' learns
else
    echo 'ok it learns its pictures # skipped: dataset-fashion-mnist is not installed'
fi
check 'it trains' sh -c './prog --steps 200 --data synthetic | grep "^loss [0-9.]*, top1 [0-9.]*$"'
check 'and prints the hash of its weights' sh -c './prog --steps 9 --data synthetic |
    grep -x "done steps=9 loss=[0-9.]* weights=sha256:[0-9a-f]* state=sha256:[0-9a-f]* seconds=.*"'
check 'the README has at most 130 lines' test "$(wc -l <"$sources/README.md")" -le 130

for compiler in gcc clang; do
    if command -v $compiler >/dev/null; then
        check "macros in standard C ($compiler)" sh -c \
            "$compiler -std=c17 -Wall -Wextra -Wpedantic -Werror '$sources/tests/e2e/pedantic.c' \
                $line -o pedantic"
        check "they mean what they say ($compiler)" sh -c 'rm -rf saved && ./pedantic'
    else
        echo "ok macros in standard C # skipped: no $compiler"
    fi
done
check 'an installed example' sh -c \
    "$CC -Wall -Werror '$doc/examples/custom_step.c' $line -o example"

cat >prog.cc <<'CC'
#include <trireme.h>

int main() {
    tri_graph *g = tri_graph_new(4);
    tri_shape shape = {2, {4, 3}};
    tri_tensor *x = tri_input_(g, "x", TRI_F32, shape, tri_input_options());
    tri_tensor *y = tri_dense_(x, "fc", 2, tri_cell_options());
    tri_loss(tri_mean_(tri_mul(y, y), tri_shape{-1, {0}}, tri_reduce_options()));
    tri_options o = tri_options_default();
    o.batch = 4;
    o.steps = 3;
    tri_run *run = tri_open(g, &o);
    while (tri_step(run)) continue;
    return tri_step_number(run) == 3 ? tri_close(run) : 9;
}
CC
if command -v "$CXX" >/dev/null; then
    check 'the header in C++' sh -c \
        "$CXX -std=c++11 -Wall -Wextra -Wpedantic -Wno-variadic-macros -Werror prog.cc $line \
            -o progcc"
    check 'it trains in C++' ./progcc
else
    echo 'ok the header in C++ # skipped: no C++ compiler'
    echo 'ok it trains in C++ # skipped: no C++ compiler'
fi

# A user's model, linked with the library and not, with every default visibility.
model=$sources/examples/own_network.c
trains() { "$program" train "$@" --batch 8 --steps 3 | grep -q '^done steps=3 '; }
check 'a shared object' sh -c \
    "$CC -shared -fPIC '$model' \$(pkg-config --cflags trireme) -o model.so"
check 'it trains from a shared object' trains ./model.so
check 'a shared object linked with the library' \
    sh -c "$CC -shared -fPIC -fvisibility=hidden '$model' $line -o linked.so"
check 'it trains too' trains ./linked.so
check 'dump' sh -c "'$program' dump ./model.so --batch 8 >model.tri"
check 'a textual graph trains' trains model.tri
finish
