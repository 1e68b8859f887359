// SPDX-License-Identifier: Apache-2.0
// Curves: does it learn? Any result of up to eight runs.
import {address, reload, render} from "/app.js";
import {get} from "/data.js";
import {asTable, count, element, from as said, number, short} from "/draw.js";
import {plot} from "/plot.js";

const MOST = 8;

const chosen = (query) => (query.get("runs") ?? "").split(",").filter(Boolean).map(Number).slice(0,
    MOST);

export async function load({query, state}) {
    state.key ??= "loss";
    state.by ??= "steps";
    const {runs} = await get("runs");
    const wanted = chosen(query);
    const shown = wanted.length ? runs.filter((row) => wanted.includes(row.run))
        : [...runs].sort((a, b) => (b.began ?? 0) - (a.began ?? 0)).slice(0, 1);
    const pixels = Math.max(50, Math.min(1200, document.getElementById("page").clientWidth - 112));
    const zoom = state.zoom ? {from: state.zoom[0], to: state.zoom[1]} : {};
    const curves = await Promise.all(shown.map((row) =>
        get("curve", {run: row.run, key: state.key, by: state.by, pixels, ...zoom})));
    return {runs, shown, curves};
}

const names = (curves) => [...new Set(curves.flatMap(({trained, evaluated}) =>
    [...trained, ...evaluated])), "lr"];

// Of a part that is shown, the mean of its last pixel.
const present = ({training, last}, {zoom}) => (zoom ? training.at(-1)?.[3] ?? null : last);

// "Loss of a is 2.1, and was 5.6 at the beginning; it still falls, by 0.02 in the last tenth."
function lead(shown, curves, state) {
    const points = curves[0]?.training ?? [], last = points.at(-1), tenth = points.length / 10 | 0;
    if (!last)
        return element("p", {class: "lead"},
            `${shown.length > 1 ? "These runs have" : "This run has"} no `,
                       element("strong", {}, state.key), " yet.");
    const mean = (part) => part.reduce((sum, x) => sum + x, 0) / part.length;
    const late = points.slice(-tenth).map((point) => point[3]);
    const before = points.slice(-2 * tenth, -tenth).map((point) => point[3]);
    const change = tenth ? mean(late) - mean(before) : 0;
    // What batches differ by is no change: three standard errors of the difference.
    const spread = (part, middle = mean(part)) =>
        mean(part.map((x) => (x - middle) ** 2)) / (part.length - 1 || 1);
    const noise = tenth ? 3 * Math.sqrt(spread(late) + spread(before)) : 0;
    const figure = (value) => number(value, `metrics.jsonl:${state.key}`, short);
    const name = state.key[0].toUpperCase() + state.key.slice(1);
    const of = state.zoom ? " of what is shown" : "";
    return element("p", {class: "lead"}, element("strong", {}, name), " of ",
        element("strong", {}, said("directory", shown[0].name)), " is ",
        element("strong", {}, figure(present(curves[0], state))), ...points.length > 1
            ? [", and was ", figure(points[0][3]), ` at the beginning${of}`] : [],
        ...Math.abs(change) > Math.max(noise, 0.002 * Math.abs(last[3]))
            ? [`; it still ${change < 0 ? "falls" : "rises"}, by `, figure(Math.abs(change)),
                ` in the last tenth${of}.`]
            : [tenth ? `; it hardly changes in the last tenth${of}.` : "."]);
}

const choice = (label, all, value, set) => element("label", {}, label,
    element("select", {"data-focus": label, onchange: (event) => set(event.target.value)},
        ...all.map((one) => element("option", {value: one, selected: one === value ? "" : null},
            one))));

const toggle = (label, on, set) => element("button", {type: "button",
    "aria-pressed": String(Boolean(on)),
    "data-focus": label, onclick: () => set(!on)}, label);

const head = ({by}) => ["run", "of", by, "least", "most", "mean"];

// Every point that is drawn, for programs and for readers of screens.
function rows({shown, curves}) {
    return curves.flatMap(({training, evaluations}, i) => [
        ...training.map((point) => [shown[i].name, "training", ...point]),
        ...evaluations.map((point) => [shown[i].name, "evaluation", ...point])]);
}

