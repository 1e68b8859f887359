#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sets up the build directory if that has not been done. A build directory that was copied or moved
# together with its sources would still build the original sources: it is set up again, with the
# same options. Usage: configure.sh BUILD
build=$1
[ -f "$build/build.ninja" ] || exec meson setup "$build" -Dtests=disabled

made_for() { # "source" or "build"
    python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["directories"][sys.argv[2]])' \
        "$build/meson-info/meson-info.json" "$1"
}
source=$(made_for source) && place=$(made_for build) || exit 1
[ "$source" = "$(pwd -P)" ] && exit 0
if [ "$place" = "$(cd "$build" && pwd -P)" ]; then
    echo "$build builds the sources in $source; name another directory: make BUILD=DIR" >&2
    exit 1
fi
echo "$build was copied from $place: it is set up again"
exec meson setup --wipe "$build"
