// What several views show: states with word and shape, bars, times.

import { h, svg } from "./dom.js";
import { go, having, route } from "./router.js";
import { amount, visible } from "./text.js";

export { amount, visible };

/** Word and shape of what a call is doing, or how it ended; the shapes are drawn in a square of 16. */
const KINDS = /** @type {Record<string, [string, string]>} */ ({
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

/** What a call is doing, or how it ended: a key of the words. @param {Call} call @returns {string} */
export function kindOf({ state, outcome, open, hindered, stalled }) {
  if (state === "finished") return outcome ?? "lost";
  if (state === "cancelling") return state;
  return open.size ? "waiting" : hindered ? "hindered" : stalled ? "stalled" : state;
}

/** @param {string} kind */
export const wordOf = (kind) => KINDS[kind]?.[0] ?? kind;

/** The state of a call, or of what has others for words, as a shape and a word. @param {() => string} kind */
export function mark(kind, word = () => wordOf(kind())) {
  const path = svg("path", { d: () => KINDS[kind()]?.[1] });
  return h("span.mark", { "data-kind": kind }, svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, path), word);
}

/** What stands where a list is empty. @param {() => any} known @param {() => any[]} list @param {() => Child[]} words */
export const empty = (known, list, words) =>
  h("p.empty", { shown: () => !list().length }, () => (known() ? h("span", ...words()) : "Looking …"));

/** A field whose words are in the address. @param {string} hint */
export function search(hint) {
  const oninput = (/** @type {any} */ { target }) => go(having({ q: target.value, before: null }), { replace: true });
  const about = { type: "search", "aria-label": hint, placeholder: hint, "aria-keyshortcuts": "/" };
  return h("input", { ...about, ".value": () => route().query.q ?? "", oninput });
}

/** How much is done, from 0 to 1; null if nobody knows. @param {Pick<Call, "latest">} call */
export function shareOf({ latest }) {
  const { progress, total } = latest ?? {};
  return progress == null || !total || total < 0 ? null : Math.min(1, Math.max(0, progress / total));
}

/** "37 of 120", "37", or nothing. @param {Pick<Call, "latest">} call */
export function howFar({ latest }) {
  const { progress, total } = latest ?? {};
  return progress == null ? "" : total ? `${amount(progress)} of ${amount(total)}` : amount(progress);
}

/** What there is to say just now, the most telling. @param {Call} call */
export function saying({ state, open, failure, hindered, starting, cancel, latest }) {
  const question = open.values().next().value;
  if (question) return question.message || "waits for an answer";
  if (failure) return failure.message;
  if (state === "queued" && starting) return starting;
  if (state === "cancelling" && cancel?.reason) return cancel.reason;
  return state === "running" && hindered ? listed(hindered.by, hindered.hint) : latest?.message;
}

/** What is there, of all that may be. @param {...unknown} parts */
export const listed = (...parts) => parts.filter(Boolean).join(", ");

/** A bar, or a pulse where nobody knows how far it is. @param {() => Call} call @param {string} label */
export function bar(call, label) {
  const text = () => visible(listed(howFar(call()), call().latest?.message)) || null;
  const share = () => (call().outcome === "ok" ? 1 : shareOf(call()));
  const moved = () => `translateX(${((share() ?? 0) - 1) * 100}%)`;
  const isPulse = () => share() === null && call().state === "running" && !call().open.size;
  const value = h("progress", { max: 1, value: share, "aria-label": label, "aria-valuetext": text });
  return h("div.bar", { "data-pulse": isPulse }, value, h("div.fill", { "style.transform": moved }));
}

/** A span of time: 0:07, 12:40, 1:02:03. @param {number} seconds */
export function span(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (/** @type {number} */ part) => String(part).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** How long it took, in a word: 35 ms, 4.2 s, 3 min, 2 h. @param {number} seconds */
export function lasted(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 90) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/** How long it may still take. @param {Eta | null | undefined} eta */
export function left(eta) {
  if (!eta) return "";
  const [low, high] = [lasted(Math.max(1, eta.low_s)), lasted(Math.max(1, eta.high_s))];
  return low === high ? `about ${high} left` : `${low} to ${high} left`;
}

/** How fast it goes. @param {number | null | undefined} rate a second */
export function pace(rate) {
  if (!rate || rate < 0) return "";
  if (rate >= 1) return `${amount(rate)} a second`;
  return rate * 60 >= 1 ? `${amount(rate * 60)} a minute` : `${amount(rate * 3600)} an hour`;
}

/** "1 tool", "3 tools". @param {number} number @param {string} what */
export const many = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;

/** An instant as the clock on the wall has it. @param {number} at */
export function when(at) {
  const day = new Date(at * 1000);
  const isToday = day.toDateString() === new Date().toDateString();
  return isToday ? day.toLocaleTimeString() : day.toLocaleString();
}
