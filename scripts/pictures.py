# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of the README from real runs on Fashion-MNIST: the loss of one process and of
four workers of which two are killed, which must be equal, and what `trireme top` shows meanwhile.

Usage: python3 scripts/pictures.py BUILD DIRECTORY    (writes DIRECTORY/loss.svg and top.svg)"""
import html
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

DATA = "idx:/usr/share/datasets/fashion-mnist"
RUN = ["train", "cnn", "--data", DATA, "--epochs", "1", "--lanes", "4", "--metrics-every", "10",
       "--quiet"]
KILLS = {300: 1, 600: 2}  # step: worker. A row has the mean of what its reporter, worker 0, saw
LOOK = 450          # the step at which `trireme top` is asked
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 260, 50, 40, 30


def rows(directory):
    with open(f"{directory}/metrics.jsonl") as f:
        found = [json.loads(line) for line in f]
    return [(row["step"], row["loss"]) for row in found if "loss" in row]


def weights(output):
    return re.search(r"weights=sha256:(\w+)", output).group(1)


def top(directory):
    out = subprocess.run([PROGRAM, "top", directory, "--once"], capture_output=True, text=True,
                         env={**os.environ, "COLUMNS": "80"})
    found = re.search(r"step (\d+)/", out.stdout)
    return int(found.group(1)) if found else 0, out.stdout


def kill(directory, worker):
    with open(f"{directory}/agent.log") as f:
        events = [json.loads(line) for line in f if line.endswith("}\n")]
    os.kill(next(e["pid"] for e in events if e["event"] == "start" and e["worker"] == worker),
            signal.SIGKILL)


def run_with_kills(directory):
    """The run's output, the steps of the kills, the text of `trireme top`."""
    command = [PROGRAM, *RUN, "-n", "4", "--spares", "1", "--out", directory]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    steps, seen, due = [], "", dict(KILLS)
    while run.poll() is None and (due or not seen):
        step, text = top(directory)
        if due and step >= min(due):
            kill(directory, due.pop(min(due)))
            steps.append(step)
        elif not seen and step >= LOOK and " spare " in text:
            seen = text.replace(directory, "run")
        time.sleep(0.05)
    output = run.communicate()[0]
    if run.returncode or due or not seen:
        sys.exit(f"the run ended with {run.returncode}, {len(steps)} kills: {output}")
    return output, steps, seen


def svg(width, height, body):
    """Lines of at most 100 columns, as in all files."""
    return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
            f"viewBox='0 0 {width} {height}'\n font-family='monospace' font-size='13'>\n"
            "<!-- SPDX-License-Identifier: Apache-2.0; made by scripts/pictures.py -->\n"
            f"<rect width='{width}' height='{height}' fill='#fff'/>\n"
            + "\n".join(body) + "\n</svg>\n")


def write(x, y, text, more=""):
    return f"<text x='{x:.0f}' y='{y:.0f}'{more}\n>{html.escape(text)}</text>"


def stroke(x1, y1, x2, y2, how):
    return f"<line x1='{x1:.0f}' y1='{y1:.0f}' x2='{x2:.0f}' y2='{y2:.0f}' {how}/>"


def curve(points, kills):
    last, most = points[-1][0], max(loss for _, loss in points)

    def x(step):
        return LEFT + (WIDTH - LEFT - 20) * step / last

    def y(loss):
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * loss / most

    body = [write(LEFT, 20, "loss of cnn on Fashion-MNIST: one process, and four workers of which "
                  "two are killed")]
    for tick in (i / 2 for i in range(int(most * 2) + 1)):
        body += [stroke(LEFT, y(tick), WIDTH - 20, y(tick), "stroke='#ddd'"),
                 write(LEFT - 34, y(tick) + 4, str(tick))]
    body += [write(x(tick) - 12, HEIGHT - 20, str(tick)) for tick in range(0, last + 1, 200)]
    line = "\n".join(f"{x(step):.1f},{y(loss):.1f}" for step, loss in points)
    body.append(f"<polyline fill='none' stroke='#06c' stroke-width='2' points='\n{line}'/>")
    for step in kills:
        body += [stroke(x(step), TOP + 6, x(step), HEIGHT - BOTTOM,
                        "stroke='#c00' stroke-dasharray='4'"),
                 write(x(step) + 6, TOP + 18, "kill -9", " fill='#c00'")]
    body.append(write(WIDTH - 60, HEIGHT - 6, "step"))
    return svg(WIDTH, HEIGHT, body)


def terminal(text):
    lines = text.rstrip("\n").split("\n")
    body = [write(10, 22 + 18 * i, line, " xml:space='preserve'")
            for i, line in enumerate(lines)]
    return svg(20 + 8 * max(map(len, lines)), 20 + 18 * len(lines), body)


def main():
    with tempfile.TemporaryDirectory() as work:
        alone = subprocess.run([PROGRAM, *RUN, "--out", f"{work}/alone"], capture_output=True,
                               text=True, check=True).stdout
        crew, kills, seen = run_with_kills(f"{work}/crew")
        if weights(alone) != weights(crew) or rows(f"{work}/alone") != rows(f"{work}/crew"):
            sys.exit("one process and four workers differ")
        points = rows(f"{work}/crew")
    for name, text in (("loss", curve(points, kills)), ("top", terminal(seen))):
        with open(f"{sys.argv[2]}/{name}.svg", "w", encoding="utf-8") as f:
            f.write(text)
    print(f"{len(points)} points, kills at steps {kills}, weights {weights(crew)[:12]}")


PROGRAM = os.path.abspath(os.path.join(sys.argv[1], "src", "trireme"))
main()
