// SPDX-License-Identifier: Apache-2.0
// Buckets of gradients: when each was ready, and when it had crossed (buckets.csv).
import {bytes, colour, duration, element, from, number, pen, ticks, write} from "/draw.js";

const label = ({host, bucket}) => `${host ? `${host} ` : ""}${bucket}`;

// Each bucket of gradients: from its first lane to when all of it is there, and until it is over.
export function crossings(buckets) {
    if (!buckets?.length) return null;
    const cell = (row, field, text, name = "td") => number(row[field],
        `buckets.csv:${row.host}/${row.bucket}:${field}`, text, {class: "right"}, name);
    const last = buckets.reduce((a, b) => (a.crossed >= b.crossed ? a : b));
    return element("section", {}, element("h2", {}, "Buckets of gradients as they cross"),
        element("p", {class: "dim small"}, "From the opening of a step, mean of those profiled: " +
            "when the first lane brings a bucket (line), when all have (bar), and when it is " +
            "summed and has crossed. The last one is bucket ",
            from("buckets.csv:bucket", last.bucket, last.host ? ` of ${last.host}` : ""),
            ", after ", cell(last, "crossed", duration, "span"), "."),
        element("figure", {}, element("canvas", {id: "buckets", role: "img",
            "aria-label": "when each bucket is ready and has crossed"}),
        element("details", {}, element("summary", {class: "dim small"}, "These times as a table"),
            element("div", {class: "wide"}, element("table", {"aria-label": "buckets of gradients"},
                element("thead", {}, element("tr", {}, element("th", {scope: "col"}, "bucket"),
                    ...["bytes", "first lane", "ready", "crossed", "in sums", "in sends"].map(
                        (name) => element("th", {scope: "col", class: "right"}, name)))),
                element("tbody", {}, ...buckets.map((row) => element("tr", {},
                    element("td", {"data-source": "buckets.csv"}, label(row)),
                    cell(row, "bytes", bytes), ...["first", "ready", "crossed", "sums", "sends"]
                        .map((field) => cell(row, field, duration))))))))));
}

export function drawBuckets(canvas, buckets, step) {
    if (!canvas || !buckets?.length) return;
    const rows = Math.max(6, Math.min(16, 400 / buckets.length)), left = 64, top = 20, right = 8;
    const {g, width} = pen(canvas, top + buckets.length * rows + 4);
    const end = Math.max(step, ...buckets.map(({crossed}) => crossed));
    const X = (time) => left + time / end * (width - left - right);
    for (const at of ticks(0, end, Math.max(2, Math.floor((width - left) / 110)))) {
        g.fillStyle = colour("rule");
        g.fillRect(Math.round(X(at)), top - 6, 1, buckets.length * rows + 6);
        if (X(at) < width - 24) write(g, duration(at), X(at), 6, "ink3", "center");
    }
    buckets.forEach((row, i) => {
        const y = top + i * rows, {first, ready, crossed} = row;
        if (rows >= 12 || i % Math.ceil(14 / rows) === 0)
            write(g, label(row), left - 8, y + rows / 2, "ink2", "right");
        g.fillStyle = colour("ink3");
        g.fillRect(X(first), y + rows / 2, Math.max(1, X(ready) - X(first)), 1);
        g.fillRect(X(first), y + 2, 1, rows - 4);
        g.fillStyle = colour(row.sends > 0 ? "move" : "sum");
        g.fillRect(X(ready), y + 1, Math.max(2, X(crossed) - X(ready)), rows - 2);
    });
}
