// What happened in a call: its facts, its curve while it grows, and the messages of both sides.

import { stream } from "./api.js";
import { each, h } from "./dom.js";
import { inTurn, loaded, trouble } from "./load.js";
import { verdict } from "./outcome.js";
import { howFar, visible } from "./parts.js";
import { callAt } from "./router.js";
import { effect, ending, signal } from "./signal.js";
import { folded, structure } from "./value.js";

/** @typedef {{seq: number, fact: Fact}} Numbered */

const MOST = 500; // facts that are shown, the newest
const APART_S = 0.5; // between two points of a curve that grows
const OFF = "Not recorded. Messages are kept if record_wire is true in afoot.toml, or with AFOOT_RECORD_WIRE=1.";

/** @type {Record<string, (fact: Fact) => unknown[]>} */
const WORDS = {
  opened: ({ caller, approval = "auto", task }) => [`by ${caller}, approval ${approval}${task ? ", as a task" : ""}`],
  amended: ({ by }) => [`a ${by} changed its arguments`],
  admitted: ({ what }) => [what],
  started: ({ attempt, why }) => (attempt > 1 ? [`attempt ${attempt}`, why] : []),
  reported: (fact) => [
    ...[fact.late && "late", howFar({ latest: fact }), fact.message],
    ...[fact.partial && "a partial result", fact.checkpoint && "a checkpoint"],
  ],
  logged: ({ level = "info", logger, text }) => [level, logger, text],
  hindered: ({ by, hint }) => (by ? [by, hint] : ["no more"]),
  asked: ({ question }) => [question.message || question.kind],
  answered: ({ answer }) => [verdict({ action: "accept", by: "caller", ...answer })],
  cancel_requested: ({ by, reason }) => [`by ${by}`, reason],
  finished: ({ outcome, failure }) => [outcome.replace("_", " "), failure?.message],
  released: ({ how }) => [how === "grace" ? "after its grace; it may still run" : "it has stopped"],
};

/** The facts of a call as a list that grows; `changed` is read to know when to look for more. @param {CallView} call @param {() => unknown} changed */
export function timeline({ id, opened }, changed) {
  const entries = signal(/** @type {Numbered[]} */ ([]));
  const stop = new AbortController();
  let last = "";
  const more = inTurn(async () => {
    /** @type {Numbered[]} */ const found = [];
    const onEvent = (/** @type {{event: string, id: string, data: string}} */ { event, id: place, data }) => {
      if (event === "fact") found.push(JSON.parse(data));
      last = place || last;
    };
    const listening = { lastId: last, onEvent, signal: stop.signal };
    await stream(`/api${callAt(id)}/events?follow=no`, listening).catch(() => {}); // the next change asks again
    const known = entries.peek().at(-1)?.seq ?? 0;
    entries.set([...entries.peek(), ...found.filter(({ seq }) => seq > known)].slice(-MOST));
  });
  effect(() => (changed(), void more()));
  ending(() => stop.abort());
  const isCut = () => (entries()[0]?.seq ?? 1) > 1;
  const lines = each(entries, "seq", ({ fact }) => line(fact, fact.at - opened));
  return h("div", h("p.soft", { shown: isCut }, `Only the newest ${MOST} facts are shown.`), h("ol.timeline", lines));
}

/** @param {Fact} fact @param {number} after seconds since it was opened */
function line(fact, after) {
  const words = (WORDS[fact.type]?.(fact) ?? []).filter(Boolean).join(": ");
  const name = h("b", fact.type.replace("cancel_requested", "cancel"));
  return h("li", h("time", `${after.toFixed(2)} s`), name, h("span", visible(words, 1000)));
}

/** The points of a call's curve: what the history has, then what was read here. @param {() => CallView} view @param {() => Call} call */
export function points(view, call) {
  const seen = signal(/** @type {Reading[]} */ ([]));
  effect(() => {
    const [{ latest }, all] = [call(), seen.peek()];
    if (latest && latest.at - (all.at(-1)?.at ?? 0) > APART_S) seen.set([...all, latest]);
  });
  return () => {
    const kept = (view().samples ?? []).map((one) => one.reading);
    const all = [...kept, ...seen().filter(({ at }) => at > (kept.at(-1)?.at ?? 0))];
    return all.filter((one) => Number.isFinite(one.progress));
  };
}

/** The JSON-RPC messages of both sides, asked for when somebody looks. @param {CallView} call @param {() => unknown} changed */
export const wire = ({ id, opened }, changed) =>
  folded(["The messages of both sides"], () => {
    const { value, problem } = loaded(() => (changed(), `/api${callAt(id)}/wire`));
    const list = () => Object.entries(/** @type {Message[]} */ (value()?.messages ?? []));
    const none = () => value() && !list().length && (value().recording ? "None was recorded." : OFF);
    const cut = () => value()?.left_out > 0 && `${value().left_out} messages were left out.`;
    const lines = each(list, "0", ([, one]) => message(one, one.at - opened));
    return h("div", trouble(problem), h("p.soft", { shown: () => none() || cut() }, none, cut), h("ol.wire", lines));
  });

/** @param {Message} message @param {number} after */
function message({ side, way, message: sent }, after) {
  const what = sent.method ?? (sent.error ? `error of ${sent.id}` : `answer to ${sent.id}`);
  const path = way === "in" ? `${side} → gateway` : `gateway → ${side}`;
  const words = [h("time", `${after.toFixed(2)} s`), ` ${path} `, h("b", visible(what, 100))];
  const whole = folded(words, () => structure(sent));
  return h("li", whole);
}
