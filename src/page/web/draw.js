// SPDX-License-Identifier: Apache-2.0
// What all pages draw with: elements, numbers, canvases. Each number that is shown names its
// source.

// element("td", {class: "right"}, "text", child)
export function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
        else if (value !== null && value !== false) made.setAttribute(key, value);
    }
    made.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return made;
}

const known = (value) => typeof value === "number" && Number.isFinite(value);

// A number with its source: a file and its field, or a field of `trireme report --json`.
export function number(value, source, text, attributes = {}, name = "span") {
    if (!known(value)) return element(name, attributes, "–");
    return element(name, {...attributes, "data-value": value, "data-source": source}, text(value));
}

// A text from a file, which may have numbers in it.
export const from = (source, ...text) => element("span", {"data-source": source}, ...text);

// The report's words; its figures and workers are bold.
export function emphasized(text) {
    const figures = /(\d[\d,.]*\s(?:(?:s|ms|us|ns|min|h)\b|%)|[Ww]orker \d+)/;
    return text.split(figures).map((part, i) =>
        (i % 2 ? element("strong", {}, part.replace(/(\d) /, "$1\u202f")) : part));
}

// The numbers of a canvas, which is in the same figure: rows of texts and numbers, at most 200.
export function asTable(label, head, rows, source) {
    const every = Math.ceil(rows.length / 200);
    return element("details", {}, element("summary", {class: "dim small"},
        "These numbers as a table"),
        element("div", {class: "wide"}, element("table", {"aria-label": label},
            element("thead", {}, element("tr", {}, ...head.map((name) =>
                element("th", {scope: "col"}, name)))),
            element("tbody", {}, ...rows.filter((_, i) => i % every === 0).map((row) =>
                element("tr", {"data-source": source}, ...row.map((cell) =>
                    element("td", {}, typeof cell === "number" ? short(cell) : cell))))))));
}

export const count = (value) => Math.round(value).toLocaleString("en");

export function short(value) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e6 || size < 1e-4) return value.toExponential(2);
    if (size >= 1000) return count(value);
    return String(Number(value.toPrecision(4)));
}

export function bytes(value) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    const k = value < 1 ? 0 : Math.min(Math.floor(Math.log2(value) / 10), units.length - 1);
    const size = value / 1024 ** k;
    return `${k && size < 99.5 ? Number(size.toPrecision(3)) : Math.round(size)}\u202f${units[k]}`;
}

export function share(value) {
    const percent = 100 * value;
    if (percent >= 99 && percent < 99.95) return `${percent.toFixed(1)}\u202f%`;
    return `${percent < 9.95 ? Number(percent.toPrecision(2)) : Math.round(percent)}\u202f%`;
}

export function duration(seconds) {
    const units = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
    if (seconds >= 3600) {
        const minutes = Math.floor(seconds / 60);
        return `${Math.floor(minutes / 60)}\u202fh ${minutes % 60}\u202fmin`;
    }
    if (seconds >= 100) {
        const whole = Math.round(seconds);
        return `${Math.floor(whole / 60)}\u202fmin ${whole % 60}\u202fs`;
    }
    if (seconds === 0) return "0\u202fs";
    const [unit, name] = units.find(([size]) => seconds >= 0.9995 * size) ?? units.at(-1);
    const value = seconds / unit;
    return `${value < 9.95 ? value.toFixed(1) : Math.round(value)}\u202f${name}`;
}

// All times that are shown are local.
export function moment(seconds) {
    return new Date(1000 * seconds).toLocaleString("sv");
}

// "UTC+02:00"
export const zone = (seconds) =>
    `UTC${(/GMT([+-]\d\d)(\d\d)/.exec(new Date(1000 * seconds)) ?? []).slice(1).join(":")}`;

export const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// What has been written on canvases: tests check that no text is cut or hides another.
export const written = [];

// A canvas's pen in units of CSS pixels. Texts that it writes are noted.
export function pen(canvas, height) {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const g = canvas.getContext("2d");
    g.scale(ratio, ratio);
    g.font = "11px Inter, system-ui, sans-serif";
    for (let i = written.length - 1; i >= 0; i--)
        if (written[i].canvas === canvas || !written[i].canvas.isConnected) written.splice(i, 1);
    return {g, width, height};
}

export function write(g, text, x, y, name, align = "left", ground = "paper") {
    g.textAlign = align;
    g.textBaseline = "middle";
    g.fillStyle = colour(name);
    g.fillText(text, x, y);
    const width = g.measureText(text).width;
    const left = align === "right" ? x - width : align === "center" ? x - width / 2 : x;
    written.push({canvas: g.canvas, text, left, top: y - 6, width, height: 12, ink: g.fillStyle,
                  ground: colour(ground)});
    return width;
}

// Absent work.
export function hatch(g) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const t = tile.getContext("2d");
    t.fillStyle = colour("wait");
    t.fillRect(0, 0, 6, 6);
    t.strokeStyle = colour("hatch");
    for (const x of [-6, 0, 6]) {
        t.beginPath();
        t.moveTo(x, 6);
        t.lineTo(x + 6, 0);
        t.stroke();
    }
    return g.createPattern(tile, "repeat");
}

// Round values from low to high, at most `most` of them.
export function ticks(low, high, most) {
    const rough = (high - low) / most || 1, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * power).find((size) => size >= rough);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++)
        found.push(Number((k * step).toPrecision(12)));
    return found;
}
