// The view of open approvals and questions: a list at the left, the selected question whole, its context at the right.

import { get } from "../lib/api.js";
import { readClocks } from "../lib/call/clock_reading.js";
import { each, h } from "../lib/dom.js";
import { formatClock, formatLeft, safeText } from "../lib/format.js";
import { registerKeys } from "../lib/keys.js";
import {
  areQuestionsKnown,
  isAnsweredHere,
  openQuestions,
  questionKey,
  questionSummary,
} from "../lib/call/open_questions.js";
import { resource } from "../lib/resource.js";
import { callPath, navigate, route, withQuery } from "../lib/router.js";
import { computed, effect, signal } from "../lib/signal.js";
import { store } from "../lib/store.js";
import { now, tick } from "../lib/time.js";
import { answerButtons } from "../components/question/answer_row.js";
import { registerAnswerKeys } from "../components/call/call_keys.js";
import { frozenRing } from "../components/marks/clocks.js";
import { emptyMessage } from "../components/empty.js";
import { permissionButton } from "../components/shell/notifications.js";
import { wholeQuestion } from "../components/question/question.js";
import { answerKey, answerWord, focusRefusal, questionContext } from "../components/question/context.js";
import { earlierAnswers } from "../components/question/earlier.js";
import { stateIcon } from "../components/marks/state_icon.js";

export const title = "Inbox";
export const isWide = true;

const DAY_S = 86_400;
const MOST_ANSWERS = 12; // in the list at the left

/** A visible question; `closed` says how it ended if somebody else was first. */
/** @typedef {{key: string, question: QuestionView, closed: Signal<string>}} Item */
/** The list, for each of its items. @typedef {{items: Signal<Item[]>, selected: () => Item | undefined}} List */

/** @returns {HTMLElement} */
export function view() {
  const items = signal(/** @type {Item[]} */ ([]));
  effect(() => {
    const open = openQuestions();
    if (areQuestionsKnown()) items.set(mergeQuestions(items.peek(), open));
  });
  const list = { items, selected: selection(items) };
  registerInboxKeys(list);
  const none = emptyMessage(areQuestionsKnown, items, () => [
    "Nobody waits for you. Approvals and questions show up here, and in the list of live calls.",
  ]);
  const chosen = () => [list.selected()].filter((one) => one !== undefined);
  const rail = h(
    "ol.waiting",
    each(items, "key", (item) => railRow(item, list)),
  );
  return h(
    "div.inbox",
    h("section.rail", { "aria-label": "Questions" }, railHead(list), rail, answeredToday()),
    h(
      "section.cards",
      { "aria-label": "The questions" },
      none,
      each(items, "key", (item) => card(item, list)),
    ),
    h(
      "aside.beside",
      { "aria-label": "While you decide" },
      each(chosen, "key", (item) => context(item, list)),
    ),
  );
}

/**
 * The visible questions, followed by new ones. One that somebody else answered stays until it is cleared.
 * @param {Item[]} shown
 * @param {QuestionView[]} open
 * @returns {Item[]}
 */
function mergeQuestions(shown, open) {
  const asked = new Map(open.map((one) => [questionKey(one), one]));
  const kept = shown.filter(({ key }) => asked.has(key) || !isAnsweredHere(key));
  for (const { key, question, closed } of kept)
    if (!asked.delete(key) && !closed.peek()) void explainEnd(question, closed);
  return [...kept, ...[...asked].map(([key, question]) => ({ key, question, closed: signal("") }))];
}

/**
 * Say who answered a question that is still visible.
 * @param {QuestionView} question
 * @param {Signal<string>} closed
 */
async function explainEnd({ id, call }, closed) {
  closed.set("It is asked no more.");
  const { settled = [], outcome } = await get(`/api${callPath(call)}`).catch(() => ({}));
  const found = settled.find((/** @type {QuestionView} */ one) => one.id === id);
  if (found?.answer) closed.set(endWords(found.answer));
  else if (found) closed.set(`It is asked no more: the call ended (${outcome ?? "over"}).`);
}

/** @param {AnswerView} answer */
const endWords = (answer) =>
  `${answerWord(answer)} by ${safeText(answer.by, 60)}${answer.surface ? `, in the ${answer.surface.replace("api", "API")}` : ""}.`;

