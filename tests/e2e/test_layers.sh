#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The #include lines of src/ agree with ARCHITECTURE.md's table of layers: one case for each folder.
# Files include one another in circles of at most three, inside a folder; x.c and x.h are one file.
# No pass knows an operator by name.
# Usage: test_layers.sh SOURCES
set -u
cd "$1" || exit 1

# "file:included" of all that is included in src/.
includes() {
    find src -name '*.[ch]' -exec grep -H '^ *# *include' {} + |
        sed -n 's/^\([^:]*\):[^<"]*[<"]\([^>"]*\)[>"].*/\1:\2/p'
}

# Passes and what runs a graph ask an operator's row, never its name: node_is may name the sources
# of a graph alone, and nothing compares the names of rows. The tables of two passes are exempt.
names_operators() {
    sources='"\(input\|param\|state\|constant\|scalar\|array\|given\|view\)"'
    find src/plan src/grad src/train src/machine src/crew src/run -name '*.[ch]' |
        grep -v -e '^src/plan/simplify\.c$' -e '^src/plan/fold_norm\.c$' |
        xargs grep -n -e 'node_is(' -e 'strcmp([^;]*op->name' | grep -v "node_is(.*, $sources)"
}

found=$(names_operators) && {
    printf 'not ok operators by name\n%s\n0 passed, 1 failed\n' "$found"
    exit 1
}
echo "ok operators by name"

includes | LC_ALL=C sort | awk -F: '
function layer(path,   dir) { # the longest folder of the table that the path is in
    dir = path
    while (sub("/[^/]*$", "", dir)) if (dir in may) return dir
    return ""
}
function has(list, word) { return index(" " list " ", " " word " ") > 0 }
function stem(path) { sub("^src/", "", path); sub("[.][ch]$", "", path); return path }
function folder(path) { sub("/[^/]*$", "", path); return path }
function reach(from, at,   i, next_one) { # marks what `from` includes, also through others
    for (i = 1; i <= n_edges[at]; i++) {
        next_one = edge[at, i]
        if ((from, next_one) in reaches) continue
        reaches[from, next_one] = 1
        reach(from, next_one)
    }
}
# Every circle of files, which is reported once: at the first of its files.
function circles(   i, j, a, b, text, size, folders) {
    for (i = 1; i <= n_stems; i++) reach(stems[i], stems[i])
    for (i = 1; i <= n_stems; i++) {
        a = stems[i]; text = ""; size = folders = 1
        if (!((a, a) in reaches) || a in listed) continue
        for (j = 1; j <= n_stems; j++) {
            b = stems[j]
            if (a == b || !((a, b) in reaches) || !((b, a) in reaches)) continue
            listed[b] = 1; size++; text = text " " b
            if (folder(a) != folder(b)) folders = 2
        }
        if (size > 3 || folders > 1) bad("circles", size " files include one another: " a text)
    }
}
function bad(where, text) { fault[where] = fault[where] "\n    " text; n_faults++ }

FNR == NR { # the table: | folder | may include | libraries | ... |
    if ($0 ~ "^[|] folder of src/ ") { inside = 1; next }
    if (inside && $0 !~ "^[|]") inside = 0
    if (!inside || $0 ~ "^[|]-") next
    split($0, cell, "|")
    for (i = 2; i <= 4; i++) gsub("^ +| +$", "", cell[i])
    if (cell[2] != "") order[++n] = cell[2] # else it continues the row above
    may[order[n]] = may[order[n]] " " cell[3]
    libraries[order[n]] = libraries[order[n]] " " cell[4]
    next
}
{
    file = $1; sub("^src/", "", file)
    from = layer(file)
    if (from == "") { bad("table", $1 " is in no folder of the table"); next }
    files[from]++
    to = layer($2)
    if ($2 == "trireme.h") next
    if (file == $2) bad("circles", $1 " includes itself")
    a = stem(file); b = stem($2)
    if (!(a in n_edges)) { stems[++n_stems] = a; n_edges[a] = 0 }
    if (a != b) edge[a, ++n_edges[a]] = b
    if (to != "") {
        if (to != from && !has(may[from], to)) bad(from, $1 " includes " $2)
    } else if ($2 ~ "(dnnl|sodium|jansson|utf8proc|zlib|jpeg|png[.]h|ucp|sqlite3)") {
        match($2, "dnnl|sodium|jansson|utf8proc|zlib|jpeg|png|ucp|sqlite3")
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
    order[++n] = "circles"
    circles()
    for (i = 1; i <= n; i++) {
        wrong = order[i] in fault
        print (wrong ? "not ok " : "ok ") "layer " order[i] (wrong ? fault[order[i]] : "")
        failed += wrong
    }
    printf "%d passed, %d failed\n", 1 + n - failed, failed
    exit failed > 0
}' ARCHITECTURE.md -
