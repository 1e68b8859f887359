#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The manual names every command and every option of every command's help, and nothing else; and
# mandoc finds nothing wrong with it. Usage: test_man.sh path/to/trireme path/to/trireme.1
program=$(realpath "$1") manual=$(realpath "$2")
. "$(dirname "$0")/cases.sh"

commands=$("$program" help | sed -n 's|^  \([a-z ]*[a-z]\)   *[a-z].*|\1|p')
check 'help lists commands' test "$(echo "$commands" | wc -l)" -ge 18
flags=$(echo "$commands" | while read -r c; do "$program" $c --help all </dev/null; done |
    sed -n 's/^  -\([a-z0-9-]*\) .*/\1/p' | sort -u)
check 'help lists options' test "$(echo "$flags" | wc -l)" -ge 80

while read -r c; do check "command $c" grep -q "^\.It Cm $c\$" "$manual"; done <<EOT
$commands
EOT
for f in $flags; do check "option -$f" grep -q "^\.It Fl $f\( \|\$\)" "$manual"; done
for f in $(sed -n 's/^\.It Fl \([a-z0-9-]*\).*/\1/p' "$manual" | sort -u); do
    check "the manual's -$f exists" sh -c "echo '$flags' | grep -qx -e '$f'"
done

if command -v mandoc >/dev/null; then
    check 'mandoc lint' mandoc -Tlint "$manual"
else
    echo "ok mandoc lint # skipped: mandoc is not installed"
fi

finish
