// SPDX-License-Identifier: Apache-2.0
// Workers: who is slow, and since when?
import {address, render} from "/app.js";
import {get} from "/data.js";
import {asTable, bytes, count, duration, element, emphasized, from} from "/draw.js";
import {number, share} from "/draw.js";
import {column, heat} from "/heat.js";
import {groups} from "/kinds.js";

// What a cell shows, how its number is written, and what is said of it.
const measures = {
    lane: {title: "time of a lane", field: "compute/lanes-done", text: (ns) => duration(ns / 1e9),
        note: "against the median of the step, in its stage: grey is that, red twice as long"},
    wait: {title: "waiting", field: "waits", text: share, note: "share of the time"},
    samples: {title: "samples", field: "samples", text: share,
        note: "share of the time in which it waits for samples"},
    no_core: {title: "no core", field: "no-core", text: share,
        note: "share of the time in which it was ready to run and had no core"},
};

// By what workers are grouped: fields of report:places.
const kinds = {
    host: (host) => host,
    replica: (number) => `replica ${number}`,
    seats: (seats) => `${seats.includes("-") ? "seats" : "seat"} ${seats}`,
    stages: (stages) => `${stages.includes(",") ? "stages" : "stage"} ${stages}`,
};

export async function load({run, state}) {
    state.measure ??= "lane";
    const pixels = Math.max(50, Math.min(1100, document.getElementById("page").clientWidth - 140));
    const [{row, file}, report, times] = await Promise.all([
        get("run", {run}), get("report", {run}), get("heat",
            {run, pixels: Math.floor(pixels / 2)})]);
    return {row, file, report, times};
}

const name = (host, worker) => `${host ? `${host} ` : ""}worker ${worker}`;

const same = (a, b) => a.host === b.host && a.worker === b.worker;

// Each worker, with its host and place; places that were never used are left out.
export function all({times, report}, by = "") {
    const found = times.hosts.flatMap(({host, workers}) => workers
        .filter(({lanes, wait}) => lanes > 0 || wait.some((value) => value > 0))
        .map((worker) => ({...worker, host, name: name(host, worker.worker)})));
    if (!by) return found;
    for (const worker of found) {
        const value = report.places.find((place) => same(place, worker))?.[by];
        worker.group = value === null || value === undefined ? "others" : kinds[by](value);
    }
    const order = [...new Set(found.map(({group}) => group))].sort((a, b) =>
        a.localeCompare(b, "en", {numeric: true}));
    return found.sort((a, b) => order.indexOf(a.group) - order.indexOf(b.group));
}

// Those by which there is more than one group; hosts first.
const groupings = ({places}) => Object.keys(kinds).filter((by) =>
    new Set(places.map((place) => place[by] ?? null)).size > 1);

function median(values) {
    const known = values.filter((value) => value !== null).sort((a, b) => a - b);
    return known.length ? known[(known.length - 1) >> 1] : null;
}

// Lanes of different stages take different times.
function values(workers, measure, steps, places) {
    if (measure !== "lane") return workers.map((worker) => worker[measure]);
    const stages = workers.map((worker) => places.find((one) => same(one, worker))?.stages ?? "");
    const usual = new Map([...new Set(stages)].map((stage) => {
        const equal = workers.filter((_, k) => stages[k] === stage);
        return [stage, steps.map((_, i) => median(equal.map(({lane}) => lane[i])))];
    }));
    return workers.map(({lane}, k) => lane.map((time, i) => {
        const by = usual.get(stages[k])[i];
        return time === null || !by ? null : time / by - 1;
    }));
}

const slow = ["slow-worker", "shared-core", "throttled", "lost-lanes", "samples", "uneven-lanes",
    "not-worth-it"];

function lead(report, workers) {
    const found = report.findings.find(({rule}) => slow.includes(rule));
    const text = found?.evidence ?? (workers.length > 1
        ? `No worker of ${workers.length} stands out.` : "This run has one process.");
    return element("p", {class: "lead", "data-source": "report:findings"}, ...emphasized(text));
}

const right = {scope: "col", class: "right"};

const head = (first, titles) => element("thead", {}, element("tr", {},
    element("th", {scope: "col"}, first), ...titles.map((title) => element("th", right, title))));

