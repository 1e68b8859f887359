// SPDX-License-Identifier: Apache-2.0
// Curves: a line through means, a band from the least to the most. Drawing costs what its pixels
// cost: a curve has at most a point per pixel.
import {colour, duration, pen, short, ticks, write} from "/draw.js";

const LEFT = 48, RIGHT = 80, TOP = 8, BOTTOM = 22;

// Means that forget: of the mean before, this weight stays.
function smooth(points, weight) {
    let mean = null;
    return points.map(([x, , , y]) => [x, mean = mean === null ? y
        : weight * mean + (1 - weight) * y]);
}

function limits(curves, log) {
    let low = Infinity, high = -Infinity;
    for (const {points} of curves)
        for (const point of points)
            for (const y of point.slice(1))
                if (y !== null && (!log || y > 0)) {
                    low = Math.min(low, y);
                    high = Math.max(high, y);
                }
    if (low > high) return null;
    if (high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high)))
        return log ? [low / 2, high * 2] : [low - (Math.abs(low) / 10 || 1),
            high + (Math.abs(high) / 10 || 1)];
    return [low, high];
}

// curves: [{points: [[x, least, most, mean]], last, colour, dashed}], last: what is written at the
// end, the mean of the last point if it is left out; from, to: of x. Returns what turns a pixel
// into a value of x, or null if there is nothing to draw.
export function plot(canvas, height, curves, {from, to, log = false, time = false, smoothing = 0,
                                              right = RIGHT, mark = null}) {
    const {g, width} = pen(canvas, height), range = limits(curves, log);
    if (!range || !(to >= from)) return null;
    const scale = log ? Math.log10 : (y) => y;
    const low = scale(range[0]), high = scale(range[1]), inside = width - LEFT - right;
    const X = (x) => LEFT + (to > from ? (x - from) / (to - from) : 0.5) * inside;
    const Y = (y) => TOP + (high - scale(y)) / (high - low) * (height - TOP - BOTTOM);
    for (const at of ticks(low, high, Math.max(2, Math.floor(height / 45)))) {
        const y = Math.round(Y(log ? 10 ** at : at)) + 0.5;
        g.strokeStyle = colour("rule");
        g.beginPath();
        g.moveTo(LEFT, y);
        g.lineTo(width - right, y);
        g.stroke();
        write(g, short(log ? 10 ** at : at), LEFT - 8, y, "ink3", "right");
    }
    for (const at of ticks(from, to, Math.max(2, Math.floor(inside / 110)))) {
        const text = time ? duration(at) : at.toLocaleString("en");
        write(g, text, Math.max(X(at), LEFT + g.measureText(text).width / 2 - 8), height - 8,
            "ink3", "center");
    }
    if (mark >= from && mark <= to && mark !== null) {
        g.fillStyle = colour("ink3");
        g.fillRect(Math.round(X(mark)), TOP, 1, height - TOP - BOTTOM);
    }
    g.save();
    g.beginPath();
    g.rect(LEFT - 1, 0, inside + 2, height - BOTTOM + 4);
    g.clip();
    for (const curve of curves) draw(g, curve, X, Y, smoothing, log);
    g.restore();
    label(g, curves, Y, width - right + 8, height, log, smoothing);
    return {value: (x) => from + (x - LEFT) / inside * (to - from), left: LEFT,
        right: width - right};
}

function draw(g, curve, X, Y, smoothing, log) {
    const points = curve.points.filter(([, least]) => !log || least > 0);
    if (!points.length) return;
    g.strokeStyle = g.fillStyle = colour(curve.colour);
    if (!curve.dashed) {
        g.globalAlpha = 0.2;
        g.beginPath();
        for (const [x, , most] of points) g.lineTo(X(x), Y(most));
        for (const [x, least] of points.toReversed()) g.lineTo(X(x), Y(least));
        g.fill();
    }
    g.globalAlpha = 1;
    g.lineWidth = 1.6;
    g.lineJoin = "round";
    g.setLineDash(curve.dashed ? [4, 3] : []);
    g.beginPath();
    const line = smoothing && !curve.dashed ? smooth(points, smoothing)
                                            : points.map(([x, , , mean]) => [x, mean]);
    for (const [x, y] of line) g.lineTo(X(x), Y(y));
    if (line.length === 1) g.arc(X(line[0][0]), Y(line[0][1]), 2, 0, 7);
    g.stroke();
    g.setLineDash([]);
}

// The present values at the lines' ends, which do not hide each other.
function label(g, curves, Y, x, height, log) {
    const found = [];
    for (const {points, last = points.at(-1)?.[3] ?? null, colour: name} of curves) {
        if (last !== null && (!log || last > 0))
            found.push({y: Y(last), text: short(last), name: name.startsWith("run") ? name
                : "ink"});
    }
    found.sort((a, b) => a.y - b.y);
    found.forEach((one, i) => { one.y = Math.max(one.y, 8, i ? found[i - 1].y + 13 : 0); });
    let most = height - BOTTOM;
    for (const one of found.toReversed()) {
        one.y = Math.min(one.y, most);
        most = one.y - 13;
    }
    g.font = "600 12px Inter, system-ui, sans-serif";
    for (const one of found) if (one.y > 0) write(g, one.text, x, one.y, one.name);
    g.font = "11px Inter, system-ui, sans-serif";
}

// A curve without axes, in a row of a table.
export function spark(canvas, points) {
    const {g, width, height} = pen(canvas, 20), range = limits([{points}], false);
    if (!range || points.length < 2) return;
    const first = points[0][0], last = points.at(-1)[0];
    g.strokeStyle = colour("compute");
    g.lineWidth = 1.2;
    g.beginPath();
    for (const [x, , , y] of points)
        g.lineTo(1 + (x - first) / (last - first) * (width - 2),
                 2 + (range[1] - y) / (range[1] - range[0]) * (height - 4));
    g.stroke();
}
