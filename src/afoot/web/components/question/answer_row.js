// rowAnswer: the two buttons of a waiting call in its row: Reject… and Run, or Decline… and Fill in. They open in place.

import { each, h } from "../../lib/dom.js";
import { safeText } from "../../lib/format.js";
import { isAnswerable, questionKey, questionOfCall } from "../../lib/call/open_questions.js";
import { guardedButton, openButton } from "../controls.js";
import { floatingPanel } from "../floating_panel.js";
import { fillForm } from "./fill.js";
import { refuseForm, refuseWord } from "./refuse.js";
import { decision, sender } from "./send.js";

/**
 * The buttons for the first open question of a call. They are there as soon as all is known of it.
 * @param {{id: string}} entry
 */
export function rowAnswer({ id }) {
  const found = () => [questionOfCall(id)].filter((one) => one !== undefined);
  return h("span.row-answer", each(found, questionKey, answerButtons));
}

/** The two buttons of a question: secondary left, primary right. @param {QuestionView} question */
export function answerButtons(question) {
  const name = safeText(question.tool, 100);
  const refuse = opener("refuse", `${refuseWord(question)}…`, `${refuseWord(question)}… ${name}`, question, (close) =>
    refuseForm(question, sender(question, { onDone: close })),
  );
  return h("span.pair", { "data-question": question.id }, refuse, primaryButton(question, name));
}

/** @param {QuestionView} question @param {string} name */
function primaryButton(question, name) {
  const { kind, destructive } = question;
  const look = destructive ? "small danger" : "small main";
  const run = () => sender(question)(decision({ decision: "run" }));
  const about = { class: look, "data-act": "run", "aria-label": `Run ${name}`, "aria-keyshortcuts": "y" };
  if (kind === "approval") return guardedButton("Run", run, about);
  if (!isAnswerable(question)) return null;
  const word = kind === "form" ? "Fill in" : "Open";
  return opener("fill", word, `${word}: ${name}`, question, (close) =>
    fillForm(question, sender(question, { onDone: close })),
  );
}

/**
 * A button that opens a panel at its place.
 * @param {"refuse" | "fill"} act
 * @param {string} word
 * @param {string} label
 * @param {QuestionView} question
 * @param {(close: () => void) => Element} make
 */
function opener(act, word, label, question, make) {
  return openButton(word, floatingPanel(label, make), {
    class: act === "fill" ? "small main" : "small",
    "data-act": act,
    "aria-label": label,
    "aria-haspopup": "dialog",
    "aria-keyshortcuts": act === "refuse" ? "n" : "e",
  });
}
