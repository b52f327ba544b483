// groupHead and toolRow: the rows of the live list that are no calls: the head of a group, and many calls of one tool.

import { h } from "../../lib/dom.js";
import { safeText } from "../../lib/format.js";
import { now } from "../../lib/time.js";
import { icon } from "../marks/icon.js";
import { summary } from "./run_summary.js";

/** @typedef {import("./rows.js").GroupRow} GroupRow */
/** @typedef {import("./rows.js").ToolRow} ToolRow */

const COLUMNS = 8;
const CELL = { role: "gridcell", "aria-colspan": COLUMNS };

/** @param {() => GroupRow} row @param {(key: string) => void} toggle */
export function groupHead(row, toggle) {
  const title = () => safeText(row().title, 100);
  return h(
    "div.live-group",
    { role: "row", "aria-expanded": () => String(row().isOpen), "aria-level": 1 },
    h(
      "span.cell",
      CELL,
      foldButton(
        row,
        toggle,
        h("span", title),
        h("span.count", () => row().count),
      ),
      h("span.note", () => row().note),
    ),
  );
}

/** @param {() => ToolRow} row @param {(key: string) => void} toggle */
export function toolRow(row, toggle) {
  const name = safeText(row().tool, 200);
  return h(
    "div.live-run",
    { role: "row", "aria-expanded": () => String(row().isOpen), "aria-level": 1 },
    h(
      "span.cell",
      CELL,
      foldButton(
        row,
        toggle,
        h("b", name),
        h("span.dim", () => summary(row().entries, now())),
      ),
    ),
  );
}

/** @param {() => {key: string, isOpen: boolean}} row @param {(key: string) => void} toggle @param {...Child} words */
function foldButton(row, toggle, ...words) {
  const about = { type: "button", tabindex: -1, "aria-expanded": () => String(row().isOpen) };
  const onclick = () => toggle(row().key);
  return h(
    "button.fold-button.quiet",
    { ...about, "data-open": () => row().isOpen, onclick },
    icon("right", "s"),
    ...words,
  );
}