/** The item that the address names, else the one that took the place of the last. @param {Signal<Item[]>} items */
function selection(items) {
  let at = 0;
  return computed(() => {
    const all = items();
    const wanted = all.findIndex(({ question }) => question.id === route().query.question);
    at = wanted >= 0 ? wanted : Math.min(at, Math.max(0, all.length - 1));
    return /** @type {Item | undefined} */ (all[at]);
  });
}

/** @param {Item | undefined} item */
const select = (item) => item && navigate(withQuery({ question: item.question.id }), { replace: true });

/** @param {List} list */
function registerInboxKeys({ items, selected }) {
  const step = (/** @type {number} */ by) => () => {
    const all = items.peek();
    const at = all.findIndex((one) => one === selected());
    select(all[Math.min(all.length - 1, Math.max(0, at + by))]);
  };
  const hasMore = () => items().length > 1;
  registerKeys(
    { keys: "j", words: "Next", when: hasMore, act: step(1), repeats: true },
    { keys: "k", words: "Previous", when: hasMore, act: step(-1), repeats: true },
    {
      keys: "Enter",
      words: "Open the call",
      when: selected,
      act: () => navigate(callPath(selected()?.question.call ?? "")),
    },
  );
  registerAnswerKeys(() => {
    const item = selected();
    return item && !item.closed() ? item.question : undefined;
  });
}

/** @param {List} list */
function railHead({ items }) {
  const count = () => items().filter((one) => !one.closed()).length;
  const clear = () => items.set(items.peek().filter((one) => !one.closed.peek()));
  const clearButton = { class: "small", type: "button", shown: () => count() < items().length, onclick: clear };
  return h(
    "div.rail-head",
    h(
      "h2",
      "Waiting for you ",
      h("span.faint", () => String(count())),
    ),
    h("button", clearButton, "Clear what is answered"),
    permissionButton(),
  );
}

/** @param {Item} item @param {List} list */
function railRow(item, { selected }) {
  const { question, closed } = item;
  const { id, tool, server, destructive, expires } = question;
  const onclick = (/** @type {Event} */ event) => {
    event.preventDefault();
    select(item);
  };
  const about = {
    href: `/inbox?question=${encodeURIComponent(id)}`,
    "aria-current": () => selected() === item && "true",
    "data-closed": () => closed() !== "",
    onclick,
  };
  const left = () => (closed() ? "" : formatLeft(expires - tick()));
  const names = h("span.names", h("b.tool-name.cut", safeText(tool, 100)), h("span.faint.cut", safeText(server, 60)));
  const link = h(
    "a",
    about,
    stateIcon("waiting", null),
    h("span.first", names, h("span.t-you", left)),
    h("span.dim.cut", () => closed() || questionSummary(question)),
    destructive && h("span.tag.bad", "destructive"),
  );
  effect(() => void (selected() === item && link.scrollIntoView({ block: "nearest" })));
  return h("li", link);
}

/** The newest answers of the last 24 hours. */
function answeredToday() {
  const { value } = resource(() => {
    store.questions(); // one of them may have been answered
    return "/api/answers?limit=100";
  });
  const found = computed(() => {
    const all = /** @type {GivenAnswer[]} */ (value()?.answers ?? []);
    return all.filter(({ answer }) => answer.at > now.peek() - DAY_S);
  });
  const row = (/** @type {GivenAnswer} */ { call, tool, answer }) => {
    const isYes = answer.action === "accept" && !["skip", "reject"].includes(answer.content?.decision);
    const words = `${safeText(tool, 100)}: ${answerWord(answer).toLowerCase()}`;
    return h(
      "li",
      h(
        "a",
        { href: callPath(call) },
        stateIcon(isYes ? "done" : "cancelled", null),
        h("span.cut.grow", words),
        h("time.faint", formatClock(answer.at).slice(0, 5)),
      ),
    );
  };
  const head = h(
    "div.rail-head",
    h(
      "h2",
      "Answered, last 24 hours ",
      h("span.faint", () => String(found().length)),
    ),
  );
  const first = () => found().slice(0, MOST_ANSWERS);
  return h("div", { shown: () => found().length }, head, h("ol.answered", each(first, answerKey, row)));
}

