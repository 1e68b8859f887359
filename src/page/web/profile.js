// SPDX-License-Identifier: Apache-2.0
// What pages say that need a profile, if there is none: the command that makes one for this run.
import {element} from "/draw.js";

const records = (row) => row.state === "goes on" && row.workers > 0;

export const command = (row) => element("code", {}, records(row)
    ? `trireme profile ${row.directory} --steps 5` : "--profile steps=10..20");

export function without(row) {
    return element("p", {class: "lead"}, "This page needs a profile, and the run has none. ",
        ...(records(row) ? ["This records its next 5 steps: ", command(row)]
            : ["Train with ", command(row), ", which records these steps."]));
}
