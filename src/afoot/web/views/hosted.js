// hostedView: the calls in the frame of a host: their questions first, then a row for each, with a way to stop it.

import { cancelButton, pendingCancels, pendingWords, withPendingCancel } from "../components/narrow/narrow_cancel.js";
import { narrowQuestion } from "../components/narrow/narrow_question.js";
import { narrowRow } from "../components/narrow/narrow_row.js";
import { each, h } from "../lib/dom.js";
import { safeText } from "../lib/format.js";
import { computed, signal } from "../lib/signal.js";
import { tick } from "../lib/time.js";

/** @typedef {import("../lib/call/call_tree.js").TreeRow} TreeRow */
/** @typedef {import("../components/narrow/narrow_cancel.js").PendingCancels} PendingCancels */
/** @typedef {(name: string, given: object) => Promise<Json>} CallTool */
/**
 * @typedef {object} HostedState
 * @property {() => TreeRow[]} shown
 * @property {() => boolean} isAnonymous
 * @property {() => string} offline since when and why nothing is heard; empty while all is well
 * @property {CallTool} callTool
 * @property {() => void} refresh looks again, soon
 */

const MAX_INDENT = 4;
const NAMELESS =
  "The call is shown as soon as its id is known. This host has no name at the gateway, so nothing else tells its calls from those of others.";

/** @param {HostedState} state */
export function hostedView(state) {
  const { shown, isAnonymous, offline } = state;
  const cancels = pendingCancels((id) => {
    const given = { call: id, reason: "stopped in the conversation" };
    void state.callTool("afoot_cancel", given).then(state.refresh, state.refresh);
  });
  const questions = computed(() => shown().flatMap((one) => one.questions));
  const node = h(
    "main.hosted",
    h("p.offline-line", { role: "status", shown: () => offline() !== "" }, offline),
    each(questions, "id", (question) => questionCard(question, state)),
    each(
      shown,
      ({ call }) => call.id,
      (first, now) => callRow(first.depth, now, cancels, () => offline() !== ""),
    ),
    h("p.empty-line", { shown: () => shown().length === 0 }, () => (isAnonymous() ? NAMELESS : "Nothing runs.")),
  );
  return { node, end: cancels.flush };
}

/** @param {number} depth @param {() => TreeRow} now @param {PendingCancels} cancels @param {() => boolean} isOff */
function callRow(depth, now, cancels, isOff) {
  const call = computed(() => withPendingCancel(now().call, cancels));
  const action = () => cancelButton(call, cancels, isOff);
  return narrowRow(call, { at: tick, depth: Math.min(depth, MAX_INDENT), action, words: pendingWords });
}

/** @param {QuestionView} question @param {HostedState} state */
function questionCard(question, { callTool, refresh, offline }) {
  const isSending = signal(false);
  const error = signal("");
  const answer = async (/** @type {{action: string, content?: object}} */ given) => {
    isSending.set(true);
    error.set(await answerError(callTool, { question: question.id, digest: question.digest, ...given }));
    isSending.set(false);
    refresh();
  };
  const isForOperator = question.to === "operator";
  const place = () => (isForOperator ? "The operator of the gateway is asked, in its console or terminal." : "");
  const shown = { ...question, caller: "" }; // the one who looks
  return narrowQuestion(shown, { at: tick, answer, isBusy: () => isSending() || offline() !== "", error, place });
}

/** Why an answer did not count; empty if it did. @param {CallTool} callTool @param {object} given */
async function answerError(callTool, given) {
  try {
    const result = await callTool("afoot_answer", given);
    return result.isError ? textOf(result) : "";
  } catch (wrong) {
    return String(/** @type {Error} */ (wrong).message);
  }
}

/** The words of a tool's result. @param {Json} result */
export const textOf = (result) =>
  safeText((result?.content ?? []).map((/** @type {Json} */ one) => one?.text ?? "").join("\n"), 1000);
