// questionCard: one open question, which is an approval with its four answers, a form, or a link.

import { post } from "../lib/api.js";
import { actionButton, disclosureButtons, submitForm, guardedButton } from "./controls.js";
import { h } from "../lib/dom.js";
import { schemaForm } from "./form.js";
import { attempt, errorMessage } from "../lib/resource.js";
import { formatElapsed, formatTime, safeText } from "../lib/format.js";
import { callPath } from "../lib/router.js";
import { signal } from "../lib/signal.js";
import { now } from "../lib/time.js";
import { externalLink, jsonTree } from "./content.js";
import { diffWords } from "../lib/text_diff.js";

/** @typedef {(body: object) => Promise<any>} Send resolves to the error, if there is one */
/** @typedef {(content: object) => Promise<any>} Decide */

const TIMES = { connection: "while it is connected", 3600: "for an hour", 86400: "for a day", ever: "for ever" };
const SCOPES = { tool: "this tool", arguments: "exactly these arguments", server: "all its server or page has now" };

/**
 * The card of a question, with its possible answers.
 * @param {QuestionView} question
 * @param {(error: any) => boolean} lost returns whether the question is closed
 * @param {() => void} done
 */
export function questionCard(question, lost, done) {
  const { id, digest, kind, tool, server, caller, call, source, to, expires } = question;
  const problem = signal("");
  /** @type {Send} */ const send = async (body) => {
    const [, error] = await attempt(post(`/api/questions/${encodeURIComponent(id)}/answer`, { ...body, digest }));
    problem.set(error && !lost(error) ? error.message : "");
    if (!error) done();
    return error;
  };
  const owner = source ? safeText(source).replace(":", " ") : `server ${safeText(server, 100)}`;
  const from = `of ${owner}, called by ${safeText(caller, 100)}${to === "caller" ? ", who is asked as well" : ""}`;
  const name = h("h2.name", h("a", { href: callPath(call) }, safeText(tool, 200)));
  const left = h("p.soft", () => `${formatElapsed(expires - now())} left to answer`);
  const body = (QUESTION_RENDERERS[kind] ?? callerOnlyQuestion)(question, send);
  return h("div", h("div.head", name, h("span.from", from)), left, body, errorMessage(problem));
}

/** @type {Record<string, (question: QuestionView, send: Send) => HTMLElement>} */
const QUESTION_RENDERERS = {
  approval({ why, changed, arguments: given, message }, send) {
    const shown = given === undefined ? h("p", safeText(message)) : jsonTree(given, Infinity);
    const decide = (/** @type {object} */ content) => send({ action: "accept", content });
    const reason = h("p", `It asks because ${safeText(why)}.`);
    return h("div", reason, changeSummary(changed), h("h3", "Arguments"), shown, decisionButtons(decide));
  },
  form({ schema, id, message }, send) {
    const fields = schemaForm(schema, { key: id });
    const submit = async () => {
      const found = fields.read();
      const error = found && (await send({ action: "accept", content: found.value }));
      if (error?.status === 422) fields.show(error.fields);
      else if (found && !error) fields.forget();
    };
    const buttons = h("div.row", fields.jsonButton, h("button.main", "Send"), ...declineButtons(send));
    return submitForm("form", submit, h("p", safeText(message)), fields.node, buttons);
  },
  url({ message, params }, send) {
    const doneButton = actionButton("I have been there", () => send({ action: "accept" }));
    const link = h("p", externalLink(params?.url ?? params));
    return h("div", h("p", safeText(message)), link, h("div.row", doneButton, ...declineButtons(send)));
  },
};

/**
 * A question that only the calling program can answer.
 * @param {QuestionView} question
 * @param {Send} send
 */
function callerOnlyQuestion({ kind, message, params }, send) {
  const what = kind === "roots" ? "which folders it works in" : "its model";
  const explanation = `The tool asks the program that called it for ${what}. Nobody can answer that here.`;
  const more = params !== undefined && jsonTree(params);
  return h("div", h("p", explanation), h("p", safeText(message)), more, h("div.row", ...declineButtons(send)));
}

/** @param {Send} send */
const declineButtons = (send) => [
  actionButton("Decline", () => send({ action: "decline" })),
  actionButton("Do not answer", () => send({ action: "cancel" })),
];

/** The differences to the last approval, word by word. @param {QuestionView["changed"]} changed */
function changeSummary(changed) {
  if (!changed) return h("p.soft", "It was not approved here before.");
  const { at, definition, arguments: given } = changed;
  if (!definition && !given) return h("p.soft", `It was approved just so before, ${formatTime(at)}.`);
  const part = (/** @type {string} */ name, /** @type {Change} */ change) =>
    change && h("div", h("h3", `The ${name} changed since ${formatTime(at)}`), diffElement(change));
  return h("div.changes", part("definition", definition), part("arguments", given));
}

/** @param {NonNullable<Change>} change */
function diffElement({ before, after }) {
  if (!before) return h("p", "It is too long to compare.");
  const tags = /** @type {const} */ ({ same: "span", gone: "del", new: "ins" });
  return h("pre", { tabindex: "0" }, ...diffWords(before, after).map(({ kind, text }) => h(tags[kind], text)));
}

/** The four answers. Run comes last and never has the initial focus. @param {Decide} decide */
const decisionButtons = (decide) =>
  disclosureButtons(
    actionButton("Skip", () => decide({ decision: "skip" })),
    ["Reject, and say what to do instead…", () => rejectPanel(decide)],
    ["Always allow…", () => alwaysPanel(decide)],
    guardedButton("Run", () => decide({ decision: "run" }), { class: "main" }),
  );

/** @param {Decide} decide */
function rejectPanel(decide) {
  const textarea = h("textarea", { rows: 2 });
  const reject = actionButton("Reject", () => decide({ decision: "reject", instead: textarea.value }));
  return h("div.panel", h("label", "What to do instead (told to the model)", textarea), reject);
}

/** @param {Decide} decide */
function alwaysPanel(decide) {
  const choose = (/** @type {Record<string, string>} */ options, /** @type {string} */ first) => {
    const option = (/** @type {string[]} */ [value, text]) =>
      h("option", { value, ".selected": value === first }, text);
    return h("select", ...Object.entries(options).map(option));
  };
  const scope = choose(SCOPES, "tool");
  const time = choose(TIMES, "connection");
  const always = () => decide({ decision: "always", scope: scope.value, for: Number(time.value) || time.value });
  const labels = [h("label", "Allow ", scope), h("label", "for how long ", time)];
  return h("div.panel.row", ...labels, guardedButton("Run, and allow", always, { class: "main" }));
}
