// registerCallKeys: the keys of the selected call, for every view that has one: y n e to answer, x u to cancel and to
// undo, r to run again.

import { online } from "../../lib/event_feed.js";
import { registerKeys } from "../../lib/keys.js";
import { questionKey, questionOfCall } from "../../lib/call/open_questions.js";
import { attempt } from "../../lib/resource.js";
import { computed, effect } from "../../lib/signal.js";
import { canCancel, canUndo, cancelSoon, runAgain, withdrawCancel } from "../cancel.js";
import { tell } from "../shell/notice.js";

const APPEARED_MS = 500; // a question must have been there for so long before a key answers it

/** @typedef {Pick<Entry, "id" | "call">} Target */

/** Register the keys of a call until the current scope ends. @param {() => Target | null | undefined} selected */
export function registerCallKeys(selected) {
  registerAnswerKeys(() => questionOfCall(selected()?.id ?? ""));
  const now = () => online() && selected();
  const when = (/** @type {(call: Call) => boolean} */ is) => () => {
    const target = now();
    return target ? is(target.call()) : false;
  };
  const act = (/** @type {(target: Target) => Promise<unknown>} */ work) => async () => {
    const target = selected();
    if (!target) return;
    const [, error] = await attempt(work(target));
    if (error) tell(error.message);
  };
  registerKeys(
    { keys: "x", words: "Cancel the call", when: when(canCancel), act: act(cancelSoon) },
    { keys: "u", words: "Undo the cancel", when: when(canUndo), act: act(withdrawCancel) },
    { keys: "r", words: "Run again", when: when(({ state }) => state === "finished"), act: act(runAgain) },
  );
}

/**
 * Register the keys that answer a question. They press the buttons that are seen for it.
 * @param {() => QuestionView | undefined} selected
 */
export function registerAnswerKeys(selected) {
  const question = computed(selected);
  let key = "";
  let since = performance.now();
  effect(() => {
    const now = question();
    if ((now ? questionKey(now) : "") === key) return;
    key = now ? questionKey(now) : "";
    since = performance.now();
  });
  const hasAppeared = () => performance.now() - since >= APPEARED_MS;
  const isOf =
    (/** @type {string[]} */ ...kinds) =>
    () =>
      online() && kinds.includes(question()?.kind ?? "");
  const press = (/** @type {string} */ act) => () => findVisible(question()?.id ?? "", `[data-act="${act}"]`)?.click();
  const fill = () => {
    const field = findVisible(question()?.id ?? "", "form :is(input, select, textarea)");
    if (field) field.focus();
    else press("fill")();
  };
  const run = () => hasAppeared() && press("run")();
  const refuse = () => hasAppeared() && press("refuse")();
  registerKeys(
    { keys: "y", words: "Run", when: isOf("approval"), act: run },
    { keys: "n", words: "Reject or decline", when: () => online() && question(), act: refuse },
    { keys: "e", words: "Fill in", when: isOf("form", "url"), act: fill },
  );
}

/** A visible part of a question. @param {string} id @param {string} part @returns {HTMLElement | undefined} */
function findVisible(id, part) {
  const found = document.querySelectorAll(`[data-question="${CSS.escape(id)}"] :is(${part})`);
  return /** @type {HTMLElement[]} */ ([...found]).find((one) => one.checkVisibility());
}
