// cancelButton, undoCancel and rerunButton: a row's last column. A cancel comes after 5 s, in which it can be withdrawn:
// the gateway waits, so it comes although this page was closed, and every page sees it.
//
// cancelButton is shown while a call can be cancelled, rerunButton once it has ended. undoCancel stands where the message
// was, while a cancel is pending; `stateOf` calls that state "cancelling". The same actions are on the keys x, u and r.

import { del, post } from "../lib/api.js";
import { h } from "../lib/dom.js";
import { cancelInWords } from "../lib/call/call_words.js";
import { safeText } from "../lib/format.js";
import { attempt } from "../lib/resource.js";
import { callPath, navigate } from "../lib/router.js";
import { tick } from "../lib/time.js";
import { actionButton } from "./controls.js";
import { icon } from "./marks/icon.js";

const UNDO_S = 5;

/** @typedef {Pick<Entry, "id" | "call">} Target */

/** Whether a call runs or will, and no cancel of it is pending. @param {Call} call */
export const canCancel = ({ state, cancel_due }) => (state === "queued" || state === "running") && !cancel_due;

/** Whether a pending cancel can still be withdrawn. @param {Call} call */
export const canUndo = ({ state, cancel_due }) => Boolean(cancel_due) && (state === "queued" || state === "running");

/** Cancel a call in 5 s. @param {{id: string}} target */
export const cancelSoon = ({ id }) => post(`/api${callPath(id)}/cancel`, { after_s: UNDO_S });

/** Withdraw the pending cancel of a call. @param {{id: string}} target */
export const withdrawCancel = ({ id }) => del(`/api${callPath(id)}/cancel`);

/**
 * Run a call again as it was. If it had secrets, which are not kept, or nobody knows what it did, the page of the call
 * asks for more.
 * @param {Target} target
 */
export async function runAgain({ id, call }) {
  const page = `${callPath(id)}?again=1`;
  if (call.peek().outcome === "uncertain") return navigate(page);
  const [, error] = await attempt(post(`/api${callPath(id)}/rerun`));
  if (error?.status === 422) return navigate(page);
  if (error) throw error;
}

/** The cross that cancels a call. @param {Target} target */
export function cancelButton(target) {
  const name = safeText(target.call.peek().tool, 100);
  return markButton(
    "close",
    `Cancel ${name}`,
    "x",
    () => canCancel(target.call()),
    () => cancelSoon(target),
  );
}

/** The arrow that runs a call again. @param {Target} target */
export function rerunButton(target) {
  const name = safeText(target.call.peek().tool, 100);
  const isOver = () => target.call().state === "finished";
  return markButton("again", `Run ${name} again`, "r", isOver, () => runAgain(target));
}

/** The button that withdraws a pending cancel, and the seconds left for it. @param {Target} target */
export function undoCancel(target) {
  const { call } = target;
  const about = { class: "small", "aria-keyshortcuts": "u" };
  const button = actionButton(h("span.undo", icon("again", "s"), "Undo"), () => withdrawCancel(target), about);
  const words = h("span.dim", () => (canUndo(call()) ? cancelInWords(call().cancel_due ?? 0, tick()) : ""));
  return h("span.undo-cancel", { shown: () => canUndo(call()) }, button, words);
}

/**
 * A button of a row with a mark instead of a word.
 * @param {"close" | "again"} mark
 * @param {string} label
 * @param {string} key
 * @param {() => unknown} shown
 * @param {() => Promise<unknown>} work
 */
const markButton = (mark, label, key, shown, work) =>
  actionButton(icon(mark, "s"), work, {
    class: "quiet small square",
    title: label,
    "aria-label": label,
    "aria-keyshortcuts": key,
    shown,
  });
