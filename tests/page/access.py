# SPDX-License-Identifier: Apache-2.0
"""Keys alone reach each link, button, input and canvas of all pages, in the order in which they
stand there, and are seen where they are; Enter and Space do what a click does. Each canvas has its
numbers as a table, which fits a phone.

Usage: access.py PROGRAM BUILD [CASE ...]"""
import atexit
import functools
import json

import walk  # skips the tests where there is no Chromium
from served import Server, need, run_cases, train, train_killed

CONTROLS = "a[href], button, input, select, summary, [tabindex='0']"
# What can have the focus, in the order of the document; what is in a closed <details> is not shown.
EXPECTED = f"""[...document.querySelectorAll({json.dumps(CONTROLS)})].filter((one) =>
    one.checkVisibility({{visibilityProperty: true, contentVisibilityAuto: true}}))"""
NAME = """((one) => one === document.body ? "" : `${one.tagName} ${one.dataset.focus ?? one.id} ` +
    `${(one.getAttribute("aria-label") ?? one.textContent).trim().slice(0, 40)}`)"""
# Where the focus is: the place among what is expected, and what is wrong there.
FOCUS = f"""(() => {{
    const one = document.activeElement, style = getComputedStyle(one), bad = [];
    const box = one.getBoundingClientRect();
    if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2)
        bad.push("its focus is not visible");
    if (box.bottom < 0 || box.top > innerHeight) bad.push("it is not on the screen");
    return {{at: {EXPECTED}.indexOf(one), bad, name: {NAME}(one),
             rests: one.matches("body, .wide")}};
}})()"""
# Two elements in turn: where their ways from the root part, the second is not above or left of the
# first.
ORDER = f"""(() => {{
    const all = {EXPECTED}, bad = [];
    for (let i = 1; i < all.length; i++) {{
        let [a, b] = [all[i - 1], all[i]];
        while (!a.parentElement.contains(b)) a = a.parentElement;
        while (b.parentElement !== a.parentElement) b = b.parentElement;
        const [p, q] = [a.getBoundingClientRect(), b.getBoundingClientRect()];
        if (q.bottom <= p.top || (q.top < p.bottom && q.right <= p.left))
            bad.push(`${{{NAME}(all[i])}} stands before ${{{NAME}(all[i - 1])}}`);
    }}
    return bad;
}})()"""
# Canvases without a table in their figure, or one that they name.
ALONE = """[...document.querySelectorAll("main canvas:not([aria-hidden=true])")].filter((one) =>
    ![one.closest("figure"), ...["aria-details", "aria-describedby"].map((name) =>
        document.getElementById(one.getAttribute(name)))].some((place) =>
        place?.matches("table") || place?.querySelector("table td"))).map((one) => one.id)"""
KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " "), "ArrowRight": (39, ""),
        "ArrowDown": (40, "")}


