// progressBar: how far a call is. It moves by transform alone; while nobody knows how far it is, it slides.

import { h } from "../lib/dom.js";
import { formatProgress, joinNonEmpty, progressFraction, safeText } from "../lib/format.js";
import { stateOf } from "../lib/state.js";

/** @typedef {import("../lib/state.js").CallState} CallState */

/**
 * The bar of a call, with a text value for screen readers.
 * @param {() => Call} call
 * @param {string} name what it is the progress of
 * @param {() => CallState} [state] if it is known already
 */
export function progressBar(call, name, state = () => stateOf(call())) {
  const share = () => shownFraction(call());
  const words = () => safeText(joinNonEmpty(formatProgress(call()), call().latest?.message), 300) || null;
  const moved = () => `translateX(${((share() ?? 0) - 1) * 100}%)`;
  const isUnknown = () => share() === null && ["running", "retrying"].includes(state());
  return h(
    "span.progress-bar",
    { "data-state": state, "data-unknown": isUnknown },
    h("progress", { max: 1, value: share, "aria-label": name, "aria-valuetext": words }),
    h("i.progress-fill", { "style.transform": () => (isUnknown() ? "" : moved()) }),
  );
}

/** The fraction that a bar shows: a call that ended well is whole. @param {Call} call */
export const shownFraction = (call) => (call.outcome === "ok" ? 1 : progressFraction(call));
