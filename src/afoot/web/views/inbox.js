// Who waits for a person: approvals and questions, to answer in place.

import { get } from "../api.js";
import { each, h } from "../dom.js";
import { loaded } from "../load.js";
import { visible } from "../parts.js";
import { card } from "../question.js";
import { callAt } from "../router.js";
import { effect, signal } from "../signal.js";
import { store } from "../store.js";

export const title = "Inbox";

/** What was answered here: a list that was asked for before that may still have it. @type {Set<string>} */ const answered =
  new Set();

/** @typedef {import("../question.js").Question} Question */
/** A question that is shown; `closed` says what became of it. @typedef {{key: string, question: Question, closed: import("../signal.js").Signal<string>}} Item */

/** @returns {HTMLElement} */
export function view() {
  const { value, problem, again } = loaded(() => (store.questions(), store.about(), "/api/questions"));
  const items = signal(/** @type {Item[] | null} */ (null));
  effect(() => void (value() && items.set(merged(items.peek() ?? [], value().questions))));
  const list = () => items() ?? [];
  const open = () => list().filter((item) => !item.closed());
  const nothing = { class: "empty", hidden: () => items()?.length !== 0 };
  return h(
    "section",
    null,
    h("p", { class: "problem", hidden: () => !problem() }, () => visible(problem())),
    h("p", nothing, "Nobody waits for you. Approvals and questions show up here."),
    h(
      "ul",
      { class: "cards" },
      each(
        list,
        (item) => item.key,
        (item) => shown(item, items, again),
      ),
    ),
    h(
      "button",
      { hidden: () => open().length === list().length, onclick: () => items.set(open()) },
      "Clear what is answered",
    ),
  );
}

/** What is asked now, behind what is shown: nothing that is shown moves or goes unless it was answered here. @param {Item[]} shown @param {Question[]} questions @returns {Item[]} */
function merged(shown, questions) {
  const asked = new Map(questions.map((one) => [`${one.id} ${one.digest}`, one]));
  for (const { key, question, closed } of shown)
    if (!asked.delete(key) && !closed.peek()) void explain(question, closed);
  const added = [...asked]
    .filter(([key]) => !answered.has(key))
    .map(([key, question]) => ({ key, question, closed: signal("") }));
  return [...shown, ...added];
}

/** Say who has answered what somebody was just looking at. @param {Question} question @param {Item["closed"]} closed */
async function explain(question, closed) {
  closed.set("It is asked no more.");
  const call = await get(`/api/calls/${encodeURIComponent(question.call)}`).catch(() => null);
  const settled = call?.settled?.find((/** @type {Question} */ one) => one.id === question.id);
  if (settled) closed.set(verdict(settled, call.outcome));
}

/** @param {Question} settled @param {string | null} [outcome] */
function verdict({ answer }, outcome) {
  if (!answer) return `It is asked no more: the call ended (${outcome ?? "over"}).`;
  return `Answered by ${visible(answer.by)}: ${visible(answer.content?.decision ?? answer.action)}.`;
}

/** @param {Item} item @param {import("../signal.js").Signal<Item[] | null>} items @param {() => void} load */
function shown({ key, question, closed }, items, load) {
  const done = () => {
    answered.add(key);
    items.set((items.peek() ?? []).filter((one) => one.key !== key));
  };
  /** @param {any} error */
  const lost = (error) => {
    if (error.status !== 409) return false;
    const now = error.more?.question;
    closed.set(now?.answer ? verdict(now) : now ? "It has changed; see it anew below." : error.message);
    load();
    return true;
  };
  const body = h("div", { ".inert": () => closed() !== "" }, card(question, lost, done));
  const more = h("a", { href: callAt(question.call) }, "See the call");
  const after = h("p", { class: "closed", role: "status", hidden: () => !closed() }, closed, " ", more);
  // Whoever was in the midst of it is not thrown back to the top of the page.
  effect(() => void (closed() && body.matches(":focus-within") && more.focus({ preventScroll: true })));
  const about = { class: "sheet", "data-question": question.id, "data-closed": () => (closed() ? "" : null) };
  return h("li", about, body, after);
}
