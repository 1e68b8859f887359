#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trireme plot: curves of runs in a terminal and as SVG. Usage: test_plot.sh path/to/trireme
program=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
. "$here/cases.sh"
. "$here/expect.sh"
export LC_ALL=C.UTF-8 COLUMNS=50

# 400 steps whose loss falls from 2 to 1; each second one is above the line by 0.1.
made() { # directory, factor
    mkdir -p "$1"
    awk -v by="$2" 'BEGIN {
        for (i = 1; i <= 400; i++) {
            loss = by * (2 - i / 400 + (i % 2) / 10)
            printf "{\"step\":%d,\"epoch\":0,\"samples\":4,\"loss\":%.9g,\"top1\":%g,\"lr\":0.1," \
                "\"seconds\":%g}\n", i, loss, i / 400, i / 2
            if (i % 100 == 0)
                printf "{\"step\":%d,\"epoch\":0,\"eval\":{\"top1\":%g},\"seconds\":%g}\n", i,
                    i / 500, i / 2
        }
    }' >"$1/metrics.jsonl"
}
made a 1
made b 0.5
"$program" train linear --steps 30 --batch 8 --metrics-every 1 --quiet --out own >/dev/null ||
    exit 1

expect 'a run of its own' 0 'out:^  █ own loss: last ' plot own
expect 'the legend' 0 'out:^  █ a loss: last 1, least 1, most 2.098$' plot a
same 'its height' 18 "$(wc -l <out)"
check 'its width' test "$(wc -L <out)" -le 50
check 'the axis' grep -q '^          1  *step 400$' out
check 'it begins above' sh -c "head -n 1 out | grep -q '^ *2.098 ┤░'"
check 'it falls' sh -c "sed -n 15p out | grep -q '[█▄▀]$'"
check 'columns of several steps have a band' grep -q '░' out
expect 'several runs' 0 'out:^  b b loss: last 0.5, ' plot a b
check 'letters' sh -c "grep '│' out | grep -q 'aa' && grep '│' out | grep -q 'bb'"
expect 'evaluations beside' 0 'out:^  b a eval top1: last 0.8, least 0.2, most 0.8$' \
    plot a --key top1
expect 'over time' 0 'out:0:01  *time 3:20$' plot a --by time
expect 'learning rates, all the same' 0 'out:a lr: last 0.1, least 0.1, most 0.1$' plot a --key lr
expect 'logarithmic' 0 'out:^ *0.5 ' plot b --log
check 'of what it says' grep -q 'b loss: last 0.5, least 0.5, most 1.049$' out
LC_ALL=C expect 'plain characters' 0 'out:^  \* a loss' plot a
check 'and no others' sh -c "! LC_ALL=C grep -q '[^ -~]' out"
coloured() { # a terminal
    python3 - "$program" <<'END'
import os, pty, sys
pid, fd = pty.fork()
if not pid:
    os.environ.update(TERM="xterm", LC_ALL="C.UTF-8")
    os.execv(sys.argv[1], [sys.argv[1], "plot", "a", "b"])
text = b""
while True:
    try: part = os.read(fd, 65536)
    except OSError: break
    if not part: break
    text += part
assert b"\x1b[38;5;33m" in text and b"\x1b[38;5;208m" in text, text
END
}
check 'colours on a terminal' coloured

check 'as SVG' "$program" plot a b --key top1 --svg x.svg
svg() {
    python3 - <<'END'
import xml.etree.ElementTree as tree
root = tree.parse("x.svg").getroot()
def all(name): return root.findall("{http://www.w3.org/2000/svg}" + name)
lines = all("polyline")
assert len(lines) == 4 and sum("stroke-dasharray" in line.attrib for line in lines) == 2
points = [tuple(map(float, p.split(","))) for p in lines[0].get("points").split()]
assert len(points) == 400 and points[0][0] < points[-1][0] and points[0][1] > points[-1][1]
assert any(text.text == "a eval top1: last 0.8, least 0.2, most 0.8" for text in all("text"))
END
}
check 'which is XML' svg
mkdir '<odd>&'
{
    head -n 3 a/metrics.jsonl
    printf 'damage\n{"step":4,"loss":1e999}\n{"step":5,"loss":1,"\\u001b[2J":3}\n{"step":6'
} >'<odd>&/metrics.jsonl'
expect 'a damaged file' 0 'err:damaged lines of metrics.jsonl are left out: 1$' \
    plot '<odd>&' --svg x.svg
check 'a name with marks' python3 -c 'import xml.etree.ElementTree as t; t.parse("x.svg")'
expect 'escapes' 0 'out:x1b.2J: last 3' plot '<odd>&' --key "$(printf '\033[2J')"
printf '{"step":1,"loss":7}\n' >one.jsonl
mkdir one && mv one.jsonl one/metrics.jsonl
expect 'one step' 0 'out:one loss: last 7' plot one
check 'one step as SVG' "$program" plot one --svg x.svg
printf '{"step":%s,"loss":%s}\n' 1 1 2 1.0000000000000002 3 1e308 4 -1e308 >one/metrics.jsonl
expect 'numbers that are nearly equal' 0 'out:one loss: last 1, least 1, most 1$' plot one
check 'as SVG' timeout 10 "$program" plot one --svg x.svg
expect 'one of two has it' 0 'err:^trireme: one has no top1$' plot a one --key top1

mistake 'another key' 2 'err:the runs have no los; do you mean loss?' plot a --key los
mistake 'no key at all like it' 2 'err:the runs have no wwwwwww; there are loss, top1' \
    plot a --key wwwwwww
mistake 'no axis' 2 'err:it can be steps or time' plot a --by day
mistake 'no run' 2 'err:none has no metrics.jsonl' plot none
mkdir empty && : >empty/metrics.jsonl
mistake 'no step' 1 'err:no step yet' plot empty
printf '{"step":1,"loss":-7}\n' >one/metrics.jsonl
mistake 'nothing above 0' 1 'err:no loss that is a number above 0' plot one --log
mistake 'no place for a file' 1 'err:^trireme: none/x.svg' plot a --svg none/x.svg
finish
