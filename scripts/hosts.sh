#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Several hosts on one machine, to try or test a run over hosts. Everything is made in namespaces of
# its own, which end with the process that called `make`. Needs no root, except with --root. Needs
# bash, iproute2 and util-linux.
set -u
self=$(realpath "$0")
bed=${HOSTS_BED:-/tmp/trireme-hosts-$(id -u)}

usage() {
    cat <<'END'
Usage: hosts.sh COMMAND ...
  make [--apart] [--root] [--ahead SECONDS] N [PATH ...]
                               makes N hosts (1 to 8): h0, h1, ... They share one directory; with
                               --apart, each has its own one under the same name. With --root,
                               which root alone can give, root of the hosts is root of the machine,
                               as services like Slurm want it. With --ahead, the monotonic clock of
                               each is so far ahead of the one before, as if it had been started
                               earlier. The hosts end when the calling process does. PATHs below
                               /tmp, where each host has files of its own, are shown to the hosts,
                               read-only
  run HOST -- COMMAND ...      runs a command on a host
  ssh HOST WORDS ...           runs a line of the shell on a host, as ssh would; also from a host,
                               where `ssh` is this command
  cut HOST, heal HOST          pulls the network cable of a host, and plugs it in again
  part h0,h1 h2,h3             divides the network into parts; join makes it one again
  rate HOST BITS|off           limits what a host sends and receives to BITS per second
  kill HOST                    kills all processes of a host, which can be used again
  left [HOST]                  lists the processes on a host, or on all: host, pid, command
  remove                       ends all hosts and deletes their directory
HOSTS_BED names the directory below /tmp that belongs to the hosts.
END
}

die() { echo "hosts: $*" >&2 && exit 1; }

