// stateOf: the one state of a call that people see, and its word. Shapes for it are in components/marks/state_icon.js.

/** @typedef {"waiting" | "running" | "stalled" | "held_up" | "queued" | "retrying" | "cancelling" | "done" | "failed" | "cancelled"} CallState */

/** The word of each state, the same on every surface. @type {Record<CallState, string>} */
export const STATE_WORDS = {
  waiting: "waiting",
  running: "running",
  stalled: "stalled",
  held_up: "held up",
  queued: "queued",
  retrying: "next attempt",
  cancelling: "cancelling",
  done: "done",
  failed: "failed",
  cancelled: "cancelled",
};

/** How a call ended, where "failed" says too little. @type {Record<Outcome, string>} */
export const OUTCOME_WORDS = {
  ok: "done",
  failed: "failed",
  refused: "refused",
  cancelled: "cancelled",
  timed_out: "timed out",
  lost: "lost",
  uncertain: "uncertain",
};

/**
 * The state of a call: the most telling one. A call whose child asks runs on; it is the child that waits.
 * @param {Pick<Call, "state" | "outcome" | "open" | "hindered" | "stalled" | "attempt" | "cancel_due">} call
 * @param {{is_silence_last: boolean} | null} [clocks] a reading of its clocks: silent for too long is stalled, too
 * @returns {CallState}
 */
export function stateOf({ state, outcome, open, hindered, stalled, attempt = 1, cancel_due }, clocks = null) {
  if (state === "finished") return outcome === "ok" ? "done" : outcome === "cancelled" ? "cancelled" : "failed";
  if (state === "cancelling" || cancel_due) return "cancelling"; // also while the cancel can be withdrawn
  if (hasOwnQuestion(open)) return "waiting";
  if (state === "queued") return attempt > 0 ? "retrying" : "queued";
  if (hindered) return "held_up";
  if (stalled || clocks?.is_silence_last) return "stalled";
  return attempt > 1 ? "retrying" : "running";
}

/** Whether a person is asked by this call itself, and not by one below it. @param {Call["open"]} open */
export function hasOwnQuestion(open) {
  for (const { kind, below } of open.values()) if (kind !== "below" && !below) return true;
  return false;
}

/** Whether a call still runs, or will. @param {CallState} state */
export const isLive = (state) => state !== "done" && state !== "failed" && state !== "cancelled";
