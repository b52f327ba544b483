// alwaysForm: runs a call, and allows its tool from now on.

import { h } from "../../lib/dom.js";
import { guardedButton } from "../controls.js";
import { decision } from "./send.js";

const TIMES = { connection: "while it is connected", 3600: "for an hour", 86400: "for a day", ever: "for ever" };
const SCOPES = { tool: "this tool", arguments: "exactly these arguments", server: "all its server or page has now" };

/** @param {QuestionView} question @param {import("./send.js").Send} send */
export function alwaysForm({ destructive }, send) {
  const scope = choice(SCOPES, "tool");
  const time = choice(TIMES, "connection");
  const allow = () => send(decision({ decision: "always", scope: scope.value, for: Number(time.value) || time.value }));
  return h(
    "div.always",
    h("label", h("span", "Allow"), scope),
    h("label", h("span", "For how long"), time),
    h("div.buttons", guardedButton("Run, and allow", allow, { class: destructive ? "danger" : "main" })),
  );
}

/** @param {Record<string, string>} options @param {string} first */
function choice(options, first) {
  const option = (/** @type {string[]} */ [value, text]) => h("option", { value, ".selected": value === first }, text);
  return h("select", ...Object.entries(options).map(option));
}
