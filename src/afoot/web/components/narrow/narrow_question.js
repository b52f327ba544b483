// narrowQuestion: an open question, for the side panel and for the frame of a host: the tool, its arguments, the time left,
// and the buttons; secondary left, primary right, as everywhere.

import { silenceRing } from "../marks/clocks.js";
import { flatForm } from "./flat_form.js";
import { stateIcon } from "../marks/state_icon.js";
import { h } from "../../lib/dom.js";
import { formatLeft, joinNonEmpty, safeText } from "../../lib/format.js";
import { signal } from "../../lib/signal.js";

/** @typedef {{action: string, content?: Record<string, unknown>}} GivenAnswer */
/**
 * @typedef {object} QuestionOptions
 * @property {() => number} at the gateway's time
 * @property {(answer: GivenAnswer) => void} answer
 * @property {boolean} [canAllow] whether "Always…" may be said here
 * @property {boolean} [hasKeys] whether the keys y and n act here
 * @property {() => boolean} [isBusy] while an answer is on its way
 * @property {() => string} [error] why the last answer did not count
 * @property {() => string} [place] where it can be answered, if not here
 */

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
/** Both clocks stand still while a person is asked. @type {ClockReading} */
const STOPPED = {
  silent_s: 0, idle_s: null, silence_left: 1, is_silence_last: false, used_s: 0, ceiling_s: null, used: 0,
  is_ceiling_last: false, ceiling_left_s: null, frozen: "asked", answer_left_s: null,
}; // prettier-ignore

/**
 * @param {QuestionView} question
 * @param {QuestionOptions} options
 */
export function narrowQuestion(question, options) {
  const { at, error = () => "", place = () => "" } = options;
  const isApproval = question.kind === "approval";
  const left = () => Math.max(0, question.expires - at());
  const body = () => {
    if (place()) return h("p.dim", place());
    return isApproval ? decision(question, options) : otherQuestion(question, options);
  };
  return h(
    "article.narrow-question",
    { "data-question": question.id, "data-destructive": question.destructive === true },
    h(
      "header",
      stateIcon("waiting"),
      h("h3.cut", safeText(question.tool, 200)),
      question.destructive === true ? h("span.tag.bad", "destructive") : null,
      h(
        "span.time-left",
        { title: "time left to answer" },
        silenceRing(() => STOPPED),
        () => formatLeft(left()),
      ),
    ),
    ...aboutLines(question, isApproval).map((line) => h("p.about", line)),
    isApproval && question.arguments !== undefined ? argumentList(question.arguments) : null,
    body,
    h("p.t-bad", { role: "alert", shown: () => error() !== "" }, () => safeText(error(), 1000)),
  );
}

/** @param {QuestionView} question @param {boolean} isApproval */
function aboutLines(question, isApproval) {
  const whose = question.caller ? `asked by ${question.caller}` : "";
  const source = joinNonEmpty((question.source ?? "").replace(":", " "), whose);
  const lines = isApproval ? [source, question.why && `It asks because ${question.why}.`] : [question.message, whose];
  return lines.filter((line) => line).map((line) => safeText(line, 4000));
}

/** @param {Json} given */
function argumentList(given) {
  const isObject = given !== null && typeof given === "object" && !Array.isArray(given);
  const pairs = isObject ? Object.entries(given) : [["", given]];
  if (!pairs.length) return h("p.faint", "no arguments");
  return h(
    "dl.argument-list",
    { tabindex: "0", "aria-label": "arguments" },
    ...pairs.flatMap(([name, value]) => [
      h("dt", safeText(name, 300)),
      h("dd", safeText(JSON.stringify(value), 20_000)),
    ]),
  );
}

/**
 * Run, skip, reject with words, always allow.
 * @param {QuestionView} question
 * @param {QuestionOptions} options
 */
