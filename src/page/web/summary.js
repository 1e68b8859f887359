// SPDX-License-Identifier: Apache-2.0
// Summary: is the run well, and what is worst?
import {address} from "/app.js";
import {get} from "/data.js";
import {asTable, bytes, count, duration, element, emphasized, from} from "/draw.js";
import {number, share, short} from "/draw.js";
import {groups} from "/kinds.js";
import {plot} from "/plot.js";
import {command} from "/profile.js";
import {all, numbers, picture} from "/workers.js";

export async function load({run}) {
    const pixels = Math.max(50, Math.min(560, document.getElementById("page").clientWidth - 120));
    const wide = Math.max(50, Math.min(1100, document.getElementById("page").clientWidth - 140));
    const [{row, file}, report, loss, times] = await Promise.all([
        get("run", {run}), get("report", {run}).catch((error) => ({sentence: error.message,
            shares: {}, lost: {}, workers: [], places: []})), // the rest is shown
        get("curve", {run, pixels}),
        get("heat", {run, pixels: Math.floor(wide / 2)})]);
    return {row, file, report, loss, times};
}

const source = (field) => `report:${field}`;

function bar(shares) {
    const parts = Object.entries(shares).sort(([a], [b]) =>
        Object.keys(groups).indexOf(groups[a] ? a : "unexplained") -
        Object.keys(groups).indexOf(groups[b] ? b : "unexplained"));
    const picture = element("div", {class: "bar", role: "img", "aria-label": "shares of a step"});
    const key = element("div", {class: "key"});
    for (const [name, value] of parts) {
        const kind = groups[name] ?? "wait";
        const part = element("span", {class: `k-${kind}`});
        part.style.width = `${100 * value}%`;
        picture.append(part);
        if (value < 0.001) continue;
        const swatch = element("span", {class: `swatch k-${kind}`});
        key.append(element("span", {}, swatch, kind === "wait" ? `waits for ${name} ` : `${name} `,
                           number(value, source(`shares.${name}`), share, {class: "ink"})));
    }
    return [picture, key];
}

const COMMAND = new RegExp("(trireme [a-z]+(?: [A-Za-z0-9_.:/=-]+)*|" +
    "--[a-z-]+(?: [0-9A-Z][\\w.]*)?|-n \\d+)");

function advice(finding, i) {
    const cost = number(finding.cost, source(`findings.${i}.cost`), share);
    const words = finding.remedy ?? "";
    // commands and options are set apart
    const remedy = words.split(COMMAND).map((part, k) =>
        k % 2 ? element("code", {}, part) : part);
    return element("div", {class: finding.effect_of ? "tip effect" : "tip"},
        element("div", {class: `cost ${finding.cost >= 0.1 && !finding.effect_of ? "bad" : ""}`},
            cost,
                element("small", {}, finding.cost === null ? "not known"
                    : `of ${finding.of === "run" ? "the run" : "a step"}`)),
        element("div", {}, element("b", {}, finding.rule), finding.effect_of
            ? `, an effect of ${finding.effect_of}` : "",
                element("div", {"data-source": source(`findings.${i}.evidence`)},
                    finding.evidence ?? ""),
                finding.effect_of ? null : element("div",
                    {class: "do dim", "data-source": source(`findings.${i}.remedy`)}, ...remedy)));
}

function findings({findings, silent, without_profile: without}, row) {
    const shown = findings.filter((one) => !one.note), notes = findings.filter((one) => one.note);
    return element("div", {},
        element("h2", {}, "What to do about it"),
        element("p", {class: "dim small"}, shown.length
            ? "Worst first. The figure is what each costs."
                : "Nothing is wrong, as far as is known."),
        ...shown.map((one) => advice(one, findings.indexOf(one))),
        notes.length ? element("details", {}, element("summary", {class: "dim small"},
            `${notes.length} that cost next to nothing`),
                ...notes.map((one) => advice(one, findings.indexOf(one)))) : null,
        element("details", {}, element("summary", {class: "dim small"},
            `${silent.length} other rules found nothing`),
            element("p", {class: "small"}, silent.join(", "))),
        without.length ? element("p", {class: "dim small"},
            number(without.length, source("without_profile"), count), " more need a profile: ",
            command(row)) : null);
}