const named = (text) => element("td", {},
    from("workers.series", text.replaceAll(" ", "\u00a0")));

const bad = {died: "bad", "was killed": "bad", starts: "warn", works: "good"};

// States are those of now, or of the run's end.
function table({report, times}) {
    const {places} = report, seen = times.hosts.flatMap(({host, workers}) =>
        workers.map((worker) => ({...worker, host})));
    const rows = places.length ? places : all({times});
    const parts = ["seats", "stages"].filter((part) => places.some((place) => place[part]));
    const waits = (one) => Object.entries(one.shares)
        .reduce((sum, [kind, value]) => groups[kind] ? sum : sum + value, 0);
    const line = (place, i) => {
        const at = report.workers.findIndex((one) => same(one, place));
        const field = (get, path, text) => number(at < 0 ? null : get(report.workers[at]),
            `report:workers.${at}.${path}`, text, {class: "right"}, "td");
        return element("tr", {},
            named(name(place.host, place.worker)),
            element("td", {class: `right ${bad[place.state] ?? ""}`,
                "data-source": `report:places.${i}.state`}, place.state || "–"),
            number(place.restarts, `report:places.${i}.restarts`, count, {class: "right"}, "td"),
            ...parts.map((part) => element("td", {class: "right",
                "data-source": `report:places.${i}.${part}`}, place[part] ?? "–")),
            number(seen.find((one) => same(one, place))?.memory || null,
                `workers.series:${place.worker}.memory-kib`, bytes, {class: "right"}, "td"),
            field((one) => one.shares.compute ?? 0, "shares.compute", share),
            field((one) => Math.max(0, waits(one)), "shares", share),
            field((one) => one.no_core, "no_core", share),
            field((one) => one.lane || null, "lane", duration),
            field((one) => one.lanes, "lanes", count),
            field((one) => one.lost, "lost", count));
    };
    return element("div", {class: "wide"}, element("table", {"aria-label": "workers"},
        head("worker", ["state", "restarts", ...parts, "memory", "computes", "waits", "no core",
            "a lane takes", "lanes", "of them lost"]),
        element("tbody", {}, ...rows.map(line))));
}

const value = (worker, measure, i) => number(worker[measure][i],
    `workers.series:${worker.name}.${measures[measure].field}`, measures[measure].text,
    {class: "right"}, "td");

// The steps of a column: "step 7", "steps 41 to 50".
function range({first, steps}, i) {
    const begin = i ? steps[i - 1] + 1 : first;
    return begin === steps[i] ? `step ${count(begin)}` : `steps ${count(begin)} to ` +
        count(steps[i]);
}

// What is drawn, as a table of at most a thousand cells.
export function numbers(data, measure) {
    const {times} = data, workers = all(data), {title, text} = measures[measure];
    const each = Math.ceil(times.steps.length * workers.length / 1000);
    const rows = times.steps.map((_, i) => i).filter((i) => i % each === 0).map((i) =>
        [range(times, i), ...workers.map((worker) =>
            (worker[measure][i] === null ? "–" : text(worker[measure][i])))]);
    return asTable(`${title} by steps and worker`, ["steps", ...workers.map((one) => one.name)],
        rows, "workers.series");
}

const asked = ({query}) => (query.has("step") ? Number(query.get("step")) : null);

// What each worker took at a step.
function moment({times}, workers, current) {
    const step = asked(current), i = column(times, step), {run} = current;
    if (step === null) return null;
    const links = element("span", {class: "small"},
        element("a", {href: address("curves", null, `runs=${run}&step=${step}`)}, "Curves"), " ",
        element("a", {href: address("log", run, `since=${step}`)}, "Log"), " ",
        element("a", {href: address("workers", run), "data-focus": "no step"}, "Close"));
    if (i < 0)
        return element("section", {}, element("h2", {}, `Step ${count(step)}`),
            element("p", {class: "small"}, "The times of workers do not have it. ", links));
    return element("section", {}, element("h2", {}, `Step ${count(step)}`),
        element("p", {class: "dim small"}, "Of ", from("workers.series:step", range(times, i)),
            times.seconds[i] === null ? "" : [", the slowest of which took ",
                number(times.seconds[i], "workers.series:slowest", duration)], ". ", links),
        element("div", {class: "wide"}, element("table", {"aria-label": `step ${step} by worker`},
            head("worker", Object.values(measures).map(({title}) => title)),
            element("tbody", {}, ...workers.map((worker) => element("tr", {},
                named(worker.name),
                ...Object.keys(measures).map((measure) => value(worker, measure, i))))))));
}

