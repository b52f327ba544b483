// The open questions: what is to run, with all its arguments, and run, skip, reject or always.

import { breakable, find, keep, make, set } from "./dom.js";
import { fieldsOf, filled } from "./form.js";
import { readable, span, whatRuns } from "./words.js";

/** @typedef {import("../messages.js").QuestionView} Question */
/** @typedef {(method: string, params?: Record<string, any>) => void} Say */

const SCOPES = [
  ["tool", "this tool"],
  ["arguments", "exactly these arguments"],
  ["server", "every tool that its server or page has now"],
];
const LASTING = [
  ["connection", "for this caller, while the gateway runs"],
  ["3600", "for an hour"],
  ["86400", "for a day"],
  ["ever", "for ever"],
];

const STEADY_MS = 500;
/** @type {WeakMap<Element, {top: number, since: number}>} */
const places = new WeakMap();

/**
 * Show the open questions.
 * @param {Question[]} questions
 * @param {Say} say
 */
export function showQuestions(questions, say) {
  const section = find("#questions");
  keep(find(".list", section), questions, {
    key: (question) => question.id,
    create: (question) => card(question, say),
    update: (element, question) => {
      element.dataset.expires = String(question.expires);
    },
  });
  set(section, { hidden: questions.length === 0 });
  tickQuestions();
  document.querySelectorAll("#questions .question").forEach(isSteady);
}

/** Let nobody decide what has just come under the pointer: a click there was meant for something else. */
export function guardQuestions() {
  const guard = (/** @type {MouseEvent} */ event) => {
    const card = /** @type {Element} */ (event.target).closest(".question");
    if (event.detail === 0 || !card || isSteady(card)) return; // 0: a key was pressed
    event.preventDefault();
    event.stopPropagation();
  };
  find("#questions").addEventListener("click", guard, true);
}

/**
 * Whether a card has stood where it is for a moment.
 * @param {Element} card
 * @returns {boolean}
 */
function isSteady(card) {
  const top = /** @type {HTMLElement} */ (card).offsetTop;
  const now = performance.now();
  const known = places.get(card);
  const place = known?.top === top ? known : { top, since: now };
  places.set(card, place);
  return now - place.since >= STEADY_MS;
}

/** Let the times go on. */
export function tickQuestions() {
  for (const element of document.querySelectorAll("#questions .question")) {
    const left = Number(/** @type {HTMLElement} */ (element).dataset.expires) - Date.now() / 1000;
    const text = left > 0 && left < 86_400 ? `answer within ${span(left)}` : "";
    set(find(".left", element), { textContent: text });
  }
}

/**
 * What came of an answer.
 * @param {{about: string, error?: string}} said
 */
export function showSaid({ about, error = "" }) {
  for (const element of document.querySelectorAll(".question, .call")) {
    if (/** @type {HTMLElement} */ (element).dataset.key !== about || !error) continue;
    for (const button of element.querySelectorAll("button")) button.disabled = false;
    const line =
      element.querySelector(".error") ??
      element.appendChild(make("p", { className: "error", role: "alert" }));
    set(/** @type {HTMLElement} */ (line), { textContent: readable(error), hidden: false });
  }
}

/**
 * @param {Question} question
 * @param {Say} say
 * @returns {HTMLElement}
 */
function card(question, say) {
  const isApproval = question.kind === "approval";
  const name = breakable(readable(question.tool));
  const title = isApproval ? make("h3", {}, "Run ", ...name, "?") : make("h3", {}, ...name);
  const whose = isApproval ? whatRuns(question.message) : "";
  const about = [whose, question.caller ? `called by ${question.caller}` : "", question.why ?? ""];
  const element = make(
    "article",
    { className: "card question" },
    make("div", { className: "row" }, title, make("span", { className: "left faint" })),
    ...about
      .filter((line) => line)
      .map((line) => make("p", { className: "faint" }, ...breakable(readable(line)))),
    ...(isApproval && question.arguments !== undefined ? [argumentsOf(question)] : [message(question)]),
  );
  const answer = (/** @type {Record<string, any>} */ said) => {
    for (const button of element.querySelectorAll("button")) button.disabled = true;
    say("answer", { question: question.id, ...said });
  };
  element.append(isApproval ? decisions(answer) : plain(question, answer));
  element.append(make("p", { className: "error", role: "alert", hidden: true }));
  return element;
}

/**
 * @param {Question} question
 * @returns {HTMLElement}
 */
