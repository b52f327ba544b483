// messageCell: the last words of a call in its row: a warning or a tag first, then the message, cut at the end.

import { each, h } from "../../lib/dom.js";
import { formatEstimate, formatLeft, joinNonEmpty, safeText, statusMessage } from "../../lib/format.js";
import { questionOfCall, questionSummary } from "../../lib/call/open_questions.js";
import { undoCancel } from "../cancel.js";
import { icon } from "../icon.js";

/** @typedef {import("./call_row.js").Shown} Shown */

const MAX_CHARS = 300;
const CEILING_WORDS_S = 60; // with more left, the line of the ceiling says enough

/** @param {Shown} shown */
export function messageCell(shown) {
  const { state, call, row } = shown;
  const undo = () => (call().cancel_due && call().state !== "finished" ? [row().entry] : []);
  return h(
    "span.cell.message",
    { role: "gridcell", "data-tone": () => (state() === "failed" ? "bad" : null) },
    each(undo, "id", undoCancel),
    h("span.tag.bad", { shown: () => isDestructive(shown) }, "destructive"),
    h("span.tag", { shown: () => isRetried(shown) }, () => `attempt ${call().attempt}`),
    h("span.tag", { shown: () => call().detached, title: "Its caller does not wait for it any more." }, "detached"),
    h("span.warning.cut", { "data-tone": () => (state() === "held_up" ? null : "bad") }, () => warning(shown)),
    h("span.time-left", { "aria-hidden": "true" }, () => timeLeftWords(shown)), // of a narrow row
    h("span.cut", () => safeText(lastWords(shown), MAX_CHARS)),
    h("span.all-arguments", { shown: () => isApproval(shown) }, "all arguments"), // the first narrow row leads to them
    h("span.go-on", icon("right", "s")), // of a narrow row that waits
  );
}

const HAS_ESTIMATE = ["running", "retrying"]; // a stalled or held-up call has none that holds

/** The time left, if anybody knows. @param {Shown} shown */
export const timeLeft = ({ state, call }) => (HAS_ESTIMATE.includes(state()) ? formatEstimate(call().eta) : "");

/** @param {Shown} shown */
function timeLeftWords(shown) {
  const left = timeLeft(shown);
  return left && `${left} left${lastWords(shown) ? " ·" : ""}`;
}

/** What is about to happen to the call, or holds it up. @param {Shown} shown */
function warning({ call, clocks, state }) {
  const { is_silence_last, is_ceiling_last, idle_s, silent_s, ceiling_left_s } = clocks();
  const silence_left_s = is_silence_last ? Math.max(0, (idle_s ?? 0) - silent_s) : Infinity;
  const left_s = is_ceiling_last ? (ceiling_left_s ?? 0) : Infinity;
  if (left_s < silence_left_s && left_s <= CEILING_WORDS_S) return `${formatLeft(left_s)} to the ceiling`;
  if (is_silence_last) return `stalled, ends in ${formatLeft(silence_left_s)}`;
  if (state() === "stalled") return "stalled";
  return state() === "held_up" ? safeText(`held up: ${call().hindered?.by ?? ""}`, MAX_CHARS) : "";
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

/** @param {Shown} shown */
const isRetried = ({ call }) => call().attempt > 1 && call().state !== "finished";
