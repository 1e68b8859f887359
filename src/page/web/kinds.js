// SPDX-License-Identifier: Apache-2.0
// What the kinds of time are drawn as; the others are waiting.
export const groups = {
    compute: "compute", audit: "compute", sum: "sum", update: "sum", read: "data", open: "save",
    record: "save", callback: "save", evaluate: "save", save: "save", start: "save",
    unexplained: "bad",
};
