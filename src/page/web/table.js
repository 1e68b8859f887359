// SPDX-License-Identifier: Apache-2.0
// A table that is sorted by a click on a column's head.
import {element} from "/draw.js";

// columns: [{name, key(row), cell(row), right}]; state: {by, down}, which it changes.
export function table(columns, rows, state, changed, {label, mark} = {}) {
    const by = columns.find(({name}) => name === state.by);
    const compare = (a, b) => {
        const x = by.key(a), y = by.key(b);
        if (x === y) return 0;
        if (x === null || x === undefined) return 1;
        if (y === null || y === undefined) return -1;
        return (x < y ? -1 : 1) * (state.down ? -1 : 1);
    };
    const sorted = by ? [...rows].sort(compare) : rows;
    const head = columns.map((column) => {
        const sort = column === by ? (state.down ? "descending" : "ascending") : null;
        const click = () => {
            state.down = state.by === column.name ? !state.down : Boolean(column.right);
            state.by = column.name;
            changed();
        };
        return element("th", {scope: "col", class: column.right ? "right" : null,
            "aria-sort": sort},
            column.key ? element("button", {type: "button", onclick: click,
                                            "data-focus": `sort ${column.name}`},
                                 column.name, sort ? (state.down ? " ↓" : " ↑") : "")
                       : column.name || element("span", {class: "away"}, "choose"));
    });
    const body = sorted.map((row) => element("tr", {class: mark?.(row) ? "chosen" : null},
        ...columns.map((column) => element("td", {class: column.right ? "right" : null},
                                           column.cell(row)))));
    return element("div", {class: "wide"},
        element("table", {"aria-label": label}, element("thead", {}, element("tr", {}, ...head)),
                element("tbody", {}, ...body)));
}
