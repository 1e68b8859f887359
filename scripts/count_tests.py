# SPDX-License-Identifier: Apache-2.0
"""Counts the cases of a run of `meson test`: the lines "ok ..." and "not ok ..." that its tests
printed. Lists the failed cases with what was said of them, then prints "N passed, N failed"; fails
if any case failed.
Usage: count_tests.py testlog.json EXIT_CODE_OF_MESON_TEST"""
import json
import re
import sys

CASE = re.compile(r"(not )?ok\b[ \d]*(?:- )?(.*)")
SAID = 8  # lines of what was said of a failed case
SKIP = re.compile(r"#\s*skip", re.IGNORECASE)


def cases(test):
    """(verdict, name, the lines that follow) of each case of a test."""
    found = []
    for line in test.get("stdout", "").splitlines():
        match = CASE.match(line)
        if match:
            # cmocka writes a skipped case as "not ok 7 # SKIP".
            verdict = "skipped" if SKIP.search(line) else "failed" if match[1] else "passed"
            found.append((verdict, match[2], []))
        elif found:
            found[-1][2].append(line)
    errors = test.get("stderr", "").splitlines()
    if test["result"] not in ("OK", "SKIP") and all(v != "failed" for v, *_ in found):
        # It crashed, timed out, or failed after its cases (a leak).
        found.append(("failed", f"ended with {test['result']}, code {test.get('returncode')}",
                      errors[:SAID]))
    if not found:
        found.append(("skipped" if test["result"] == "SKIP" else "failed", "printed no case",
                      errors[-SAID:]))
    return found


def main():
    count = {"passed": 0, "failed": 0, "skipped": 0}
    failures = []
    try:
        with open(sys.argv[1], encoding="utf-8") as log:
            tests = [json.loads(line) for line in log]
    except OSError as error:
        tests, failures = [], [str(error)]
    for test in tests:
        for verdict, name, said in cases(test):
            count[verdict] += 1
            if verdict == "failed":
                failures.append("\n    ".join([f"{test['name']}: {name}", *said[:SAID]]))
    if not tests or (sys.argv[2] != "0" and not count["failed"]):
        failures.append("no test ran" if not tests else f"meson test ended with {sys.argv[2]}")
        count["failed"] += 1
    for line in failures:
        print("FAILED", line)
    text = f"{count['passed']} passed, {count['failed']} failed"
    print(text + (f", {count['skipped']} skipped" if count["skipped"] else ""))
    return count["failed"] != 0


sys.exit(main())
