// pendingCancels: cancels that wait five seconds, in which they can be withdrawn; cancelButton begins and withdraws one.

import { icon } from "../marks/icon.js";
import { h } from "../../lib/dom.js";
import { cancelInWords } from "../../lib/call/call_words.js";
import { safeText } from "../../lib/format.js";
import { signal } from "../../lib/signal.js";
import { preciseNow, setTimer, tick } from "../../lib/time.js";

/** A cancel that can be withdrawn. @typedef {{due: number, withdraw: () => void, send: () => void}} PendingCancel */
/** @typedef {ReturnType<typeof pendingCancels>} PendingCancels */

const UNDO_S = 5;

/** @param {(id: string) => void} cancel ends a call */
export function pendingCancels(cancel) {
  /** @type {Signal<Map<string, PendingCancel>>} */ const all = signal(new Map());
  return {
    of: (/** @type {string} */ id) => all().get(id),
    begin(/** @type {string} */ id) {
      const send = () => {
        withdraw();
        cancel(id);
      };
      const clear = setTimer(UNDO_S * 1000, send);
      const withdraw = () => {
        clear();
        all.set(new Map([...all.peek()].filter(([one]) => one !== id)));
      };
      all.set(new Map([...all.peek(), [id, { due: preciseNow() + UNDO_S, withdraw, send }]]));
    },
    /** Send those that could still be withdrawn: the page ends. */
    flush: () => all.peek().forEach(({ send }) => send()),
  };
}

/** The call as it is shown while its cancel waits. @param {Call} call @param {PendingCancels} cancels @returns {Call} */
export function withPendingCancel(call, cancels) {
  const pending = cancels.of(call.id);
  return pending ? { ...call, cancel_due: pending.due } : call;
}

/** The words for a cancel that waits; empty without one. @param {Call} call */
export const pendingWords = ({ cancel_due }) => (cancel_due ? cancelInWords(cancel_due, tick()) : "");

/**
 * @param {() => Call} call
 * @param {PendingCancels} cancels
 * @param {() => boolean} isOff while the gateway cannot be reached
 */
export function cancelButton(call, cancels, isOff) {
  const { id, tool } = call();
  const pending = () => cancels.of(id);
  return h(
    "button.small.quiet",
    {
      type: "button",
      disabled: isOff,
      shown: () => call().state === "queued" || call().state === "running",
      "aria-label": () => `${pending() ? "Undo the cancel of" : "Cancel"} ${safeText(tool, 200)}`,
      onclick: () => (pending() ? pending()?.withdraw() : cancels.begin(id)),
    },
    () => (pending() ? h("span", "Undo") : icon("close", "s")),
  );
}
