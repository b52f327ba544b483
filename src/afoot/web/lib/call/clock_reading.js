// readClocks: how the two clocks of a call stand at an instant, by the rules of the gateway's engine. Pure.

import { hasOwnQuestion } from "../state.js";

const LAST_SILENCE = 0.25; // of the idle limit
const LAST_OF_CEILING = 0.1; // of the ceiling

/**
 * The clocks of a call at an instant of the gateway's clock.
 * @param {Call} call
 * @param {number} at
 * @returns {ClockReading}
 */
export function readClocks(call, at) {
  const { idle_s, ceiling_s, heard, spent_s, since } = call.clocks;
  const frozen = whyFrozen(call);
  const silent_s = frozen || heard === null ? 0 : Math.max(0, at - heard);
  const used_s = spent_s + (since === null ? 0 : Math.max(0, at - since));
  const silence_left = idle_s === null ? 1 : clamp(1 - silent_s / idle_s);
  const used = ceiling_s === null ? 0 : clamp(used_s / ceiling_s);
  return {
    silent_s,
    idle_s,
    silence_left,
    is_silence_last: !frozen && silence_left <= LAST_SILENCE,
    used_s,
    ceiling_s,
    used,
    is_ceiling_last: !frozen && used >= 1 - LAST_OF_CEILING,
    ceiling_left_s: ceiling_s === null ? null : Math.max(0, ceiling_s - used_s),
    frozen,
    answer_left_s: frozen === "asked" ? answerLeft(call, at) : null,
  };
}

/** Why both clocks stand still: asked, below, queued, cancelling, ended; empty while they run. @param {Call} call */
function whyFrozen({ state, open, clocks }) {
  if (state === "finished") return "ended";
  if (state === "cancelling") return state;
  if (hasOwnQuestion(open)) return "asked";
  if (open.size > 0) return "below";
  if (state === "queued") return state;
  return clocks.since === null ? "below" : "";
}

/** The time left for the first of a call's own questions. @param {Call} call @param {number} at */
function answerLeft({ open, clocks }, at) {
  const asked = [...open.values()].filter(({ kind, below }) => kind !== "below" && !below);
  const left_s = Math.min(...asked.map((one) => one.at)) + clocks.answer_s - at;
  return Math.min(clocks.answer_s, Math.max(0, left_s)); // the clock may be a little behind
}

/** @param {number} share */
const clamp = (share) => Math.min(1, Math.max(0, share));
