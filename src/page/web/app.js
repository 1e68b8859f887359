// SPDX-License-Identifier: Apache-2.0
// The table of pages, the way from one to another, keys, theme. An address is #PAGE or #PAGE/RUN.
import * as communication from "/communication.js";
import * as curves from "/curves.js";
import {follow} from "/data.js";
import {count, element, number} from "/draw.js";
import * as faults from "/faults.js";
import * as log from "/log.js";
import * as operators from "/operators.js";
import * as runs from "/runs.js";
import * as summary from "/summary.js";
import * as timeline from "/timeline.js";
import * as workers from "/workers.js";

// of: "run": it shows one. A page is a module with `load`, which asks the server, and `show`, which
// returns the elements; what it keeps between two showings is in `state`.
const pages = [
    {name: "runs", title: "Runs", page: runs},
    {name: "summary", title: "Summary", page: summary, of: "run"},
    {name: "workers", title: "Workers", page: workers, of: "run"},
    {name: "faults", title: "Faults", page: faults, of: "run"},
    {name: "log", title: "Log", page: log, of: "run"},
    {name: "communication", title: "Communication", page: communication, of: "run"},
    {name: "timeline", title: "Timeline", page: timeline, of: "run"},
    {name: "operators", title: "Operators", page: operators, of: "run"},
    {name: "curves", title: "Curves", page: curves},
];

const $ = (id) => document.getElementById(id);
let current = null, loading = false, again = false;
const states = new Map(); // what pages keep, by address without its query
// While the pointer is down, what is below it stays, and so does a list that is open.
let held = false, opened = false, waits = false;

/* ---- theme ---- */

const dark = matchMedia("(prefers-color-scheme: dark)");

function theme() {
    const chosen = localStorage.getItem("theme") ?? (dark.matches ? "dark" : "light");
    document.documentElement.classList.toggle("dark", chosen === "dark");
    return chosen;
}

function switchTheme() {
    localStorage.setItem("theme", theme() === "dark" ? "light" : "dark");
    theme();
    render();
}

/* ---- where we are ---- */

function place() {
    const [path, query] = location.hash.slice(1).split("?");
    const [name, run] = path.split("/");
    const page = pages.find((one) => one.name === name) ?? pages[0];
    return {page: page.of && !run ? pages[0] : page, run: run ? Number(run) : null,
        query: new URLSearchParams(query)};
}

export function address(page, run, query) {
    const of = run === null || run === undefined ? "" : `/${run}`;
    return `#${page}${of}${query ? `?${query}` : ""}`;
}

/* ---- what is on the screen ---- */

function head() {
    const theme = element("button", {type: "button", onclick: switchTheme, "data-focus": "theme"},
                          document.documentElement.classList.contains("dark") ? "Light" : "Dark");
    const row = current.shown?.row, results = row?.results ?? {};
    const parts = [element("a", {href: "#runs", class: row ? "dim" : "name"}, row ? "Runs"
        : "Trireme")];
    if (row) {
        parts.push(element("span", {class: "name"}, row.name));
        parts.push(element("span", {class: row.state === "goes on" ? "good" : "dim"}, row.state ??
            ""));
        if (row.steps > 0)
            parts.push(element("progress", {class: "hide", max: row.steps, value: row.step ?? 0,
                                            "aria-label": "steps done"}));
        parts.push(element("span", {class: "dim hide"},
                           number(row.step, "metrics.jsonl:step", count), " steps"));
        if (results.loss !== undefined)
            parts.push(element("span", {class: "dim hide"}, "loss ",
                               number(results.loss, "metrics.jsonl:loss", (y) =>
                                   y.toPrecision(4))));
    }
    parts.push(element("span", {class: "space"}), element("span", {class: "warn", id: "lost"}),
        theme);
    return parts;
}

// Pages of a run are there once there is one.
function links() {
    return pages.map((page, i) => page.of && current.run === null ? null : element("a", {
        href: address(page.name, page.of ? current.run : null), "data-focus": `page ${page.name}`,
        "aria-current": page === current.page ? "page" : null, title: `key ${i + 1}`}, page.title))
        .filter(Boolean);
}

