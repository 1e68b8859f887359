#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the tests, and counts their cases. The last line is "N passed, N failed", followed
# by ", N skipped" if any were skipped. Fails if any case failed.
# With names or suites also those that `make test` leaves out.
# Usage: test.sh BUILD [arguments of meson test]
set -u
build=$1
shift
here=$(dirname "$0")
case " $* " in
'  ' | *' --setup '*) ;;
*) set -- --setup ci "$@" ;;
esac
ninja -C "$build" || { echo "0 passed, 1 failed"; exit 1; }
rm -f "$build"/meson-logs/testlog*.json
meson test -C "$build" --no-rebuild "$@"
code=$?
# One log, whose name has the test setup in it.
python3 "$here/count_tests.py" "$build"/meson-logs/testlog*.json "$code"
