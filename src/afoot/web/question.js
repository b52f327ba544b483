// One open question as a card: an approval with its four answers, a form, or a link.

import { post } from "./api.js";
import { action, panels, sending, steady } from "./control.js";
import { h } from "./dom.js";
import { form } from "./form.js";
import { tried, trouble } from "./load.js";
import { span, visible, when } from "./parts.js";
import { callAt } from "./router.js";
import { signal } from "./signal.js";
import { now } from "./time.js";
import { link, structure } from "./value.js";
import { compare } from "./words.js";

/** @typedef {(body: object) => Promise<any>} Send gives what is wrong, if anything is */
/** @typedef {(content: object) => Promise<any>} Decide */

const TIMES = { connection: "while it is connected", 3600: "for an hour", 86400: "for a day", ever: "for ever" };
const SCOPES = { tool: "this tool", arguments: "exactly these arguments", server: "all its server or page has now" };

/** A question, and how it may be answered. @param {QuestionView} question @param {(error: any) => boolean} lost says whether it is closed @param {() => void} done */
export function card(question, lost, done) {
  const { id, digest, kind, tool, server, caller, call, source, to, expires } = question;
  const problem = signal("");
  /** @type {Send} */ const send = async (body) => {
    const [, error] = await tried(post(`/api/questions/${encodeURIComponent(id)}/answer`, { ...body, digest }));
    problem.set(error && !lost(error) ? error.message : "");
    if (!error) done();
    return error;
  };
  const whose = source ? visible(source).replace(":", " ") : `server ${visible(server, 100)}`;
  const from = `of ${whose}, called by ${visible(caller, 100)}${to === "caller" ? ", who is asked as well" : ""}`;
  const name = h("h2.name", h("a", { href: callAt(call) }, visible(tool, 200)));
  const left = h("p.soft", () => `${span(expires - now())} left to answer`);
  const body = (KINDS[kind] ?? foreign)(question, send);
  return h("div", h("div.head", name, h("span.from", from)), left, body, trouble(problem));
}

/** @type {Record<string, (question: QuestionView, send: Send) => HTMLElement>} */
const KINDS = {
  approval({ why, changed, arguments: given, message }, send) {
    const shown = given === undefined ? h("p", visible(message)) : structure(given, Infinity);
    const decide = (/** @type {object} */ content) => send({ action: "accept", content });
    const because = h("p", `It asks because ${visible(why)}.`);
    return h("div", because, changes(changed), h("h3", "Arguments"), shown, decisions(decide));
  },
  form({ schema, id, message }, send) {
    const fields = form(schema, { key: id });
    const submit = async () => {
      const found = fields.read();
      const error = found && (await send({ action: "accept", content: found.value }));
      if (error?.status === 422) fields.show(error.fields);
      else if (found && !error) fields.forget();
    };
    const buttons = h("div.row", h("button.main", "Send"), ...refusals(send));
    return sending("form", submit, h("p", visible(message)), fields.node, buttons);
  },
  url({ message, params }, send) {
    const been = action("I have been there", () => send({ action: "accept" }));
    const where = h("p", link(params?.url ?? params));
    return h("div", h("p", visible(message)), where, h("div.row", been, ...refusals(send)));
  },
};

/** What only the caller's own program can answer. @param {QuestionView} question @param {Send} send */
function foreign({ kind, message, params }, send) {
  const what = kind === "roots" ? "which folders it works in" : "its model";
  const told = `The tool asks the program that called it for ${what}. Nobody can answer that here.`;
  const more = params !== undefined && structure(params);
  return h("div", h("p", told), h("p", visible(message)), more, h("div.row", ...refusals(send)));
}

/** @param {Send} send */
const refusals = (send) => [
  action("Decline", () => send({ action: "decline" })),
  action("Do not answer", () => send({ action: "cancel" })),
];

/** What is other than when it was last approved, word by word. @param {QuestionView["changed"]} changed */
function changes(changed) {
  if (!changed) return h("p.soft", "It was not approved here before.");
  const { at, definition, arguments: given } = changed;
  if (!definition && !given) return h("p.soft", `It was approved just so before, ${when(at)}.`);
  const part = (/** @type {string} */ name, /** @type {Change} */ change) =>
    change && h("div", h("h3", `The ${name} changed since ${when(at)}`), difference(change));
  return h("div.changes", part("definition", definition), part("arguments", given));
}

/** @param {NonNullable<Change>} change */
function difference({ before, after }) {
  if (!before) return h("p", "It is too long to compare.");
  const tags = /** @type {const} */ ({ same: "span", gone: "del", new: "ins" });
  return h("pre", { tabindex: "0" }, ...compare(before, after).map(({ kind, text }) => h(tags[kind], text)));
}

/** The four answers. No focus starts on run, and it comes last. @param {Decide} decide */
const decisions = (decide) =>
  panels(
    action("Skip", () => decide({ decision: "skip" })),
    ["Reject, and say what to do instead…", () => rejection(decide)],
    ["Always allow…", () => allowing(decide)],
    steady("Run", () => decide({ decision: "run" })),
  );

/** @param {Decide} decide */
function rejection(decide) {
  const words = h("textarea", { rows: 2 });
  const reject = action("Reject", () => decide({ decision: "reject", instead: words.value }));
  return h("div.panel", h("label", "What to do instead (told to the model)", words), reject);
}

/** @param {Decide} decide */
function allowing(decide) {
  const choose = (/** @type {Record<string, string>} */ options, /** @type {string} */ first) => {
    const option = (/** @type {string[]} */ [value, text]) =>
      h("option", { value, ".selected": value === first }, text);
    return h("select", ...Object.entries(options).map(option));
  };
  const [scope, time] = [choose(SCOPES, "tool"), choose(TIMES, "connection")];
  const always = () => decide({ decision: "always", scope: scope.value, for: Number(time.value) || time.value });
  const labels = [h("label", "Allow ", scope), h("label", "for how long ", time)];
  return h("div.panel.row", ...labels, steady("Run, and allow", always));
}
