#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the packages that a goal needs and this machine lacks, with apt-get. Quick and silent if
# nothing is missing. If it cannot install them, it prints the command that would, and fails.
# Usage: setup.sh [--list] build|libraries|page|test|trace|slow|slurm|demo|bench|ci|arm ...
# --list only prints the packages.
set -u

# What each goal needs, beyond a C compiler and make.
libraries='libsodium-dev libjansson-dev zlib1g-dev libutf8proc-dev'
libraries="$libraries libjpeg62-turbo-dev libpng-dev"
build="meson ninja-build pkg-config $libraries"
page='libmicrohttpd-dev'
test="libcmocka-dev iproute2 libucx-dev libsqlite3-dev openmpi-bin $page"
trace='chromium python3-pip' # for tests of the page and of trace.json (scripts/perfetto.sh)
slow="$trace firefox-esr"
# For the test of Slurm in `make test-slow`, which does not install it: Debian starts its services.
slurm='slurmctld slurmd slurm-client munge'
demo='dataset-fashion-mnist'
# PyTorch, and a BLAS for it: Debian's default one is 20 times slower. OpenBLAS and BLIS, for the
# comparison of products. Open MPI, for that of deaths.
bench='python3-torch python3-pil python3-numpy libopenblas0-pthread libblis4-pthread'
bench="$bench libdnnl-dev openmpi-bin libopenmpi-dev"
ci='clang g++ libclang-rt-14-dev libdnnl-dev'
arm='gcc-aarch64-linux-gnu qemu-user'

needed= list=
[ "${1:-}" = --list ] && list=yes && shift
for goal in "$@"; do
    case $goal in
    build) needed="$needed $build" ;;
    libraries) needed="$needed $libraries" ;;
    page) needed="$needed $page" ;;
    test) needed="$needed $test" ;;
    trace) needed="$needed $trace" ;;
    slow) needed="$needed $slow" ;;
    slurm) needed="$needed $slurm" ;;
    demo) needed="$needed $demo" ;;
    bench) needed="$needed $bench" ;;
    ci) needed="$needed $ci" ;;
    arm) needed="$needed $arm" ;;
    *)
        echo "setup: unknown goal $goal; there are build, libraries, page, test, trace, slow," \
            "slurm, demo, bench, ci, arm" >&2
        exit 2
        ;;
    esac
done

[ "$list" ] && echo "$needed" && exit 0

# No dpkg, so this is not Debian: check for the tools themselves.
if ! command -v dpkg-query >/dev/null; then
    for tool in meson ninja pkg-config; do
        command -v $tool >/dev/null && continue
        echo "setup: $tool is missing, and this is not Debian; install what these packages of" \
            "Debian 12 contain:$needed" >&2
        exit 1
    done
    exit 0
fi

missing=
for package in $needed; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)
    [ "$state" = installed ] || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

# Prints the command for the user to run.
by_hand() {
    echo "setup: $1; as root, run" >&2
    echo "    apt-get update && apt-get install -y --no-install-recommends$missing" >&2
    exit 1
}

command -v apt-get >/dev/null || by_hand "there is no apt-get here"
as_root=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || by_hand \
        "these packages are missing, you are not root and there is no sudo"
    # Ask for a password only if there is a terminal.
    sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; } ||
        by_hand "these packages are missing, and sudo refuses"
    as_root=sudo
fi

echo "setup: installing$missing" >&2
install() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
        --no-install-recommends $missing
}
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
# The package lists may be missing or old: then the install fails, and they are updated.
if ! install >"$log" 2>&1; then
    if ! { $as_root apt-get update -q && install; } >"$log" 2>&1; then
        tail -n 12 "$log" >&2
        by_hand "apt-get could not install them"
    fi
fi
