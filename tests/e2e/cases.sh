# SPDX-License-Identifier: Apache-2.0
# What the scripts of this folder that check things share: `. cases.sh`, then `check NAME COMMAND…`
# for each, at the end `finish`. Commands run in a temporary directory, $work.
set -u
passed=0 failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

check() { # name, then a command that must succeed; what it says is shown if it does not
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
