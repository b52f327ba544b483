// progressBar: how far a call is. It moves by transform alone; while nobody knows how far it is, it slides.
//
// It is drawn up to twenty times a second in each row, so it costs no layout: a native `progress` lays out its inside
// with each value. An animation gets a layer of its own, which each frame is put together from, so small steps have none.

import { h } from "../../lib/dom.js";
import { formatProgress, joinNonEmpty, progressFraction, safeText } from "../../lib/format.js";
import { effect } from "../../lib/signal.js";
import { stateOf } from "../../lib/state.js";

/** @typedef {import("../../lib/state.js").CallState} CallState */

const STEPS = 200; // places of the bar: half a pixel of the one in a row
const LEAP = 0.03; // of the bar: a larger step is animated

/**
 * The bar of a call, with a text value for screen readers.
 * @param {() => Call} call
 * @param {string} name what it is the progress of
 * @param {() => CallState} [state] if it is known already
 */
export function progressBar(call, name, state = () => stateOf(call())) {
  const share = () => shownFraction(call());
  const percent = () => (share() === null ? null : Math.round((share() ?? 0) * 100));
  const words = () => safeText(joinNonEmpty(formatProgress(call()), call().latest?.message), 300) || null;
  const isUnknown = () => share() === null && ["running", "retrying"].includes(state());
  return h(
    "span.progress-bar",
    {
      role: "progressbar",
      "aria-label": name,
      "aria-valuenow": percent,
      "aria-valuetext": words,
      "data-state": state,
      "data-unknown": isUnknown,
    },
    progressFill(() => (isUnknown() ? null : (share() ?? 0))),
  );
}

/** The fraction that a bar shows: a call that ended well is whole. @param {Call} call */
export const shownFraction = (call) => (call.outcome === "ok" ? 1 : progressFraction(call));

/** The part of a bar that moves. @param {() => number | null} share null: it slides */
function progressFill(share) {
  const fill = h("i.progress-fill");
  /** @type {number | null | undefined} */ let drawn;
  effect(() => {
    const exact = share();
    const next = exact === null ? null : Math.round(exact * STEPS) / STEPS;
    if (next === drawn) return;
    fill.toggleAttribute("data-leap", next !== null && Math.abs(next - (drawn ?? 0)) > LEAP);
    fill.style.setProperty("transform", next === null ? "" : `translateX(${(next - 1) * 100}%)`);
    drawn = next;
  });
  return fill;
}
