// The history of a call: its facts, the points of its progress chart, and its wire messages.

import { stream } from "../lib/api.js";
import { each, h } from "../lib/dom.js";
import { serialized, resource, errorMessage } from "../lib/resource.js";
import { answerSummary } from "./call_result.js";
import { formatProgress, safeText } from "../lib/format.js";
import { callPath } from "../lib/router.js";
import { effect, onCleanup, signal } from "../lib/signal.js";
import { collapsible, jsonTree } from "./content.js";

/** @typedef {{seq: number, fact: Fact}} Numbered */

const MAX_FACTS = 500; // the newest ones are shown
const MIN_POINT_GAP_S = 0.5; // between two points of a live chart
const NOT_RECORDED =
  "Not recorded. Messages are kept if record_wire is true in afoot.toml, or with AFOOT_RECORD_WIRE=1.";

/** @type {Record<string, (fact: Fact) => unknown[]>} */
const FACT_DETAILS = {
  opened: ({ caller, approval = "auto", task }) => [`by ${caller}, approval ${approval}${task ? ", as a task" : ""}`],
  amended: ({ by }) => [`a ${by} changed its arguments`],
  admitted: ({ what }) => [what],
  started: ({ attempt, why }) => (attempt > 1 ? [`attempt ${attempt}`, why] : []),
  interrupted: ({ spent_s = 0 }) => [`the gateway died; it had run ${spent_s.toFixed(1)} s`],
  handed_over: ({ what = "task" }) => [`its request ended before it, with a ${what}`],
  redefined: ({ approval = "auto" }) => [`its tool has another definition now, approval ${approval}`],
  reported: (fact) => [
    ...[fact.late && "late", formatProgress({ latest: fact }), fact.message],
    ...[fact.partial && "a partial result", fact.checkpoint && "a checkpoint"],
  ],
  logged: ({ level = "info", logger, text }) => [level, logger, text],
  hindered: ({ by, hint }) => (by ? [by, hint] : ["no more"]),
  asked: ({ question }) => [question.message || question.kind],
  answered: ({ answer }) => [answerSummary({ action: "accept", by: "caller", ...answer })],
  cancel_requested: ({ by, reason }) => [`by ${by}`, reason],
  finished: ({ outcome, failure }) => [outcome.replace("_", " "), failure?.message],
  released: ({ how }) => [how === "grace" ? "after its grace; it may still run" : "it has stopped"],
};

/**
 * The facts of a call as a growing list; more are fetched when `changed` changes.
 * @param {CallView} call
 * @param {() => unknown} changed
 */
export function timeline({ id, opened }, changed) {
  const entries = signal(/** @type {Numbered[]} */ ([]));
  const abortController = new AbortController();
  let last = "";
  const fetchFacts = serialized(async () => {
    /** @type {Numbered[]} */ const found = [];
    const onEvent = (/** @type {{event: string, id: string, data: string}} */ { event, id: place, data }) => {
      if (event === "fact") found.push(JSON.parse(data));
      last = place || last;
    };
    const listening = { lastId: last, onEvent, signal: abortController.signal };
    await stream(`/api${callPath(id)}/events?follow=no`, listening).catch(() => {}); // the next change fetches again
    const known = entries.peek().at(-1)?.seq ?? 0;
    entries.set([...entries.peek(), ...found.filter(({ seq }) => seq > known)].slice(-MAX_FACTS));
  });
  effect(() => {
    changed();
    void fetchFacts();
  });
  onCleanup(() => abortController.abort());
  const isTruncated = () => (entries()[0]?.seq ?? 1) > 1;
  const lines = each(entries, "seq", ({ fact }) => factLine(fact, fact.at - opened));
  return h(
    "div",
    h("p.soft", { shown: isTruncated }, `Only the newest ${MAX_FACTS} facts are shown.`),
    h("ol.timeline", lines),
  );
}

/** @param {Fact} fact @param {number} after seconds since the call was opened */
function factLine(fact, after) {
  const words = (FACT_DETAILS[fact.type]?.(fact) ?? []).filter(Boolean).join(": ");
  const name = h("b", fact.type.replace("cancel_requested", "cancel"));
  return h("li", h("time", `${after.toFixed(2)} s`), name, h("span", safeText(words, 1000)));
}

/**
 * The points of the progress chart: samples of the history, then readings seen here.
 * @param {() => CallView} view
 * @param {() => Call} call
 */
export function progressPoints(view, call) {
  const seen = signal(/** @type {Reading[]} */ ([]));
  effect(() => {
    const { latest } = call();
    const all = seen.peek();
    if (latest && latest.at - (all.at(-1)?.at ?? 0) > MIN_POINT_GAP_S) seen.set([...all, latest]);
  });
  return () => {
    const samples = (view().samples ?? []).map((one) => one.reading);
    const all = [...samples, ...seen().filter(({ at }) => at > (samples.at(-1)?.at ?? 0))];
    return all.filter((one) => Number.isFinite(one.progress));
  };
}

/**
 * The JSON-RPC messages of both sides, fetched when the section is opened.
 * @param {CallView} call
 * @param {() => unknown} changed
 */
export const wireMessages = ({ id, opened }, changed) =>
  collapsible(["The messages of both sides"], () => {
    const { value, problem } = resource(() => {
      changed();
      return `/api${callPath(id)}/wire`;
    });
    const list = () => Object.entries(/** @type {Message[]} */ (value()?.messages ?? []));
    const emptyNote = () => value() && !list().length && (value().recording ? "None was recorded." : NOT_RECORDED);
    const truncatedNote = () => value()?.left_out > 0 && `${value().left_out} messages were left out.`;
    const lines = each(list, "0", ([, one]) => wireMessage(one, one.at - opened));
    return h(
      "div",
      errorMessage(problem),
      h("p.soft", { shown: () => emptyNote() || truncatedNote() }, emptyNote, truncatedNote),
      h("ol.wire", lines),
    );
  });

/** @param {Message} message @param {number} after */
function wireMessage({ side, way, message: sent }, after) {
  const what = sent.method ?? (sent.error ? `error of ${sent.id}` : `answer to ${sent.id}`);
  const path = way === "in" ? `${side} → gateway` : `gateway → ${side}`;
  const words = [h("time", `${after.toFixed(2)} s`), ` ${path} `, h("b", safeText(what, 100))];
  const whole = collapsible(words, () => jsonTree(sent));
  return h("li", whole);
}
