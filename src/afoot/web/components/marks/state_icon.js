// stateIcon: the state of a call as a shape of its own; colour never speaks alone.

import { drawn, path } from "./icon.js";
import { h } from "../../lib/dom.js";
import { STATE_WORDS } from "../../lib/state.js";

/** @typedef {import("../../lib/state.js").CallState} CallState */
/** @typedef {import("./icon.js").Shape} Shape */

const SOLID = { class: "solid" };

/** @type {Record<CallState, Shape[]>} */
const SHAPES = {
  waiting: [
    path("M8 1.2 14.8 8 8 14.8 1.2 8z", SOLID),
    path("M6.6 6.5a1.45 1.45 0 1 1 2.1 1.3c-.5.25-.7.5-.7 1", { class: "cut-out", "stroke-width": 1.4 }),
    ["circle", { cx: 8, cy: 10.6, r: 0.8, class: "cut-out-solid" }],
  ],
  running: [path("M5 3.2v9.6L12.6 8z", SOLID)],
  stalled: [path("M8 2.2 14.6 13.6H1.4zM8 6.6v3.2"), ["circle", { cx: 8, cy: 11.6, r: 0.5, fill: "currentColor" }]],
  held_up: [path("M2 8s2.2-4 6-4c1 0 1.9.3 2.7.7M14 8s-2.2 4-6 4c-1 0-1.9-.3-2.7-.7M2.5 13.5l11-11")],
  queued: [["circle", { cx: 8, cy: 8, r: 5.5, "stroke-dasharray": "1.6 2.72" }]],
  retrying: [path("M13 8a5 5 0 1 1-1.6-3.7L13 5.8M13 2.6v3.2H9.8")],
  cancelling: [["rect", { x: 3.2, y: 3.2, width: 9.6, height: 9.6, rx: 1.5 }]],
  done: [path("M3 8.6 6.3 12 13 4.6", { "stroke-width": 1.9 })],
  failed: [
    ["circle", { cx: 8, cy: 8, r: 6.6, class: "solid" }],
    path("M5.7 5.7l4.6 4.6M10.3 5.7l-4.6 4.6", { class: "cut-out", "stroke-width": 1.7 }),
  ],
  cancelled: [["rect", { x: 3.4, y: 3.4, width: 9.2, height: 9.2, rx: 1.5, class: "solid" }]],
};

/**
 * The shape of a state. `words` names it for screen readers; null: words stand beside it.
 * @param {CallState | (() => CallState)} state
 * @param {((state: CallState) => string) | null} [words]
 */
export function stateIcon(state, words = (now) => STATE_WORDS[now]) {
  const now = typeof state === "function" ? state : () => state;
  const label = words && (() => words(now()));
  // A state is asked for with each reading and seldom differs, so its shape is made only when it does.
  let last = now();
  let shape = stateShape(last);
  const draw = () => {
    const next = now();
    if (next !== last) shape = stateShape((last = next));
    return shape;
  };
  return h("span.state-icon", { "data-state": now, ...(label && { role: "img", "aria-label": label }) }, draw);
}

/** The shape of a state alone, for a drawing. @param {CallState} state @param {string} [more] class names */
export const stateShape = (state, more) => drawn(SHAPES[state], more);
