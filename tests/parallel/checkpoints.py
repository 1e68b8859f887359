#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs that resume from checkpoints: the same weights as a run without interruption.

Usage: checkpoints.py TRIREME OWN_LOOP [CASE...]

KILLS=N: the number of kills in the storm (3; with SLOW=1 30)."""
import os
import io
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import time

from runs import (SLOW, children, done, end, events, flip, folders, fresh, length_for, need,
                  run_cases, start, trireme, wait_for, wait_for_steps)

OWN_LOOP = os.path.abspath(sys.argv[2])  # tests/parallel/own_loop.c
KILLS = int(os.environ.get("KILLS", "30" if SLOW else "3"))

RUNS = {
    "lenet5, uneven lanes": "lenet5 --batch 30 --lanes 7 --optimizer adam --steps 24",
    "dropout, clipping, loss scale": "bert-tiny:vocab=2000 --batch 8 --lanes 4 --optimizer adamw "
                                     "--clip-norm 1 --steps 6 "
                                     "--amp O2 --amp-type bf16 --loss-scale dynamic:every=2",
    "estimates": "mlp:hidden=8 --batch 8 --lanes 6 --wire topk:0.05 --steps 12",
    "statistics, a schedule": "resnet18:form=small,width=8 --batch 16 --lanes 4 --optimizer "
                              "momentum --steps 6 "
                              "--schedule cosine:end=0,warmup=2",
}


def goes_on(words):
    """N steps, a stop, M steps; with other numbers of workers before and after."""
    words = words.split() + ["--quiet"]
    plain = done(trireme("train", *words))
    half = int(words[words.index("--steps") + 1]) // 2
    for before, after in (([], []), (["-n", "2"], []), ([], ["-n", "3"]),
                          (["-n", "2"], ["-n", "1"])):
        fresh()
        first = trireme("train", *words, *before, "--ckpt", "ck", "--save-every", str(half))
        need(done(first) == plain, f"{before}: with checkpoints another result")
        need(len(folders()) == 2, f"{folders()}")
        shutil.rmtree(f"ck/{folders()[-1]}")
        again = trireme("train", *words, *after, "--ckpt", "ck", "--resume")
        need("resumes from ck/step-" in again.err, again.err)
        need(done(again) == plain, f"{before}, {after}:\n{done(again)}\nin one go:\n{plain}")
        need(trireme("ckpt", "verify", "ck").returncode == 0, "verify")


def stopped():
    """Asked to end in the middle of an epoch: the completed steps are saved, and the run
    resumes. The rate does not depend on the run's length."""
    words = "lenet5 --steps 100000000 --quiet".split()
    fresh()
    run = start("train", *words, "-n", "2", "--ckpt", "ck", "--out", "stop")
    wait_for_steps("stop")
    run.send_signal(signal.SIGTERM)
    end(run)
    need(run.returncode == 3, f"exit {run.returncode}: {run.err}")
    steps = int(re.search(r"steps=(\d+)", done(run)).group(1))
    need(folders() == [f"step-{steps:09d}"], f"{folders()} after {steps} steps")
    more = ["lenet5", "--quiet", "--steps", str(steps + 20)]
    again = trireme("train", *more, "--ckpt", "ck", "--resume")
    need(done(again) == done(trireme("train", *more)), "another result")


