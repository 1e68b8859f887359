#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `make` in a copied or moved tree builds that tree. A project with one file stands in for the
# sources. Usage: test_copied.sh SOURCES
sources=$1
. "$(dirname "$0")/cases.sh"
unset BUILD MAKEFLAGS MAKELEVEL MFLAGS # set by the make that runs this test

prints() { # tree, expected output of its program
    [ "$("$1/build/x")" = "$2" ]
}
program() { printf '#include <stdio.h>\nint main(void) { puts("%s"); return 0; }\n' "$1"; }
build() { make -s -C "$1" SETUP=off; }

mkdir -p first/scripts
cp "$sources/Makefile" first
cp "$sources"/scripts/*.sh first/scripts
echo "project('x', 'c')
executable('x', 'x.c')" >first/meson.build
echo "option('tests', type: 'feature')
option('word', type: 'string', value: 'none')" >first/meson_options.txt
program first >first/x.c
check 'make' build first
check 'it builds' prints first first
meson configure first/build -Dword=kept
cp -a first copy
program copy >copy/x.c
check 'make in a copy' build copy
check 'the copy is built' prints copy copy
check 'the first is unchanged' prints first first
check 'options are kept' sh -c "meson introspect copy/build --buildoptions | grep -q '\"kept\"'"
mv copy moved
program moved >moved/x.c
check 'make in a moved tree' build moved
check 'it is built' prints moved moved
check 'a build directory of another tree' sh -c \
    "! make -s -C moved SETUP=off BUILD=../first/build 2>err"
check 'is reported' grep -q 'builds the sources in' err
finish