function decision(question, { answer, canAllow = false, hasKeys = false, isBusy = () => false }) {
  const open = signal("");
  const decide = (/** @type {Record<string, unknown>} */ content) => answer({ action: "accept", content });
  const toggle = (/** @type {string} */ what) => () => {
    open.set(open.peek() === what ? "" : what);
    /** @type {HTMLElement | null} */ (root.querySelector(".more :is(textarea, select)"))?.focus();
  };
  const key = (/** @type {string} */ name) => (hasKeys ? h("kbd", name) : null);
  const run = question.destructive === true ? "button.danger" : "button.main";
  const root = h(
    "div",
    h(
      "div.button-row",
      canAllow ? h("button.quiet", { type: "button", disabled: isBusy, onclick: toggle("always") }, "Always…") : null,
      h("button.quiet", { type: "button", disabled: isBusy, onclick: () => decide({ decision: "skip" }) }, "Skip"),
      h("span.grow"),
      h("button.no", { type: "button", disabled: isBusy, onclick: toggle("reject") }, "Reject…", key("n")),
      h(
        /** @type {"button.main"} */ (run),
        { type: "button", disabled: isBusy, "data-yes": true, onclick: () => decide({ decision: "run" }) },
        "Run",
        key("y"),
      ),
    ),
    () => (open() === "reject" ? rejectForm(decide, isBusy) : open() === "always" ? alwaysForm(decide, isBusy) : null),
  );
  return root;
}

/** @param {(content: Record<string, unknown>) => void} decide @param {() => boolean} isBusy */
function rejectForm(decide, isBusy) {
  const label = "What should the agent do instead? It reads this.";
  const text = h("textarea", { rows: 3, required: true, "aria-label": label, placeholder: label });
  const send = () => decide({ decision: "reject", instead: text.value.trim() });
  return checkedForm([text], (check) =>
    h("button.danger", { type: "button", disabled: isBusy, onclick: check(send) }, "Reject"),
  );
}

/** @param {(content: Record<string, unknown>) => void} decide @param {() => boolean} isBusy */
function alwaysForm(decide, isBusy) {
  const scope = choice("What to allow from now on", SCOPES);
  const duration = choice("For how long", DURATIONS);
  const send = () => {
    const seconds = Number(duration.value);
    decide({ decision: "always", scope: scope.value, for: Number.isNaN(seconds) ? duration.value : seconds });
  };
  return checkedForm([scope, duration], (check) =>
    h("button.main", { type: "button", disabled: isBusy, onclick: check(send) }, "Run, and always allow"),
  );
}

/**
 * Fields above their buttons. A host's frame may submit no form, so a button checks the fields itself: the first one that
 * lacks something gets the focus.
 * @param {HTMLElement[]} fields
 * @param {(check: (send: () => void) => () => void) => HTMLElement} last makes the button that sends
 * @param {...HTMLElement} others buttons before it
 */
function checkedForm(fields, last, ...others) {
  const send = last((then) => () => void (form.reportValidity() && then()));
  const onkeydown = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" || /** @type {Element} */ (event.target).tagName !== "INPUT") return;
    event.preventDefault();
    send.click();
  };
  const form = h("form.more", { onkeydown }, ...fields, h("div.button-row", h("span.grow"), ...others, send));
  return form;
}

/** @param {string} label @param {string[][]} options */
const choice = (label, options) =>
  h("select", { "aria-label": label }, ...options.map(([value, text]) => h("option", { value }, text)));

/**
 * A question that is no approval: a form, an address to open, or one that only the terminal can answer.
 * @param {QuestionView} question
 * @param {QuestionOptions} options
 */
function otherQuestion(question, { answer, isBusy = () => false }) {
  const decline = h(
    "button",
    { type: "button", disabled: isBusy, onclick: () => answer({ action: "decline" }) },
    "Decline",
  );
  const form = question.kind === "form" ? flatForm(question.schema) : null;
  if (form) {
    const send = () => answer({ action: "accept", content: form.read() });
    const button = (/** @type {(send: () => void) => () => void} */ check) =>
      h("button.main", { type: "button", disabled: isBusy, onclick: check(send) }, "Send");
    return checkedForm(form.nodes, button, decline);
  }
  const address = question.kind === "url" && isAddress(question.params) ? question.params : null;
  const done = h(
    "button.main",
    { type: "button", disabled: isBusy, onclick: () => answer({ action: "accept" }) },
    "Done",
  );
  return h(
    "div.more",
    address
      ? h("a", { href: address, target: "_blank", rel: "noreferrer" }, safeText(address, 2000))
      : h("p.faint", "Answer it with ", h("code", `afoot answer ${question.id}`)),
    h("div.button-row", h("span.grow"), decline, address ? done : null),
  );
}

/** @param {unknown} url */
const isAddress = (url) => typeof url === "string" && /^https?:/i.test(url) && URL.canParse(url);
