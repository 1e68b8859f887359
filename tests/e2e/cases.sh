# SPDX-License-Identifier: Apache-2.0
# Shared by the scripts of this folder: `. cases.sh`, then `check NAME COMMAND…` for each case and
# `finish` at the end. Commands run in a temporary directory, $work.
set -u
passed=0 failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export XDG_CACHE_HOME="$work/cache" # not what the user has measured

check() { # name, command: the command must succeed; its output is shown if it fails
    name=$1
    shift
    if "$@" >"$work/said" 2>&1; then
        passed=$((passed + 1))
        echo "ok $name"
    else
        failed=$((failed + 1))
        echo "not ok $name"
        sed 's/^/    /' "$work/said" | tail -n 20
    fi
}

finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
    exit
}