def make_archive(name):
    """Pictures of two classes, 16 of each."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e/pictures.py")
    subprocess.run([sys.executable, script, "pets", "2", "16", "16", "train"], check=True)
    with tarfile.open(name, "w") as tar:
        for i in range(32):
            tar.add(f"pets/train/class{i % 2}/{i // 2}.png", f"{i:02}.png")
            label = tarfile.TarInfo(f"{i:02}.cls")
            label.size = 1
            tar.addfile(label, io.BytesIO(b"%d" % (i % 2)))


def running(word):
    """Whether the command line of any process contains it."""
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and word.encode() in open(f"/proc/{entry}/cmdline", "rb").read():
                return True
        except OSError:
            pass
    return False


def brings_nothing():
    """A pipe that stops delivering: when asked to end, the run ends without the step, the steps
    before it are saved, and the command is gone; it is gone too after the run is killed."""
    fresh("ck", "pets")
    make_archive("pets.tar")
    for i, (more, how) in enumerate((([], signal.SIGTERM),
                                     (["-n", "2", "--grace", "4"], signal.SIGTERM),
                                     ([], signal.SIGKILL))):
        fresh()
        mark = f"{os.getpid()}{i:03}"  # seconds that it sleeps
        run = start("train", *"resnet18:form=small,width=4,classes=2,size=16 --batch 8 --steps 100 "
                              "--shuffle off --quiet "
                    "--ckpt ck --save-every 1 --out pipe".split(), *more, "--data",
                    f"tar:pipe:cat pets.tar; sleep {mark},samples=64,window=1,size=16")
        wait_for(lambda: os.path.isdir("ck") and "step-000000003" in folders(),
                 "its three steps are not done")
        need(running(f"sleep {mark}"), "there is no command")
        run.send_signal(how)
        end(run, 60)
        wait_for(lambda: not running(f"sleep {mark}"), "the command is left")
        if how == signal.SIGKILL:
            continue
        need(run.returncode == 3
             and re.search("trireme: no samples arrived for step 4.*: the run ends without it",
                           run.err),
             f"{more}: exit {run.returncode}: {run.err}")
        need(folders()[-1] == "step-000000003" and done(run).startswith("done steps=3 "),
             f"{more}: {folders()} {run.out}")


def late():
    """--max-time, with one process and with two; the completed steps are saved."""
    for more in ([], ["-n", "2"]):
        fresh()
        run = trireme("train", *"lenet5 --steps 100000000 --quiet --max-time 1 --ckpt ck".split(),
                      *more)
        need("trireme: stopped by --max-time after " in run.err, run.err)
        need(run.returncode == 3, f"{more}: exit {run.returncode}: {run.err}")
        steps = int(re.search(r"steps=(\d+)", done(run)).group(1))
        need(folders() == [f"step-{steps:09d}"], f"{folders()} after {steps} steps")


def hopeless():
    """Sample 40 of the second epoch always fails: the steps before it, of 16 samples each, are
    saved and can be resumed from."""
    words = [OWN_LOOP, "--steps", "30", "--quiet"]

    def alone(*more, **env):
        return end(start(*words[1:], *more, program=OWN_LOOP, env=env))

    plain = alone().out
    need(re.fullmatch("weights [0-9a-f]{64}\n", plain), plain)
    for mode in ("deadly", "bad"):
        for workers in ([] if mode == "deadly" else [[]]) + [["-n", "1"], ["-n", "2"],
                                                             ["-n", "2", "--spares", "1"]]:
            fresh()
            saves = ["--ckpt", "ck", "--save-every", "5"]
            begin = time.time()
            run = (trireme("run", "--out", "hopeless", *workers, "--", *words, *saves,
                           env={"TEST_MODE": mode})
                   if workers else alone(*saves, TEST_MODE=mode))
            need(run.returncode == 1 and time.time() - begin < 25,
                 f"{mode}, {workers}: exit {run.returncode}: {run.err}")
            need(mode == "bad" or "three workers have died there" in run.err, run.err)
            need(folders()[-1] == "step-000000012", f"{mode}, {workers}: {folders()}: {run.err}")
            again = alone("--ckpt", "ck", "--resume")
            need(again.out == plain,
                 f"{mode}, {workers}: {again.out}{again.err}, in one go {plain}")
    run = trireme("run", "--out", "hopeless", "-n", "2", "--", *words, env={"TEST_MODE": "deadly"})
    need(run.returncode == 1 and "the run ends\n" in run.err, run.err)


def storm():
    """kill -9 of agent and workers at random moments, until the run completes."""
    words = "lenet5 --optimizer adam --quiet".split()
    words += ["--steps", str(length_for(words, KILLS + 2))]
    plain = done(trireme("train", *words))
    fresh()
    killed = went_on = 0
    for _ in range(200):
        n = random.choice(("1", "2"))
        run = start("train", *words, "-n", n, "--ckpt", "ck", "--save-every", "10", "--keep", "3",
                    "--resume", "--out", "storm")
        if killed < KILLS:
            if killed + 1 == KILLS: # the last kill leaves something to go on from
                wait_for(lambda: folders() or run.poll() is not None, "no checkpoint")
            time.sleep(random.uniform(0.1, 1.0))
            for pid in [*children(run.pid), run.pid]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        end(run)
        went_on += "resumes from" in run.err
        killed += run.returncode == -signal.SIGKILL
        if run.returncode == 0:
            break
    need(done(run) == plain, f"{done(run)}\nin one go:\n{plain}")
    need(killed >= KILLS and went_on, f"{killed} killed, {went_on} went on")
    need(len(folders()) == 3 and not [f for f in os.listdir("ck") if f.startswith(".")],
         f"{os.listdir('ck')}")
    return f"{killed} killed, {went_on} went on"


def sealed():
    """--ckpt-key: the same run; without the key nothing of it can be read, changed or exchanged."""
    words = "lenet5 --optimizer adam --quiet --steps 20".split()
    plain = done(trireme("train", *words))
    fresh("ck", "other", "open")
    for name in ("key", "wrong"):
        need(trireme("ckpt", "key", name).returncode == 0, "no key")
    keyed = ["--ckpt-key", "key"]

    def said(code, pattern, *line):
        run = trireme(*line)
        need(run.returncode == code and re.search(pattern, run.out + run.err),
             f"{line}: exit {run.returncode}: {run.out}{run.err}")
        need(open("key").read().strip() not in run.out + run.err, "the key is told")

    first = trireme("train", *words, *keyed, "--ckpt", "ck", "--save-every", "10", "-n", "2",
                    "--out", "seal")
    need(done(first) == plain, "sealed checkpoints change the run")
    files = [f"ck/{folder}/{name}" for folder in folders() for name in os.listdir(f"ck/{folder}")]
    need(len(files) == 10 and all(f.endswith(".sealed") for f in files), f"{files}")
    need(not [f for f in files if b"weight" in open(f, "rb").read()], "names can be read")
    half, whole = (f"ck/{f}" for f in folders())
    for word in (["ls", "ck"], ["show", "ck"], ["verify", "ck"], ["diff", half, half]):
        said(0, "", "ckpt", *word, *keyed)
        said(0 if word[0] == "ls" else 2, "is sealed: its key is needed|could not be read", "ckpt",
             *word)
        said(0 if word[0] == "ls" else 2, "another key|could not be read", "ckpt", *word,
             "--ckpt-key", "wrong")
    said(1, "they are not the same", "ckpt", "diff", half, whole, *keyed)
    load = ["train", *words, "--load", f"{half}/model.safetensors.sealed"]
    said(0, "", *load, *keyed)
    said(2, "is sealed: its key is needed", *load)
    said(2, "is sealed: its key is needed", "train", *words, "--load", "ck")
    said(0, "", "train", *words, "--load", "ck", *keyed)
    said(2, "another key", *load, "--ckpt-key", "wrong")
    for more in ([], ["--resume"]):
        said(2, "is sealed: its key is needed", "train", *words, "--ckpt", "ck", *more)
    said(2, "another key", "train", *words, "--ckpt", "ck", "--resume", "--ckpt-key", "wrong")
    trireme("train", *words, "--ckpt", "open")
    for more in ([], ["--resume"]):
        said(2, "is not sealed", "train", *words, "--ckpt", "open", *keyed, *more)
    said(2, " exists", "ckpt", "key", "key")
    said(2, "for checkpoints|of checkpoints", "train", *words, *keyed)
    os.chmod("wrong", 0o644)
    said(2, "other users may access it", "train", *words, "--ckpt", "ck", "--ckpt-key", "wrong")

    def exchange():
        shutil.rmtree(whole)
        shutil.copytree(half, whole)

    shutil.copytree("ck", "other")
    for text, harm in {
            "is damaged: the data at offset": lambda: flip(f"{whole}/state.json.sealed", 200),
            "is truncated": lambda: os.truncate(f"{whole}/state.json.sealed", 300),
            "is not what was written": lambda: flip(f"{whole}/model.safetensors.sealed", -9),
            "bytes; state.json says": lambda: os.truncate(f"{whole}/optimizer.safetensors.sealed",
                                                          100000),
            "its hash differs": lambda: shutil.copy(f"{half}/model.safetensors.sealed", whole),
            "it does not belong here|is the checkpoint of step 10": exchange}.items():
        harm()
        again = trireme("train", *words, *keyed, "--ckpt", "ck", "--resume")
        need(re.search(text, again.err) and "resumes from ck/step-000000010" in again.err,
             f"{text}: {again.err}")
        need(done(again) == plain, f"{text}: another result")
        fresh()
        shutil.copytree("other", "ck")
    flip(f"{half}/model.safetensors.sealed", 5000)
    said(1, "is damaged: the data at offset", *load, *keyed)


def refused():
    words = "lenet5 --quiet --steps 20".split()
    fresh()
    trireme("train", *words, "--ckpt", "ck")

    def wrong(code, pattern, *more):
        run = trireme("train", *words, *more)
        need(run.returncode == code and re.search(pattern, run.err),
             f"{more}: exit {run.returncode}: {run.err}")

    wrong(2, "--batch 64 .this run has 32", "--ckpt", "ck", "--resume", "--batch", "32")
    wrong(2, "--seed 0 .this run has 1", "--ckpt", "ck", "--resume", "--seed", "1")
    wrong(2, "which need a directory: --ckpt", "--resume")
    wrong(2, "which need a directory: --ckpt", "--save-every", "5")
    wrong(2, "--changed .* has no effect without it", "--ckpt", "new", "--changed")
    wrong(2, "--resume and --load", "--ckpt", "ck", "--resume", "--load", "x")
    wrong(2, "--resume and --partial", "--ckpt", "ck", "--resume", "--partial")
    wrong(1, "cannot make the directory", "--ckpt", "no/such/place")
    plain = done(trireme("train", *words))
    need(done(trireme("train", *words, "--ckpt", "ck", "--resume")) == plain,
         "nothing is left to do")
    first = start("train", *"lenet5 --quiet --steps 100000000 --ckpt both".split(), "--save-every",
                  "20", "--keep", "1")
    wait_for(lambda: os.path.isdir("both") and folders("both"), "it does not start")
    if first.poll() is None:
        wrong(2, "another run writes its checkpoints to both", "--ckpt", "both")
    first.send_signal(signal.SIGTERM)
    end(first)
    need(first.returncode == 3 and "asked to end: the run ends after the current" in first.err,
         f"exit {first.returncode}: {first.err}")
    run = trireme("train", *words, "--ckpt", "new", "--resume")
    need(run.returncode == 0 and "the run starts from the beginning" in run.err, run.err)
    wrong(2, "made with --optimizer sgd .this run has adam.* --load ck/step-000000020/"
          "model.safetensors, and", "--ckpt", "ck", "--resume", "--optimizer", "adam")
    fresh()
    trireme("train", *words, "--ckpt", "ck")
    past = trireme("train", *words, "--ckpt", "ck", "--resume", "--steps", "10")
    need(past.returncode == 0 and "nothing is left to do: ck/step-000000020 is of step 20, and "
         "the run ends after step 10" in past.err, past.err)
    listed = trireme("ckpt", "ls", "ck/step-000000020")
    need(listed.returncode == 2 and "is one checkpoint" in listed.err, listed.out + listed.err)


def loaded():
    """--load of a directory: the weights of the newest complete checkpoint, or of that
    checkpoint."""
    words = "linear --optimizer momentum --quiet".split()
    fresh("ck", "empty", "others")
    trireme("train", *words, "--steps", "20", "--save-every", "10", "--ckpt", "ck")
    half, whole = (f"ck/{f}" for f in folders())

    def weights(path, code=0, **expected):
        run = trireme("train", "linear", "--steps", "1", "--lr", "1e-30", "--out", "load", "--load",
                      path)
        need(run.returncode == code, f"{path}: exit {run.returncode}: {run.err}")
        need(all(text in run.err for text in expected.values()), f"{path}: {run.err}")
        return code or re.search("weights=([^ ]+)", run.out).group(1)

    last = weights(f"{whole}/model.safetensors")
    need(weights("ck", told=f"trireme: takes the weights of {whole}/model.safetensors\n") == last,
         "not the newest")
    need(weights(whole) == last != weights(half, told=f"takes the weights of {half}/model"),
         "not the one that is named")
    evaluated = trireme("eval", "linear", "--load", "ck", "--data", "synthetic:size=64")
    need(evaluated.returncode == 0 and f"takes the weights of {whole}/" in evaluated.err,
         evaluated.err)
    flip(f"{whole}/model.safetensors", -5)
    need(weights("ck", wrong="is not what was written",
                 told=f"takes the weights of {half}/") == weights(half), "damaged")
    weights(whole, code=1, wrong="is not what was written")
    os.mkdir("empty")
    weights("empty", code=1,
            wrong="empty is a directory with neither checkpoints nor a model.safetensors in it")
    os.mkdir("others")
    shutil.copy(f"{half}/model.safetensors", "others")
    need(weights("others") == weights(half), "of others")


def moved():
    """Data with another name is reported in one line, and the run continues."""
    words = "lenet5 --quiet --steps 2 --ckpt ck --data".split()
    fresh("ck", "here", "there")
    os.mkdir("here")
    with open("here/train-images-idx3-ubyte", "wb") as f:
        f.write(struct.pack(">IIII", 0x803, 64, 28, 28) + bytes(64 * 28 * 28))
    with open("here/train-labels-idx1-ubyte", "wb") as f:
        f.write(struct.pack(">II", 0x801, 64) + bytes(64))
    trireme("train", *words, "idx:here")
    os.symlink("here", "there")
    for place, told in (("here", 0), ("there", 1)):
        run = trireme("train", *words, f"idx:{place}", "--resume", "--steps", "4")
        need(run.returncode == 0, f"{place}: exit {run.returncode}: {run.err}")
        need(run.err.count(f"was made with data idx:here, and this run has idx:{place}") == told,
             f"{place}: {run.err}")


def other_options():
    """Options that differ are reported in one line, and the new values count; equal options are
    not."""
    words = "linear --quiet --ckpt ck --optimizer momentum".split()

    def told(more, *line):
        shutil.rmtree("ck")
        shutil.copytree("before", "ck")
        run = trireme("train", *words, *line, "--resume", "--steps", "8", *more)
        need(run.returncode == 0, f"{line}: exit {run.returncode}: {run.err}")
        return [x for x in run.err.split("\n") if " now, " in x]

    fresh("ck", "before")
    trireme("train", *words, "--lr", "0.05", "--schedule", "cosine", "--steps", "4")
    shutil.copytree("ck", "before")
    for more in ([], ["-n", "2"]):
        need(told(more, "--lr", "0.05", "--schedule", "constant") ==
             ["trireme: --schedule constant now, cosine when ck/step-000000004 was written: the "
              "new values apply from step 5 on"], "the schedule")
        lines = told(more, "--lr", "0.1", "--schedule", "cosine", "--momentum", "0.8")
        need(len(lines) == 1 and lines[0].startswith(
             "trireme: --lr 0.1 now, 0.05; --momentum 0.8 now, 0.9; --steps 8 now, 4 when "),
             f"{lines}")
    fresh("ck", "before")
    trireme("train", *words, "--steps", "4")
    shutil.copytree("ck", "before")
    need(told([], "--schedule", "constant") == [], "nothing is given otherwise")


def other_network():
    """Another network is refused with its first difference, and continues with --changed. Tensors
    that fit keep their values and moments; the others are listed."""
    words = "--batch 8 --quiet --optimizer adamw --ckpt ck".split()

    def train(net, steps, *more):
        return trireme("train", net, *words, "--steps", str(steps), *more)

    fresh("ck")
    first = train("mlp:hidden=8", 4)
    written = trireme("dump", "mlp:hidden=8", "--batch", "8", "--after", "model").out
    need(open("ck/step-000000004/network.tri").read() == written, "not what dump prints")
    shown = trireme("ckpt", "show", "ck").out
    need(written in shown and "\nmodel mlp:hidden=8\nbatch 8\n" in shown, shown)
    for more in ([], ["-n", "2"]):
        run = train("mlp:hidden=16", 8, "--resume", *more)
        need(run.returncode == 2 and run.err.count("\n") <= 2 and
             re.search("ck/step-000000004 was made with another network; the first difference: "
                       r"operator fc1.param \(param\) in scope fc1: it was: .*f32\[8,784\].*; it "
                       r"is: .*f32\[16,784\] .*--changed", run.err), f"{more}: {run.err}")
    again = train("mlp:hidden=8", 4, "--resume", "--changed")
    need("--changed: ck/step-000000004 has the same network" in again.err and
         done(again) == done(first), again.err)
    scaled = train("mlp:hidden=8", 8, "--resume", "--loss-scale", "dynamic")
    need(scaled.returncode == 2 and
         "does not fit this run's optimizer (--optimizer, --loss-scale, --amp-type) (missing: "
         "optimizer.good_steps f32[], ...)" in scaled.err, scaled.err)
    shutil.copytree("ck", "before", dirs_exist_ok=True)
    wide = train("mlp:hidden=16", 8, "--resume", "--changed")
    need(wide.returncode == 0 and wide.err.count("\n") <= 6 and all(t in wide.err for t in (
         "model.safetensors: 1 of 6 tensors keep their values; of another shape or type: fc1.bias "
         "is f32[8], the network has f32[16]; ", "; of another shape or type: fc3.weight is "
         "f32[10,8], the network has f32[10,16]\n", "optimizer.safetensors: 3 of 13 tensors keep",
         "optimizer.square.fc3.weight is f32[10,8]")), wide.err)
    fresh("ck")
    shutil.copytree("before", "ck")
    need(done(train("mlp:hidden=16", 8, "--resume", "--changed", "-n", "2")) == done(wide),
         "with workers")


def two_phases():
    """BERT's way: 20 steps of short sequences, then 20 of long ones. Nothing of it is lost."""
    def train(net, steps, *more):
        return trireme("train", f"bert-tiny:vocab=500,{net}", "--steps", str(steps),
                       *"--batch 4 --quiet --optimizer adamw --ckpt ck".split(), *more)

    fresh("ck")
    first = done(train("seq=32", 20))
    for net, said in (("seq=64", r"operator input \(input\) in no scope: it was: .*=\[4,32\].*;"
                                 r" it is: .*=\[4,64\]"),
                      ("seq=32,dropout=0.2", r"operator bert.dropout \(dropout\) in scope bert: it "
                                             r"was: .*p=0.1.*; it is: .*p=0.2")):
        run = train(net, 40, "--resume")
        need(run.returncode == 2 and re.search(said, run.err), f"{net}: {run.err}")
    need(done(train("seq=64", 20, "--resume", "--changed")) == first, "tensors were lost")
    second = train("seq=64", 40, "--resume", "--changed")
    need("was made with another network" in second.err and "keep their" not in second.err and
         done(second).startswith("done steps=40 "), second.err + second.out)


