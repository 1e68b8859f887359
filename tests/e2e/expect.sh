# SPDX-License-Identifier: Apache-2.0
# What a command prints, after cases.sh: `expect` and `mistake` run $program and count a case each.

verdict() { # name, 0 if it passed, what went wrong
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
        echo "ok $1"
    else
        failed=$((failed + 1))
        echo "not ok $1: $3"
    fi
}

# Runs trireme with the arguments; writes the files out and err, and sets $code.
run() {
    "$program" "$@" >out 2>err </dev/null
    code=$?
}

# Name, exit code, pattern in out or err ("out:..." or "err:..."), arguments.
expect() {
    name=$1 want=$2 where=${3%%:*} pattern=${3#*:}
    shift 3
    run "$@"
    if [ "$code" -ne "$want" ]; then
        verdict "$name" 1 "exit code $code, not $want: $(head -c 300 err)"
    elif ! grep -q -e "$pattern" "$where"; then
        verdict "$name" 1 "no '$pattern' in: $(head -c 300 "$where")"
    else
        verdict "$name" 0 ''
    fi
}

# A user's mistake: the message is one line that begins with the program's name; stdout has no
# result.
mistake() {
    expect "$@"
    lines=$(grep -c '^trireme: ' err)
    [ "$lines" -eq 1 ] && ! grep -q '^done\|^eval' out
    verdict "$1 (one message, no result)" $? "$(head -c 300 err out)"
}

same() { # name, text, text
    [ -n "$2" ] && [ "$2" = "$3" ]
    verdict "$1" $? "'$2' and '$3'"
}
