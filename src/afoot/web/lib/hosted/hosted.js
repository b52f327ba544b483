// HostedCalls: the calls that a frame in a host shows, as the gateway tells of them through the host. Pure, but for signals.

import { inTreeOrder } from "../call/call_tree.js";
import { batch, signal } from "../signal.js";

/** One call by its id, that of a request, or all of the caller. @typedef {{call?: string, tool?: string, request?: string | number, arguments?: Json, age_s?: number}} Subject */
/** @typedef {import("../call/call_tree.js").TreeRow} TreeRow */

const WAIT = "afoot_wait";
const CALLS = "afoot_calls";
const age = () => performance.now() / 1000; // of the page; a clock that is set does not change it

/** The calls that are shown, and how well they are known. */
export function hostedCalls() {
  const shown = signal(/** @type {TreeRow[]} */ ([]));
  const isAnonymous = signal(false);
  /** @type {Subject} */ let subject = {};
  let isOfTool = false; // whether the result of the tool is that of the call
  let begun = age();
  return {
    shown,
    isAnonymous,
    /** What to ask the gateway for. @returns {Subject} */
    subject: () => (subject.tool === undefined ? subject : { ...subject, age_s: age() - begun }),
    /** Show the call of a tool, or those that a tool of the gateway's is about. @param {string} tool @param {Json} given @param {string | number} [request] */
    showTool(tool, given, request) {
      begun = age();
      isOfTool = tool !== CALLS && tool !== WAIT && tool !== "";
      if (tool === CALLS) subject = {};
      else if (tool === WAIT || !tool) subject = typeof given?.call === "string" ? { call: given.call } : {};
      else subject = { tool, arguments: given ?? {}, ...(request !== undefined && { request }) };
    },
    /** Show the call that a result is of. @param {Json} result */
    showResult(result) {
      const id = result?.structuredContent?.afoot_call ?? result?._meta?.["dev.afoot/call"];
      if (typeof id === "string" && isOfTool) subject = { call: id };
    },
    /**
     * Take what the gateway told of them, unless other calls are to be shown since it was asked.
     * @param {Subject} asked
     * @param {{calls: CallView[], anonymous: boolean}} told
     */
    take(asked, { calls, anonymous }) {
      if (asked.tool !== subject.tool || asked.call !== subject.call) return;
      const [root] = calls;
      if (root && subject.tool !== undefined) subject = { call: root.id };
      batch(() => {
        isAnonymous.set(anonymous);
        shown.set(inTreeOrder(calls));
      });
    },
    /** Whether nothing can change any more: the one call that is shown is over. */
    isOver: () => subject.call !== undefined && shown.peek()[0]?.call.finished != null,
  };
}
