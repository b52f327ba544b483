// One open question as a card: an approval with its four answers, a form, or a link.

import { post } from "./api.js";
import { h } from "./dom.js";
import { form } from "./form.js";
import { span, visible, when } from "./parts.js";
import { callAt } from "./router.js";
import { ending, signal } from "./signal.js";
import { after, now } from "./time.js";
import { link, structure } from "./value.js";
import { compare } from "./words.js";

/** @typedef {Record<string, any>} Question as /api/questions has it */
/** @typedef {{problem: import("./signal.js").Signal<string>, send: (body: object) => Promise<any>}} Desk */

const STEADY_MS = 500;
const LOOK_MS = 100;
const TIMES = {
  connection: "while this caller is connected",
  3600: "for an hour",
  86400: "for a day",
  ever: "for ever",
};
const SCOPES = {
  tool: "this tool",
  arguments: "exactly these arguments",
  server: "every tool its server or page has now",
};

/** A question, and how it may be answered. @param {Question} question @param {(error: any) => boolean} lost says whether it is closed @param {() => void} done */
export function card(question, lost, done) {
  const problem = signal("");
  const send = async (/** @type {object} */ body) => {
    problem.set("");
    try {
      await post(`/api/questions/${encodeURIComponent(question.id)}/answer`, {
        ...body,
        digest: question.digest,
      });
      done();
      return null;
    } catch (error) {
      if (!lost(error)) problem.set(/** @type {Error} */ (error).message);
      return error;
    }
  };
  const desk = { problem, send };
  const left = () => `${span(question.expires - now())} left to answer`;
  return h(
    "div",
    null,
    heading(question),
    h("p", { class: "soft" }, left),
    (KINDS[question.kind] ?? foreign)(question, desk),
    h("p", { class: "problem", role: "alert", hidden: () => !problem() }, () => visible(problem())),
  );
}

/** Whose tool it is, and who called it. @param {Question} question */
function heading({ tool, server, caller, call, source, to }) {
  const whose = source ? `of ${visible(source).replace(":", " ")}` : `of server ${visible(server, 100)}`;
  const asked = to === "caller" ? ", who is asked as well" : "";
  return h(
    "div",
    { class: "head" },
    h("h2", { class: "name said" }, h("a", { href: callAt(call) }, visible(tool, 200))),
    h("span", { class: "from said" }, `${whose}, called by ${visible(caller, 100)}${asked}`),
  );
}

/** @type {Record<string, (question: Question, desk: Desk) => HTMLElement>} */
const KINDS = {
  approval: (question, desk) =>
    h(
      "div",
      null,
      h("p", null, `It asks because ${visible(question.why)}.`),
      changes(question.changed),
      h("h3", null, "Arguments"),
      question.arguments === undefined
        ? h("p", { class: "said" }, visible(question.message))
        : structure(question.arguments, Infinity),
      decisions(question, desk),
    ),
  form(question, { send }) {
    const fields = form(question.schema, { key: question.id });
    const submit = async (/** @type {Event} */ event) => {
      event.preventDefault();
      const found = fields.read();
      const error = found && (await send({ action: "accept", content: found.value }));
      if (error?.status === 422) fields.show(error.fields);
      else if (found && !error) fields.forget();
    };
    return h(
      "form",
      { onsubmit: submit, novalidate: true },
      h("p", { class: "said" }, visible(question.message)),
      fields.node,
      h("div", { class: "row" }, h("button", { class: "main" }, "Send"), ...refusals(send)),
    );
  },
  url: (question, { send }) =>
    h(
      "div",
      null,
      h("p", { class: "said" }, visible(question.message)),
      h("p", null, link(question.params?.url ?? question.params, "")),
      h(
        "div",
        { class: "row" },
        h("button", { onclick: () => send({ action: "accept" }) }, "I have been there"),
        ...refusals(send),
      ),
    ),
};

/** What only the caller's own program can answer. @param {Question} question @param {Desk} desk */
function foreign({ kind, message, params }, { send }) {
  const what = kind === "roots" ? "which folders it works in" : "its model";
  return h(
    "div",
    null,
    h("p", null, `The tool asks the program that called it for ${what}. Nobody can answer that here.`),
    h("p", { class: "said" }, visible(message)),
    params === undefined ? null : structure(params),
    h("div", { class: "row" }, ...refusals(send)),
  );
}

