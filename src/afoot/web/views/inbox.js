// The view of open approvals and questions, which are answered in place.

import { get } from "../lib/api.js";
import { each, h } from "../lib/dom.js";
import { resource, errorMessage } from "../lib/resource.js";
import { answerSummary } from "../components/call_result.js";
import { emptyMessage } from "../components/status.js";
import { questionCard } from "../components/question_card.js";
import { callPath } from "../lib/router.js";
import { effect, signal } from "../lib/signal.js";
import { store } from "../lib/store.js";

export const title = "Inbox";

/** Keys of the questions answered here; a list that was requested before may still have them. */
const answered = new Set();

/** A visible question; `closed` says how it ended. @typedef {{key: string, question: QuestionView, closed: Signal<string>}} Item */

/** @returns {HTMLElement} */
export function view() {
  const { value, problem, refetch } = resource(() => {
    store.questions();
    return "/api/questions";
  });
  const items = signal(/** @type {Item[] | null} */ (null));
  effect(() => void (value() && items.set(mergeQuestions(items.peek() ?? [], value().questions))));
  const list = () => items() ?? [];
  const open = () => list().filter((item) => !item.closed());
  const make = (/** @type {Item} */ item) => questionItem(item, items, refetch);
  const clear = { shown: () => open().length < list().length, onclick: () => items.set(open()) };
  const none = emptyMessage(items, list, () => ["Nobody waits for you. Approvals and questions show up here."]);
  const cards = h("ul.cards", each(list, "key", make));
  return h("section", errorMessage(problem), none, cards, h("button", clear, "Clear what is answered"));
}

/**
 * The visible questions, followed by new ones. A visible question stays until it is answered here.
 * @param {Item[]} shown
 * @param {QuestionView[]} questions
 * @returns {Item[]}
 */
function mergeQuestions(shown, questions) {
  const asked = new Map(questions.map((one) => [`${one.id} ${one.digest}`, one]));
  for (const { key, question, closed } of shown)
    if (!asked.delete(key) && !closed.peek()) void explainClosed(question, closed);
  const added = [...asked].filter(([key]) => !answered.has(key));
  return [...shown, ...added.map(([key, question]) => ({ key, question, closed: signal("") }))];
}

/**
 * Show who answered a question that is still visible.
 * @param {QuestionView} question
 * @param {Signal<string>} closed
 */
async function explainClosed({ id, call }, closed) {
  closed.set("It is asked no more.");
  const { settled = [], outcome } = await get(`/api${callPath(call)}`).catch(() => ({}));
  const found = settled.find((/** @type {QuestionView} */ one) => one.id === id);
  if (found?.answer) closed.set(`Answered: ${answerSummary(found.answer)}.`);
  else if (found) closed.set(`It is asked no more: the call ended (${outcome ?? "over"}).`);
}

/** @param {Item} item @param {Signal<Item[] | null>} items @param {() => void} load */
function questionItem({ key, question, closed }, items, load) {
  const done = () => {
    answered.add(key);
    items.set((items.peek() ?? []).filter((one) => one.key !== key));
  };
  const lost = (/** @type {any} */ { status, message, more }) => {
    if (status !== 409) return false;
    const now = more.question ? "It has changed; see it anew below." : message;
    closed.set(more.question?.answer ? `Answered: ${answerSummary(more.question.answer)}.` : now);
    load();
    return true;
  };
  const body = h("div", { ".inert": () => closed() !== "" }, questionCard(question, lost, done));
  const more = h("a", { href: callPath(question.call) }, "See the call");
  const after = h("p.closed", { role: "status", shown: closed }, closed, " ", more);
  // Focus inside the closed card moves to its link, not to the top of the page.
  effect(() => void (closed() && body.matches(":focus-within") && more.focus({ preventScroll: true })));
  return h("li.sheet", { "data-question": question.id, "data-closed": () => closed() !== "" }, body, after);
}
