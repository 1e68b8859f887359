// SPDX-License-Identifier: Apache-2.0
// Operators: what takes the time?
import {reload, render} from "/app.js";
import {get, table as read} from "/data.js";
import {count, duration, element, from, number, share, short} from "/draw.js";
import {without} from "/profile.js";
import {table} from "/table.js";

const MOST = 200;

export async function load({run, state}) {
    const [{row}, rows, {runs}] = await Promise.all([get("run", {run}), read("ops", run),
        get("runs")]);
    const other = runs.find((one) => one.name === state.against);
    const against = other ? await get("against", {run, against: other.run}) : null;
    return {row, rows, runs, against};
}

const known = (value) => (value === "" ? null : value);

function lead(kinds) {
    const first = kinds[0];
    const share_ = number(first.share, `ops.csv:${first.operator}:share`, share, {}, "strong");
    return element("p", {class: "lead"}, element("strong", {},
        from("ops.csv:operator", first.operator)), " takes ", share_, " of the time of operators",
        first.roofline === "" ? "." : [", at ", number(first.roofline,
            `ops.csv:${first.operator}:roofline`, share, {}, "strong")],
        first.roofline === "" ? "" : " of what arithmetic and memory of this machine allow.");
}

export function show({row, rows, runs, against}, current) {
    current.shown = {row};
    if (!rows) return [without(row)];
    const {state} = current;
    state.level ??= "kind";
    state.sort ??= {by: "time", down: true};
    state.find ??= "";
    const kinds = rows.filter(({level}) => level === "kind").sort((a, b) => b.seconds - a.seconds);
    if (!kinds.length) return [element("p", {class: "lead"}, "The profile has no operators.")];
    const shown = rows.filter((one) => one.level === state.level &&
        (!state.find || `${one.operator} ${one.name} ${one.scope} ${one.in}`.includes(state.find)));
    const source = (one, field) =>
        `ops.csv:${one.level}/${one.operator}/${one.name}/${one.phase}/${one.seat}:${field}`;
    const column = (name, field, text) => ({name, key: (one) => known(one[field]), right: true,
        cell: (one) => number(known(one[field]), source(one, field), text)});
    const columns = [
        {name: "operator", key: (one) => one.operator, cell: (one) =>
            element("div", {"data-source": "ops.csv"}, one.operator,
            one.level === "kind" ? "" : element("div", {class: "dim small mono"}, one.scope ||
                one.name))},
        ...(state.level === "kind" ? [] : [{name: "of", key: (one) => one.in, cell: (one) =>
            element("span", {class: "dim small mono"}, from("ops.csv:in", one.in))}]),
        column("calls", "calls", count), column("time", "seconds", duration),
            column("share", "share", share),
        column("GFLOP/s", "gflops", short), column("GB/s", "gbytes", short),
            column("roofline", "roofline", share)];
    const button = (level, title) => element("button", {type: "button",
        "aria-pressed": String(state.level === level),
        "data-focus": level, onclick: () => { state.level = level; render(); }}, title);
    const find = element("input", {type: "search", placeholder: "find an operator",
        "aria-label": "find an operator",
        "data-focus": "find", value: state.find, oninput: (event) =>
            { state.find = event.target.value; render(); }});
    const others = runs.map((one) => one.name).filter((name) => name !== row.name);
    return [lead(kinds), element("div", {class: "tools"}, button("kind", "by kind"),
        button("instance", "each"), find,
        element("label", {}, "against", element("select", {"data-focus": "against",
            onchange: (event) => { state.against = event.target.value; reload(); }},
            ...["", ...others].map((name) => element("option",
                {value: name, selected: name === state.against ? "" : null}, name))))),
        against ? element("section", {}, element("h2", {}, "What makes it slower or faster"),
            element("pre", {class: "wide", "data-source": "report --against"},
                against.text)) : null,
        table(columns, [...shown].sort((a, b) => b.seconds - a.seconds).slice(0, MOST), state.sort,
            render, {label: "operators"}),
        shown.length > MOST ? element("p", {class: "dim small"}, "The ",
            number(MOST, "ops.csv", count), " that take longest, of ",
            number(shown.length, "ops.csv", count), ".") : null]
        .filter(Boolean);
}
