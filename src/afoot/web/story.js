// What happened in a call, fact by fact, and how it is run once more.

import { get, post, stream } from "./api.js";
import { each, h } from "./dom.js";
import { form } from "./form.js";
import { attempt } from "./load.js";
import { howFar, visible } from "./parts.js";
import { callAt, go, toolAt } from "./router.js";
import { effect, ending, signal } from "./signal.js";

/** @typedef {{seq: number, fact: Record<string, any>}} Entry */

const MOST = 500; // facts that are shown, the newest
const WARNING =
  "It is uncertain what it did: its effects may have happened. Press once more to run it all the same.";

/** @type {Record<string, (fact: any) => any[]>} */
const WORDS = {
  opened: ({ caller, approval = "auto" }) => [`by ${caller}, approval ${approval}`],
  amended: ({ by }) => [`a ${by} changed its arguments`],
  admitted: ({ what }) => [what],
  started: ({ attempt, why }) => (attempt > 1 ? [`attempt ${attempt}`, why] : []),
  reported: (fact) => [
    fact.late && "late",
    howFar({ latest: fact }),
    fact.message,
    fact.partial && "a partial result",
    fact.checkpoint && "a checkpoint",
  ],
  logged: ({ level = "info", logger, text }) => [level, logger, text],
  hindered: ({ by, hint }) => (by ? [by, hint] : ["no more"]),
  asked: ({ question }) => [question.message || question.kind],
  answered: ({ answer = {} }) => [
    `${answer.action ?? "accept"} by ${answer.by ?? "caller"}`,
    answer.content?.decision,
  ],
  cancel_requested: ({ by, reason }) => [`by ${by}`, reason],
  finished: ({ outcome, failure }) => [outcome.replace("_", " "), failure?.message],
  released: ({ how }) => [how === "grace" ? "after its grace; it may still run" : "it has stopped"],
};

/** The facts of a call as a list that grows; `changed` is read to know when to look for more. @param {string} id @param {() => unknown} changed */
export function timeline(id, changed) {
  const entries = signal(/** @type {Entry[]} */ ([]));
  const stop = new AbortController();
  let [last, isBusy, isDue, opened] = ["", false, false, 0];
  const more = async () => {
    isDue = true;
    for (; isDue && !isBusy && !stop.signal.aborted; isBusy = false) {
      [isDue, isBusy] = [false, true];
      const [found, place] = await factsOf(id, last, stop.signal);
      const known = entries.peek().at(-1)?.seq ?? 0;
      last = place;
      opened ||= found[0]?.fact.at ?? 0;
      entries.set([...entries.peek(), ...found.filter(({ seq }) => seq > known)].slice(-MOST));
    }
  };
  effect(() => (changed(), void more()));
  ending(() => stop.abort());
  const keyOf = (/** @type {Entry} */ { seq }) => String(seq);
  return h(
    "ol",
    { class: "timeline" },
    each(entries, keyOf, ({ fact }) => line(fact, fact.at - opened)),
  );
}

/** Facts behind a place, and the next place. @param {string} id @param {string} after @param {AbortSignal} signal @returns {Promise<[Entry[], string]>} */
async function factsOf(id, after, signal) {
  /** @type {Entry[]} */ const found = [];
  let last = after;
  const onEvent = (/** @type {import("./api.js").Event} */ { event, id: place, data }) => {
    if (event === "fact") found.push(JSON.parse(data));
    last = place || last;
  };
  const path = `/api/calls/${encodeURIComponent(id)}/events?follow=no`;
  await stream(path, { lastId: after, onEvent, signal }).catch(() => {}); // the next change asks again
  return [found, last];
}

/** @param {Record<string, any>} fact @param {number} after seconds since it was opened */
function line(fact, after) {
  const words = (WORDS[fact.type]?.(fact) ?? []).filter(Boolean).join(": ");
  const name = h("b", null, fact.type.replace("cancel_requested", "cancel"));
  return h(
    "li",
    null,
    h("time", null, `${after.toFixed(2)} s`),
    name,
    h("span", { class: "said" }, visible(words, 1000)),
  );
}

/** A form with the arguments of a call, to run its tool again; after an uncertain end it asks twice. @param {any} call a full CallView */
export function rerun(call) {
  const [problem, schema, isWarned] = [signal(""), signal(/** @type {any} */ (null)), signal(false)];
  /** @type {ReturnType<typeof form> | null} */ let fields = null;
  void attempt(problem, async () => schema.set((await get(`/api${toolAt(call.tool)}`)).inputSchema));
  const start = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const found = fields?.read();
    if (!found) return;
    if (call.outcome === "uncertain" && !isWarned.peek()) return isWarned.set(true);
    const begun = await attempt(problem, () =>
      post(`/api/calls/${call.id}/rerun`, { arguments: found.value }),
    );
    if (begun) go((fields?.forget(), callAt(begun.id)));
  };
  const text = () => visible(problem()) || (isWarned() ? WARNING : "");
  const submit = () => (isWarned() ? "Run it all the same" : "Run it again");
  const made = () =>
    (fields = schema() && form(schema(), { key: `rerun:${call.id}`, value: call.arguments }))?.node;
  return h(
    "form",
    { class: "sheet rerun", onsubmit: start, novalidate: true },
    h("h2", null, "Run it again"),
    h("p", { class: "soft" }, "A new call, linked to this one, and approved anew."),
    made,
    h("p", { class: "problem", role: "alert", hidden: () => !text() }, text),
    h("button", { class: "main", hidden: () => !schema() }, submit),
  );
}
