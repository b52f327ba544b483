// Parts that several views share: status badge, progress bar, empty message, search field.

import { h, svg } from "../lib/dom.js";
import { formatProgress, joinNonEmpty, progressFraction, safeText } from "../lib/format.js";

/** The label and the shape of each status; shapes are drawn in a square of 16. */
const STATUSES = /** @type {Record<string, [string, string]>} */ ({
  queued: ["queued", "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2Zm0 2a4 4 0 1 1 0 8 4 4 0 0 1 0-8Z"],
  running: ["running", "M4 2.5 13.5 8 4 13.5Z"],
  stalled: ["stalled", "M3 3h3.5v10H3ZM9.5 3H13v10H9.5Z"],
  hindered: ["hindered", "M2 6.5h12v3H2ZM3.5 2h9v2.5h-9Zm0 9.5h9V14h-9Z"],
  waiting: ["waits for you", "M8 .8 15.2 8 8 15.2.8 8Z"],
  cancelling: ["cancelling", "M3 3h10v10H3Z"],
  ok: ["done", "M6.2 13.4 1.4 8.6 3.3 6.7l2.9 2.9 6.5-6.5 1.9 1.9Z"],
  failed: ["failed", "m3.4 1.6 4.6 4.6 4.6-4.6 1.8 1.8L9.8 8l4.6 4.6-1.8 1.8L8 9.8l-4.6 4.6-1.8-1.8L6.2 8 1.6 3.4Z"],
  refused: ["refused", "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1ZM4 6.8h8v2.4H4Z"],
  cancelled: ["cancelled", "M2.5 2.5h11v11h-11Zm2 2v7h7v-7Z"],
  timed_out: ["timed out", "M3 1.5h10L9.2 8l3.8 6.5H3L6.8 8Z"],
  lost: ["lost", "M6.7 1h2.6v9H6.7Zm0 11h2.6v3H6.7Z"],
  uncertain: ["uncertain", "M8 1.2 15.5 14.5H.5Z"],
});

/** The status of a call: a key of STATUSES. @param {Call} call @returns {string} */
export function statusOf({ state, outcome, open, hindered, stalled }) {
  if (state === "finished") return outcome ?? "lost";
  if (state === "cancelling") return state;
  return open.size ? "waiting" : hindered ? "hindered" : stalled ? "stalled" : state;
}

/** @param {string} kind */
export const statusLabel = (kind) => STATUSES[kind]?.[0] ?? kind;

/** A status as a shape and a word; `word` replaces the usual label. @param {() => string} kind */
export function statusBadge(kind, word = () => statusLabel(kind())) {
  const path = svg("path", { d: () => STATUSES[kind()]?.[1] });
  return h("span.mark", { "data-kind": kind }, svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, path), word);
}

/**
 * The message in place of an empty list.
 * @param {() => any} known
 * @param {() => any[]} list
 * @param {() => Child[]} words
 */
export const emptyMessage = (known, list, words) =>
  h("p.empty", { shown: () => !list().length }, () => (known() ? h("span", ...words()) : "Looking …"));

/**
 * A progress bar; it pulses while the progress is unknown.
 * @param {() => Call} call
 * @param {string} label
 */
export function progressBar(call, label) {
  const text = () => safeText(joinNonEmpty(formatProgress(call()), call().latest?.message)) || null;
  const share = () => (call().outcome === "ok" ? 1 : progressFraction(call()));
  const moved = () => `translateX(${((share() ?? 0) - 1) * 100}%)`;
  const isPulse = () => share() === null && call().state === "running" && !call().open.size;
  const value = h("progress", { max: 1, value: share, "aria-label": label, "aria-valuetext": text });
  return h("div.bar", { "data-pulse": isPulse }, value, h("div.fill", { "style.transform": moved }));
}
