// SPDX-License-Identifier: Apache-2.0
// Requests to the server, and its events. A hidden tab closes its stream, as browsers open no more
// than six connections to a host.

export async function get(path, query = {}) {
    const words = new URLSearchParams(query);
    const answer = await fetch(`/api/${path}?${words}`);
    if (!answer.ok) throw new Error((await answer.text()).trim());
    return answer.json();
}

let source = null, wanted = null;

function open() {
    if (source) source.close();
    source = null;
    if (!wanted || document.hidden) return;
    source = new EventSource(`/api/events${wanted.run === null ? "" : `?run=${wanted.run}`}`);
    source.onmessage = () => wanted.changed();
    source.onerror = () => {
        wanted.lost();
        wanted.changed(); // its answer says why
    };
    source.onopen = () => wanted.found();
}

// Calls watcher.changed at once, and whenever the run's files have changed; run null: any run. The
// first event comes at once.
export function follow(watcher) {
    wanted = watcher;
    open();
    if (!source) wanted.changed();
}

document.addEventListener("visibilitychange", open);

// The rows of a table of the latest profile, as objects; null: the run has no profile.
export async function table(name, run) {
    const answer = await fetch(`/api/table?${new URLSearchParams({name, run})}`);
    if (!answer.ok) throw new Error((await answer.text()).trim());
    const text = await answer.text();
    if (text === "null") return null;
    const [head, ...lines] = text.split("\n").filter(Boolean).map((line) =>
        line.match(/("([^"]|"")*"|[^,]*)(,|$)/g).map((cell) =>
            cell.replace(/,$/, "").replace(/^"|"$/g, "").replaceAll('""', '"')));
    return lines.map((cells) => Object.fromEntries(head.map((field, i) => {
        const cell = cells[i] ?? "";
        return [field, cell !== "" && Number.isFinite(Number(cell)) ? Number(cell) : cell];
    })));
}
