// questionContext: what stands beside the selected question: the clocks, the rejection, and earlier answers.

import { each, h } from "../../lib/dom.js";
import { formatClock, formatElapsed, formatLeft, formatSpan, formatTime, safeText } from "../../lib/format.js";
import { argumentSummary } from "../../lib/call/open_questions.js";
import { frozenRing } from "../marks/clocks.js";
import { stateIcon } from "../marks/state_icon.js";
import { refuseForm } from "./refuse.js";
import { sender } from "./send.js";

/** @typedef {import("./send.js").Outcomes} Outcomes */

const SHOWN_ANSWERS = 6;
/** @type {Record<string, string>} */
const DECISION_WORDS = { run: "Run", always: "Run, and allowed", skip: "Skipped", reject: "Rejected" };
/** @type {Record<string, string>} */
const ACTION_WORDS = { accept: "Answered", decline: "Declined", cancel: "Not answered" };

/**
 * @param {QuestionView} question
 * @param {() => ClockReading | null} clocks of its call
 * @param {import("./earlier.js").Earlier} earlier
 * @param {Outcomes} outcomes
 */
export function questionContext(question, clocks, earlier, outcomes) {
  const { kind, tool } = question;
  const reject =
    kind === "approval" && h("section", refuseForm(question, sender(question, outcomes), { hasFocus: false, earlier }));
  const answers = () => (earlier() ?? []).slice(0, SHOWN_ANSWERS);
  return h(
    "div.context",
    clockSection(question, clocks),
    reject,
    h(
      "section",
      { shown: () => answers().length },
      h("h3", `Earlier answers for ${safeText(tool, 100)}`),
      h("ol.given-answers", each(answers, answerKey, answerLine)),
    ),
  );
}

/** Go to the words of the rejection. */
export const focusRefusal = () =>
  /** @type {HTMLElement | null} */ (document.querySelector(".context textarea"))?.focus();

/** @param {GivenAnswer} answer */
export const answerKey = ({ call, question }) => `${call} ${question}`;

/** @param {QuestionView} question @param {() => ClockReading | null} clocks */
function clockSection({ kind, caller, expires }, clocks) {
  const used = () => {
    const reading = clocks();
    if (!reading) return "";
    const ceiling = reading.ceiling_s === null ? "" : ` of ${formatLeft(reading.ceiling_s)}`;
    const silence = reading.idle_s === null ? "" : `Silence 0:00 of ${formatElapsed(reading.idle_s)}, `;
    return `${silence}${formatSpan(reading.used_s)}${ceiling} used`;
  };
  const told = `${safeText(caller, 60)} is told that nobody answered`;
  const end =
    kind === "approval"
      ? `Without an answer the call ends at ${formatClock(expires)}, and ${told}. Nothing has run yet.`
      : `Without an answer the question ends at ${formatClock(expires)}, and the tool is told that nobody answered.`;
  const head = h("div", h("div.mid", "Both clocks stand still"), h("div.dim", { shown: used }, used));
  return h("section", h("h3", "While you decide"), h("div.standing", frozenRing(), head), h("p.dim", end));
}

/** When, how, and what came of it. @param {GivenAnswer} answer */
function answerLine(answer) {
  const { answer: said, outcome, ran_s } = answer;
  const isYes = said.action === "accept" && !["skip", "reject"].includes(said.content?.decision);
  const end =
    outcome === "ok" && ran_s !== null ? `, done in ${formatSpan(ran_s)}` : outcome && isYes ? `, ${outcome}` : "";
  return h(
    "li",
    h("time.faint", { title: new Date(said.at * 1000).toLocaleString() }, shortTime(said.at)),
    stateIcon(isYes ? "done" : "cancelled", null),
    h("span", h("b.mid", answerWord(said)), " ", answerWords(answer), end),
  );
}

/** @param {AnswerView} said */
export const answerWord = ({ action, content }) =>
  (action === "accept" && DECISION_WORDS[content?.decision]) || (ACTION_WORDS[action] ?? action);

/** The words of a rejection, or what ran. @param {GivenAnswer} answer */
function answerWords({ answer: { content }, kind, arguments: given, message }) {
  if (content?.instead) return `“${safeText(content.instead, 200)}”`;
  return kind === "approval" ? argumentSummary(given) : safeText(message, 120);
}

/** The time of day, or the month and day. @param {number} at */
const shortTime = (at) => (formatTime(at).includes(" ") ? formatTime(at).slice(5, 10) : formatClock(at).slice(0, 5));
