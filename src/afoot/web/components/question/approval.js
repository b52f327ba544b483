// approvalBody: an approval: why it is asked for, the changes since the last yes, the arguments, and the four answers.

import { h } from "../../lib/dom.js";
import { formatTime, plural, safeText } from "../../lib/format.js";
import { keyHint } from "../../lib/keys.js";
import { signal } from "../../lib/signal.js";
import { diffWords } from "../../lib/text/text_diff.js";
import { jsonTree } from "../content.js";
import { actionButton, guardedButton, openButton } from "../controls.js";
import { floatingPanel } from "../floating_panel.js";
import { icon } from "../marks/icon.js";
import { alwaysForm } from "./always.js";
import { argumentsTable } from "./arguments_table.js";
import { decision } from "./send.js";

/** @typedef {import("./send.js").Send} Send */
/** @typedef {{isSelected: () => boolean, earlier: import("./earlier.js").Earlier}} Context `earlier`: answers about this tool */

const SKIP_HINT = "It does not run, and the agent is told not to try again";

/**
 * @param {QuestionView} question
 * @param {Send} send
 * @param {HTMLElement} refuse the button that opens the rejection
 * @param {Context} context
 */
export function approvalBody(question, send, refuse, { isSelected, earlier }) {
  const { tool, destructive, changed, arguments: given, message } = question;
  const isJson = signal(false);
  const shown = () =>
    given === undefined ? h("p", safeText(message)) : isJson() ? jsonTree(given, Infinity) : argumentsTable(question);
  const run = () => send(decision({ decision: "run" }));
  const about = { class: destructive ? "danger" : "main", "data-act": "run", "aria-keyshortcuts": "y" };
  const runButton = guardedButton(`Run ${safeText(tool, 60)}`, run, about, keyHint("y", isSelected));
  return h(
    "div.approval",
    reason(question, earlier),
    definitionChange(changed),
    tooLong(changed),
    h("div.shown", shown),
    h(
      "div.buttons",
      alwaysButton(question, send),
      jsonButton(isJson, given),
      h("span.grow"),
      actionButton("Skip", () => send(decision({ decision: "skip" })), { title: SKIP_HINT }),
      refuse,
      runButton,
    ),
  );
}

/** Why it asks, and how often it was run before. @param {QuestionView} question @param {Context["earlier"]} earlier */
function reason({ why = "", destructive, changed }, earlier) {
  const mark = destructive && h("span.t-bad.destructive", icon("warning", "s"), h("b.mid", "Destructive"));
  const words = destructive ? `: ${safeText(why)}.` : `It asks because ${safeText(why)}.`;
  const past = () => {
    const runs = (earlier() ?? []).filter(({ answer }) => ["run", "always"].includes(answer.content?.decision)).length;
    if (!changed) return "It was not approved here before.";
    const last = formatTime(changed.at);
    const times = runs > 1 ? `Approved ${plural(runs, "time")} before, last ${last}.` : `Approved before, ${last}.`;
    return changed.definition || changed.arguments ? times : `${times} Nothing has changed since.`;
  };
  return h("p.why", mark, words, " ", past);
}

/** @param {QuestionView["changed"]} changed */
function definitionChange(changed) {
  const change = changed?.definition;
  if (!changed || !change) return null;
  const tags = /** @type {const} */ ({ same: "span", gone: "del", new: "ins" });
  const text = change.before
    ? h(
        "pre",
        { tabindex: "0" },
        ...diffWords(change.before, change.after).map(({ kind, text }) => h(tags[kind], text)),
      )
    : h("p", "It is too long to compare.");
  return h("div.changes", h("h3", `The definition changed since ${formatTime(changed.at)}`), text);
}

/** @param {QuestionView["changed"]} changed */
const tooLong = (changed) =>
  changed?.arguments && !changed.arguments.before
    ? h("p.dim", "The arguments changed since the last approved run, and are too long to compare.")
    : null;

/** @param {QuestionView} question @param {Send} send */
function alwaysButton(question, send) {
  const open = floatingPanel("Always allow", () => alwaysForm(question, send));
  return openButton("Always allow…", open, { class: "quiet", "aria-haspopup": "dialog" });
}

/** @param {Signal<boolean>} isJson @param {Json} given */
const jsonButton = (isJson, given) =>
  given !== undefined &&
  h("button.quiet", { type: "button", onclick: () => isJson.set(!isJson.peek()) }, () =>
    isJson() ? "Show as table" : "Show as JSON",
  );