function save(data, state) {
    const cell = (text) => /[",\n]/.test(text) ? `"${String(text).replaceAll('"', '""')}"` : text;
    const lines = [head(state), ...rows(data)]
        .map((line) => line.map(cell).join(","));
    const link = element("a", {download: `${state.key}.csv`,
        href: URL.createObjectURL(new Blob([lines.join("\n") + "\n"], {type: "text/csv"}))});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function legend({shown, curves}, state) {
    return shown.map((row, i) => {
        const swatch = element("span", {class: "swatch"});
        swatch.style.background = `var(--run${i})`;
        return element("span", {}, swatch, said("directory", row.name), " ",
            number(present(curves[i], state), `metrics.jsonl:${state.key}`, short));
    });
}

export function show(data, current) {
    const {shown, curves, runs} = data, {state, query} = current;
    if (!shown.length) return [element("p", {class: "lead"}, "There are no runs here yet.")];
    const set = (name, load) => (value) => { state[name] = value; (load ? reload : render)(); };
    const tools = element("div", {class: "tools"},
        choice("result", [...new Set([state.key, ...names(curves)])], state.key, (key) => {
            state.key = key;
            state.zoom = null;
            reload();
        }),
        choice("over", ["steps", "time"], state.by, (by) => {
            state.by = by;
            state.zoom = null;
            reload();
        }),
        element("label", {}, "smoothing", element("input",
            {type: "range", min: 0, max: 0.98, step: 0.02,
            value: state.smoothing ?? 0, "data-focus": "smoothing",
            oninput: (event) => set("smoothing")(Number(event.target.value))})),
        toggle("log", state.log, set("log")),
        state.zoom ? element("button", {type: "button", "data-focus": "whole",
                                        onclick: () => set("zoom", true)(null)}, "whole run")
                                            : null,
        element("span", {class: "space"}),
        element("button", {type: "button", "data-focus": "csv", onclick: () => save(data, state)},
            "CSV"));
    const add = runs.length > shown.length && shown.length < MOST
        ? choice("add", ["", ...runs.filter((row) =>
        !shown.includes(row)).map((row) => row.name)], "", (name) => {
        const row = runs.find((one) => one.name === name);
        location.hash = address("curves", null,
            `runs=${[...shown, row].map((one) => one.run).join(",")}`);
    }) : null;
    if (add) tools.insertBefore(add, tools.lastChild);
    const damaged = curves.reduce((sum, curve) => sum + curve.damaged, 0);
    const back = curves.reduce((sum, curve) => sum + curve.back, 0);
    return [lead(shown, curves, state), tools,
        element("figure", {}, element("figcaption", {class: "small"}, ...legend(data, state),
            element("span", {class: "dim"},
                "band: least to most of a pixel; broken: evaluations; drag to zoom")),
            element("canvas", {id: "curve", role: "img",
                "aria-label": `${state.key} over ${state.by}`}),
            asTable("points of the curves", head(state), rows(data), "metrics.jsonl")),
        damaged ? element("p", {class: "warn small"},
            number(damaged, "metrics.jsonl:damaged", count),
                ` damaged line${damaged === 1 ? " is" : "s are"} left out.`) : null,
        back && state.by === "time" ? element("p", {class: "dim small"},
            "The seconds began anew ", number(back, "metrics.jsonl:seconds", count),
            back === 1 ? " time" : " times",
            ", as when a run goes on or a clock is set back; those before are added.") : null]
        .filter(Boolean);
}

let scale = null;

export function drawn({shown, curves}, {state, query}) {
    const canvas = document.getElementById("curve");
    if (!canvas) return;
    const begin = Math.min(...curves.map((curve) => curve.begin ?? Infinity));
    const end = Math.max(...curves.map((curve) => curve.end ?? -Infinity));
    const all = curves.flatMap((curve, i) => [
        {points: curve.training, last: present(curve, state), colour: `run${i}`},
        {points: curve.evaluations, colour: `run${i}`, dashed: true}]);
    const [from, to] = state.zoom ?? [begin, end];
    // A line of the log leads here.
    const mark = state.by === "steps" && query.has("step") ? Number(query.get("step")) : null;
    scale = plot(canvas, Math.max(220, Math.min(420, innerHeight - 320)), all,
                 {from, to, log: state.log, time: state.by === "time",
                  smoothing: state.smoothing ?? 0, mark});
    canvas.onpointerdown = (event) => drag(event, canvas, state);
}

function drag(event, canvas, state) {
    if (!scale) return;
    const at = (e) => e.clientX - canvas.getBoundingClientRect().left, begin = at(event);
    canvas.setPointerCapture(event.pointerId);
    canvas.onpointerup = (end) => {
        canvas.onpointerup = null;
        const [left, right] = [begin, at(end)].sort((a, b) => a - b);
        if (right - left < 8) return;
        state.zoom = [scale.value(Math.max(left, scale.left)),
            scale.value(Math.min(right, scale.right))];
        reload();
    };
}

// a, d: to the left, to the right; w, s: closer, away.
export function key(event, {state, data}) {
    const begin = Math.min(...data.curves.map((curve) => curve.begin ?? Infinity));
    const end = Math.max(...data.curves.map((curve) => curve.end ?? -Infinity));
    let [from, to] = state.zoom ?? [begin, end];
    const size = to - from, middle = (from + to) / 2;
    const moves = {a: [from - size / 4, to - size / 4], d: [from + size / 4, to + size / 4],
                   w: [middle - size / 4, middle + size / 4], s: [middle - size, middle + size]};
    if (!moves[event.key] || !(end > begin)) return;
    [from, to] = moves[event.key];
    from = Math.max(from, begin);
    to = Math.min(to, end);
    if (!(to > from)) return;
    state.zoom = from <= begin && to >= end ? null : [from, to];
    reload();
}
