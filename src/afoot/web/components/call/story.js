// callStory: every message, question and log line of a call and of the calls below it, in order of time. What repeats is
// folded; chips choose one kind. The newest lines of a long story are shown first, and more on request.

import { each, h } from "../../lib/dom.js";
import { countLines, foldLines, storyLines, unfoldLines } from "../../lib/call/story_lines.js";
import { formatCount, formatSpan, safeText } from "../../lib/format.js";
import { errorMessage } from "../../lib/resource.js";
import { computed, signal } from "../../lib/signal.js";
import { icon } from "../marks/icon.js";
import { stateIcon } from "../marks/state_icon.js";
import { wireMessages } from "./wire.js";

/** @typedef {import("../../lib/call/story_lines.js").Line} Line */
/** @typedef {import("../../lib/call/story_lines.js").LineMark} LineMark */

const PAGE_LINES = 200; // shown at first, and more with each press
const CHIPS = /** @type {const} */ ([
  ["all", "All"],
  ["message", "Messages"],
  ["question", "Questions"],
  ["log", "Log"],
  ["wire", "Wire"],
]);
/** Marks that are no state of a call. @type {Record<string, () => Element>} */
const OWN_MARKS = {
  dot: () => h("i.dot"),
  info: () => icon("info", "s"),
  answer: () => icon("answer", "s t-you"),
};

/**
 * The whole story with its chips.
 * @param {() => Story | null} story
 * @param {() => string} problem why it could not be read
 * @param {{id: string, opened: number}} call
 */
export function callStory(story, problem, call) {
  const chosen = signal(/** @type {(typeof CHIPS)[number][0]} */ ("all"));
  const lines = computed(() => (story() ? storyLines(/** @type {Story} */ (story())) : []));
  const counts = computed(() => /** @type {Record<string, number>} */ (countLines(lines())));
  const shown = computed(() => {
    const kind = chosen();
    if (kind === "wire") return [];
    return kind === "all" ? folded(story(), lines()) : lines().filter((line) => line.kind === kind);
  });
  const chip = (/** @type {(typeof CHIPS)[number]} */ [kind, title]) =>
    h(
      "button.chip",
      { type: "button", "aria-pressed": () => String(chosen() === kind), onclick: () => chosen.set(kind) },
      title,
      h("b", { shown: () => kind !== "wire" || story()?.wire != null }, () =>
        formatCount(kind === "wire" ? (story()?.wire ?? 0) : counts()[kind]),
      ),
    );
  const wire = () => (chosen() === "wire" ? [{ id: call.id }] : []);
  return h(
    "section.card.call-story",
    h(
      "header.card-head",
      h("h2", "Story"),
      h("span.chips", { role: "group", "aria-label": "Show" }, ...CHIPS.map(chip)),
    ),
    errorMessage(problem),
    leftOutNote(story),
    storyList(shown, call.opened),
    h(
      "p.story-note",
      { shown: () => story() && !shown().length && chosen() !== "wire" },
      "Nothing of this kind was said.",
    ),
    each(wire, "id", () => wireMessages(call)),
  );
}

/**
 * The newest lines of a story, for a narrow place.
 * @param {() => Story | null} story
 * @param {{opened: number}} call
 * @param {number} most
 */
export function storyExcerpt(story, { opened }, most) {
  const lines = computed(() => folded(story(), story() ? storyLines(/** @type {Story} */ (story())) : []).slice(-most));
  return storyList(lines, opened);
}

/** @param {Story | null} story @param {Line[]} lines */
function folded(story, lines) {
  const live = new Set(story?.calls.filter(({ finished }) => finished === null).map(({ id }) => id));
  return foldLines(lines, (call) => live.has(call));
}

/** @param {() => Line[]} lines @param {number} opened */
function storyList(lines, opened) {
  const open = signal(/** @type {Set<string>} */ (new Set()));
  const limit = signal(PAGE_LINES);
  const toggle = (/** @type {string} */ key) => {
    if (!open.peek().delete(key)) open.peek().add(key);
    open.touch();
  };
  const all = computed(() => unfoldLines(lines(), open()));
  /** @type {Map<string, Line>} */ let drawn = new Map();
  const visible = computed(() => {
    const next = all().slice(Math.max(0, all().length - limit()));
    // Lines are read anew with each change of a live call; those that are the same need not be drawn again.
    const kept = next.map((one) => (isSame(drawn.get(one.key), one) ? /** @type {Line} */ (drawn.get(one.key)) : one));
    drawn = new Map(kept.map((one) => [one.key, one]));
    return kept;
  });
  const hidden = () => all().length - visible().length;
  const more = h(
    "button.quiet",
    { type: "button", shown: hidden, onclick: () => limit.set(limit.peek() + 1000) },
    () => `Show ${formatCount(Math.min(1000, hidden()))} earlier lines`,
  );
  const make = (/** @type {Line} */ _, /** @type {() => Line} */ line) => lineElement(line, opened, open, toggle);
  return h("div.story", more, h("ol", each(visible, "key", make)));
}

/** @param {Line | undefined} before @param {Line} now */
const isSame = (before, now) =>
  before !== undefined &&
  before.words === now.words &&
  before.subject === now.subject &&
  before.code === now.code &&
  before.note === now.note &&
  before.folded.length === now.folded.length;

/**
 * @param {() => Line} line
 * @param {number} opened
 * @param {() => Set<string>} open
 * @param {(key: string) => void} toggle
 */
function lineElement(line, opened, open, toggle) {
  const { key, at, mark, kind } = line();
  const isFold = () => line().folded.length > 0;
  const expand = { type: "button", "aria-expanded": () => String(open().has(key)), onclick: () => toggle(key) };
  const isWhole = key.startsWith("fold "); // the line is nothing but what it hides
  const text =
    (/** @type {"subject" | "words" | "code" | "note"} */ part, most = 1000) =>
    () =>
      safeText(line()[part], most);
  const words = isWhole
    ? h("button.fold-line", expand, text("words"))
    : h(
        "span",
        h("b", { shown: text("subject") }, text("subject"), " "),
        h("span", { shown: text("words") }, text("words"), " "),
        h("code", { shown: text("code") }, text("code", 4000)),
        h("span.faint", { shown: () => line().note && !isFold() }, " ", text("note")),
        kind === "log" && h("button.fold-line.alike", { ...expand, shown: isFold }, text("note")),
      );
  return h("li", { "data-kind": kind }, h("time", formatSpan(at - opened)), markOf(mark), words);
}

/** @param {LineMark} mark */
function markOf(mark) {
  if (Object.hasOwn(OWN_MARKS, mark)) return h("span.story-mark", { "aria-hidden": "true" }, OWN_MARKS[mark]());
  return stateIcon(/** @type {import("../../lib/state.js").CallState} */ (mark), null);
}

/** @param {() => Story | null} story */
function leftOutNote(story) {
  const words = () => {
    const { left_out = 0, facts_left_out = 0 } = story() ?? {};
    const parts = [
      left_out && `${formatCount(left_out)} calls`,
      facts_left_out && `${formatCount(facts_left_out)} facts`,
    ];
    return parts.filter(Boolean).join(" and ");
  };
  return h("p.story-note", { shown: words }, () => `Too long to show all of it: ${words()} are left out.`);
}
