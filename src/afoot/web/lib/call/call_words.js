// callWords: the one line that says most about a call now: a warning first, then the time left and its last message. The
// terminal has the same words, on the same test vectors.

import { formatEstimate, formatLeft, safeText, statusMessage } from "../format.js";
import { STATE_WORDS, OUTCOME_WORDS } from "../state.js";

/** @typedef {import("../state.js").CallState} CallState */
/** @typedef {{warning: string, text: string}} CallWords `warning` is red */

const MOST = 300; // characters of a line
const CEILING_WORDS_S = 60; // with more left, the line of the ceiling says enough

/**
 * @param {Call} call
 * @param {CallState} state
 * @param {ClockReading | null} clocks
 * @returns {CallWords}
 */
export function callWords(call, state, clocks) {
  const message = safeText(statusMessage(call) ?? "", MOST);
  if (call.outcome && call.outcome !== "ok") return { warning: message || OUTCOME_WORDS[call.outcome], text: "" };
  const warning = clocks && !clocks.frozen ? clockWarning(state, clocks) : "";
  if (state === "held_up")
    return { warning, text: joinWords(`held up: ${safeText(call.hindered?.by ?? "")}`, hintOf(call)) };
  if (state === "queued" || state === "cancelling") return { warning, text: joinWords(STATE_WORDS[state], message) };
  if (state === "retrying") return { warning, text: joinWords(`attempt ${call.attempt}`, message) };
  const left = state === "running" && !warning ? formatEstimate(call.eta) : "";
  return { warning, text: joinWords(left && `${left} left`, message) };
}

/**
 * Which clock is about to end a call, and when; the nearer of both.
 * @param {CallState} state
 * @param {ClockReading} clocks
 */
export function clockWarning(state, { is_silence_last, is_ceiling_last, idle_s, silent_s, ceiling_left_s }) {
  const silence_left_s = is_silence_last ? Math.max(0, (idle_s ?? 0) - silent_s) : Infinity;
  const left_s = is_ceiling_last ? (ceiling_left_s ?? 0) : Infinity;
  if (left_s < silence_left_s && left_s <= CEILING_WORDS_S) return `${formatLeft(left_s)} to the ceiling`;
  if (is_silence_last) return `stalled, ends in ${formatLeft(silence_left_s)}`;
  return state === "stalled" ? STATE_WORDS.stalled : "";
}

/** What is about to happen to a call, or holds it up. @param {Call} call @param {CallState} state @param {ClockReading} clocks */
export const warningOf = ({ hindered }, state, clocks) =>
  clockWarning(state, clocks) || (state === "held_up" ? safeText(`held up: ${hindered?.by ?? ""}`, MOST) : "");

/** What a row says before the words of a call. @param {Call} call @param {boolean} isDestructive whether it asks for a run that may destroy something */
export function tagsOf({ attempt, state, detached }, isDestructive) {
  const isLive = state !== "finished";
  /** @type {string[]} */ const found = [];
  if (isDestructive) found.push("destructive");
  if (isLive && attempt > 1) found.push(`attempt ${attempt}`);
  if (isLive && detached) found.push("detached");
  return found;
}

/** When a pending cancel comes. @param {number} due @param {number} at */
export const cancelInWords = (due, at) => `cancels in ${formatLeft(Math.max(0, due - at))}`;

/** @param {Call} call */
const hintOf = ({ hindered }) => safeText(hindered?.hint ?? "", MOST);

/** @param {...string} parts */
const joinWords = (...parts) => parts.filter(Boolean).join(" · ");
