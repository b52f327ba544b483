// refuseForm: says no to a question: an approval is rejected with words for the model, anything else is declined.

import { each, h } from "../../lib/dom.js";
import { safeText } from "../../lib/format.js";
import { computed } from "../../lib/signal.js";
import { actionButton, submitButton, submitForm } from "../controls.js";
import { earlierAnswers, earlierWords } from "./earlier.js";
import { decision } from "./send.js";

/** @typedef {import("./send.js").Send} Send */
/** @typedef {import("./earlier.js").Earlier} Earlier */

const MAX_SUGGESTIONS = 3;
const MAX_SUGGESTION_CHARS = 60;
const USUAL_WORDS = "Not today";

/** The word of the button that opens the form. @param {QuestionView} question */
export const refuseWord = ({ kind }) => (kind === "approval" ? "Reject" : "Decline");

/**
 * @param {QuestionView} question
 * @param {Send} send
 * @param {{hasFocus?: boolean, earlier?: Earlier}} [how]
 */
export const refuseForm = (question, send, { hasFocus = true, earlier } = {}) =>
  question.kind === "approval"
    ? rejectForm(send, hasFocus, earlier ?? earlierAnswers(question))
    : declineForm(send, hasFocus);

/** @param {Send} send @param {boolean} hasFocus @param {Earlier} earlier */
function rejectForm(send, hasFocus, earlier) {
  const words = h("textarea.instead", {
    rows: 2,
    name: "instead",
    autofocus: hasFocus,
    placeholder: "What should the agent do instead? It reads this.",
    onkeydown: sendOnEnter,
  });
  const suggestions = computed(() => [...new Set([...earlierWords(earlier() ?? [], MAX_SUGGESTIONS), USUAL_WORDS])]);
  const use = (/** @type {string} */ text) => () => {
    words.value = text;
    words.focus();
  };
  const chip = (/** @type {string} */ text) =>
    h("button.chip", { type: "button", onclick: use(text) }, safeText(text, MAX_SUGGESTION_CHARS));
  return submitForm(
    "form.refuse",
    () => send(decision({ decision: "reject", instead: words.value })),
    h("label", h("span", "Reject with words"), words),
    h("div.chips", each(suggestions, String, chip)),
    h("div.buttons", submitButton("Reject")),
  );
}

/** @param {Send} send @param {boolean} hasFocus */
function declineForm(send, hasFocus) {
  const dismiss = actionButton("Do not answer", () => send({ action: "cancel" }));
  const decline = h("button.main", { autofocus: hasFocus }, "Decline");
  return submitForm(
    "form.refuse",
    () => send({ action: "decline" }),
    h("p.dim", "The tool is told that you decline, or only that nobody answered."),
    h("div.buttons", dismiss, decline),
  );
}

/** Enter sends, Shift and Enter begin a new line. @param {KeyboardEvent} event */
function sendOnEnter(event) {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (event.target instanceof HTMLTextAreaElement) event.target.form?.requestSubmit();
}
