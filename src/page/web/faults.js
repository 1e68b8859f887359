// SPDX-License-Identifier: Apache-2.0
// Faults: what went wrong, and what did it cost?
import {address} from "/app.js";
import {get} from "/data.js";
import {asTable, colour, count, duration, element, from, moment} from "/draw.js";
import {number, pen, share, write, zone} from "/draw.js";

export async function load({run}) {
    const [{row, file}, report] = await Promise.all([get("run", {run}), get("report", {run})]);
    return {row, file, report};
}

const kinds = {death: "bad", stall: "warn", takeover: "ink3"};

const some = (n, one, more = `${one}s`) => `${count(n)} ${n === 1 ? one : more}`;

function lead(row, file, report) {
    const {deaths = 0, stalls = 0} = file, cost = (report.lost["deaths of workers"] ??
        0) + (report.lost.stalls ?? 0);
    const good = number(report.goodput, "report:goodput", share, {}, "strong");
    const end = /killed|failed/.test(row.state) ? ["The run ", element("strong", {class: "bad"},
        row.state), ". "] : [];
    if (!deaths && !stalls)
        return element("p", {class: "lead"}, ...end, end.length ? "Before that no" : "No",
            " worker died, and nothing stalled. Of the run's time ", good, " was useful.");
    const what = [deaths ? some(deaths, "death") : "", stalls ? some(stalls, "stall")
        : ""].filter(Boolean).join(" and ");
    return element("p", {class: "lead"}, ...end, element("strong",
        {class: "bad", "data-source": "run.json:deaths, stalls"}, what), " cost ",
        number(cost, "report:lost", duration, {}, "strong"), ". Of the run's time ", good,
            " was useful.");
}

// Goodput: what the rest of the time was lost to.
function losses(report) {
    const rows = Object.entries(report.lost).sort(([, a], [, b]) => b - a);
    if (!rows.length) return null;
    return element("section", {}, element("h2", {}, "Where the rest of the time went"),
        element("div", {class: "wide"}, element("table", {"aria-label": "lost time by cause"},
            element("tbody", {}, ...rows.map(([name, seconds]) =>
                element("tr", {}, element("td", {}, name),
                number(seconds, `report:lost.${name}`, duration, {class: "right"}, "td"),
                number(seconds / report.seconds, `report:lost.${name}/seconds`, share,
                    {class: "right"}, "td")))))));
}

// Its lines in the log.
const place = (run, {kind, worker}) => address("log", run, `event=${kind}` +
    (worker < 0 ? "" : `&worker=${worker}`));

function list(file, run) {
    const faults = (file?.faults ?? []).map((fault, i) => ({...fault, i}))
        .sort((a, b) => a.time - b.time);
    if (!faults.length) return null;
    return element("section", {}, element("h2", {}, "Deaths, stalls, take-overs"),
        element("div", {class: "wide"}, element("table", {"aria-label": "faults"},
            element("thead", {}, element("tr", {}, ...[`when, ${zone(faults[0].time)}`,
                "step", "what", "worker", "cost", ""].map((title) =>
                element("th", {scope: "col"}, title)))),
            element("tbody", {}, ...faults.map(({i, ...fault}) => element("tr", {},
                number(fault.time, `run.json:faults.${i}.time`, moment, {}, "td"),
                number(fault.step, `run.json:faults.${i}.step`, count, {}, "td"),
                element("td", {class: fault.kind === "death" ? "bad" : ""},
                    fault.kind === "takeover" ? "take-over" : fault.kind),
                element("td", {}, from(`run.json:faults.${i}.worker`, fault.host ?? "", " ",
                    fault.worker >= 0 ? `worker ${fault.worker}` : "")),
                number(fault.cost, `run.json:faults.${i}.cost`, duration, {}, "td"),
                element("td", {}, from(`run.json:faults.${i}.text`, fault.text), " ",
                    element("a", {href: place(run, fault)}, "log"), " ",
                    element("a", {href: address("workers", run, `step=${fault.step}`)},
                        "workers")))).reverse()))));
}

export function show({row, file, report}, current) {
    current.shown = {row};
    if (!file)
        return [element("p", {class: "lead"}, row.trouble ??
            "This run has no run.json: it is of an earlier version, whose faults are in its log.")];
    return [lead(row, file, report),
        element("figure", {}, element("canvas", {id: "faults", role: "img",
            "aria-label": "starts, deaths and stalls of each worker over time"}),
            asTable("starts", ["begins", "ends", "first step", "last step", "exit code"],
                (file.entries ?? []).map(({begin, end, first, last, exit}) => [moment(begin),
                    end ? moment(end) : "", first, last, exit]), "run.json:entries")),
        losses(report), list(file, row.run)].filter(Boolean);
}

// A row per worker over the run's time; a start is where the line begins.
export function drawn({row, file}) {
    const canvas = document.getElementById("faults");
    if (!canvas) return;
    const entries = file.entries ?? [], faults = file.faults ?? [];
    const rows = file.hosts.flatMap(({host, entries: own, workers}) =>
        Array.from({length: Math.max(1, workers ?? 1)}, (_, worker) =>
            ({host, worker, entries: own}))).slice(0, 64);
    const ROW = 20, left = file.hosts.length > 1 ? 104 : 72,
        {g, width, height} = pen(canvas, rows.length * ROW + 24);
    const begin = entries[0]?.begin, last = entries.at(-1);
    const now = row.state === "goes on" ? Date.now() / 1000 : row.written ?? 0;
    const end = last?.end ?? Math.max((last?.begin ?? 0) + 0.001, now);
    if (!(end > begin)) return;
    const X = (time) => left + (time - begin) / (end - begin) * (width - left - 12);
    // An entry without an end was killed, or goes on.
    const ended = (own, i) => own[i].end ?? own[i + 1]?.begin ??
        (row.state === "goes on" ? end : Math.min(end, row.written ?? end));
    const isOf = (fault, {host, worker}) => fault.worker === worker && fault.host === host;
    rows.forEach((one, k) => {
        const y = k * ROW + ROW / 2;
        write(g, `${one.host ? `${one.host} ` : ""}worker ${one.worker}`, 0, y, "ink2");
        g.fillStyle = colour("rule2");
        one.entries.forEach((entry, i) => g.fillRect(X(entry.begin), y - 3,
            Math.max(1, X(ended(one.entries, i)) - X(entry.begin)), 6));
        for (const fault of faults.filter((is) => isOf(is, one) && is.kind !== "takeover")) {
            g.fillStyle = colour(kinds[fault.kind] ?? "ink3");
            g.fillRect(X(fault.time) - 1, y - 8, Math.max(3,
                X(fault.time + (fault.cost ?? 0)) - X(fault.time)), 16);
        }
    });
    canvas.onclick = (event) => {
        const box = canvas.getBoundingClientRect(), x = event.clientX - box.left;
        const distance = ({time, cost}) => Math.max(X(time) - x, x - X(time + (cost ?? 0)), 0);
        const at = rows[Math.floor((event.clientY - box.top) / ROW)];
        const [nearest] = faults.filter((one) => at && isOf(one, at)).sort((a, b) =>
            distance(a) - distance(b));
        if (nearest && distance(nearest) < 8) location.hash = place(row.run, nearest);
    };
    const time = (seconds) => moment(seconds).slice(11);
    write(g, time(begin), left, height - 8, "ink3");
    write(g, time(end), width - 12, height - 8, "ink3", "right");
}
