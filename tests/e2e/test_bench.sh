#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tables of `make bench`, with rows that are quick to measure, without PyTorch. Usage:
# test_bench.sh SOURCES BUILD
bench=$(realpath "$1")/bench/bench.py build=$(realpath "$2")
. "$(dirname "$0")/cases.sh"

run() {
    python3 "$bench" "$@" >out 2>err
    code=$?
}

run "$build" --no-peer --rows linear,start --rounds 2 --seconds 0.02
check 'it exits with 0' test "$code" -eq 0
check 'the speed of a network' \
    grep -q '^| linear model  *| 30.0 | [0-9.,]* steps/s (batch 16) |$' out
check 'the time to the first step' \
    grep -q '^| from exec .* | \*\*[0-9]* ms\*\* ([0-9]* to [0-9]*) |$' out
check 'no columns of PyTorch' sh -c "! grep -q ratio '$work/out'"

run "$build" --no-peer --rows linear,start --rounds 1 --seconds 0.02 --workers 2
check 'by two workers' \
    grep -q '^| linear model  *| 30.0 | [0-9.,]* steps/s (batch 16, lanes [24]) |$' out
check 'rows of training alone' sh -c "! grep -q 'from exec' '$work/out'"

run "$build/nowhere" --no-peer --rows linear --rounds 1
check 'a failure is reported in its row' \
    grep -q '^| linear model  *| 30.0 | not available: .*nowhere' out

# A peer that prints what PyTorch would. It is fast if compiled, which fails for some networks.
cat >peer.py <<'END'
import os, sys
if "able" in sys.argv:
    print("able torch=9.8.7 compile=1 fused=1 attention=1 openblas=0")
elif os.environ.get("TRIREME_ISA") and os.environ.get("DNNL_MAX_CPU_ISA") != "AVX2":
    sys.exit("not limited")
elif "--compiled" in sys.argv and sys.argv[1] == "lenet5":
    sys.exit("a missing header")
else:
    ms = 1.0 if "--compiled" in sys.argv else 2.0 if "--fused" in sys.argv else 4.0
    print(f"peer median_ms={ms}")
END
cat >with_peer.py <<'END'
import os, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import bench, sides
sides.PEER = [sys.executable, "peer.py"]
del sys.argv[0]
bench.main()
END
peer() {
    env "$@" python3 with_peer.py "$bench" "$build" --rows linear,lenet5 --rounds 1 \
        --seconds 0.02 >out 2>err
    code=$?
}

peer CXX=sh
check 'with a peer it exits with 0' test "$code" -eq 0
check 'the version of PyTorch' grep -q '; PyTorch 9.8.7, eager and compiled with sh' out
check 'the compiled network counts' \
    grep -q '^| linear model .*| 1,000 steps/s (batch 16, .*fused optimizer, compiled' out
check 'PyTorch as installed' grep -q '^| linear .*| 250 steps/s (batch 16) ' out
check 'where compiling fails, the eager one' \
    grep -q '^| LeNet-5.*| 32,000 images/s (batch 64, [^|]*fused optimizer, malloc' out
check 'a failure to compile is reported' \
    grep -q '^PyTorch cannot compile lenet5 (batch 64.*): a missing header\.$' out
peer CXX=nowhere/g++
check 'without a C++ compiler, eager only' grep -q '; PyTorch 9.8.7, eager only' out
check 'the compiled one is not tried' grep -q '^| linear model .*| 500 steps/s (batch 16' out
if (TRIREME_ISA=avx2 "$build/src/trireme" doctor | grep -q '^BAD'); then
    echo 'ok AVX2 # skip: this machine lacks it'
else
    peer TRIREME_ISA=avx2
    check 'AVX2 limits the peer, too' grep -q '^| linear model .*| 1,000 steps/s (batch 16' out
    check 'the limit is stated' grep -q ' cores*, TRIREME_ISA=avx2; PyTorch 9.8.7' out
fi

run "$build" --rows lenet
check 'an unknown row' grep -q 'unknown row lenet; known: resnet50,' err
check 'exits with a failure' test "$code" -ne 0

finish