export function show(data, current) {
    const {row, report} = data, {state} = current, workers = all(data), by = groupings(report);
    current.shown = {row};
    state.by ??= by.includes("host") ? "host" : "";
    if (!workers.length)
        return [element("p", {class: "lead"},
            "This run has no workers.series: what its workers spent their time on is not known.")];
    const button = (key) => element("button", {type: "button",
        "aria-pressed": String(state.measure === key),
        "data-focus": key, onclick: () => { state.measure = key; render(); }}, measures[key].title);
    const group = element("label", {}, "group by", element("select", {"data-focus": "group",
        onchange: ({target}) => { state.by = target.value; render(); }},
        ...["", ...by].map((one) => element("option",
            {value: one, selected: one === state.by ? "" : null}, one || "nothing"))));
    const over = row.state !== "goes on";
    return [lead(report, workers),
        element("div", {class: "tools"}, ...Object.keys(measures).map(button),
            by.length ? group : null),
        element("figure", {}, element("figcaption", {class: "dim small"},
            `${measures[state.measure].note}; ✕: it died. `,
            element("span", {id: "below", "aria-live": "polite"})),
            element("canvas", {id: "heat", role: "img",
                "aria-label": `${measures[state.measure].title} of each worker over steps`}),
            numbers(data, state.measure)),
        moment(data, workers, current),
        element("section", {}, element("h2", {}, over ? "At the end" : "Now"),
            element("p", {class: "dim small"},
                "The shares and the time of a lane are of the last third of the run."),
            table(data))].filter(Boolean);
}

// Draws the times of workers; returns what finds a cell below a pixel, or null.
export function picture(canvas, {times, report, file}, measure, by = "", step = null) {
    const workers = all({times, report}, by);
    if (!canvas || !workers.length) return null;
    const shown = values(workers, measure, times.steps, report.places);
    const marks = (file?.faults ?? []).filter(({kind}) => kind === "death").map((fault) =>
        ({row: workers.findIndex(({worker, host}) => worker === fault.worker &&
            host === fault.host), step: fault.step}));
    const {find} = heat(canvas, workers.map((worker, i) => ({values: shown[i], group: worker.group,
        name: by === "host" ? name("", worker.worker) : worker.name})), times,
        {marks: marks.filter(({row}) => row >= 0), chosen: step === null ? -1
            : column(times, step)});
    canvas.style.cursor = "pointer";
    return (event) => {
        const box = canvas.getBoundingClientRect();
        const at = find(event.clientX - box.left, event.clientY - box.top);
        return at && {worker: workers[at.row], column: at.column, step: times.steps[at.column]};
    };
}

export function drawn(data, current) {
    const canvas = document.getElementById("heat"), {state, run} = current;
    const find = picture(canvas, data, state.measure, state.by, asked(current));
    if (!find) return;
    canvas.onpointermove = (event) => {
        const at = find(event), below = document.getElementById("below");
        if (!at || !below) return;
        const {title, text} = measures[state.measure], found = at.worker[state.measure][at.column];
        below.textContent = `${at.worker.name}, ${range(data.times, at.column)}: ` +
            (found === null ? "nothing" : `${title} ${text(found)}`);
    };
    canvas.onclick = (event) => {
        const at = find(event);
        if (at) location.hash = address("workers", run, `step=${at.step}`);
    };
}

// a, d: to the columns beside the step that is marked.
export function key(event, current) {
    const {times} = current.data, move = {a: -1, d: 1}[event.key], last = times.steps.length - 1;
    if (!move || last < 0) return;
    const before = asked(current), i = before === null ? last : column(times, before) + move;
    location.replace(address("workers", current.run,
        `step=${times.steps[Math.max(0, Math.min(last, i))]}`));
}
