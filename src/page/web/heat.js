// SPDX-License-Identifier: Apache-2.0
// A heat map: a row per worker, a column per pixel or wider. Grey is usual, red is worst.
import {colour, pen, ticks, write} from "/draw.js";

const ROW = 22, GAP = 2, LABEL = 22, RIGHT = 12, BELOW = 22;
const NAMES = "12px Inter, system-ui, sans-serif";

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

// The column of a step; -1: none has it.
export const column = ({first, steps}, step) =>
    (step < first ? -1 : steps.findIndex((last) => last >= step));

// rows: [{name, group, values: [0..1 or null]}], of which those of a group follow each other; grid:
// {first, steps}, the first step and the last one of each column; marks: [{row, step}]; chosen: a
// column. Returns what finds the row and column below a pixel.
export function heat(canvas, rows, grid, {marks = [], chosen = -1} = {}) {
    const tops = [];
    let bottom = 0;
    rows.forEach(({group}, i) => {
        if (group && group !== rows[i - 1]?.group) bottom += LABEL;
        tops.push(bottom);
        bottom += ROW + GAP;
    });
    const height = bottom + BELOW, {g, width} = pen(canvas, height);
    g.font = NAMES;
    const left = Math.ceil(8 + Math.max(...rows.map(({name}) => g.measureText(name).width), 20));
    const inside = width - left - RIGHT, n = grid.steps.length, cell = inside / n;
    const colours = palette();
    rows.forEach(({name, group, values}, y) => {
        const top = tops[y];
        if (group && group !== rows[y - 1]?.group) {
            g.fillStyle = colour("rule2");
            if (y) g.fillRect(0, top - LABEL + 1, width - RIGHT, 1);
            g.font = "600 11px Inter, system-ui, sans-serif";
            write(g, group, 0, top - LABEL / 2 + 1, "ink3");
        }
        g.font = NAMES;
        write(g, name, 0, top + ROW / 2, "ink2");
        values.forEach((value, x) => {
            if (value === null) return;
            g.fillStyle = colours[Math.round(Math.min(1,
                Math.max(0, value)) * (colours.length - 1))];
            const from = Math.floor(x * cell), to = Math.floor((x + 1) * cell);
            g.fillRect(left + from, top, to - from, ROW);
        });
    });
    if (chosen >= 0) {
        g.strokeStyle = colour("ink");
        g.strokeRect(left + Math.floor(chosen * cell) - 0.5, 0.5,
            Math.max(2, Math.ceil(cell)) + 1, bottom - 1);
    }
    g.font = "600 12px Inter, system-ui, sans-serif";
    const at = (step) => {
        const x = column(grid, Math.max(step, grid.first));
        return left + (x < 0 ? n : x + 0.5) * cell;
    };
    for (const {row, step} of marks) {
        const x = at(step);
        g.fillStyle = colour("paper");
        g.fillRect(x - 6, tops[row] + 4, 12, ROW - 8);
        write(g, "✕", x, tops[row] + ROW / 2, "bad", "center");
    }
    g.font = "11px Inter, system-ui, sans-serif";
    let free = 0;
    for (const step of ticks(grid.first, grid.steps.at(-1) ?? 0,
        Math.max(3, Math.floor(inside / 110)))) {
        const text = step.toLocaleString("en"), half = g.measureText(text).width / 2;
        const x = Math.min(Math.max(at(step), left + half), width - half);
        if (x - half < free) continue;
        write(g, text, x, height - 8, "ink3", "center");
        free = x + half + 12;
    }
    return {find: (x, y) => {
        const row = tops.findIndex((top) => y >= top && y < top + ROW + GAP);
        const below = Math.floor((x - left) / cell);
        return row >= 0 && below >= 0 && below < n ? {row, column: below} : null;
    }};
}