function put(parent, children) {
    const focus = parent.contains(document.activeElement)
        ? document.activeElement.dataset.focus : null;
    const at = document.activeElement?.selectionStart;
    const [was, is] = [$("page").dataset.shown, current.address].map((one) =>
        one?.split("?")[0]);
    const open = [...parent.querySelectorAll("details")].map((one) => was === is && one.open);
    const controls = "a, button, input, select, summary, canvas[tabindex]";
    const place = [...parent.querySelectorAll(controls)].indexOf(document.activeElement);
    parent.replaceChildren(...children);
    [...parent.querySelectorAll("details")].forEach((one, i) => { one.open = open[i] ?? false; });
    if (!focus && place >= 0) parent.querySelectorAll(controls)[place]?.focus();
    if (!focus) return;
    const found = parent.querySelector(`[data-focus="${CSS.escape(focus)}"]`);
    found?.focus();
    if (found && typeof at === "number") found.setSelectionRange?.(at, at);
}

addEventListener("pointerdown", () => { held = true; });
for (const begin of ["pointerdown", "keydown"])
    addEventListener(begin, ({target}) => { opened = target.tagName === "SELECT"; });
for (const end of ["pointerup", "pointercancel", "blur", "change"])
    addEventListener(end, () => {
        held = false;
        opened = opened && end !== "change";
        if (waits) setTimeout(render);
    });

export function render() {
    waits = held || (opened && document.activeElement?.tagName === "SELECT");
    if (waits) return;
    theme();
    put($("pages"), links());
    const here = $("pages").querySelector("[aria-current]"); // a phone shows a part of the links
    if ($("page").dataset.shown !== current.address) $("pages").scrollLeft = here.offsetLeft - 16;
    if (!current.data) return put($("head"), head());
    document.title = `${current.page.title}, Trireme`;
    put($("page"), current.page.page.show(current.data, current));
    put($("head"), head());
    current.page.page.drawn?.(current.data, current);
    $("page").dataset.shown = current.address; // tests wait for it
}

function fail(error) {
    current.data = null;
    put($("page"), [element("p", {class: "lead"}, error instanceof TypeError
        ? "The server does not answer. Start trireme dashboard again, and open its link."
        : error.message)]);
}

// One request at a time; what changed meanwhile is asked for after it.
async function load() {
    if (loading) {
        again = true;
        return;
    }
    loading = true;
    $("page").ariaBusy = "true";
    do {
        again = false;
        const asked = current;
        try {
            const data = await asked.page.page.load(asked);
            if (asked === current) {
                current.data = data;
                render();
            } else {
                again = true;
            }
        } catch (error) {
            if (asked === current) fail(error);
            else again = true;
        }
    } while (again);
    loading = false;
    $("page").ariaBusy = "false";
}

export const reload = load;

function lost(is) {
    const text = $("lost");
    if (text) text.textContent = is ? "not connected" : "";
}

function go() {
    const before = current;
    const key = location.hash.split("?")[0];
    if (!states.has(key)) states.set(key, {});
    current = {...place(), address: location.hash, state: states.get(key)};
    if (!before || before.page !== current.page || before.run !== current.run)
        $("page").focus({preventScroll: true});
    follow({run: current.run, changed: load, lost: () => lost(true), found: () => lost(false)});
}

function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName)) {
        if (event.key === "Escape") document.activeElement.blur();
        return;
    }
    if (event.key >= "1" && event.key <= "9" && pages[event.key - 1]) {
        const page = pages[event.key - 1];
        if (!page.of || current.run !== null)
            location.hash = address(page.name, page.of ? current.run : null);
    } else if (event.key === "/") {
        const find = document.querySelector('input[type="search"]');
        if (!find) return;
        find.focus();
        event.preventDefault();
    } else if (current.data) {
        current.page.page.key?.(event, current);
    }
}

addEventListener("hashchange", go);
addEventListener("resize", () => render());
addEventListener("keydown", key);
dark.addEventListener("change", () => render());
go();