/** @param {Desk["send"]} send */
const refusals = (send) =>
  Object.entries({ decline: "Decline", cancel: "Do not answer" }).map(([action, title]) =>
    h("button", { type: "button", onclick: () => send({ action }) }, title),
  );

/** What is other than when it was last approved, word by word. @param {any} changed */
function changes(changed) {
  if (!changed) return h("p", { class: "soft" }, "It was not approved here before.");
  const parts = ["definition", "arguments"].filter((name) => changed[name]);
  const day = when(changed.at);
  if (!parts.length) return h("p", { class: "soft" }, `It was approved just so before, ${day}.`);
  const marked = parts.map((name) =>
    h("div", null, h("h3", null, `The ${name} changed since ${day}`), difference(changed[name])),
  );
  return h("div", { class: "changes" }, ...marked);
}

/** @param {{before: string, after: string}} change */
function difference({ before, after }) {
  if (!before) return h("p", null, "It is too long to compare.");
  const tags = /** @type {const} */ ({ same: "span", gone: "del", new: "ins" });
  const pieces = compare(before, after).map((one) => h(tags[one.kind], null, visible(one.text, 1e6)));
  return h("pre", { class: "said", tabindex: "0" }, ...pieces);
}

/** The four answers. No focus starts on run, and it comes last. @param {Question} question @param {Desk} desk */
function decisions(question, { send }) {
  const more = signal("");
  const turn = (/** @type {string} */ name) => () => more.set(more.peek() === name ? "" : name);
  const decide = (/** @type {object} */ content) => send({ action: "accept", content });
  const opener = (/** @type {string} */ name, /** @type {string} */ text) =>
    h(
      "button",
      { type: "button", onclick: turn(name), "aria-expanded": () => String(more() === name) },
      text,
    );
  const panel = () =>
    more() === "reject" ? rejection(decide) : more() === "always" ? allowing(decide) : null;
  return h(
    "div",
    null,
    h(
      "div",
      { class: "row" },
      h("button", { type: "button", onclick: () => decide({ decision: "skip" }) }, "Skip"),
      opener("reject", "Reject, and say what to do instead…"),
      opener("always", "Always allow…"),
      steady("Run", () => decide({ decision: "run" })),
    ),
    panel,
  );
}

/** @param {(content: object) => void} decide */
function rejection(decide) {
  const words = h("textarea", { rows: 2, "aria-label": "What to do instead, told to the model" });
  const reject = () => decide({ decision: "reject", instead: words.value });
  const button = h("button", { type: "button", onclick: reject }, "Reject");
  return h(
    "div",
    { class: "panel" },
    h("label", null, "What to do instead (told to the model)", words),
    button,
  );
}

/** @param {(content: object) => void} decide */
function allowing(decide) {
  const choose = (/** @type {Record<string, string>} */ options, /** @type {string} */ first) =>
    h(
      "select",
      null,
      ...Object.entries(options).map(([value, text]) =>
        h("option", { value, ".selected": value === first }, text),
      ),
    );
  const [scope, time] = [choose(SCOPES, "tool"), choose(TIMES, "connection")];
  const always = () =>
    decide({ decision: "always", scope: scope.value, for: Number(time.value) || time.value });
  return h(
    "div",
    { class: "panel row" },
    h("label", null, "Allow ", scope),
    h("label", null, "for how long ", time),
    steady("Run, and allow", always),
  );
}

/** A button that counts only where it has stood for half a second: what moves under a hand is not pressed. @param {string} text @param {() => void} act */
function steady(text, act) {
  let [where, since, stop] = ["", performance.now(), () => {}];
  const fresh = signal(true);
  const node = h(
    "button",
    { type: "button", class: "main", "aria-disabled": () => (fresh() ? "true" : null) },
    text,
  );
  const look = () => {
    const { x, y, width, height } = node.getBoundingClientRect();
    const here = [x, y, width, height].join();
    if (here !== where) [where, since] = [here, performance.now()];
    fresh.set(performance.now() - since < STEADY_MS);
  };
  const watch = () => (look(), (stop = after(LOOK_MS, watch)));
  node.addEventListener("click", () => (look(), fresh.peek() || act()));
  ending(() => stop());
  watch();
  return node;
}
