// SPDX-License-Identifier: Apache-2.0
// Run in a page by walk.py: numbers without a source, texts that are cut, hidden or faint, controls
// without a name; and the numbers with their sources.
(async () => {
    const {written} = await import("/draw.js"), bad = [];
    const {clientWidth: screen, scrollWidth} = document.documentElement;
    if (scrollWidth > screen) bad.push(`${scrollWidth} pixels wide, not ${screen}`);
    const shown = (e) => e.checkVisibility({checkOpacity: true, checkVisibilityCSS: true}) &&
        e.getClientRects().length;
    const parse = (text) => {
        const found = text.match(/[\d.]+/g).map(Number);
        return found.length > 3 ? found : [...found, 1];
    };
    const linear = (x) => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
    const luminance = (c) => {
        const [r, g, b] = c.map((x) => linear(x / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (a, b) => {
        const [high, low] = [luminance(a), luminance(b)].sort((p, q) => q - p);
        return (high + 0.05) / (low + 0.05);
    };
    const here = document.querySelector("nav [aria-current]")?.getBoundingClientRect();
    if (here && (here.left < 0 || here.right > screen)) bad.push("where one is, is not in view");
    // What is behind an element, of several layers that are partly transparent.
    const ground = (e) => {
        const over = [];
        for (; e; e = e.parentElement) {
            const c = parse(getComputedStyle(e).backgroundColor);
            if (c[3] > 0) over.push(c);
            if (c[3] === 1) break;
        }
        let [r, g, b] = over.pop() ?? [255, 255, 255];
        for (const [x, y, z, a] of over.reverse()) {
            r += (x - r) * a;
            g += (y - g) * a;
            b += (z - b) * a;
        }
        return [r, g, b];
    };
    const checkText = (node) => {
        const text = node.textContent.trim(), e = node.parentElement;
        if (!text || !shown(e) || e.closest("script, .away")) return;
        const ratio = contrast(parse(getComputedStyle(e).color), ground(e));
        if (ratio < 4.5) bad.push(`faint (${ratio.toFixed(1)}): ${text.slice(0, 60)}`);
        if (/\d/.test(text) && e.closest("main") &&
            !e.closest("[data-source], code, button, select, label, summary, th, h2"))
            bad.push(`no source: ${text.slice(0, 80)}`);
        const range = document.createRange();
        range.selectNode(node);
        const box = range.getBoundingClientRect();
        if (!e.closest(".wide, nav, select") && (box.right > screen + 1 || box.left < -1))
            bad.push(`cut: ${text.slice(0, 60)}`);
    };
    const solid = (colour) => {
        const pen = document.createElement("canvas").getContext("2d");
        pen.fillStyle = colour;
        pen.fillRect(0, 0, 1, 1);
        return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const checkWritten = (one) => {
        const {canvas, text, left, top, width, height} = one;
        if (left < -1 || left + width > canvas.clientWidth + 1 || top < -2 ||
            top + height > canvas.clientHeight + 2)
            bad.push(`cut on ${canvas.id}: ${text}`);
        const ratio = contrast(solid(one.ink), solid(one.ground));
        if (ratio < 4.5) bad.push(`faint on ${canvas.id} (${ratio.toFixed(1)}): ${text}`);
        for (const other of written)
            if (other !== one && other.canvas === canvas && left < other.left + other.width &&
                other.left < left + width && top < other.top + other.height - 2 &&
                other.top < top + height - 2)
                bad.push(`${canvas.id}: '${text}' hides '${other.text}'`);
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode());) checkText(node);
    for (const one of written.filter(({canvas}) => canvas.isConnected)) checkWritten(one);
    for (const e of document.querySelectorAll("button, input, select, a, canvas, summary")) {
        const label = e.getAttribute("aria-label") ?? e.closest("label")?.textContent ??
            e.textContent;
        if (shown(e) && !label.trim() && e.getAttribute("aria-hidden") !== "true")
            bad.push(`no name: ${e.outerHTML.slice(0, 80)}`);
    }
    const numbers = [...document.querySelectorAll("main [data-value]")].map((e) =>
        [e.dataset.source, Number(e.dataset.value), e.textContent]);
    return JSON.stringify({bad: [...new Set(bad)], numbers});
})()
