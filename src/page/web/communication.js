// SPDX-License-Identifier: Apache-2.0
// Communication: why do workers wait?
import {crossings, drawBuckets} from "/buckets.js";
import {get, table} from "/data.js";
import {bytes, colour, count, duration, element, from, number, pen, share, write} from "/draw.js";
import {groups} from "/kinds.js";
import {without} from "/profile.js";

export async function load({run}) {
    const [{row}, report, moves, waits, buckets] = await Promise.all([
        get("run", {run}), get("report", {run}), table("comm", run), get("waits", {run}),
        table("buckets", run)]);
    return {row, report, moves, waits, buckets};
}

// Of all pairs of workers, the one with the longest waits.
function longest(waits) {
    const [seconds, i, k] = (waits?.seconds ?? []).flatMap((row, i) => row.map((value, k) =>
        [value, i, k])).reduce((a, b) => (a[0] >= b[0] ? a : b), [0]);
    return seconds ? [" ", from("spans", `Worker ${i} waits longest, for worker ${k}: `),
        number(seconds, `spans:waits.${i}.${k}`, duration, {}, "strong"), " of a step."] : [];
}

function lead(report, waiting) {
    const waits = Object.entries(report.shares).filter(([name]) =>
        !groups[name]).sort(([, a], [, b]) => b - a);
    const all = waits.reduce((sum, [, value]) => sum + value, 0), first = waits[0];
    const strong = (value, source) => number(value, source, share, {}, "strong");
    if (!report.workers.length) return element("p", {class: "lead"},
        "What workers spend their time on is not known.");
    return element("p", {class: "lead"}, "Communication is ",
        strong(report.communication, "report:communication"), " of a step. ",
        strong(all, "report:shares"), " is waiting", first ? [", most of it for ", first[0], " ("]
            : ".", ...(first
            ? [number(first[1], `report:shares.${first[0]}`, share,
                {class: first[1] > 0.1 ? "bad" : ""}, "strong"), "). "] : []),
        strong(report.shares.sum ?? 0, "report:shares.sum"), " sums gradients.",
        ...longest(waiting));
}

function causes(report) {
    const rows = Object.entries(report.shares).filter(([name]) =>
        !groups[name]).sort(([, a], [, b]) => b - a);
    const most = Math.max(...rows.map(([, value]) => value), 1e-9);
    return element("div", {}, element("h2", {}, "Why workers wait"),
        element("p", {class: "dim small"},
            "Share of a step, mean of all workers, in the last third of the run."),
        element("table", {"aria-label": "causes of waits"},
            element("tbody", {}, ...rows.filter(([, value]) =>
            value >= 0.0005).map(([name, value]) => {
            const bar = element("span", {class: "inside k-wait"});
            bar.style.width = `${120 * value / most}px`;
            return element("tr", {}, element("td", {}, `waits for ${name}`), element("td", {}, bar),
                number(value, `report:shares.${name}`, share, {class: "right"}, "td"));
        }))));
}

// A bar of exposed time, longest first.
function transfers(moves) {
    const rows = [...moves].sort((a, b) => b.exposed - a.exposed || b.seconds - a.seconds).slice(0,
        100);
    const most = Math.max(...rows.map((row) => row.exposed), 1e-12);
    const source = (row, field) =>
        `comm.csv:${row.kind}/${row.name}/${row.host}/${row.bucket}:${field}`;
    const right = (row, field, text) => number(row[field] === "" ? null : row[field],
        source(row, field), text, {class: "right"}, "td");
    return element("section", {}, element("h2", {}, "Moves, sums and transfers"),
        element("p", {class: "dim small"},
            "In all profiled steps. Exposed: no thread of the worker computed meanwhile.",
            ...(moves.length > rows.length ? [" The first ", number(rows.length, "comm.csv", count),
                " of ",
                number(moves.length, "comm.csv", count), "."] : [])),
        element("div", {class: "wide"}, element("table",
            {"aria-label": "moves, sums and transfers"},
            element("thead", {}, element("tr", {}, ...["what", "of", "why"].map((name) =>
                element("th", {scope: "col"}, name)),
                ...["times", "bytes", "time", "exposed", "others waited"].map((name) =>
                    element("th", {scope: "col", class: "right"}, name)),
                element("th", {}, element("span", {class: "away"}, "exposed")))),
            element("tbody", {}, ...rows.map((row) => {
                const bar = element("span",
                    {class: `inside ${row.kind === "sum" ? "k-sum" : "k-move"}`});
                bar.style.width = `${80 * row.exposed / most}px`;
                return element("tr", {}, element("td", {"data-source": "comm.csv"}, row.kind,
                    row.operator !== row.kind ? ` ${row.operator}` : ""),
                    element("td", {class: "mono", "data-source": "comm.csv"}, row.scope || row.name,
                        row.host ? ` ${row.host}` : "", row.kind === "sum" && row.bucket !== ""
                        ? `, bucket ${row.bucket}` : ""),
                    element("td", {class: "dim"}, from("comm.csv:why", row.why)),
                    right(row, "times", count), right(row, "bytes", bytes),
                        right(row, "seconds", duration),
                    right(row, "exposed", duration), right(row, "waited", duration),
                        element("td", {}, bar));
            })))));
}