# Other values than those of the run below.
OTHERWISE = """--shuffle off; --sampler sequential; --subset 0:512; --share 1/2; --tail keep;
--batch 16; --seed 3; --optimizer nesterov; --ckpt-key key; --steps 5; --lanes 2; --lr 0.5;
--momentum 0.5; --schedule poly; --weight-decay 0.1; --clip-norm 2; --amp O1; --amp-type f16;
--mesh model=2 --unset batch; --device ref; --conv direct; --passes -cse; --gradients-mean off;
--data-threads off; --on-nan warn; --max-time 100; --recompute full; --bucket 1M; --zero 1;
--memory-limit 2G; --threads 1; --stages 1; --save-plan p; --save s; --save-every 1;
--save-minutes 9; --keep 2; --keep-every 2; --eval-data synthetic; --out other; --metrics-every 2;
--on-event true; --sink-size 2; --load before; --partial"""


def each_option():
    """A resume makes of an option what the table of docs/checkpoints.md says."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    with open(f"{root}/docs/checkpoints.md", encoding="utf-8") as guide:
        rows = re.findall(r"^\| (\w+) \| `(--.*)` \|$", guide.read(), re.M)
    kinds = {flag: kind for kind, flags in rows for flag in flags.split()}
    words = ("linear --quiet --batch 8 --optimizer momentum --lr 0.1 --schedule cosine --ckpt ck "
             "--steps 4").split()
    fresh("ck", "before", "key")
    trireme("train", *words)
    trireme("ckpt", "key", "key")
    shutil.copytree("ck", "before")
    for line in OTHERWISE.split(";"):
        flag, *more = line.split()
        shutil.rmtree("ck")
        shutil.copytree("before", "ck")
        run = trireme("train", *words, "--resume", flag, *more)
        said = [x for x in run.err.split("\n")
                if " now, " in x or "was made " in x or x[:1] in ("-", "+")]
        need({"requires": run.returncode == 2 and said or "is not sealed" in run.err,
              "warns": run.returncode == 0 and any(flag[2:] in x or "was made on" in x
                                                   for x in said),
              "ignores": run.returncode == 0 and not any(said),
              "refuses": run.returncode == 2 and "are both given" in run.err}[kinds[flag]],
             f"{line} {kinds[flag]}: exit {run.returncode}: {run.err}")


def other_plan():
    """Lanes, mesh and strategies may be others: the lines of both plans that differ are printed.
    What changes no bit is not."""
    words = "linear --quiet --ckpt ck --batch 8 --optimizer momentum".split()
    fresh("ck")
    trireme("train", *words, "--steps", "2", "--lanes", "4")
    run = trireme("train", *words, "--steps", "4", "--lanes", "4", "--resume", "--stages", "1",
                  "--threads", "1", "-n", "2")
    need(run.returncode == 0 and " was made with " not in run.err, run.err)
    run = trireme("train", *words, "--steps", "6", "--lanes", "2", "--mesh", "model=2", "--unset",
                  "batch", "--resume")
    need(run.returncode == 0 and "with the same bits\n- lanes 4\n- mesh none\n+ mesh model=2\n"
         "+ unset batch\n+ lanes 2\ntrireme: resumes" in run.err, run.err)


def left_behind():
    """Damaged checkpoints do not count, nor do those of another run: they stay."""
    words = "linear --optimizer momentum --quiet --save-every 5 --keep 1 --ckpt ck --steps".split()
    fresh()
    trireme("train", *words, "15", "--keep", "9")
    plain = done(trireme("train", *words[:4], "--steps", "14"))
    for more in ([], ["-n", "2"]):
        anew = trireme("train", *words, "14", *more)
        need(anew.returncode == 2
             and "already has checkpoints of a run, up to step 15: continue it" in anew.err,
             f"{more}: exit {anew.returncode}: {anew.err}")
        need(folders() == [f"step-{step:09d}" for step in (5, 10, 15)], f"{folders()}")
    for aside in (["step-000000015.damaged"],
                  ["step-000000015.damaged", "step-000000015.damaged-2"]):
        os.path.isdir("ck/step-000000015") or shutil.copytree("ck/step-000000014",
                                                              "ck/step-000000015")
        os.truncate("ck/step-000000015/model.safetensors", 10)
        run = trireme("train", *words, "14", "--resume")
        need(done(run) == plain and f"to ck/{aside[-1]}; it is no longer used" in run.err, run.err)
        need(folders() == (["step-000000014"] + aside), f"{folders()}")
    need(trireme("ckpt", "verify", "ck").returncode == 0,
         "what was set aside is taken for a checkpoint")


def asked():
    """trireme ctl DIR checkpoint, of a running and of a paused run."""
    fresh("ck", "asked")
    run = start("train", *"lenet5 --quiet --steps 100000000 -n 2 --ckpt ck --out asked".split())
    wait_for(lambda: events("asked", "rowing"), "no worker takes part")
    now = trireme("ctl", "asked", "checkpoint")
    need(re.fullmatch(r"step \d+ is saved\n", now.out), now.out + now.err)
    need(folders() == [f"step-{int(now.out.split()[1]):09d}"], f"{folders()}")
    trireme("ctl", "asked", "pause")
    need(trireme("ctl", "asked", "checkpoint").returncode == 0 and len(folders()) == 2,
         f"{folders()}")
    trireme("ctl", "asked", "stop")
    end(run)
    fresh("asked")
    without = start("train", *"lenet5 --quiet --steps 100000000 -n 1 --out asked".split())
    wait_for(lambda: events("asked", "rowing"), "no worker takes part")
    need("start it with --ckpt DIR" in trireme("ctl", "asked", "checkpoint").err,
         "it does not say why not")
    trireme("ctl", "asked", "stop")
    end(without)


CASES = {f"goes on: {name}": (lambda words=words: goes_on(words)) for name, words in RUNS.items()}
CASES.update({
    "asked to end": stopped,
    "a pipe without data": brings_nothing,
    "--max-time": late,
    "a hopeless fault": hopeless,
    "a storm of kills": storm,
    "sealed checkpoints": sealed,
    "mistakes": refused,
    "leftovers of earlier runs": left_behind,
    "other data": moved,
    "a directory's weights": loaded,
    "other options": other_options,
    "another network": other_network,
    "two phases": two_phases,
    "another plan": other_plan,
    "each option": each_option,
    "trireme ctl checkpoint": asked,
})

run_cases(CASES, sys.argv[3:], ("a pipe without data", "goes on: statistics, a schedule"))