/** A question in the middle: whole while it is selected, else a line. @param {Item} item @param {List} list */
function card(item, list) {
  const { question, closed } = item;
  const isSelected = () => list.selected() === item;
  let wasSelected = false;
  // A question that was opened once stays, hidden, with what was written into its form.
  const whole = () => {
    wasSelected ||= isSelected();
    return wasSelected ? ["whole"] : [];
  };
  const body = h(
    "div.whole",
    { shown: isSelected, ".inert": () => closed() !== "" },
    each(whole, String, () => wholeOf(item, list, isSelected)),
  );
  const see = h("a", { href: callPath(question.call) }, "See the call");
  const after = h("p.closed", { role: "status" }, closed, " ", see);
  effect(() => {
    const isClosed = closed() !== "";
    after.hidden = !isClosed || !isSelected();
    // Focus inside the closed card moves to its link, not to the top of the page.
    if (isClosed && body.matches(":focus-within")) see.focus({ preventScroll: true });
  });
  const about = { "data-selected": isSelected, "data-closed": () => closed() !== "" };
  const node = h("div.card", about, body, after, questionLine(item, list));
  effect(() => void (isSelected() && node.scrollIntoView({ block: "nearest" })));
  return node;
}

/** @param {Item} item @param {List} list @param {() => boolean} isSelected */
function wholeOf(item, list, isSelected) {
  const { question, closed } = item;
  return wholeQuestion(question, {
    place: () => placeOf(item, list),
    isSelected,
    earlier: earlierOf(item),
    onClosed: (error) => closed.set(closedWords(error)),
    ...(question.kind === "approval" && { refuse: focusRefusal }),
  });
}

/** The error of an answer that came too late. @param {any} error */
function closedWords({ message, more }) {
  if (more.question?.answer) return endWords(more.question.answer);
  return more.question ? "It has changed; see it anew below." : message;
}

/** @param {Item} item @param {List} list */
function questionLine(item, list) {
  const { question, closed } = item;
  const { id, tool, destructive, expires } = question;
  const onclick = (/** @type {Event} */ event) => {
    event.preventDefault();
    select(item);
  };
  const isHere = () => list.selected() === item;
  return h(
    "div.question-line",
    { shown: () => !isHere() },
    h("span.faint", () => placeOf(item, list)),
    h("a.tool-name", { href: `/inbox?question=${encodeURIComponent(id)}`, onclick }, safeText(tool, 100)),
    destructive && h("span.tag.bad", "destructive"),
    h("span.dim.cut.grow", () => closed() || questionSummary(question)),
    h("span.t-you.time-left", { shown: () => !closed() }, frozenRing(), () => formatLeft(expires - tick())),
    each(
      () => (closed() || isHere() ? [] : ["open"]),
      String,
      () => answerButtons(question),
    ),
  );
}

/** As "1 of 3". @param {Item} item @param {List} list */
const placeOf = (item, { items }) => `${items().indexOf(item) + 1} of ${items().length}`;

/** @param {Item} item @param {List} list */
function context(item, list) {
  const { question, closed } = item;
  const clocks = () => {
    const call = store.get(question.call)?.call();
    return call ? readClocks(call, now()) : null;
  };
  const onClosed = (/** @type {any} */ error) => closed.set(closedWords(error));
  return h(
    "div",
    { ".inert": () => closed() !== "" },
    questionContext(question, clocks, earlierOf(item), { onClosed }),
    keyHelp(list),
  );
}

/** @type {WeakMap<Item, import("../components/question/earlier.js").Earlier>} */
const earlierAnswersOf = new WeakMap();

/** The earlier answers for an item, asked for once. @param {Item} item */
function earlierOf(item) {
  const found = earlierAnswersOf.get(item) ?? earlierAnswers(item.question);
  earlierAnswersOf.set(item, found);
  return found;
}

/** The keys that act here. @param {List} list */
function keyHelp({ items, selected }) {
  const key = (/** @type {string} */ name, /** @type {string} */ words, /** @type {() => unknown} */ shown) =>
    h("span", { shown }, h("kbd", name), ` ${words}`);
  const isOf = (/** @type {string} */ kind) => () => selected()?.question.kind === kind;
  return h(
    "section.key-help",
    h("h3", "Keys"),
    h(
      "p",
      key("y", "run", isOf("approval")),
      key("n", "reject", isOf("approval")),
      key("n", "decline", () => !isOf("approval")()),
      key("e", "fill in", isOf("form")),
      key("j", "next", () => items().length > 1),
      key("k", "previous", () => items().length > 1),
    ),
  );
}
