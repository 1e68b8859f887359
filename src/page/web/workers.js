// SPDX-License-Identifier: Apache-2.0
// Workers: who is slow, and since when?
import {render} from "/app.js";
import {get} from "/data.js";
import {bytes, count, duration, element, from, number, share} from "/draw.js";
import {heat} from "/heat.js";
import {groups} from "/kinds.js";

// What a cell shows, and what is said of it.
const measures = {
    lane: {title: "time of a lane",
        note: "against the median of the step: grey is the median, red twice as long"},
    wait: {title: "waiting", note: "share of the time"},
    samples: {title: "samples", note: "share of the time in which it waits for samples"},
    no_core: {title: "no core",
        note: "share of the time in which it was ready to run and had no core"},
};

export async function load({run, state}) {
    state.measure ??= "lane";
    const pixels = Math.max(50, Math.min(1100, document.getElementById("page").clientWidth - 140));
    const [{row, file}, report, {hosts}] = await Promise.all([
        get("run", {run}), get("report", {run}), get("heat",
            {run, pixels: Math.floor(pixels / 2)})]);
    return {row, file, report, hosts};
}

const name = (host, worker) => `${host ? `${host} ` : ""}worker ${worker}`;

// Each worker, with its host; places that were never used are left out.
export function all(hosts) {
    return hosts.flatMap(({host, steps, workers}) => workers
        .filter(({lanes, wait}) => lanes > 0 || wait.some((value) => value > 0))
        .map((worker) => ({...worker, host, steps, name: name(host, worker.worker)})));
}

function median(values) {
    const known = values.filter((value) => value !== null).sort((a, b) => a - b);
    return known.length ? known[(known.length - 1) >> 1] : null;
}

function values(workers, measure) {
    if (measure !== "lane") return workers.map((worker) => worker[measure]);
    const usual = workers[0].steps.map((_, i) => median(workers.map(({lane}) => lane[i] ?? null)));
    return workers.map(({lane}) => lane.map((time, i) =>
        (time === null || !usual[i] ? null : time / usual[i] - 1)));
}

const slow = ["slow-worker", "shared-core", "throttled", "lost-lanes", "samples", "uneven-lanes",
    "not-worth-it"];

function lead(report, workers) {
    const found = report.findings.find(({rule}) => slow.includes(rule));
    const text = found?.evidence ?? (workers.length > 1
        ? `No worker of ${workers.length} stands out.` : "This run has one process.");
    return element("p", {class: "lead", "data-source": "report:findings"},
        ...text.split(/(\d[\d,.]*\s(?:%|s|ms|us)|[Ww]orker \d+)/).map((part, i) =>
        (i % 2 ? element("strong", {}, part) : part)));
}

function table(report, workers) {
    const of = (worker) => report.workers.findIndex((one) =>
        one.worker === worker.worker && one.host === worker.host);
    const field = (worker, get, path, text) => {
        const i = of(worker);
        return number(i < 0 ? null : get(report.workers[i]), `report:workers.${i}.${path}`, text,
            {class: "right"}, "td");
    };
    const waits = (one) => Object.entries(one.shares)
        .reduce((sum, [kind, value]) => groups[kind] ? sum : sum + value, 0);
    return element("div", {class: "wide"}, element("table",
        {"aria-label": "workers, in the last third of the run"},
        element("thead", {}, element("tr", {}, element("th", {scope: "col"}, "worker"),
            ...["computes", "waits", "no core", "a lane takes", "lanes", "of them lost",
                "memory"].map((title) =>
                element("th", {scope: "col", class: "right"}, title)))),
        element("tbody", {}, ...workers.map((worker) => element("tr", {},
            element("td", {}, from("workers.series", worker.name)),
            field(worker, (one) => one.shares.compute ?? 0, "shares.compute", share),
            field(worker, (one) => Math.max(0, waits(one)), "shares", share),
            field(worker, (one) => one.no_core, "no_core", share),
            field(worker, (one) => one.lane || null, "lane", duration),
            field(worker, (one) => one.lanes, "lanes", count),
            field(worker, (one) => one.lost, "lost", count),
            number(worker.memory || null, `workers.series:${worker.worker}.memory-kib`,
                   bytes, {class: "right"},
                       "td"))))));
}

export function show({row, report, hosts}, current) {
    current.shown = {row};
    const workers = all(hosts), {state} = current;
    if (!workers.length)
        return [element("p", {class: "lead"},
            "This run has no workers.series: what its workers spent their time on is not known.")];
    const button = (key) => element("button", {type: "button",
        "aria-pressed": String(state.measure === key),
        "data-focus": key, onclick: () => { state.measure = key; render(); }}, measures[key].title);
    return [lead(report, workers),
        element("div", {class: "tools"}, ...Object.keys(measures).map(button)),
        element("p", {class: "dim small"}, measures[state.measure].note, "; ✕: it died. ",
                element("span", {id: "below", "aria-live": "polite"})),
        element("figure", {}, element("canvas", {id: "heat", role: "img",
            "aria-label": `${measures[state.measure].title} of each worker over steps`})),
        element("section", {}, element("h2", {}, "In the last third of the run"),
            table(report, workers)),
        ];
}

// Draws the times of workers; returns what finds a cell below a pixel, or null.
export function picture(canvas, {hosts, file}, measure) {
    const workers = all(hosts);
    if (!canvas || !workers.length) return null;
    const shown = values(workers, measure);
    const marks = (file?.faults ?? []).filter(({kind}) => kind === "death").map(({worker, step}) =>
        ({row: workers.findIndex((one) => one.worker === worker), step}));
    return heat(canvas, workers.map((worker, i) => ({name: worker.name, values: shown[i]})),
                workers[0].steps, {marks: marks.filter(({row}) => row >= 0)});
}

export function drawn(data, {state}) {
    const canvas = document.getElementById("heat"), workers = all(data.hosts);
    const drawing = picture(canvas, data, state.measure);
    if (!drawing) return;
    canvas.onpointermove = (event) => {
        const box = canvas.getBoundingClientRect();
        const at = drawing.find(event.clientX - box.left, event.clientY - box.top),
            below = document.getElementById("below");
        if (!at || !below) return;
        const worker = workers[at.row], value = worker[state.measure][at.column];
        below.textContent = `${worker.name}, up to step ${count(worker.steps[at.column])}: ` +
            (value === null ? "nothing" : state.measure === "lane"
                ? `${duration(value / 1e9)} a lane` : share(value));
    };
}
