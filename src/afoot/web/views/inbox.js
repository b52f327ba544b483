// Who waits for a person: approvals and questions, to answer in place.

import { get } from "../api.js";
import { each, h } from "../dom.js";
import { loaded, trouble } from "../load.js";
import { verdict } from "../outcome.js";
import { empty } from "../parts.js";
import { card } from "../question.js";
import { callAt } from "../router.js";
import { effect, signal } from "../signal.js";
import { store } from "../store.js";

export const title = "Inbox";

/** What was answered here: a list that was asked for before that may still have it. */
const answered = new Set();

/** A question that is shown; `closed` says what became of it. @typedef {{key: string, question: QuestionView, closed: Signal<string>}} Item */

/** @returns {HTMLElement} */
export function view() {
  const { value, problem, again } = loaded(() => (store.questions(), "/api/questions"));
  const items = signal(/** @type {Item[] | null} */ (null));
  effect(() => void (value() && items.set(merged(items.peek() ?? [], value().questions))));
  const list = () => items() ?? [];
  const open = () => list().filter((item) => !item.closed());
  const make = (/** @type {Item} */ item) => shown(item, items, again);
  const clear = { shown: () => open().length < list().length, onclick: () => items.set(open()) };
  const none = empty(items, list, () => ["Nobody waits for you. Approvals and questions show up here."]);
  const cards = h("ul.cards", each(list, "key", make));
  return h("section", trouble(problem), none, cards, h("button", clear, "Clear what is answered"));
}

/** What is asked now, behind what is shown: nothing that is shown moves or goes unless it was answered here. @param {Item[]} shown @param {QuestionView[]} questions @returns {Item[]} */
function merged(shown, questions) {
  const asked = new Map(questions.map((one) => [`${one.id} ${one.digest}`, one]));
  for (const { key, question, closed } of shown)
    if (!asked.delete(key) && !closed.peek()) void explain(question, closed);
  const added = [...asked].filter(([key]) => !answered.has(key));
  return [...shown, ...added.map(([key, question]) => ({ key, question, closed: signal("") }))];
}

/** Say who has answered what somebody was just looking at. @param {QuestionView} question @param {Signal<string>} closed */
async function explain({ id, call }, closed) {
  closed.set("It is asked no more.");
  const { settled = [], outcome } = await get(`/api${callAt(call)}`).catch(() => ({}));
  const found = settled.find((/** @type {QuestionView} */ one) => one.id === id);
  if (found?.answer) closed.set(`Answered: ${verdict(found.answer)}.`);
  else if (found) closed.set(`It is asked no more: the call ended (${outcome ?? "over"}).`);
}

/** @param {Item} item @param {Signal<Item[] | null>} items @param {() => void} load */
function shown({ key, question, closed }, items, load) {
  const done = () => {
    answered.add(key);
    items.set((items.peek() ?? []).filter((one) => one.key !== key));
  };
  const lost = (/** @type {any} */ { status, message, more }) => {
    if (status !== 409) return false;
    const now = more.question ? "It has changed; see it anew below." : message;
    closed.set(more.question?.answer ? `Answered: ${verdict(more.question.answer)}.` : now);
    load();
    return true;
  };
  const body = h("div", { ".inert": () => closed() !== "" }, card(question, lost, done));
  const more = h("a", { href: callAt(question.call) }, "See the call");
  const after = h("p.closed", { role: "status", shown: closed }, closed, " ", more);
  // Whoever was in the midst of it is not thrown back to the top of the page.
  effect(() => void (closed() && body.matches(":focus-within") && more.focus({ preventScroll: true })));
  return h("li.sheet", { "data-question": question.id, "data-closed": () => closed() !== "" }, body, after);
}
