// The open questions: an approval with the tool and all its arguments and the buttons Run, Skip, Reject and Always, or
// another question of a tool.

import { breakable, find, reconcile, createElement, setProperties } from "./dom.js";
import { schemaFields, formValues } from "./form.js";
import { safeText, formatElapsed, approvalSubject } from "./format.js";

/** @typedef {import("../background/messages.js").QuestionView} Question */
/** @typedef {(method: string, params?: Record<string, any>) => void} SendToWorker */

const SCOPES = [
  ["tool", "this tool"],
  ["arguments", "exactly these arguments"],
  ["server", "every tool that its server or page has now"],
];
const DURATIONS = [
  ["connection", "for this caller, while the gateway runs"],
  ["3600", "for an hour"],
  ["86400", "for a day"],
  ["ever", "for ever"],
];

const STILL_MS = 500;
/** @type {WeakMap<Element, {top: number, since: number}>} */
const cardPositions = new WeakMap();

/**
 * Render the open questions.
 * @param {Question[]} questions
 * @param {SendToWorker} send
 * @param {number} now
 */
export function renderQuestions(questions, send, now) {
  const section = find("#questions");
  reconcile(find(".list", section), questions, {
    key: (question) => question.id,
    create: (question) => questionCard(question, send),
    update: (element, question) => {
      element.dataset.expires = String(question.expires);
    },
  });
  setProperties(section, { hidden: questions.length === 0 });
  tickQuestions(now);
  document.querySelectorAll("#questions .question").forEach(hasStoodStill);
}

/** Ignore clicks on a card that has just moved under the pointer: they were meant for something else. */
export function guardClicks() {
  const guard = (/** @type {MouseEvent} */ event) => {
    const card = /** @type {Element} */ (event.target).closest(".question");
    if (event.detail === 0 || !card || hasStoodStill(card)) return; // 0: a key was pressed
    event.preventDefault();
    event.stopPropagation();
  };
  find("#questions").addEventListener("click", guard, true);
}

/**
 * Whether a card has stood still for a moment.
 * @param {Element} card
 * @returns {boolean}
 */
function hasStoodStill(card) {
  const top = /** @type {HTMLElement} */ (card).offsetTop;
  const now = performance.now();
  const known = cardPositions.get(card);
  const place = known?.top === top ? known : { top, since: now };
  cardPositions.set(card, place);
  return now - place.since >= STILL_MS;
}

/** Update the remaining times. @param {number} now */
export function tickQuestions(now) {
  for (const element of document.querySelectorAll("#questions .question")) {
    const left = Number(/** @type {HTMLElement} */ (element).dataset.expires) - now / 1000;
    const text = left > 0 && left < 86_400 ? `answer within ${formatElapsed(left)}` : "";
    setProperties(find(".left", element), { textContent: text });
  }
}

/**
 * Show the error of an answer, if there is one.
 * @param {{about: string, error?: string}} result
 */
export function showResult({ about, error = "" }) {
  for (const element of document.querySelectorAll(".question, .call")) {
    if (/** @type {HTMLElement} */ (element).dataset.key !== about || !error) continue;
    for (const button of element.querySelectorAll("button")) button.disabled = false;
    const line =
      element.querySelector(".error") ??
      element.appendChild(createElement("p", { className: "error", role: "alert" }));
    setProperties(/** @type {HTMLElement} */ (line), { textContent: safeText(error), hidden: false });
  }
}

/**
 * @param {Question} question
 * @param {SendToWorker} send
 * @returns {HTMLElement}
 */
function questionCard(question, send) {
  const isApproval = question.kind === "approval";
  const name = breakable(safeText(question.tool));
  const title = isApproval ? createElement("h3", {}, "Run ", ...name, "?") : createElement("h3", {}, ...name);
  const subject = isApproval ? approvalSubject(question.message) : "";
  const about = [subject, question.caller ? `called by ${question.caller}` : "", question.why ?? ""];
  const element = createElement(
    "article",
    { className: "card question" },
    createElement("div", { className: "row" }, title, createElement("span", { className: "left faint" })),
    ...about
      .filter((line) => line)
      .map((line) => createElement("p", { className: "faint" }, ...breakable(safeText(line)))),
    ...(isApproval && question.arguments !== undefined
      ? [argumentsElement(question)]
      : [messageElement(question)]),
  );
  const answer = (/** @type {Record<string, any>} */ fields) => {
    for (const button of element.querySelectorAll("button")) button.disabled = true;
    send("answer", { question: question.id, ...fields });
  };
  element.append(isApproval ? decisionButtons(answer) : otherQuestion(question, answer));
  element.append(createElement("p", { className: "error", role: "alert", hidden: true }));
  return element;
}

/**
 * @param {Question} question
 * @returns {HTMLElement}
 */
function argumentsElement(question) {
  const text = safeText(question.arguments);
  return createElement("pre", { tabIndex: 0, "aria-label": "arguments" }, text);
}

