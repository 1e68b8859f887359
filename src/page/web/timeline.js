// SPDX-License-Identifier: Apache-2.0
// Timeline: what happened in this step? Per thread a row of what it did, and one of operators.
import {reload} from "/app.js";
import {get} from "/data.js";
import {asTable, colour, count, duration, element, from as said, hatch, number, pen, share, ticks,
    write} from "/draw.js";
import {without} from "/profile.js";

const titles = {compute: "compute", sum: "sums, update", move: "moves", data: "samples",
    save: "between steps", wait: "waiting"};
const categories = Object.keys(titles);
const LEFT = 84, ROW = 18, GAP = 10, TOP = 22, OVERVIEW = 5;

export async function load({run, state}) {
    const {row} = await get("run", {run});
    const pixels = Math.max(100, document.getElementById("page").clientWidth - LEFT - 64);
    const query = state.range ? {from: Math.round(state.range[0]), to: Math.round(state.range[1])}
        : {};
    const data = await get("slices", {run, pixels, ...query});
    if (data && state.name !== data.name) {
        state.name = data.name;
        state.whole = state.range = state.chosen = null;
    }
    if (data && !state.whole) {
        const [from, to] = whole(data);
        state.whole = await get("slices", {run, pixels, from, to});
    }
    if (data && !state.range && data.steps.length) { // the first whole step
        const [, begin, end] = data.steps[0];
        state.range = [begin, end];
        return {row, data: await get("slices", {run, pixels, from: begin, to: end})};
    }
    return {row, data};
}

// Before the first step a profile has what prepares it, which is longer than many steps.
const whole = (data) => [data.steps[0]?.[1] ?? data.begin, data.end];

const inside = ({data, state}) => state.range ?? whole(data);

function stepAt(data, [from, to]) {
    return data.steps.find(([, begin, end]) => begin < to && end > from);
}

function details(data, slice) {
    if (!slice) return element("p", {class: "dim small"},
        "Click a slice for its details; drag pans, Shift and the wheel zoom. Keys: w s zoom, " +
        "a d pan, n p next and previous step; arrows, on the canvas, go from slice to slice.");
    const [step, begin] = stepAt(data, [slice.begin, slice.begin + 1]) ?? [null, data.begin];
    const rows = [["begins", `${duration((slice.begin - begin) / 1e9)} into ` +
        (step === null ? "the profile" : `step ${count(step)}`)],
        ["takes", duration((slice.end - slice.begin) / 1e9)]];
    const item = slice.is;
    if (slice.step) rows.push(["step", count(slice.step)]);
    if (slice.lane >= 0) rows.push(["lane", slice.lane]);
    if (slice.whom >= 0) rows.push(["waits for", name(data.threads[slice.whom])]);
    for (const [, , thread, begin, end] of slice.waited)
        rows.push([said("spans", `${name(data.threads[thread])} waited`),
            duration((end - begin) / 1e9)]);
    if (item) {
        rows.push(["of", item.in], ["gives", item.out],
            ["phase", item.phase + (item.backward ? ", backward" : "")]);
        const of = (value, unit, size) => `${(value / size).toPrecision(3)}\u202f${unit}, ` +
            `${(value / (slice.end - slice.begin)).toPrecision(3)}\u202f`;
        if (item.flops > 0)
            rows.push(["arithmetic", of(item.flops, "GFLOP", 1e9) + "GFLOP/s"]);
        if (item.bytes > 0) rows.push(["memory", of(item.bytes, "MiB", 1048576) + "GB/s"]);
        if (item.ideal > 0) rows.push(["of the roofline",
            share(item.ideal / (slice.end - slice.begin))]);
        if (item.calls > 0) rows.push(["its mean", duration(item.ns / item.calls / 1e9)]);
        rows.push(["others waited for all of these", duration(item.waited / 1e9)]);
        if (item.move) rows.push(["why", item.move]);
    }
    const title = item ? `${item.operator} ${item.name}` : slice.kind >= 0 ? data.kinds[slice.kind]
        : "merged";
    return element("div", {}, element("h2", {class: "mono"}, title),
        element("dl", {}, ...rows.flatMap(([name, value]) =>
            [element("dt", {}, name), element("dd", {"data-source": "spans, items.jsonl"},
            value)])));
}