function figure(title, value, unit, note) {
    return element("div", {}, element("h2", {}, title),
        element("div", {class: "num"}, value, unit ? element("small", {}, unit) : ""),
        element("p", {class: "small dim"}, note));
}

export function show(data, current) {
    const {row, file, report, loss} = data, workers = all(data);
    current.shown = {row};
    const faults = file?.faults.length;
    const few = (n, word) => [number(n, `run.json:${word}s`, count), ` ${word}${n === 1 ? ""
        : "s"}`];
    return [
        element("p", {class: "lead", "data-source": source("sentence")},
            ...emphasized(report.sentence)),
        row.earlier ? element("p", {class: "dim small"}, "Its directory had ",
            number(row.earlier, "metrics.N.jsonl", count), row.earlier === 1 ? " run" : " runs",
            " before; their files have numbers, as metrics.1.jsonl.") : "",
        row.clock ? element("p", {class: "warn small"}, from("run.json", row.clock)) : "",
        ...bar(report.shares),
        element("section", {class: "two"}, report.findings ? findings(report, row) : "",
            element("div", {}, element("h2", {}, "Loss"), element("figure", {}, element("canvas",
                {id: "loss", role: "img", "aria-label": "loss over steps"}),
                asTable("loss over steps", ["of", "steps", "least", "most", "mean"], [
                    ...loss.training.map((point) => ["training", ...point]),
                    ...loss.evaluations.map((point) => ["evaluation", ...point])],
                    "metrics.jsonl")),
            element("p", {class: "small dim"}, element("a",
                {href: address("curves", null, `runs=${row.run}`)}, "Curves"),
                    " has all results.")),
        ),
        workers.length > 1 ? element("section", {},
            element("h2", {}, "Time of a lane by worker"),
            element("p", {class: "dim small"}, "Against the median of the step; ✕: it died. ",
                element("a", {href: address("workers", row.run)}, "Workers")),
            element("figure", {}, element("canvas", {id: "heat", role: "img",
                "aria-label": "time of a lane of each worker over steps"}),
                numbers(data, "lane"))) : "",
        element("section", {class: "three"},
            figure("Goodput", number(report.goodput, source("goodput"), share),
                "of the time was useful",
                   element("span", {}, ...few(file?.deaths, "death"), ", ",
                       ...few(file?.stalls, "stall"), faults ? ", see Faults" : "")),
            figure("Rate", number(row.rate, "metrics.jsonl:step*batch/seconds", short), "samples/s",
                   element("span", {}, "a step takes ",
                       number(report.step, source("step"), duration))),
            figure("Memory", number(file?.memory, "run.json:memory", bytes),
                "planned for all processes",
                   element("span", {}, "a worker took up to ",
                       number(Math.max(0, ...workers.map(({memory}) => memory ?? 0)) || null,
                           "workers.series:memory-kib", bytes), "; ",
                       number(file?.parameters, "run.json:parameters", count), " parameters"))),
    ];
}

export function drawn(data, {run}) {
    const {loss} = data, map = document.getElementById("heat"), find = picture(map, data, "lane");
    if (find)
        map.onclick = (event) => {
            const at = find(event);
            if (at) location.hash = address("workers", run, `step=${at.step}`);
        };
    const canvas = document.getElementById("loss");
    if (!canvas || loss.begin === null) return;
    plot(canvas, 180, [{points: loss.training, last: loss.last, colour: "compute"},
                       {points: loss.evaluations, colour: "sum", dashed: true}],
         {from: loss.begin, to: loss.end});
}