function argumentsOf(question) {
  const text = readable(question.arguments);
  return make("pre", { tabIndex: 0, "aria-label": "arguments" }, text);
}

/**
 * @param {Question} question
 * @returns {HTMLElement}
 */
function message(question) {
  return make("p", { className: "message" }, readable(question.message));
}

/**
 * @param {(said: Record<string, any>) => void} answer
 * @returns {HTMLElement}
 */
function decisions(answer) {
  const decide = (/** @type {Record<string, any>} */ content) => answer({ action: "accept", content });
  const instead = rejecting(decide);
  const always = allowing(decide);
  const open = (/** @type {HTMLElement} */ one, /** @type {HTMLElement} */ other) => () => {
    one.hidden = !one.hidden;
    other.hidden = true;
    if (!one.hidden) /** @type {HTMLElement | null} */ (one.querySelector("textarea, select"))?.focus();
  };
  const button = (/** @type {string} */ text, /** @type {() => void} */ onclick, className = "") =>
    make("button", { type: "button", onclick, className }, text);
  return make(
    "div",
    { className: "decisions" },
    make(
      "div",
      { className: "buttons" },
      button("Run", () => decide({ decision: "run" }), "primary"),
      button("Skip", () => decide({ decision: "skip" })),
      button("Reject…", open(instead, always)),
      button("Always…", open(always, instead)),
    ),
    instead,
    always,
  );
}

/**
 * @param {(content: Record<string, any>) => void} decide
 * @returns {HTMLFormElement}
 */
function rejecting(decide) {
  const text = make("textarea", { rows: 3, required: true, "aria-label": "What to do instead" });
  text.placeholder = "What to do instead; the model is told this.";
  const form = make(
    "form",
    { className: "more", hidden: true },
    text,
    make("button", { type: "submit" }, "Reject"),
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
function allowing(decide) {
  const scope = choice("What to allow from now on", SCOPES);
  const lasting = choice("For how long", LASTING);
  const send = make("button", { type: "submit", className: "primary" }, "Run, and always allow");
  const form = make("form", { className: "more", hidden: true }, scope, lasting, send);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const seconds = Number(lasting.value);
    decide({ decision: "always", scope: scope.value, for: Number.isNaN(seconds) ? lasting.value : seconds });
  });
  return form;
}

/**
 * @param {string} label
 * @param {string[][]} options
 * @returns {HTMLSelectElement}
 */
function choice(label, options) {
  const made = options.map(([value, text]) => make("option", { value }, text ?? ""));
  return make("select", { "aria-label": label }, ...made);
}

/**
 * A question that is no approval: a form, an address to open, or something that only the terminal can answer.
 * @param {Question} question
 * @param {(said: Record<string, any>) => void} answer
 * @returns {HTMLElement}
 */
function plain(question, answer) {
  const decline = make("button", { type: "button", onclick: () => answer({ action: "decline" }) }, "Decline");
  const fields = question.kind === "form" ? fieldsOf(question.schema) : null;
  if (fields) return filling(fields, decline, answer);
  const address = question.kind === "url" ? addressOf(question.params) : null;
  const how = address
    ? make("a", { href: address, target: "_blank", rel: "noreferrer" }, readable(address))
    : make(
        "span",
        { className: "faint" },
        "Answer it with ",
        make("code", {}, `afoot answer ${question.id}`),
      );
  const done = make("button", { type: "button", onclick: () => answer({ action: "accept" }) }, "Done");
  const buttons = make("div", { className: "buttons" }, ...(address ? [done] : []), decline);
  return make("div", { className: "decisions" }, make("p", {}, how), buttons);
}

/**
 * @param {Map<string, import("./form.js").Field>} fields
 * @param {HTMLElement} decline
 * @param {(said: Record<string, any>) => void} answer
 * @returns {HTMLFormElement}
 */
function filling(fields, decline, answer) {
  const buttons = make(
    "div",
    { className: "buttons" },
    make("button", { className: "primary" }, "Send"),
    decline,
  );
  const form = make(
    "form",
    { className: "fields" },
    ...[...fields.values()].map((one) => one.element),
    buttons,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    answer({ action: "accept", content: filled(fields) });
  });
  return form;
}

/**
 * @param {unknown} said
 * @returns {string | null} only what is safe to open
 */
function addressOf(said) {
  return typeof said === "string" && /^https?:/i.test(said) && URL.canParse(said) ? said : null;
}
