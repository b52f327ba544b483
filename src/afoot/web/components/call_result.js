// The finished parts of a call: its result, its failure, and its answered questions.

import { h } from "../lib/dom.js";
import { formatDuration, formatProgress, formatTime, joinNonEmpty, safeText } from "../lib/format.js";
import { contentBlocks, collapsible, textBlock, jsonTree } from "./content.js";

/** A section of a view under its heading. @param {string} title @param {...Child} children */
export const section = (title, ...children) => h("div.sheet", h("h2", title), ...children);

/** The result of a tool. @param {NonNullable<CallView["result"]>} result */
export function toolResult({ content: blocks, structured, is_error: isError }) {
  const warning = isError && h("p.problem", "The tool says that this is an error.");
  const isRepeated = blocks.length === 1 && blocks[0].text === JSON.stringify(structured); // the text repeats the structured content
  const structuredPart = structured !== undefined && h("div", h("h3", "Structured content"), jsonTree(structured));
  return h("div", warning, !isRepeated && contentBlocks(blocks), structuredPart);
}

/** The failure of a call, and its last progress. @param {FailureView} failure */
export function failureDetails({
  message,
  category,
  code,
  clock,
  last,
  elapsed_s,
  side_effects,
  retryable,
  trace,
  hint,
  ...more
}) {
  const after = more.retry_after_s;
  const rows = {
    kind: joinNonEmpty(category, code !== category && code).replaceAll("_", " "),
    "clock that fired": clock,
    "it had run for": formatDuration(elapsed_s),
    "how far it got": last && joinNonEmpty(formatProgress({ latest: last }), last.message),
    "side effects": side_effects,
    "may be tried again": retryable ? joinNonEmpty("yes", after && `after ${formatDuration(after)}`) : "no",
    "what you can do": hint,
  };
  const shown = Object.entries(rows).filter(([, value]) => value);
  const pairs = shown.flatMap(([name, value]) => [h("dt", name), h("dd", safeText(value))]);
  return h("div", textBlock(message), h("dl.pairs", ...pairs), trace && collapsible(["Trace"], () => textBlock(trace)));
}

/** Closed questions, and who answered them. @param {QuestionView[]} settled */
export function answeredQuestions(settled) {
  const one = (/** @type {QuestionView} */ { message, answer, kind }) => {
    const more = answer?.content !== undefined && jsonTree(answer.content);
    const summary = answer ? `${answerSummary(answer)}, ${formatTime(answer.at)}` : "closed without an answer";
    return h("li", h("b", safeText(message || kind, 1000)), h("p", summary), more);
  };
  return h("ul.answers", ...settled.map(one));
}

/** An answer in words: the decision, by whom, and where. @param {AnswerView} answer */
export function answerSummary({ action, content, by, surface, who }) {
  const surfaceText = surface && surface !== by && `in the ${surface.replace("api", "API")}`;
  return safeText(`${content?.decision ?? action}, by ${joinNonEmpty(by, surfaceText, who)}`, 300);
}
