// placeRow: a server, browser, tab or plugin as a row: its state as a shape and a word, what it is, and buttons.

import { h } from "../../lib/dom.js";
import { safeText } from "../../lib/format.js";
import { stateIcon } from "../marks/state_icon.js";

/** @typedef {import("../../lib/state.js").CallState} CallState */
/** @typedef {{key: string, name: string, aside?: string, about: string, state: string, why: string, count: string}} Place */

/** The shape of each state of a place. @type {Record<string, CallState>} */
const SHAPES = {
  ready: "done",
  connected: "done",
  starting: "running",
  idle: "queued",
  closed: "queued",
  disabled: "cancelled",
  stopped: "cancelled",
  unavailable: "held_up",
  draining: "cancelled",
  silent: "failed",
  "at its quota": "held_up",
  lost: "failed",
  failed: "failed",
  unusable: "failed",
};

/**
 * A row, and elements below it that belong to it.
 * @param {() => Place} place
 * @param {Child[]} buttons
 * @param {...Child} below
 */
export function placeRow(place, buttons = [], ...below) {
  const shape = () => SHAPES[place().state] ?? "queued";
  const isWrong = () => ["failed", "held_up"].includes(shape());
  return h(
    "li",
    { "data-place": place().key },
    h(
      "div.list-row.place-columns",
      h("span.place-state", stateIcon(shape, null)),
      h(
        "span.name",
        h("b.cut", () => safeText(place().name, 200)),
        h("span.row-server", () => safeText(place().aside, 100)),
      ),
      h(
        "span.about",
        h("span", () => safeText(place().about, 400)),
        h("span", { class: () => (isWrong() ? "problem" : "faint") }, () =>
          place().why ? ` ${safeText(place().why, 400)}` : "",
        ),
      ),
      h("span.num", () => safeText(place().count, 100)),
      h("span.word", () => place().state),
      h("span.row-buttons", ...buttons),
    ),
    ...below,
  );
}
