// A call in words: its limits, its approval, its answers, and when it was. Pure.

import { formatLeft, formatSpan, joinNonEmpty, safeText } from "../format.js";
import { OUTCOME_WORDS, STATE_WORDS } from "../state.js";

/** @typedef {Record<string, any>} Limits the field `limits` of a call's full view */

const DECISIONS = /** @type {Record<string, string>} */ ({
  run: "Run",
  always: "Always allowed",
  reject: "Rejected",
  skip: "Skipped",
});
const ACTIONS = /** @type {Record<string, string>} */ ({ decline: "Declined", cancel: "Not answered" });
const SURFACES = /** @type {Record<string, string>} */ ({
  api: "through the API",
  console: "in the console",
  host: "by its program",
  panel: "in the side panel",
  python: "in Python",
  terminal: "in the terminal",
});

/** The limits of a call as sentences. @param {Limits} limits */
export function limitsInWords(limits) {
  const { idle_s, ceiling_s, answer_s, queue_s, grace_s, patient, idle_by_caller, ceiling_by_caller } = limits;
  const silence = idle_s == null ? "" : `${formatLeft(idle_s)} of silence`;
  const ceiling = ceiling_s == null ? "" : `${formatLeft(ceiling_s)} on the clock`;
  const ends = [silence, ceiling].filter(Boolean).join(" or ");
  const byCaller = [idle_by_caller && "silence", ceiling_by_caller && "the clock"].filter(Boolean).join(" and ");
  return [
    ends && `Ends after ${ends}.`,
    idle_s == null && "Silence alone never ends it.",
    idle_s != null && patient && "Silence counts from its first report on.",
    byCaller && `Its caller set the limit of ${byCaller}.`,
    answer_s != null && `You have ${formatSpan(answer_s)} to answer.`,
    queue_s != null &&
      `It may queue for ${formatSpan(queue_s)}${grace_s == null ? "" : `, and has ${formatSpan(grace_s)} to stop when cancelled`}.`,
  ]
    .filter(Boolean)
    .join(" ");
}

/** The two limits of a call in few words. @param {Limits} limits */
export const limitsInShort = ({ idle_s, ceiling_s }) =>
  joinNonEmpty(
    idle_s != null && `${formatLeft(idle_s)} of silence`,
    ceiling_s != null && `${formatLeft(ceiling_s)} in all`,
  );

/** A call's approval: what it needed, and who gave it. @param {CallView} call */
export function approvalInWords({ approved, settled = [], questions = [] }) {
  if (questions.some(({ kind }) => kind === "approval")) return "asked now";
  const asked = settled.findLast(({ kind }) => kind === "approval");
  if (asked?.answer) return answerInWords(asked);
  if (approved === "allowlist") return "not needed: it is on the allowlist";
  if (approved === "caller") return "given by its caller";
  if (approved === "user") return "given by a person";
  return approved === "auto" ? "not needed" : "not given";
}

/** An answer: what, by whom, where, and how long it took. @param {Pick<QuestionView, "kind" | "answer" | "asked">} question */
export function answerInWords({ kind, answer, asked }) {
  if (!answer) return "closed without an answer";
  return `${answerWord(kind, answer)}, ${answererInWords(answer)} after ${formatSpan(answer.at - asked)}`;
}

/** The decision of an answer, or the values that were given. @param {string} kind @param {{action: string, content?: Json}} answer */
export function answerWord(kind, { action, content }) {
  if (action !== "accept") return ACTIONS[action] ?? action;
  if (kind === "approval") return DECISIONS[content?.decision] ?? "Run";
  const values = content && typeof content === "object" ? Object.values(content).flat() : [];
  const words = values.filter((value) => ["string", "number", "boolean"].includes(typeof value)).join(", ");
  return safeText(words, 120) || "Answered";
}

/** Who answered, and where. @param {{by: string, surface?: string, who?: string | null}} answer */
export function answererInWords({ by, surface = "", who }) {
  if (by === "engine") return "closed by the gateway";
  if (by === "operator") return joinNonEmpty(`answered ${SURFACES[surface] ?? "by the operator"}`, safeText(who, 60));
  return `answered by its ${["hook", "tool", "upstream"].includes(by) ? by.replace("upstream", "server") : "caller"}`;
}

/** The state of a call, and for one that failed how. @param {CallState} state @param {Outcome | null} outcome */
export const stateInWords = (state, outcome) =>
  state === "failed" && outcome && outcome !== "failed" ? OUTCOME_WORDS[outcome] : STATE_WORDS[state];

/** @typedef {import("../state.js").CallState} CallState */

/** How the calls below a call are: "6, all done". @param {{state: CallState}[]} calls */
export function childrenInWords(calls) {
  if (!calls.length) return "none";
  const groups = [...Map.groupBy(calls, ({ state }) => STATE_WORDS[state])];
  if (groups.length === 1) return `${calls.length}, ${calls.length > 1 ? "all " : ""}${groups[0][0]}`;
  return `${calls.length}: ${groups.map(([word, { length }]) => `${length} ${word}`).join(", ")}`;
}

/** An instant: "today 14:02:10", "yesterday 16:20:01", "2026-11-13 09:12:44". @param {number} at @param {Date} [today] */
export function formatInstant(at, today = new Date()) {
  const then = new Date(at * 1000);
  const two = (/** @type {number} */ part) => String(part).padStart(2, "0");
  const time = [then.getHours(), then.getMinutes(), then.getSeconds()].map(two).join(":");
  const day = (/** @type {Date} */ one) => `${one.getFullYear()}-${two(one.getMonth() + 1)}-${two(one.getDate())}`;
  const yesterday = new Date(today.getFullYear(), today.getMonth(), today.getDate() - 1);
  const word = day(then) === day(today) ? "today" : day(then) === day(yesterday) ? "yesterday" : day(then);
  return `${word} ${time}`;
}

/** The time of an instant without its seconds: "13:02". @param {number} at */
export const formatMinute = (at) => formatInstant(at).split(" ")[1].slice(0, 5);
