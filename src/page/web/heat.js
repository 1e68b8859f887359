// SPDX-License-Identifier: Apache-2.0
// A heat map: a row per worker, a column per pixel or wider. Grey is usual, red is worst.
import {colour, pen, ticks, write} from "/draw.js";

const ROW = 22, GAP = 2, RIGHT = 12, BELOW = 22;

function mixed(from, to, part) {
    const parse = (text) => text.match(/\w\w/g).map((pair) => parseInt(pair, 16));
    const [a, b] = [parse(from), parse(to)];
    return `rgb(${a.map((x, i) => Math.round(x + (b[i] - x) * part)).join(",")})`;
}

// So many colours are enough; they are made once for a picture.
function palette(n = 64) {
    const [low, middle, high] = ["heat0", "heat1", "heat2"].map(colour);
    return Array.from({length: n}, (_, i) => {
        const x = i / (n - 1);
        return x < 0.5 ? mixed(low, middle, 2 * x) : mixed(middle, high, 2 * x - 1);
    });
}

// rows: [{name, values: [0..1 or null]}]; steps: [columns], the last step of each. Returns what
// finds the row and column below a pixel.
export function heat(canvas, rows, steps, {marks = []} = {}) {
    const height = rows.length * (ROW + GAP) + BELOW, {g, width} = pen(canvas, height);
    const left = Math.ceil(8 + Math.max(...rows.map(({name}) => {
        g.font = "12px Inter, system-ui, sans-serif";
        return g.measureText(name).width;
    }), 20));
    const inside = width - left - RIGHT, n = steps.length, cell = inside / n, colours = palette();
    rows.forEach(({name, values}, y) => {
        const top = y * (ROW + GAP);
        g.font = "12px Inter, system-ui, sans-serif";
        write(g, name, 0, top + ROW / 2, "ink2");
        values.forEach((value, x) => {
            if (value === null) return;
            g.fillStyle = colours[Math.round(Math.min(1,
                Math.max(0, value)) * (colours.length - 1))];
            const from = Math.floor(x * cell), to = Math.floor((x + 1) * cell);
            g.fillRect(left + from, top, to - from, ROW);
        });
    });
    g.font = "600 12px Inter, system-ui, sans-serif";
    const at = (step) => {
        const x = steps.findIndex((last) => last >= step);
        return left + (x < 0 ? n : x + 0.5) * cell;
    };
    for (const {row, step} of marks) {
        const x = at(step);
        g.fillStyle = colour("paper");
        g.fillRect(x - 6, row * (ROW + GAP) + 4, 12, ROW - 8);
        write(g, "✕", x, row * (ROW + GAP) + ROW / 2, "bad", "center");
    }
    g.font = "11px Inter, system-ui, sans-serif";
    let free = 0;
    for (const step of ticks(0, steps.at(-1) ?? 0, Math.max(2, Math.floor(inside / 110)))) {
        const text = step.toLocaleString("en"), half = g.measureText(text).width / 2;
        const x = Math.min(Math.max(at(step), left + half), width - half);
        if (x - half < free) continue;
        write(g, text, x, height - 8, "ink3", "center");
        free = x + half + 12;
    }
    return {find: (x, y) => {
        const row = Math.floor(y / (ROW + GAP)), column = Math.floor((x - left) / cell);
        return rows[row] && column >= 0 && column < n ? {row, column} : null;
    }};
}