// The matrix as a table.
const whom = ({seconds}) => element("details", {},
    element("summary", {class: "dim small"}, "These times as a table"),
    element("div", {class: "wide"}, element("table", {"aria-label": "who waits for whom"},
        element("thead", {}, element("tr", {}, element("td"), ...seconds.map((_, i) =>
            element("th", {scope: "col", class: "right"}, `w${i}`)))),
        element("tbody", {}, ...seconds.map((row, i) => element("tr", {},
            element("th", {scope: "row"}, `w${i}`), ...row.map((value, k) =>
                number(value, `spans:waits.${i}.${k}`, duration, {class: "right"}, "td"))))))));

// What a host sends, against the time of a step.
const links = ({links: all, step}) => all.length ? element("section", {},
    element("h2", {}, "Between hosts"),
    element("table", {"aria-label": "what hosts send in a step"},
        element("thead", {}, element("tr", {}, element("th", {scope: "col"}, "host"),
            ...["sends in a step", "takes", "of the step", "rate"].map((name) =>
                element("th", {scope: "col", class: "right"}, name)))),
        element("tbody", {}, ...all.map((one, i) => {
            const cell = (value, field, text) => number(value, `report:links.${i}.${field}`, text,
                {class: "right"}, "td");
            return element("tr", {}, element("td", {}, from("report:links", one.host)),
                cell(one.bytes, "bytes", bytes), cell(one.seconds, "seconds", duration),
                cell(one.share, "share", share),
                cell(one.seconds > 0 ? one.bytes / one.seconds : null, "bytes/seconds",
                    (rate) => `${bytes(rate)}/s`));
        })))) : null;

export function show({row, report, moves, waits, buckets}, current) {
    current.shown = {row};
    const matrix = waits && waits.workers > 1;
    return [lead(report, waits),
        element("section", {class: "two"}, causes(report), matrix ? element("div", {},
            element("h2", {}, "Who waits for whom"),
            element("p", {class: "dim small"}, "Time of a step that the row waits for the column"),
            element("figure", {}, element("canvas", {id: "whom", role: "img",
                "aria-label": "who waits for whom"}), whom(waits))) : element("div", {})),
        ...(moves ? [links(report), crossings(buckets), transfers(moves)] : [without(row)])]
        .filter(Boolean);
}

export function drawn({waits, buckets, report}) {
    const canvas = document.getElementById("whom");
    drawBuckets(document.getElementById("buckets"), buckets, report.step ?? 0);
    if (!canvas) return;
    const n = waits.workers, rows = Math.min(36, Math.max(14, 260 / n)), left = 34, top = 20;
    const {g, width} = pen(canvas, top + n * rows), cell = (width - left) / n;
    const most = Math.max(...waits.seconds.flat(), 1e-12);
    for (let i = 0; i < n; i++) {
        if (cell > 24) write(g, `w${i}`, left + (i + 0.5) * cell, 8, "ink3", "center");
        write(g, `w${i}`, 0, top + (i + 0.5) * rows, "ink3");
        for (let k = 0; k < n; k++) {
            const value = waits.seconds[i][k];
            g.globalAlpha = i === k ? 0 : value / most;
            g.fillStyle = colour("heat1");
            g.fillRect(left + k * cell + 1, top + i * rows + 1, cell - 2, rows - 2);
            g.globalAlpha = 1;
            if (i !== k && value > most / 50 && cell > 60)
                write(g, duration(value), left + (k + 0.5) * cell, top + (i + 0.5) * rows, "ink",
                    "center");
        }
    }
}