export function show({row, data}, current) {
    current.shown = {row};
    if (!data) return [without(row)];
    const {state} = current, range = inside({data, state}), step = stepAt(data, range);
    const move = (by) => () => go(state, data, by);
    return [
        element("p", {class: "lead"}, step ? ["Step ", number(step[0], "steps.csv:step", count, {},
            "strong"), " takes ",
            number((step[2] - step[1]) / 1e9, "steps.csv:seconds", duration, {}, "strong")] : "",
            step ? ". " : "", data.path ? ["The critical path of a step: ",
                said("spans", data.path.replaceAll(" %", "\u202f%")), "."] : "",
            data.lost ? [" ", number(data.lost, "spans:lost", count),
                " spans were lost while it was recorded."] : ""),
        element("div", {class: "tools"}, element("button",
            {type: "button", onclick: move(-1), "data-focus": "previous"}, "previous step"),
            element("button", {type: "button", onclick: move(1), "data-focus": "next"},
                "next step"),
            element("button", {type: "button", "data-focus": "all", onclick: () =>
                zoom(state, data, whole(data))}, "all steps"),
            element("input", {type: "search", placeholder: "find an operator",
                "aria-label": "find an operator", "data-focus": "find",
                value: state.find ?? "", oninput: (event) =>
                    { state.find = event.target.value; drawn({row, data}, current); }})),
        element("figure", {}, element("canvas", {id: "overview", role: "img",
            "aria-label": "all of the profile"}),
            element("canvas", {id: "tracks", role: "img", tabindex: "0",
                "aria-label": "what each thread did"}),
            element("div", {class: "key"}, ...categories.map((name) =>
                element("span", {}, element("span", {class: `swatch k-${name}`}), titles[name])),
                element("span", {}, element("span", {class: "swatch k-ink"}), "critical path")),
            asTable("time of threads", ["thread", "does", ...categories.map((name) =>
                titles[name])], data.threads.map((thread) => [name(thread), thread.what,
                ...categories.map((_, k) => duration(thread.times.filter((one) => one[2] === k)
                    .reduce((sum, [begin, end]) => sum + end - begin, 0) / 1e9))]), "spans")),
        element("section", {id: "details", "aria-live": "polite"}, details(data, state.chosen))];
}

const name = ({host, worker, thread}) =>
    `${host ? `${host} ` : ""}w${worker}${thread ? `.${thread}` : ""}`;

function zoom(state, data, [from, to]) {
    const [first, last] = whole(data), size = Math.min(Math.max(to - from, 1000), last - first);
    const begin = Math.max(first, Math.min(from, last - size));
    state.range = [begin, begin + size];
    drawn({data}, {state});
    reload();
}

function go(state, data, by) {
    const at = data.steps.findIndex(([, begin, end]) => begin < inside({data, state})[1] &&
        end > inside({data, state})[0]);
    const step = data.steps[Math.max(0, Math.min(data.steps.length - 1, at + by))];
    if (step) zoom(state, data, [step[1], step[2]]);
}

export function key(event, {state, data: {data}}) {
    if (!data) return;
    const [from, to] = inside({data, state}), size = to - from, middle = (from + to) / 2;
    const keys = {w: [middle - size / 4, middle + size / 4], s: [middle - size, middle + size],
                  a: [from - size / 4, to - size / 4], d: [from + size / 4, to + size / 4]};
    if (keys[event.key]) zoom(state, data, keys[event.key]);
    if (event.key === "n") go(state, data, 1);
    if (event.key === "p") go(state, data, -1);
}

// Operators one after the other with the same scope, "layer1/0" of "layer1/0/conv1".
function scopes(data, operators, X) {
    const found = [];
    for (const [begin, end, , item] of operators) {
        const is = data.items[item], last = found.at(-1);
        const name = is ? is.scope.split("/").slice(0, 2).join("/") : "";
        const next = last && X(begin) - X(last.end) < 3; // else it waits in between
        if (next && last.name === name) last.end = end;
        else found.push({name, begin, end});
    }
    return found.filter((one) => one.name);
}

const same = (one, other) => one.y === other?.y && one.begin === other.begin;

// The slice to which an arrow key leads: in the same row, or at the same time in the next.
function beside(boxes, now, key) {
    const [right, down] = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1],
                           ArrowDown: [0, 1]}[key] ?? [];
    if (right === undefined || !now) return right === undefined ? null : boxes[0];
    const rows = [...new Set(boxes.map(({y}) => y))].sort((a, b) => a - b);
    const row = boxes.filter(({y}) => y === rows[rows.indexOf(now.y) + down]);
    const far = (one) => Math.abs(one.x + one.w / 2 - now.x - now.w / 2);
    return right ? row[row.indexOf(now) + right] : row.sort((a, b) => far(a) - far(b))[0];
}

