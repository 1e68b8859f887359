#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# On an x86-64 Debian, builds Trireme for ARM (aarch64) in BUILD and tests it under qemu: functions
# of vectors, products and convolutions, and networks, which must get the same weights as on every
# processor. The last line is "N passed, N failed". If packages cannot be installed, nothing is
# tested, and 1 is skipped.
#
# The system gets a compiler and qemu. Debian's libraries for ARM are unpacked below BUILD: its
# package of oneDNN cannot be installed for two processors at a time.
# Usage: arm.sh BUILD [meson options]
set -u
build=$(realpath -m "$1")
shift
cd "$(dirname "$0")/.." || exit 1

units='math_neon products short_group'
root=$build/debian
triplet=aarch64-linux-gnu

skip() {
    echo "ok ARM # skipped: $1"
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
}
stop() {
    echo "not ok $1"
    echo '0 passed, 1 failed'
    exit 1
}

# ---- packages ----

# apt-get for an ARM machine without any packages, with its files in $apt.
apt=$build/apt
apt_get() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$apt" \
        -o Dir::State::status="$apt/status" -o Dir::Cache="$apt" -o Debug::NoLocking=1 "$@"
}
fetch() {
    rm -rf "$apt" "$root"
    mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$root" && : >"$apt/status" &&
        apt_get update &&
        apt_get install -y --download-only --no-install-recommends libc6-dev \
            $(sh scripts/setup.sh --list libraries test)
}
unpack() {
    for package in "$apt"/archives/*.deb; do dpkg-deb -x "$package" "$root" || return; done
    # Absolute links would lead out of $root.
    find "$root" -type l -lname '/*' | while read -r link; do
        ln -sf "$root$(readlink "$link")" "$link" || return
    done && rm -r "$apt" && touch "$root/complete"
}

[ "$(uname -m)" = x86_64 ] || skip 'this machine is no x86-64'
sh scripts/setup.sh build test arm || skip 'packages are missing'
if [ ! -f "$root/complete" ]; then
    fetch || skip "Debian's libraries for ARM cannot be fetched"
    unpack || stop "unpack Debian's libraries for ARM"
fi

# ---- the build ----

cat >"$build/cross.ini" <<END
[binaries]
c = [$(command -v ccache >/dev/null && echo "'ccache', ")'$triplet-gcc', '--sysroot=$root']
ar = '$triplet-ar'
strip = '$triplet-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64', '-L', '$root']
[properties]
sys_root = '$root'
pkg_config_libdir = '$root/usr/lib/$triplet/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
[ -f "$build/build.ninja" ] || # flags in the environment are for this machine
    env -u CFLAGS -u LDFLAGS meson setup "$build" --cross-file "$build/cross.ini" \
        -Dtests=enabled "$@" || stop 'set up'
# Not everything: to make the manual, ninja would run the program.
ninja -C "$build" src/trireme $(printf 'tests/test_%s ' $units) || stop 'build'

# ---- tests ----

cat >"$build/trireme" <<END
#!/bin/sh
exec qemu-aarch64 -L '$root' '$build/src/trireme' "\$@"
END
chmod +x "$build/trireme"

chosen() {
    "$build/trireme" doctor | grep -q 'kernels for neon' && echo 'ok neon is chosen'
}
unit() { FEW=1 CMOCKA_MESSAGE_OUTPUT=TAP qemu-aarch64 -L "$root" "$build/tests/test_$1"; }
networks() {
    sh tests/e2e/test_instructions.sh "$build/trireme" lenet5 cnn \
        resnet18:form=small,classes=10,width=16 resnet50:size=32,classes=10,width=16 \
        gpt2-tiny:seq=16,vocab=300 'gpt2-tiny:seq=16,vocab=300 --amp O1'
}
run() { # name, command: a test that prints "ok" or "not ok" for each of its cases
    name=$1
    shift
    "$@" >"$build/$name.log" 2>&1 || grep -q '^not ok ' "$build/$name.log" ||
        echo "not ok $name" >>"$build/$name.log"
}
for name in $units; do run "$name" unit "$name" & done
run chosen chosen
run networks networks
wait
for name in chosen $units networks; do cat "$build/$name.log"; done | tee "$build/log"
passed=$(grep -c '^ok ' "$build/log") failed=$(grep -c '^not ok ' "$build/log")
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
