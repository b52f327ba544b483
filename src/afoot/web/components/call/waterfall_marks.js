// rowShapes: the marks of one row of a waterfall as shapes of an SVG. Each kind has a texture of its own.

import { svg } from "../../lib/dom.js";
import { mergeTicks } from "../../lib/call/timescale.js";
import { stateShape } from "../marks/state_icon.js";

/** @typedef {import("../../lib/call/spans.js").Row} Row */
/** @typedef {import("../../lib/call/spans.js").Mark} Mark */
/** Where a row is drawn: `x` of an instant, `y` of its middle, and the instants that are seen. @typedef {{x: (at: number) => number, y: number, name: string, from: number, until: number}} Place */

const BAR_PX = 12;
const LEAST_PX = 2; // of a mark, however short it was
const CROSS_PX = 18; // of the cross behind a lost attempt, with its gaps
const LINES = ["queued", "below"];

/** The patterns that the marks of a drawing use. @param {string} name of the drawing */
export const patterns = (name) =>
  svg(
    "defs",
    svg(
      "pattern",
      { id: `${name}-asked`, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      svg("rect", { class: "wf-asked-ground", width: 5, height: 5 }),
      svg("rect", { class: "wf-asked-line", width: 2, height: 5 }),
    ),
    svg(
      "pattern",
      { id: `${name}-lost`, width: 5, height: 5, patternUnits: "userSpaceOnUse" },
      svg("rect", { class: "wf-lost-ground", width: 5, height: 5 }),
      svg("rect", { class: "wf-lost-line", width: 3, height: 5 }),
    ),
  );

/** @param {Row} row @param {Place} place */
export function rowShapes(row, place) {
  if (row.until < place.from || row.from > place.until) return [];
  const seen = row.marks.filter(({ from, until }) => until >= place.from && from <= place.until);
  const shapes = seen.flatMap((mark, at) =>
    mark.kind === "lost" ? lostShapes(mark, seen[at + 1], place) : markShapes(mark, place),
  );
  const ticks = row.ticks.filter((at) => at >= place.from && at <= place.until);
  if (ticks.length) shapes.push(tickShape(ticks, place));
  if (!row.isLive && row.until <= place.until) shapes.push(endShape(row, place));
  return shapes;
}

/** @param {Mark} mark @param {Place} place */
function markShapes(mark, place) {
  // A browser draws a shape of a million pixels badly, so it is cut at the edges of the window.
  const left = place.x(Math.max(mark.from, place.from));
  const width = Math.max(LEAST_PX, place.x(Math.min(mark.until, place.until)) - left);
  const { kind } = mark;
  const { y, name } = place;
  if (LINES.includes(kind)) return [svg("line", { class: `wf-${kind}`, x1: left, x2: left + width, y1: y, y2: y })];
  const box = { class: `wf-${kind}`, x: left, y: y - BAR_PX / 2, width, height: BAR_PX, rx: kind === "silent" ? 0 : 2 };
  return [svg("rect", kind === "asked" || kind === "lost" ? { ...box, fill: `url(#${name}-${kind})` } : box)];
}

/**
 * An attempt that was lost, and the cross behind it. Where the next attempt follows at once, the cross has the end of the
 * bar, so that a gap is seen between the two.
 * @param {Mark} mark
 * @param {Mark | undefined} next
 * @param {Place} place
 */
function lostShapes(mark, next, place) {
  const { from, until } = mark;
  const [left, right] = [place.x(from), place.x(until)];
  const free = next && next.kind !== "queued" ? Math.max(0, place.x(next.from) - right) : CROSS_PX;
  const end = Math.max(left + LEAST_PX, Math.min(right, right + free - CROSS_PX));
  const cut = { ...mark, until: from + ((end - left) / Math.max(right - left, 1e-9)) * (until - from) };
  const cross = until <= place.until ? [endIcon("failed", end - 1, place.y)] : [];
  return [...markShapes(right > left ? cut : mark, place), ...cross];
}

/** The reports of a row, below its bar. @param {number[]} ticks @param {Place} place */
function tickShape(ticks, { x, y }) {
  const top = y + BAR_PX / 2 + 2;
  const d = mergeTicks(ticks.map(x)).map((at) => `M${at + 0.5} ${top}v4`);
  return svg("path", { class: "wf-ticks", d: d.join("") });
}

/** @param {Row} row @param {Place} place */
function endShape({ state, until }, { x, y }) {
  return endIcon(state, Math.max(x(until), LEAST_PX), y);
}

/** @param {import("../../lib/state.js").CallState} state @param {number} x @param {number} y */
function endIcon(state, x, y) {
  const shape = stateShape(state, "wf-end");
  for (const [name, value] of Object.entries({ x: x + 3, y: y - 7, width: 14, height: 14, "data-state": state }))
    shape.setAttribute(name, String(value));
  return shape;
}