alive() { # process
    local stat
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null && [[ ${stat##*) } != [ZX]* ]]
}

pid_of() { # host, or `bed`: its first process, as seen from the machine
    [[ ${1:-} = bed || ${1:-} = h[0-7] ]] && [ -e "$bed/pids/$1" ] ||
        die "there is no host '${1:-}' in $bed"
    pid=$(<"$bed/pids/$1")
}

# What makes a clock that is so many seconds ahead. Not every kernel has clocks of namespaces.
clock() { [ "$1" = 0 ] || echo "--time --monotonic $1 --boottime $1"; }

# The hosts' users: a namespace whose root is who calls this, or with `root` the machine's.
users() { [ "$1" = root ] || echo "--user --map-root-user"; }

enter() { # host or bed, kinds of namespaces, command
    pid_of "$1"
    local kinds=$2 users="--user --preserve-credentials"
    shift 2
    [ "/proc/$pid/ns/user" -ef /proc/self/ns/user ] && users=
    nsenter --target "$pid" $users $kinds -- "$@"
}

cmd_make() {
    local kind=shared user=mapped ahead=0 n path line log=
    [ "${1:-}" = --apart ] && kind=apart && shift
    [ "${1:-}" = --root ] && user=root && shift
    [ "${1:-}" = --ahead ] && ahead=${2:-} && shift 2
    [[ $ahead =~ ^[0-9]{1,7}$ ]] || die "make: --ahead is '$ahead', not a number of seconds"
    n=${1:-}
    [[ $n = [1-8] ]] || die "make: the number of hosts must be 1 to 8, not '$n'"
    shift
    set -- "$(dirname "$(dirname "$self")")" "$@"
    for path in "$@"; do
        [ -d "$path" ] || die "make: there is no directory $path"
        [[ $path != /dev/shm/* ]] || die "make: hosts cannot see $path: each has its own /dev/shm"
    done
    [[ $bed = /tmp/?* ]] || die "make: HOSTS_BED is $bed; it must be below /tmp"
    for path in ip tc nsenter unshare findmnt hostname; do
        command -v $path >/dev/null || die "make: $path is missing (iproute2, util-linux, hostname)"
    done
    log=$(unshare $(users $user) --net --mount --uts --ipc --pid $(clock "$ahead") \
        --fork --mount-proc true 2>&1) || { echo "hosts: no namespaces: $log" >&2 && exit 77; }
    mkdir -m 700 "$bed" || die "there are hosts in $bed; '$0 remove' ends them"
    mkdir "$bed"/{dir,pids,bin,calls,stage}
    mkfifo "$bed/up" "$bed/calls/"h{0..7}
    printf '#!/bin/sh\nexec bash %q ssh "$@"\n' "$self" >"$bed/bin/ssh"
    chmod +x "$bed/bin/ssh"
    exec 3< <(exec setsid bash "$self" keep "$bed" $user "$kind" "$ahead" "$n" $PPID "$@" 2>&1 \
        </dev/null)
    while read -r line <&3 && [ "$line" != ready ]; do log+="$line"$'\n'; done
    [ "$line" = ready ] || die "make: ${log:-the hosts ended at once}"
    cat <<END
$n hosts; their directory is $bed/dir$(
    [ $kind = shared ] || echo ", here $bed/dir-h0, $bed/dir-h1, ..."
    [ "${HOSTS_BED:-}" ] && printf '\nexport HOSTS_BED=%q' "$bed")
$0 run h0 -- COMMAND    runs a command there
$0 remove               ends the hosts
END
}

# The processes: keep (outside) > unshare > hold (in the bed's namespaces) > unshare > host, the
# first process of each host. When hold ends, the kernel kills all that it holds.
cmd_keep() { # bed, mapped or root, and what hold needs besides
    local user=$2
    echo $$ >"$bed/pids/keep"
    shift 2
    unshare $(users "$user") --net --mount --uts --ipc --pid --fork --kill-child \
        bash "$self" hold "$bed" "$@"
    rm -rf "$bed"
}

# Everything becomes read-only but the bed's own directory.
protect() {
    local target type options all
    all=$(findmnt -rno TARGET,FSTYPE,VFS-OPTIONS) && mount --bind "$bed" "$bed"
    while read -r target type options; do
        target=$(printf %b "$target")
        [[ $options = rw* && ! $type =~ ^(proc|sysfs|devpts|cgroup.*)$ && -e $target ]] || continue
        mount -o "remount,bind,ro${options#rw}" "$target"
    done <<<"$all"
}

cmd_hold() { # bed, shared or apart, seconds ahead, number of hosts, who made it, paths to show
    local kind=$2 ahead=$3 n=$4 maker=$5 i word
    shift 5
    set -e
    exec 9<"/proc/$maker" 8<>"$bed/up" # /proc is that of the machine
    read -r pid word </proc/self/stat
    echo "$pid" >"$bed/pids/bed"
    protect
    for ((i = 0; i < n; i++)); do
        [ "$kind" = shared ] || mkdir "$bed/dir-h$i"
        unshare --net --mount --uts --ipc --pid $(clock $((i * ahead))) --fork --kill-child \
            bash "$self" host "$bed" "$kind" "$n" "$i" "$@" 8<&- 9<&- &
    done
    for ((i = 0; i < n; i++)); do
        read -r word <&8
        [ "$word" = up ]
    done
    for ((i = 0; i < n; i++)); do
        pid_of "h$i"
        echo "link add b$i type bridge stp_state 0 mcast_snooping 0"
        echo "link set b$i up"
        echo "link add h$i type veth peer name eth0 netns /proc/$pid/ns/net"
        echo "link set h$i master b0 up"
    done | ip -batch -
    for ((i = 0; i < n; i++)); do
        pid_of "h$i"
        printf '%s\n' 'link set lo up' "addr add 10.77.0.$((i + 1))/24 dev eth0" \
            'link set eth0 up' | nsenter --net="/proc/$pid/ns/net" ip -batch -
    done
    echo ready
    exec >/dev/null 2>&1
    set +e
    # A process that is dead or a zombie has no command line.
    while word= && { read -r -d '' word </proc/self/fd/9/cmdline || :; } && [ "$word" ]; do
        read -r -t 0.2 word <&8
    done
}

cmd_host() { # bed, shared or apart, number of hosts, which, paths to show
    local kind=$2 n=$3 self_at=$4 name=h$4 i path below source call
    shift 4
    exec 4>"$bed/up"
    trap 'echo failed >&4' EXIT
    set -e
    read -r pid path </proc/self/stat
    echo "$pid" >"$bed/pids/$name"
    hostname "$name"
    # Everything is made in a stage, and shown last, because /tmp then hides what is below it.
    mount -t tmpfs stage "$bed/stage"
    cd "$bed/stage"
    mkdir tmp cgroup
    mount -t tmpfs -o mode=1777 tmp tmp
    for path in "$@" "$bed"/{dir,bin,calls}; do
        [[ $path = /tmp/* ]] || continue
        below=tmp/${path#/tmp/} source=$path
        [ "$path$kind" = "$bed/dirapart" ] && source=$bed/dir-$name
        mkdir -p "$below"
        mount --bind "$source" "$below"
    done
    # As Debian does, the own name is a loopback address.
    echo "127.0.0.1 localhost" >hosts
    for ((i = 0; i < n; i++)); do
        [ $i = "$self_at" ] && echo "127.0.1.1 h$i" || echo "10.77.0.$((i + 1)) h$i"
    done >>hosts
    mount --bind hosts /etc/hosts
    mount -t proc proc /proc
    if [ -d /sys/fs/cgroup ]; then mount --rbind /sys/fs/cgroup cgroup; fi
    mount -t sysfs -o ro sysfs /sys
    if [ -d /sys/fs/cgroup ]; then mount --rbind cgroup /sys/fs/cgroup; fi
    mount -t tmpfs -o mode=1777 shm /dev/shm
    mount --rbind tmp /tmp
    exec 3<>"$bed/calls/$name"
    export HOSTS_BED=$bed PATH=$bed/bin:$PATH
    unset TMPDIR
    cd "$bed/dir"
    trap - EXIT
    echo up >&4
    exec 4>&- >/dev/null 2>&1
    set +e
    while read -r call <&3; do answer "$call" & done
}

# A call is a directory: a file `command`, and pipes for its input, outputs and exit code.
answer() { # call
    {
        sh -c "$(<"$1/command")" <"$1/in" >"$1/out" 2>"$1/err" 3>&- 9>&-
        echo $? >&9
    } 9>"$1/code"
}

cmd_ssh() {
    while [[ ${1:-} = -* ]]; do
        [[ $1 = -[BbcDEeFIiJLlmOopQRSWw] ]] && shift
        shift
    done
    [ $# -gt 1 ] || die "ssh: a host and a line of the shell are missing"
    local to=${1#*@} said call code
    shift
    # Nothing listens at this port: a refusal comes from a host that can be reached.
    said=$(LC_ALL=C timeout 5 bash -c "exec 3<>/dev/tcp/$to/22" 2>&1)
    if [[ $said != *refused* || ! -p $bed/calls/$to ]]; then
        said=${said%%$'\n'*}
        said=${said##*: }
        echo "ssh: connect to host $to port 22: ${said:-Connection timed out}" >&2
        exit 255
    fi
    call=$(mktemp -d "$bed/calls/XXXXXX") || exit 255
    trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$call"' EXIT
    trap 'exit 255' INT TERM HUP
    mkfifo "$call"/{in,out,err,code}
    printf '%s\n' "$*" >"$call/command"
    echo "$call" >"$bed/calls/$to"
    exec 4<&0
    cat <&4 >"$call/in" &
    cat "$call/out" &
    local out=$!
    cat "$call/err" >&2 &
    local err=$!
    # A signal ends `wait`. Without an exit code the host has died.
    (read -r code && exit "$code" || exit 255) <"$call/code" &
    wait $!
    code=$?
    wait $out $err
    exit $code
}

cmd_run() {
    local host=${1:-} time=
    shift
    [ "${1:-}" = -- ] && shift
    pid_of "$host"
    # Nobody but root may enter the clock that he has.
    [ "$(readlink "/proc/$pid/ns/time")" = "$(readlink /proc/self/ns/time)" ] || time=--time
    enter "$host" "--mount --uts --ipc --net --pid $time --wdns=$bed/dir" \
        env -u TMPDIR HOSTS_BED="$bed" PATH="$bed/bin:$PATH" "$@"
}

cmd_cut() { pid_of "${1:-}" && enter bed --net ip link set "$1" down; }
cmd_heal() { pid_of "${1:-}" && enter bed --net ip link set "$1" up; }

cmd_part() {
    local part=0 host lines= named=' '
    for hosts in "$@"; do
        for host in ${hosts//,/ }; do
            pid_of "$host"
            [[ $named != *" $host "* ]] || die "part: $host is named twice"
            named+="$host "
            lines+="link set $host master b$part"$'\n'
        done
        part=$((part + 1))
    done
    for host in "$bed"/pids/h*; do
        [[ $named = *" ${host##*/} "* ]] || die "part: ${host##*/} is in no part"
    done
    enter bed --net ip -batch - <<<"$lines"
}

cmd_join() {
    local all
    all=$(cd "$bed/pids" && echo h*) && cmd_part "${all// /,}"
}

cmd_rate() {
    [ $# = 2 ] || die "rate: a host, and BITS per second or off, are missing"
    local what="replace" how="tbf rate $2 burst 256k latency 50ms"
    [ "$2" = off ] && what=del how=
    enter "$1" --net tc qdisc $what dev eth0 root $how &&
        enter bed --net tc qdisc $what dev "$1" root $how
}

cmd_kill() {
    pid_of "${1:-}"
    # There may be nothing to kill.
    enter "$1" --pid bash -c 'kill -9 -1' 2>/dev/null
    for ((i = 0; i < 1000; i++)); do
        [ "$(cmd_left "$1")" ] || return 0
        sleep 0.01
    done
    die "kill: processes of $1 do not end: $(cmd_left "$1")"
}

cmd_left() {
    local host process words own stat
    for host in ${1:-$(cd "$bed/pids" && echo h*)}; do
        pid_of "$host"
        mapfile -d '' -t own <"/proc/$pid/cmdline"
        for process in /proc/[0-9]*; do
            [ "$process/ns/pid" -ef "/proc/$pid/ns/pid" ] && alive "${process#/proc/}" || continue
            { mapfile -d '' -t words <"$process/cmdline"; } 2>/dev/null || continue
            [ "${words[*]}" = "${own[*]}" ] || echo "$host ${process#/proc/} ${words[*]}"
        done
    done
}

cmd_remove() {
    local keep words=()
    [ -d "$bed" ] || return 0
    # Hosts that ended with their machine leave numbers that belong to nobody, or to others.
    {
        keep=$(<"$bed/pids/keep")
        pid=$(<"$bed/pids/bed") && mapfile -d '' -t words <"/proc/$pid/cmdline"
    } 2>/dev/null
    if [[ "${words[*]}" = *" hold $bed "* ]]; then
        kill -9 "$pid"
        for ((i = 0; i < 1000; i++)); do
            alive "$pid" || alive "$keep" || break
            sleep 0.01
        done
    fi
    rm -rf "$bed"
}

command=${1:-}
[ "$(type -t "cmd_$command")" = function ] || { usage >&2 && exit 2; }
shift
case $command in keep | hold | host) bed=$1 ;; esac
"cmd_$command" "$@"; exit # and read no more of this file, which may have changed
