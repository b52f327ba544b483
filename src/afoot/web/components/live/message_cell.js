// messageCell: the last words of a call in its row: a warning or a tag first, then the message, cut at the end.

import { each, h } from "../../lib/dom.js";
import { questionOfCall, questionSummary } from "../../lib/call/open_questions.js";
import { tagsOf, warningOf } from "../../lib/call/call_words.js";
import { formatEstimate, joinNonEmpty, safeText, statusMessage } from "../../lib/format.js";
import { undoCancel } from "../cancel.js";
import { icon } from "../marks/icon.js";

/** @typedef {import("./call_row.js").Shown} Shown */

const MAX_CHARS = 300;
const TITLES = /** @type {Record<string, string>} */ ({ detached: "Its caller does not wait for it any more." });

/** @param {Shown} shown */
export function messageCell(shown) {
  const { state, call, row } = shown;
  const undo = () => (call().cancel_due && call().state !== "finished" ? [row().entry] : []);
  return h(
    "span.cell.message",
    { role: "gridcell", "data-tone": () => (state() === "failed" ? "bad" : null) },
    each(undo, "id", undoCancel),
    each(() => tagsOf(call(), isDestructive(shown)), String, tag),
    h("span.warning.cut", { "data-tone": () => (state() === "held_up" ? null : "bad") }, () =>
      warningOf(call(), state(), shown.clocks()),
    ),
    h("span.time-left", { "aria-hidden": "true" }, () => timeLeftWords(shown)), // of a narrow row
    h("span.cut", () => safeText(lastWords(shown), MAX_CHARS)),
    h("span.all-arguments", { shown: () => isApproval(shown) }, "all arguments"), // the first narrow row leads to them
    h("span.go-on", icon("right", "s")), // of a narrow row that waits
  );
}

/** @param {string} words */
const tag = (words) =>
  h(words === "destructive" ? "span.tag.bad" : "span.tag", { title: TITLES[words] ?? null }, words);

const HAS_ESTIMATE = ["running", "retrying"]; // a stalled or held-up call has none that holds

/** The time left, if anybody knows. @param {Shown} shown */
export const timeLeft = ({ state, call }) => (HAS_ESTIMATE.includes(state()) ? formatEstimate(call().eta) : "");

/** @param {Shown} shown */
function timeLeftWords(shown) {
  const left = timeLeft(shown);
  return left && `${left} left${lastWords(shown) ? " ·" : ""}`;
}

/** The words of a question, or the last message. @param {Shown} shown */
function lastWords({ call, state, row }) {
  const now = call();
  const question = state() === "waiting" ? questionOfCall(row().entry.id) : undefined;
  if (question) return questionSummary(question);
  if (state() === "held_up") return joinNonEmpty(now.hindered?.hint, now.latest?.message);
  if (now.cancel_due) return "";
  return statusMessage(now) ?? "";
}

/** @param {Shown} shown */
const isApproval = ({ state, row }) => state() === "waiting" && questionOfCall(row().entry.id)?.kind === "approval";

/** @param {Shown} shown */
const isDestructive = ({ state, row }) => state() === "waiting" && questionOfCall(row().entry.id)?.destructive === true;