export function drawn({data}, {state}) {
    const canvas = document.getElementById("tracks"), strip = document.getElementById("overview");
    if (!canvas || !data) return;
    const threads = data.threads.filter(({times, operators}) => times.length || operators.length);
    const [from, to] = inside({data, state}), {g, width} = pen(canvas,
        TOP + threads.length * (2 * ROW + GAP));
    const X = (time) => LEFT + (time - from) / (to - from) * (width - LEFT), hatched = hatch(g),
        boxes = [];
    const fill = (category) => categories[category] === "wait" ? hatched
        : colour(categories[category]);
    const fills = categories.map((_, k) => fill(k));
    for (const at of ticks((from - origin(data, from)) / 1e9, (to - origin(data, from)) / 1e9,
        Math.max(2, Math.floor((width - LEFT) / 110)))) {
        const x = X(1e9 * at + origin(data, from));
        if (x > width - 30 || x < LEFT + 10) continue;
        write(g, duration(at), x, 8, "ink3", "center");
        g.fillStyle = colour("rule");
        g.fillRect(Math.round(x), TOP - 4, 1, threads.length * (2 * ROW + GAP));
    }
    threads.forEach((thread, i) => {
        const top = TOP + i * (2 * ROW + GAP);
        write(g, name(thread), 0, top + ROW / 2, "ink2");
        if (thread.what !== "computes" && width > 700) write(g, thread.what.split(" ")[0], 0,
            top + ROW * 1.5, "ink3");
    });
    g.save();
    g.beginPath();
    g.rect(LEFT, 0, width - LEFT, TOP + threads.length * (2 * ROW + GAP));
    g.clip();
    // A range that is new is drawn with what was asked for another one, until the answer comes.
    const seen = (slices) => slices.filter(([begin, end]) => end > from && begin < to);
    threads.forEach((thread, i) => {
        const top = TOP + i * (2 * ROW + GAP);
        for (const [begin, end, category, kind, whom, step, lane] of seen(thread.times)) {
            const x = X(begin), w = Math.max(1, X(end) - x);
            g.fillStyle = fills[category];
            g.fillRect(x, top, w, ROW - 2);
            boxes.push({x, y: top, w, h: ROW, begin, end, kind, whom, step, lane, item: -1,
                thread: data.threads.indexOf(thread)});
            if (kind >= 0 && categories[category] === "wait") caption(g, data.kinds[kind], x, top,
                w, "ink", "wait");
        }
        const operators = seen(thread.operators);
        for (const {name: of, begin, end} of scopes(data, operators, X)) {
            g.fillStyle = colour("paper");
            if (X(end) - X(begin) > 3) g.fillRect(X(end), top, 1, ROW - 2);
            caption(g, of, X(begin), top, X(end) - X(begin), "onfill", "compute");
        }
        for (const [begin, end, category, item, step, lane] of operators) {
            const x = X(begin), w = Math.max(1, X(end) - x), is = data.items[item];
            const wanted = !state.find || (is && `${is.operator} ${is.name}`.includes(state.find));
            g.globalAlpha = wanted ? 1 : 0.2;
            g.fillStyle = fills[category];
            g.fillRect(x, top + ROW, w > 2 ? w - 0.5 : w, ROW - 2);
            g.globalAlpha = 1;
            boxes.push({x, y: top + ROW, w, h: ROW, begin, end, kind: -1, whom: -1, step, lane,
                item, thread: data.threads.indexOf(thread)});
            if (is && wanted) caption(g, is.operator, x, top + ROW, w, "onfill",
                categories[category]);
        }
    });
    arrows(g, data, threads, X);
    critical(g, data, threads, X);
    g.strokeStyle = colour("link");
    const chosen = boxes.find((one) => same(one, state.chosen));
    if (chosen) g.strokeRect(chosen.x - 0.5, chosen.y - 0.5, chosen.w + 1, ROW - 1);
    g.restore();
    const at = (event) => {
        const box = canvas.getBoundingClientRect(), x = event.clientX - box.left,
            y = event.clientY - box.top;
        return boxes.findLast((one) => x >= one.x && x <= one.x + one.w && y >= one.y &&
            y < one.y + one.h);
    };
    const choose = (found) => {
        state.chosen = found ? {...found, is: data.items[found.item] ?? null,
            waited: data.arrows.filter(([thread, at]) => thread === found.thread &&
                at > found.begin && at <= found.end)} : null;
        document.getElementById("details").replaceChildren(details(data, state.chosen));
        drawn({data}, {state});
    };
    canvas.onkeydown = (event) => {
        const next = beside(boxes, boxes.find((one) => same(one, state.chosen)), event.key);
        if (next) choose(next);
        if (next) event.preventDefault();
    };
    pointer(canvas, state, data, (event) => choose(at(event)),
            (x) => from + (x - LEFT) / (width - LEFT) * (to - from));
    overview(strip, state, data, [from, to]);
}

