#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sets up the build directory if that has not been done, and again if a source file was added or
# removed. A build directory that was copied or moved together with its sources would still build
# the original sources: it is set up again, with the same options. Usage: configure.sh BUILD
build=$1
files=$(find src -name '*.c' | sort)
if [ ! -f "$build/build.ninja" ]; then
    meson setup "$build" -Dtests=disabled || exit 1
    echo "$files" >"$build/source_files"
    exit 0
fi

made_for() { # "source" or "build"
    python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["directories"][sys.argv[2]])' \
        "$build/meson-info/meson-info.json" "$1"
}
source=$(made_for source) && place=$(made_for build) || exit 1
if [ "$source" = "$(pwd -P)" ]; then
    [ "$files" = "$(cat "$build/source_files" 2>/dev/null)" ] && exit 0
    meson setup --reconfigure "$build" >/dev/null || exit 1
    echo "$files" >"$build/source_files"
    exit 0
fi
if [ "$place" = "$(cd "$build" && pwd -P)" ]; then
    echo "$build builds the sources in $source; name another directory: make BUILD=DIR" >&2
    exit 1
fi
echo "$build was copied from $place: it is set up again"
exec meson setup --wipe "$build"
