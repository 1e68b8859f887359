// SPDX-License-Identifier: Apache-2.0
// Log: what happened, in the words of agents and workers? All logs, and what workers have printed.
import {address, reload} from "/app.js";
import {get} from "/data.js";
import {count, element, from as said, moment, number, zone} from "/draw.js";

const fields = ["worker", "level", "event", "text", "since"];

export async function load({run, state, query}) {
    if (state.query !== String(query)) { // a link leads here, with what it asks for
        state.query = String(query);
        for (const field of fields) state[field] = query.get(field) ?? "";
    }
    const words = Object.fromEntries(fields.filter((field) => state[field] !== "").map((field) =>
        [field, state[field]]));
    const [{row, file}, {lines, all, back}, times] = await Promise.all([get("run", {run}),
        get("log", {run, ...words}), get("heat", {run, pixels: 400})]);
    return {row, file, lines, all, back, times};
}

const seconds = (time) => Date.parse(time) / 1000; // NaN: it is no time

const clock = (time) => Number.isNaN(seconds(time)) ? time
    : moment(seconds(time)).slice(11) + time.slice(19, 23);

// The step of a line; of one that names none, that of its time, as far as workers.series tells.
function moments({steps, ends}, run, [time, , , , , step]) {
    const ended = ends.findIndex((end) => end !== null && end >= seconds(time));
    const at = step > 0 ? step : Number.isNaN(seconds(time)) ? undefined : steps.at(ended);
    return at === undefined ? [] : [
        element("a", {href: address("curves", null, `runs=${run}&step=${at}`)}, "curves"), " ",
        element("a", {href: address("workers", run, `step=${at}`)}, "workers")];
}

// Lines that differ by their time alone are folded.
function folded(lines) {
    const found = [];
    for (const line of lines) {
        const [, from, level, event, text] = line, last = found.at(-1);
        if (last && last.same === `${from}|${level}|${event}|${text}`) {
            last.times++;
            continue;
        }
        found.push({line, times: 1, same: `${from}|${level}|${event}|${text}`});
    }
    return found;
}

function lead(lines, all, filtered) {
    const bad = lines.filter(([, , level]) => level === "error").length;
    const warned = lines.filter(([, , level]) => level === "warning").length;
    const last = lines.findLast(([, , level]) => level === (bad ? "error" : "warning"));
    if (!all)
        return element("p", {class: "lead"}, filtered ? "No line has all of this."
            : "This run has no log.");
    return element("p", {class: "lead"}, number(all, "log:lines", count, {}, "strong"),
        all === 1 ? " line" : " lines",
        filtered ? ` ${all === 1 ? "has" : "have"} all of this` : "",
        all > lines.length ? ", of which the last are shown" : "", "; of these ",
        number(bad, "log:level=error", count, {class: bad ? "bad" : ""}, "strong"),
            ` ${bad === 1 ? "is an error" : "are errors"}, `,
        number(warned, "log:level=warning", count, {}, "strong"),
            ` ${warned === 1 ? "is a warning" : "are warnings"}`,
        ...last ? [`, the last ${bad ? "error" : "warning"} from `,
            said("log", `${last[1]}: ${last[3]} ${last[4]}`)] : [], ".");
}

export function show({row, file, lines, all, back, times}, current) {
    current.shown = {row};
    const {state, run} = current;
    const set = (field) => (event) => { state[field] = event.target.value; reload(); };
    const choose = (label, field, options) => element("label", {}, label,
        element("select", {"data-focus": field, onchange: set(field)},
            ...options.map(([value, text]) =>
            element("option", {value, selected: String(state[field]) === String(value) ? "" : null},
                text))));
    const workers = Math.max(0, file?.workers ?? 0);
    const last = lines.findLast(([time]) => !Number.isNaN(seconds(time)));
    const filtered = fields.some((field) => state[field] !== "");
    const find = element("input", {type: "search", placeholder: "text",
        "aria-label": "text in a line",
        "data-focus": "text", value: state.text, oninput: set("text")});
    return [lead(lines, all, filtered),
        back ? element("p", {class: "warn small"}, "A clock was set back ",
            number(back, "log:back", count), back === 1 ? " time" : " times",
            ": the order of lines of different files is not certain.") : "",
        element("div", {class: "tools"},
            choose("level", "level", [["", "all"], ["warning", "warnings"], ["error", "errors"]]),
            workers > 0 ? choose("worker", "worker", [["", "all"],
                ...Array.from({length: Math.min(workers, 256)}, (_, i) => [i, String(i)])]) : null,
            choose("event", "event", [["", "all"], ...[...new Set([state.event,
                ...lines.map(([, , , event]) => event)])].filter(Boolean).sort().map((name) =>
                [name, name])]),
            find, state.since ? element("button", {type: "button", "data-focus": "since",
                onclick: () => { state.since = ""; reload(); }}, `from step ${state.since} on ✕`)
                : null,
            last ? element("span", {class: "dim small"}, "Times are local, ",
                said("browser", zone(seconds(last[0]))), ".") : null),
        element("div", {class: "wide"}, element("table", {class: "log", "aria-label": "log"},
            element("tbody", {}, ...folded(lines).reverse().map(({line, times: same}) => {
                const [time, from, level, event, text] = line;
                return element("tr", {"data-source": "log"},
                    element("td", {class: "dim mono"}, time ? element("time",
                        {datetime: time, title: moment(seconds(time))}, clock(time))
                        : ""),
                    element("td", {class: "dim"}, from.replaceAll(" ", "\u00a0")),
                    element("td", {class: level === "error" ? "bad" : level === "warning" ? "warn"
                        : ""}, event, same > 1 ? ` × ${same}` : ""),
                    element("td", {class: "mono"}, text, " ", ...moments(times, run, line)));
            }))))].filter(Boolean);
}