// From what ended a wait to its end.
function arrows(g, data, threads, X) {
    const rows = data.threads.map((thread) => threads.indexOf(thread));
    const middle = (thread) => TOP + rows[thread] * (2 * ROW + GAP) + ROW / 2;
    g.strokeStyle = g.fillStyle = colour("ink2");
    for (const [thread, time, waiting, , end] of data.arrows) {
        if (rows[thread] < 0 || rows[waiting] < 0) continue;
        const down = rows[waiting] > rows[thread] ? 1 : -1, x = X(end), y = middle(waiting) -
            down * ROW / 2;
        g.beginPath();
        g.moveTo(X(time), middle(thread) + down * ROW / 2);
        g.lineTo(x, y - 4 * down);
        g.stroke();
        g.beginPath();
        g.moveTo(x, y);
        g.lineTo(x - 3, y - 5 * down);
        g.lineTo(x + 3, y - 5 * down);
        g.fill();
    }
}

// The critical path: a line below the thread that it is on, and from one thread to the next.
function critical(g, data, threads, X) {
    const rows = data.threads.map((thread) => threads.indexOf(thread));
    const y = (thread) => TOP + rows[thread] * (2 * ROW + GAP) + 2 * ROW + 2;
    g.strokeStyle = colour("ink");
    g.lineWidth = 2;
    g.beginPath();
    let later = null;
    for (const [thread, begin, end] of data.critical) {
        if (rows[thread] < 0) continue;
        const left = Math.max(X(begin), LEFT), right = X(end);
        g.moveTo(right, y(thread));
        g.lineTo(left, y(thread));
        if (later && Math.abs(later.x - right) < 2) {
            g.moveTo(right, y(thread));
            g.lineTo(right, y(later.thread));
        }
        later = {thread, x: left};
    }
    g.stroke();
    g.lineWidth = 1;
}

// Times count from the begin of the step that is shown.
const origin = (data, from) => (stepAt(data, [from, from + 1]) ?? [0, data.begin])[1];

function caption(g, text, x, y, w, ink, ground) {
    if (w < 30) return;
    g.font = "10px Inter, system-ui, sans-serif";
    if (g.measureText(text).width < w - 8) write(g, text, x + 4, y + ROW / 2 - 1, ink, "left",
        ground);
    g.font = "11px Inter, system-ui, sans-serif";
}

// Drag pans, the wheel zooms, a click chooses.
function pointer(canvas, state, data, choose, time) {
    canvas.onpointerdown = (event) => {
        const begin = event.clientX, [from, to] = inside({data, state});
        let dragged = false;
        canvas.setPointerCapture(event.pointerId);
        canvas.onpointermove = (move) => {
            const moved = begin - move.clientX;
            dragged ||= Math.abs(moved) >= 4;
            const by = moved / (canvas.clientWidth - LEFT) * (to - from);
            if (dragged) zoom(state, data, [from + by, to + by]);
        };
        canvas.onpointerup = (end) => {
            canvas.onpointerup = canvas.onpointermove = null;
            if (!dragged) choose(end);
        };
    };
    canvas.onwheel = (event) => {
        if (!event.ctrlKey && !event.shiftKey) return;
        event.preventDefault();
        const at = time(event.clientX - canvas.getBoundingClientRect().left),
            [from, to] = inside({data, state});
        const k = (event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8;
        zoom(state, data, [at - (at - from) * k, at + (to - at) * k]);
    };
}

function overview(canvas, state, data, [from, to]) {
    const {threads} = state.whole ?? data, [begin, end] = whole(data);
    const {g, width, height} = pen(canvas, Math.min(48, 8 + threads.length * OVERVIEW));
    const X = (time) => LEFT + (time - begin) / (end - begin) * (width - LEFT), hatched = hatch(g);
    threads.slice(0, 8).forEach((thread, i) => {
        for (const [from, to, category] of thread.times) {
            g.fillStyle = categories[category] === "wait" ? hatched : colour(categories[category]);
            g.fillRect(X(from), 4 + i * OVERVIEW, Math.max(1, X(to) - X(from)), OVERVIEW - 1);
        }
    });
    g.strokeStyle = colour("link");
    g.strokeRect(X(from) + 0.5, 0.5, Math.max(2, X(to) - X(from)) - 1, height - 1);
    canvas.onclick = (event) => {
        const x = event.clientX - canvas.getBoundingClientRect().left, size = to - from;
        const at = begin + (x - LEFT) / (width - LEFT) * (end - begin);
        zoom(state, data, [at - size / 2, at + size / 2]);
    };
}