def press(browser, key):
    code, text = KEYS[key]
    for kind in ("keyDown" if text else "rawKeyDown", "keyUp"):
        browser.ask("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                    **({"text": text} if kind == "keyDown" else {}))


def around(browser, address):
    """Tab reaches all, once around."""
    names = browser.run(f"{EXPECTED}.map({NAME})")
    found = []
    while len(found) <= len(names):
        press(browser, "Tab")
        focus = browser.run(FOCUS)
        if focus["at"] < 0:  # the end, or what scrolls
            need(focus["rests"], f"{address}: the focus is at {focus['name']}, which is no control")
            focus = browser.run(FOCUS)  # from the end, the browser goes on to the begin by itself
        if focus["at"] < 0:
            continue
        need(not focus["bad"], f"{address}, {names[focus['at']]}: {focus['bad']}")
        found.append(focus["at"])
    for a, b in zip(found, found[1:]):
        need(b == (a + 1) % len(names), f"{address}: {names[b]} follows {names[a]}")
    bad = browser.run(ORDER)
    need(not bad, f"{address}: {bad}")


def reach(browser, selector):
    """Presses Tab until an element has the focus."""
    for _ in range(200):
        press(browser, "Tab")
        if browser.run(f"document.activeElement.matches({json.dumps(selector)})"):
            return
    need(False, f"Tab does not reach {selector}")


def focused(name):
    return f'[data-focus="{name}"]'


# address: [what has the focus, the key, what is then]; RUN: its number
ACTIONS = {
    "runs": [('[data-focus^="choose"]', " ", "document.querySelector('tr.chosen')"),
             (focused("sort loss"), "Enter", "document.querySelector('th[aria-sort] button')"
              ".dataset.focus === 'sort loss'"),
             ("a.run", "Enter", "location.hash.startsWith('#summary/')")],
    "summary/RUN": [("main summary", "Enter", "document.querySelector('main details').open")],
    "workers/RUN": [(focused("wait"), " ",
                     "document.querySelector('[data-focus=wait]').ariaPressed === 'true'")],
    "faults/RUN": [("main table a", "Enter", "location.hash.startsWith('#log/')")],
    "log/RUN": [(focused("level"), "ArrowDown",
                 "document.querySelector('[data-focus=level]').value === 'warning'")],
    "communication/RUN": [(focused("page timeline"), "Enter",
                           "location.hash.startsWith('#timeline/')")],
    "timeline/RUN": [(focused("next"), "Enter",
                      "document.querySelector('.lead').innerText.startsWith('Step 61')"),
                     ("#tracks", "ArrowDown",
                      "(window.first = document.querySelector('#details dl')?.innerText)"),
                     ("#tracks", "ArrowRight",
                      "document.querySelector('#details dl').innerText !== window.first")],
    "operators/RUN": [(focused("instance"), " ",
                       "document.querySelectorAll('tbody tr').length > 20")],
    "curves?runs=RUN": [(focused("smoothing"), "ArrowRight",
                         "document.querySelector('[data-focus=smoothing]').value > 0"),
                        (focused("log"), " ",
                         "document.querySelector('[data-focus=log]').ariaPressed === 'true'")],
}


class Pages:
    """A run of two workers, of which one was killed, with a profile; and another run."""

    def __init__(self):
        train_killed("runs/two", "--profile", "steps=60..62")
        train("mlp:hidden=32", "--steps", "40", out="runs/one")
        self.server = Server("runs")
        atexit.register(self.server.close)
        self.browser = walk.Browser(self.server)
        atexit.register(self.browser.close)
        rows = json.loads(self.server.ask("/api/runs").text)["runs"]
        self.number = str(next(row["run"] for row in rows if row["name"] == "two"))

    def open(self, address):
        self.browser.open("nowhere")
        self.browser.open(address.replace("RUN", self.number))
        return self.browser


pages = functools.cache(Pages)


def reached():
    for address in ACTIONS:
        around(pages().open(address), address)
    pages().browser.check()


def act():
    for address, actions in ACTIONS.items():
        browser = pages().open(address)
        for selector, key, then in actions:
            reach(browser, selector)
            press(browser, key)
            browser.wait(then, f"{address}: {key!r} on {selector} does nothing")
    pages().browser.check()


def tables():
    bad = []
    for address in ACTIONS:
        browser = pages().open(address)
        bad += [f"{address}: {name} has no table" for name in browser.run(ALONE)]
    need(not bad, bad)


def unfolded():
    """What is in a <details> has its sources, and fits a phone."""
    pages().browser.size(390, "light")
    for address in ACTIONS:
        browser = pages().open(address)
        browser.run("document.querySelectorAll('details').forEach((one) => one.open = true)")
        found = json.loads(browser.run(walk.LOOK))
        need(not found["bad"], f"{address}:\n      " + "\n      ".join(found["bad"][:12]))
    pages().browser.size(1440, "light")


run_cases({"keys reach all": reached, "keys act": act, "canvases have tables": tables,
           "what is unfolded": unfolded})
