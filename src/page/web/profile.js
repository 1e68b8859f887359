// SPDX-License-Identifier: Apache-2.0
// What pages say that need a profile, if there is none: the command that makes one for this run.
import {element} from "/draw.js";

export function without(row) {
    const running = row.state === "goes on" && row.workers > 0 && row.directory;
    return element("p", {class: "lead"}, "This page needs a profile, and the run has none. ",
        running ? "This records its next 5 steps: " : "Train with ",
        element("code", {}, running ? `trireme profile ${row.directory} --steps 5`
            : "--profile steps=10..20"),
        running ? "" : ", which records these steps.");
}
