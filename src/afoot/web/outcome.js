// What a call gave, what went wrong, and who answered what: the parts of a call that do not move any more.

import { h } from "./dom.js";
import { howFar, lasted, visible, when } from "./parts.js";
import { content, plain, structure } from "./value.js";

/** A part of a view under its heading. @param {string} title @param {...import("./dom.js").Child} children */
export const sheet = (title, ...children) => h("div", { class: "sheet" }, h("h2", null, title), ...children);

/** What a tool returned. @param {any} result */
export function given({ content: blocks, structured, is_error: isError }) {
  const warning = isError && h("p", { class: "problem" }, "The tool says that this is an error.");
  const more = structured !== undefined && h("h3", null, "Structured content");
  return h("div", null, warning, content(blocks), more, more && structure(structured));
}

/** Why it did not end well, and how far it had come. @param {any} failure */
export function wrong(failure) {
  const { message, category, code, clock, last, side_effects: effects, trace } = failure;
  const far = last && [howFar({ latest: last }), last.message].filter(Boolean).join(", ");
  const rows = {
    kind: category === code ? code : `${category}, ${code}`,
    "clock that fired": clock,
    "it had run for": lasted(failure.elapsed_s),
    "how far it got": far,
    "side effects": effects,
    "may be tried again": failure.retryable ? "yes" : "no",
  };
  const more = trace && h("details", null, h("summary", null, "Trace"), plain(trace));
  return h("div", null, plain(message), pairs(rows), more);
}

/** Questions that are open no more, and who answered them. @param {any[]} settled */
export function answers(settled) {
  const one = (/** @type {any} */ { message, answer, kind }) => {
    const what =
      answer && `${answer.content?.decision ?? answer.action}, by ${answer.by}, ${when(answer.at)}`;
    const more = answer?.content !== undefined && structure(answer.content);
    const words = h("p", { class: "said" }, visible(what || "closed without an answer"));
    return h("li", null, h("b", { class: "said" }, visible(message || kind, 1000)), words, more);
  };
  return h("ul", { class: "answers" }, ...settled.map(one));
}

/** The clocks of a call. @param {Record<string, unknown>} limits */
export const clocks = ({ patient: _, ...limits }) =>
  pairs(
    Object.fromEntries(
      Object.entries(limits).map(([name, s]) => [
        LIMITS[name] ?? name,
        s === null ? "none" : lasted(Number(s)),
      ]),
    ),
  );

const LIMITS = /** @type {Record<string, string>} */ ({
  idle_s: "without a report",
  ceiling_s: "in all",
  answer_s: "for an answer",
  queue_s: "in the queue",
  start_s: "for what it runs on to start",
  grace_s: "to stop when told to",
});

/** Names and values; what has no value is left out. @param {Record<string, any>} rows */
function pairs(rows) {
  const shown = Object.entries(rows).filter(([, value]) => value);
  const cells = shown.flatMap(([name, value]) => [
    h("dt", null, name),
    h("dd", { class: "said" }, visible(value)),
  ]);
  return h("dl", { class: "pairs" }, ...cells);
}
