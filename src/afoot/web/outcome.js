// What a call gave, what went wrong, and who answered what: the parts of a call that do not move any more.

import { h } from "./dom.js";
import { howFar, lasted, listed, visible, when } from "./parts.js";
import { content, folded, plain, structure } from "./value.js";

/** A part of a view under its heading. @param {string} title @param {...Child} children */
export const sheet = (title, ...children) => h("div.sheet", h("h2", title), ...children);

/** What a tool returned. @param {NonNullable<CallView["result"]>} result */
export function given({ content: blocks, structured, is_error: isError }) {
  const warning = isError && h("p.problem", "The tool says that this is an error.");
  const isTwice = blocks.length === 1 && blocks[0].text === JSON.stringify(structured); // the same once more, as text
  const more = structured !== undefined && h("div", h("h3", "Structured content"), structure(structured));
  return h("div", warning, !isTwice && content(blocks), more);
}

/** Why it did not end well, and how far it had come. @param {FailureView} failure */
export function wrong({ message, category, code, clock, last, elapsed_s, side_effects, retryable, trace, ...more }) {
  const after = more.retry_after_s;
  const rows = {
    kind: listed(category, code !== category && code).replaceAll("_", " "),
    "clock that fired": clock,
    "it had run for": lasted(elapsed_s),
    "how far it got": last && listed(howFar({ latest: last }), last.message),
    "side effects": side_effects,
    "may be tried again": retryable ? listed("yes", after && `after ${lasted(after)}`) : "no",
  };
  const shown = Object.entries(rows).filter(([, value]) => value);
  const pairs = shown.flatMap(([name, value]) => [h("dt", name), h("dd", visible(value))]);
  return h("div", plain(message), h("dl.pairs", ...pairs), trace && folded(["Trace"], () => plain(trace)));
}

/** Questions that are open no more, and who answered them. @param {QuestionView[]} settled */
export function answers(settled) {
  const one = (/** @type {QuestionView} */ { message, answer, kind }) => {
    const more = answer?.content !== undefined && structure(answer.content);
    const words = answer ? `${verdict(answer)}, ${when(answer.at)}` : "closed without an answer";
    return h("li", h("b", visible(message || kind, 1000)), h("p", words), more);
  };
  return h("ul.answers", ...settled.map(one));
}

/** What was answered, by whom, and where. @param {AnswerView} answer */
export function verdict({ action, content, by, surface, who }) {
  const where = surface && surface !== by && `in the ${surface.replace("api", "API")}`;
  return visible(`${content?.decision ?? action}, by ${listed(by, where, who)}`, 300);
}