/**
 * @param {Question} question
 * @returns {HTMLElement}
 */
function messageElement(question) {
  return createElement("p", { className: "message" }, safeText(question.message));
}

/**
 * @param {(answer: Record<string, any>) => void} answer
 * @returns {HTMLElement}
 */
function decisionButtons(answer) {
  const decide = (/** @type {Record<string, any>} */ content) => answer({ action: "accept", content });
  const rejectPanel = rejectForm(decide);
  const alwaysPanel = alwaysForm(decide);
  const open = (/** @type {HTMLElement} */ one, /** @type {HTMLElement} */ other) => () => {
    one.hidden = !one.hidden;
    other.hidden = true;
    if (!one.hidden) /** @type {HTMLElement | null} */ (one.querySelector("textarea, select"))?.focus();
  };
  const button = (/** @type {string} */ text, /** @type {() => void} */ onclick, className = "") =>
    createElement("button", { type: "button", onclick, className }, text);
  return createElement(
    "div",
    { className: "decisions" },
    createElement(
      "div",
      { className: "buttons" },
      button("Run", () => decide({ decision: "run" }), "primary"),
      button("Skip", () => decide({ decision: "skip" })),
      button("Reject…", open(rejectPanel, alwaysPanel)),
      button("Always…", open(alwaysPanel, rejectPanel)),
    ),
    rejectPanel,
    alwaysPanel,
  );
}

/**
 * @param {(content: Record<string, any>) => void} decide
 * @returns {HTMLFormElement}
 */
function rejectForm(decide) {
  const text = createElement("textarea", { rows: 3, required: true, "aria-label": "What to do instead" });
  text.placeholder = "What to do instead; the model is told this.";
  const form = createElement(
    "form",
    { className: "more", hidden: true },
    text,
    createElement("button", { type: "submit" }, "Reject"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    decide({ decision: "reject", instead: text.value.trim() });
  });
  return form;
}

/**
 * @param {(content: Record<string, any>) => void} decide
 * @returns {HTMLFormElement}
 */
function alwaysForm(decide) {
  const scope = selectElement("What to allow from now on", SCOPES);
  const duration = selectElement("For how long", DURATIONS);
  const send = createElement("button", { type: "submit", className: "primary" }, "Run, and always allow");
  const form = createElement("form", { className: "more", hidden: true }, scope, duration, send);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const seconds = Number(duration.value);
    decide({ decision: "always", scope: scope.value, for: Number.isNaN(seconds) ? duration.value : seconds });
  });
  return form;
}

/**
 * @param {string} label
 * @param {string[][]} options
 * @returns {HTMLSelectElement}
 */
function selectElement(label, options) {
  const elements = options.map(([value, text]) => createElement("option", { value }, text ?? ""));
  return createElement("select", { "aria-label": label }, ...elements);
}

/**
 * A question that is no approval: a form, a URL to open, or one that only the terminal can answer.
 * @param {Question} question
 * @param {(answer: Record<string, any>) => void} answer
 * @returns {HTMLElement}
 */
function otherQuestion(question, answer) {
  const decline = createElement(
    "button",
    { type: "button", onclick: () => answer({ action: "decline" }) },
    "Decline",
  );
  const fields = question.kind === "form" ? schemaFields(question.schema) : null;
  if (fields) return answerForm(fields, decline, answer);
  const address = question.kind === "url" ? safeUrl(question.params) : null;
  const instruction = address
    ? createElement("a", { href: address, target: "_blank", rel: "noreferrer" }, safeText(address))
    : createElement(
        "span",
        { className: "faint" },
        "Answer it with ",
        createElement("code", {}, `afoot answer ${question.id}`),
      );
  const done = createElement(
    "button",
    { type: "button", onclick: () => answer({ action: "accept" }) },
    "Done",
  );
  const buttons = createElement("div", { className: "buttons" }, ...(address ? [done] : []), decline);
  return createElement("div", { className: "decisions" }, createElement("p", {}, instruction), buttons);
}

/**
 * @param {Map<string, import("./form.js").Field>} fields
 * @param {HTMLElement} decline
 * @param {(answer: Record<string, any>) => void} answer
 * @returns {HTMLFormElement}
 */
function answerForm(fields, decline, answer) {
  const buttons = createElement(
    "div",
    { className: "buttons" },
    createElement("button", { className: "primary" }, "Send"),
    decline,
  );
  const form = createElement(
    "form",
    { className: "fields" },
    ...[...fields.values()].map((one) => one.element),
    buttons,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    answer({ action: "accept", content: formValues(fields) });
  });
  return form;
}

/**
 * @param {unknown} url
 * @returns {string | null} null for a URL that is not safe to open
 */
function safeUrl(url) {
  return typeof url === "string" && /^https?:/i.test(url) && URL.canParse(url) ? url : null;
}
