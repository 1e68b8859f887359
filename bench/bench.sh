#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make bench: how fast the networks of the zoo train here, one line each; beside it PyTorch on one
# thread with the same networks, where Debian's python3-torch is installed.
# Usage: bench.sh BUILD [MODEL[:OPTIONS] BATCH]...
set -u
build=$1
shift
program=$build/src/trireme
here=$(dirname "$0")
[ $# -gt 0 ] || set -- linear 64 mlp 64 lenet5 64 cnn 64 resnet18:form=small 32 resnet50:form=small 16

# Debian's package belongs to Debian's python3, which need not be the first one found.
peer= python=
for p in python3 /usr/bin/python3; do
    [ -n "$peer" ] || { python=$p; peer=$("$p" -c 'import torch; print(torch.__version__)' 2>/dev/null); }
done
peer=${peer:+PyTorch $peer}
[ -n "$peer" ] || echo 'PyTorch is not installed (python3-torch): its columns are left out.'
grep -m 1 'model name' /proc/cpuinfo | sed 's/.*: //'
echo 'one thread each; data, gradients and update included; a step in milliseconds'
echo

field() { echo "$2" | sed -n "s/.* $1=\([^ ]*\).*/\1/p"; }
row() { printf '%-22s %5s %5s %12s %10s %19s %9s %12s %8s\n' "$@"; }
row model batch lanes samples/s 'median ms' '10 % to 90 %, ms' 'RSS MiB' "${peer:+PyTorch ms}" "${peer:+ratio}"
failed=0
while [ $# -ge 2 ]; do
    model=$1 batch=$2
    shift 2
    line=$("$program" bench "$model" --batch "$batch") || { failed=1; continue; }
    ms=$(field median_ms "$line") theirs= ratio=
    if [ -n "$peer" ]; then
        theirs=$("$python" "$here/peers.py" "$model" "$batch") || { theirs=failed failed=1; }
        [ "$theirs" = failed ] || ratio=$(awk "BEGIN { printf \"%.2f\", $theirs / $ms }")
    fi
    row "$model" "$batch" "$(field lanes "$line")" "$(field samples_per_s "$line")" "$ms" \
        "$(field p10_ms "$line") to $(field p90_ms "$line")" "$(field peak_rss_mib "$line")" \
        "$theirs" "$ratio"
done
[ -z "$peer" ] || printf '\nratio: the time of %s by ours; above 1, ours is the faster.\n' "$peer"
exit $failed
