// SPDX-License-Identifier: Apache-2.0
// Runs: which run was it, and which is the best?
import {address, render} from "/app.js";
import {get} from "/data.js";
import {count, duration, element, from, moment, number, share, short, zone} from "/draw.js";
import {spark} from "/plot.js";
import {table} from "/table.js";

const MOST = 8; // runs that are compared

// Small curves and goodput are asked for when their row is on the screen.
const details = new Map(); // run: {version, points, goodput}

export async function load() {
    return get("runs");
}

const text = (row) => [row.name, row.title, row.state, ...Object.entries(row.options ?? {}).flat()]
    .join(" ").toLowerCase();

// "lanes 4, workers 2"
function plan(row) {
    const words = [];
    if (row.lanes > 0) words.push(`${row.lanes} lane${row.lanes === 1 ? "" : "s"}`);
    if (row.workers > 1) words.push(`${row.workers} workers`);
    for (const option of ["--mesh", "--stages"])
        if (row.options?.[option]) words.push(`${option.slice(2)} ${row.options[option]}`);
    return words.join(", ");
}

// Of one that was killed, up to its last line.
function lasted(row) {
    const until = row.state === "goes on" ? Date.now() / 1000
        : row.state?.includes("killed") ? row.written : null;
    return until > row.entered ? row.took + until - row.entered : row.took || row.seconds;
}

function state(row) {
    if (row.trouble) return element("span", {class: "bad"}, row.trouble);
    const name = row.state ?? "no run.json";
    const parts = [element("span", {class: name === "goes on" ? "good"
        : name === "failed" || name === "was killed" ? "bad" : null}, name)];
    if (name.includes("killed") && row.written)
        parts.push(element("div", {class: "dim small"}, "last line ",
                           number(row.written, "metrics.jsonl", moment)));
    if (row.clock) parts.push(element("div", {class: "warn small"}, from("run.json", row.clock)));
    return element("div", {}, ...parts);
}

function done(row) {
    const parts = [number(row.step, "metrics.jsonl:step", count)];
    if (row.steps > 0 && row.step < row.steps)
        parts.push(element("span", {class: "dim"}, " of ",
            number(row.steps, "run.json:steps", count)));
    return element("span", {}, ...parts);
}

const loss = (row) => row.results?.loss ?? null;

// The result by which runs are judged: an evaluation's first, or that of the training.
function judged(rows) {
    for (const name of ["top1", "accuracy", "f1", "perplexity"])
        if (rows.some((row) => (row.evaluation?.[name] ?? row.results?.[name]) !== undefined))
            return name;
    return null;
}

const value = (row, name) => row.evaluation?.[name] ?? row.results?.[name] ?? null;

function columns(rows, chosen, choose) {
    const name = judged(rows);
    const all = [
        {name: "", cell: (row) => element("input", {
            type: "checkbox", "aria-label": `compare ${row.name}`, onchange: () => choose(row.run),
            checked: chosen.has(row.run) ? "" : null, "data-focus": `choose ${row.run}`})},
        {name: "run", key: (row) => row.name, cell: (row) => element("div", {},
            element("a", {class: "run", href: address("summary", row.run)},
                from("directory", row.name)),
            element("div", {class: "dim small"}, from("run.json:title", row.title ?? "")))},
        {name: "state", key: (row) => row.state, cell: state},
        {name: "plan", key: plan, cell: (row) => element("span",
            {class: "dim", "data-source": "run.json:options"}, plan(row))},
        {name: "steps", key: (row) => row.step, cell: done, right: true},
        {name: "loss", key: loss, right: true, cell: (row) => element("span", {},
            element("canvas", {"data-run": row.run, "aria-hidden": "true"}), " ",
            number(loss(row), "metrics.jsonl:loss", short))},
    ];
    if (name) all.push({name, key: (row) => value(row, name), right: true,
                        cell: (row) => number(value(row, name), `metrics.jsonl:${name}`, short)});
    return [...all,
        {name: "samples/s", key: (row) => row.rate, right: true,
         cell: (row) => number(row.rate, "metrics.jsonl:step*batch/seconds", short)},
        {name: "goodput", right: true,
         cell: (row) => number(details.get(row.run)?.goodput, "report:goodput", share)},
        {name: "took", key: lasted, right: true,
         cell: (row) => number(lasted(row), "run.json:entries", duration)},
        {name: "began", key: (row) => row.began, right: true,
         cell: (row) => number(row.began, "run.json:entries.0.begin", moment,
             {title: zone(row.began)})}];
}

function best(rows) {
    const found = rows.filter((row) => loss(row) !== null);
    return found.reduce((a, b) => (a && loss(a) <= loss(b) ? a : b), null);
}

function lead(rows) {
    const going = rows.filter((row) => row.state === "goes on").length, first = best(rows);
    const parts = [number(rows.length, "runs", count, {}, "strong"),
        ` run${rows.length === 1 ? "" : "s"}`];
    parts.push(...(going ? [", of which ", number(going, "runs:state", count),
        ` go${going === 1 ? "es" : ""} on.`]
        : ["; none goes on."]));
    if (first && rows.length > 1)
        parts.push(" The lowest loss is that of ", element("strong", {},
            from("directory", first.name)), ", ",
                   number(loss(first), "metrics.jsonl:loss", short), ".");
    return element("p", {class: "lead"}, ...parts);
}

