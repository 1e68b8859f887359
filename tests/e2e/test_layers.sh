#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ARCHITECTURE.md's table of layers against the #include lines of src/: one case for each folder.
# Usage: test_layers.sh SOURCES
set -u
cd "$1" || exit 1

# "file:included" of all that is included in src/.
includes() {
    find src -name '*.[ch]' -exec grep -H '^ *# *include' {} + |
        sed -n 's/^\([^:]*\):[^<"]*[<"]\([^>"]*\)[>"].*/\1:\2/p'
}

includes | LC_ALL=C sort | awk -F: '
function layer(path,   dir) { # the longest folder of the table that the path is in
    dir = path
    while (sub("/[^/]*$", "", dir)) if (dir in may) return dir
    return ""
}
function has(list, word) { return index(" " list " ", " " word " ") > 0 }
function bad(where, text) { fault[where] = fault[where] "\n    " text; n_faults++ }

FNR == NR { # the table: | folder | may include | libraries | ... |
    if ($0 ~ "^[|] folder of src/ ") { inside = 1; next }
    if (inside && $0 !~ "^[|]") inside = 0
    if (!inside || $0 ~ "^[|]-") next
    split($0, cell, "|")
    for (i = 2; i <= 4; i++) gsub("^ +| +$", "", cell[i])
    may[cell[2]] = cell[3]; libraries[cell[2]] = cell[4]; order[++n] = cell[2]
    next
}
{
    file = $1; sub("^src/", "", file)
    from = layer(file)
    if (from == "") { bad("table", $1 " is in no folder of the table"); next }
    files[from]++
    to = layer($2)
    if ($2 == "trireme.h") next
    if (to != "") {
        if (to != from && !has(may[from], to)) bad(from, $1 " includes " $2)
    } else if ($2 ~ "(dnnl|sodium|jansson|utf8proc|zlib|jpeg|png[.]h)") {
        match($2, "dnnl|sodium|jansson|utf8proc|zlib|jpeg|png")
        if (!has(libraries[from], substr($2, RSTART, RLENGTH))) bad(from, $1 " includes " $2)
    }
    if (from == "models" && file !~ "/(models|args)\\.[ch]$" && to != "" && $2 != "models/models.h")
        bad("models", $1 ", a network, includes " $2)
    if (file == "models/models.h" && to != "") bad("models", $1 " includes " $2)
}
END {
    if (n < 10) bad("table", "no table of layers in ARCHITECTURE.md")
    for (i = 1; i <= n; i++) {
        split(may[order[i]], allowed, " ")
        for (k in allowed) if (!(allowed[k] in may)) bad("table", "no folder " allowed[k])
        if (!files[order[i]]) bad("table", "src/" order[i] " has no file that includes anything")
    }
    order[++n] = "table"
    for (i = 1; i <= n; i++) {
        wrong = order[i] in fault
        print (wrong ? "not ok " : "ok ") "layer " order[i] (wrong ? fault[order[i]] : "")
        failed += wrong
    }
    printf "%d passed, %d failed\n", n - failed, failed
    exit failed > 0
}' ARCHITECTURE.md -
