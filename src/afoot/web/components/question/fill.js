// fillForm: what a person fills in or visits to answer a question: a form of its schema, or a page of another site.

import { h } from "../../lib/dom.js";
import { safeText } from "../../lib/format.js";
import { actionButton, submitButton, submitForm } from "../controls.js";
import { externalLink, jsonTree } from "../content.js";
import { schemaForm } from "../form/form.js";

/** @typedef {import("./send.js").Send} Send */

/**
 * @param {QuestionView} question
 * @param {Send} send
 * @param {Child[]} [others] buttons left of the one that sends
 */
export function fillForm(question, send, others = []) {
  if (question.kind === "form") return formQuestion(question, send, others);
  return question.kind === "url" ? pageQuestion(question, send, others) : programQuestion(question, others);
}

/** @param {QuestionView} question @param {Send} send @param {Child[]} others */
function formQuestion({ schema, id, message }, send, others) {
  const fields = schemaForm(schema, { key: id });
  const submit = async () => {
    const found = fields.read();
    if (!found) return;
    try {
      await send({ action: "accept", content: found.value });
      fields.forget();
    } catch (error) {
      const { status, fields: wrong } = /** @type {any} */ (error);
      if (status !== 422 || !wrong.length) throw error;
      fields.show(wrong);
    }
  };
  const buttons = h("div.buttons", fields.jsonButton, h("span.grow"), ...others, submitButton("Send"));
  return submitForm("form.fill-in", submit, message && h("p.lead", safeText(message)), fields.node, buttons);
}

/** @param {QuestionView} question @param {Send} send @param {Child[]} others */
function pageQuestion({ message, params }, send, others) {
  const done = actionButton("I have been there", () => send({ action: "accept" }), { class: "main" });
  const link = h("p", externalLink(params?.url ?? params));
  return h("div.fill-in", h("p.lead", safeText(message)), link, h("div.buttons", h("span.grow"), ...others, done));
}

/** A question that only the calling program can answer. @param {QuestionView} question @param {Child[]} others */
function programQuestion({ kind, message, params }, others) {
  const what = kind === "roots" ? "which folders it works in" : "its model";
  const words = `The tool asks the program that called it for ${what}. Nobody can answer that here.`;
  const more = params !== undefined && jsonTree(params);
  return h("div.fill-in", h("p", words), h("p", safeText(message)), more, h("div.buttons", h("span.grow"), ...others));
}