// Options and results of the chosen runs; those that differ come first.
function compare(rows) {
    const fields = new Map(), put = (name, row, found) => {
        if (!fields.has(name)) fields.set(name, new Map());
        fields.get(name).set(row.run, found);
    };
    for (const row of rows) {
        for (const [name, found] of Object.entries(row.options ?? {}))
            if (name !== "--out") put(name, row, from(`run.json:options.${name}`, found));
        for (const name of ["lanes", "workers", "threads", "batch", "parameters", "grain"])
            if (row[name] !== undefined && row[name] !== -1)
                put(name, row, typeof row[name] === "number"
                    ? number(row[name], `run.json:${name}`, count)
                        : from(`run.json:${name}`, row[name]));
        for (const [name, found] of Object.entries(row.results ?? {}))
            put(name, row, number(found, `metrics.jsonl:${name}`, short));
        for (const [name, found] of Object.entries(row.evaluation ?? {}))
            put(`${name} of the evaluation`, row, number(found, `metrics.jsonl:eval.${name}`,
                short));
    }
    const differ = (found) => new Set(rows.map((row) => found.get(row.run)?.textContent)).size > 1;
    const unequal = [...fields].filter(([, found]) => differ(found));
    const line = ([name, found]) => element("tr", {}, element("th", {scope: "row"}, name),
        ...rows.map((row) => element("td", {class: "differs"}, found.get(row.run) ?? "–")));
    return element("section", {},
        element("h2", {}, `${rows.length} runs side by side`),
        element("p", {class: "dim small"}, number(fields.size - unequal.length, "run.json", count),
            " other values are equal."),
        element("p", {}, element("a", {href: address("curves", null,
            `runs=${rows.map((row) => row.run).join(",")}`)}, "Their curves")),
        element("div", {class: "wide"}, element("table", {"aria-label": "what differs"},
            element("thead", {}, element("tr", {}, element("th", {}, ""),
                ...rows.map((row) => element("th", {scope: "col"}, row.name)))),
            element("tbody", {}, ...unequal.map(line)))));
}

export function show({runs}, {state}) {
    state.find ??= "";
    state.sort ??= {by: "began", down: true};
    state.chosen ??= new Set();
    if (!runs.length)
        return [element("p", {class: "lead"},
            "There are no runs here yet. A run that is started with ",
                        element("code", {}, "--out DIR"),
                            " below this directory appears by itself: ",
                        element("code", {}, "trireme train lenet5 --out DIR/first"))];
    const words = state.find.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = runs.filter((row) => words.every((word) => text(row).includes(word)));
    const choose = (run) => {
        if (!state.chosen.delete(run) && state.chosen.size < MOST) state.chosen.add(run);
        render();
    };
    const find = element("input", {type: "search", placeholder: "find: name, option, state",
        "aria-label": "find runs", "data-focus": "find", value: state.find,
        oninput: (event) => { state.find = event.target.value; render(); }});
    find.value = state.find;
    const list = table(columns(runs, state.chosen, choose), rows, state.sort, render,
                       {label: "runs", mark: (row) => state.chosen.has(row.run)});
    for (const box of list.querySelectorAll("input")) box.checked = box.hasAttribute("checked");
    const chosen = runs.filter((row) => state.chosen.has(row.run));
    return [lead(runs), element("div", {class: "tools"}, find,
        element("span", {class: "dim"}, ...(words.length
            ? [number(rows.length, "runs", count), " found"] : [])),
        element("span", {class: "space"}),
        element("span", {class: "dim small"}, ...(chosen.length
            ? [number(chosen.length, "runs", count), " chosen"]
            : ["choose up to eight to compare them"]))),
        chosen.length > 1 ? compare(chosen) : null, list].filter(Boolean);
}

const watcher = new IntersectionObserver((entries) => {
    for (const {target, isIntersecting} of entries)
        if (isIntersecting) detail(target, Number(target.dataset.run),
            Number(target.dataset.version));
});

async function detail(canvas, run, version) {
    const had = details.get(run);
    if (had) spark(canvas, had.points);
    if (had?.version === version) return;
    details.set(run, {...had, version, points: had?.points ?? []});
    try {
        const {training, goodput} = await get("row", {run, pixels: 96});
        details.set(run, {version, points: training, goodput});
        if (canvas.isConnected) spark(canvas, training);
        const row = canvas.closest("tr");
        const at = [...row?.parentElement?.parentElement?.querySelectorAll("th") ?? []]
            .findIndex((head) => head.textContent.startsWith("goodput"));
        if (at >= 0) row.cells[at].replaceChildren(number(goodput, "report:goodput", share));
    } catch {
        details.delete(run);
    }
}

export function drawn({runs}) {
    watcher.disconnect();
    const version = new Map(runs.map((row) => [row.run, row.version]));
    for (const canvas of document.querySelectorAll("canvas[data-run]")) {
        canvas.dataset.version = version.get(Number(canvas.dataset.run));
        watcher.observe(canvas);
    }
}
