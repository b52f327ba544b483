// callWords: the one line that says most about a call now: a warning first, then the time left and its last message.

import { formatEstimate, formatLeft, safeText, statusMessage } from "./format.js";
import { STATE_WORDS, OUTCOME_WORDS } from "./state.js";

/** @typedef {import("./state.js").CallState} CallState */
/** @typedef {{warning: string, text: string}} CallWords `warning` is red */

const MOST = 300; // characters of a line

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

/** @param {CallState} state @param {ClockReading} clocks */
function clockWarning(state, { is_silence_last, is_ceiling_last, idle_s, silent_s, ceiling_left_s }) {
  if (is_silence_last && idle_s !== null) return `stalled, ends in ${formatLeft(idle_s - silent_s)}`;
  if (is_ceiling_last && ceiling_left_s !== null) return `${formatLeft(ceiling_left_s)} to the ceiling`;
  return state === "stalled" ? STATE_WORDS.stalled : "";
}

/** @param {Call} call */
const hintOf = ({ hindered }) => safeText(hindered?.hint ?? "", MOST);

/** @param {...string} parts */
const joinWords = (...parts) => parts.filter(Boolean).join(" · ");
