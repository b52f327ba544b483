// callFailure: why a call did not end well, once and whole, and how far it had come.

import { h } from "../../lib/dom.js";
import { formatProgress, formatSpan, joinNonEmpty, safeText } from "../../lib/format.js";
import { collapsible, textBlock } from "../content.js";
import { copyButton } from "../controls.js";

/** @param {FailureView} failure */
export function callFailure(failure) {
  const {
    message,
    category,
    code,
    clock,
    last,
    elapsed_s,
    side_effects,
    retryable,
    retry_after_s: after,
    trace,
    hint,
  } = failure;
  const rows = {
    Kind: joinNonEmpty(category, code !== category && code).replaceAll("_", " "),
    "Limit that ended it": clock,
    "It had run for": formatSpan(elapsed_s),
    "How far it got": last && joinNonEmpty(formatProgress({ latest: last }), last.message),
    "Side effects": side_effects,
    "May be tried again": retryable ? joinNonEmpty("yes", after && `after ${formatSpan(after)}`) : "no",
    "You can": hint,
  };
  const pairs = Object.entries(rows)
    .filter(([, value]) => value)
    .map(([name, value]) => h("div", h("dt", name), h("dd", safeText(value))));
  return h(
    "section.card.call-failure",
    h("header.card-head", h("h2", "What went wrong"), h("span.push", copyButton(message, { class: "small" }))),
    textBlock(message),
    h("dl.details", ...pairs),
    trace && collapsible(["Trace"], () => textBlock(trace)),
  );
}
