// wholeQuestion: one open question with everything a person must know to answer it, and its buttons in one order:
// the secondary ones left, the primary one right.

import { h } from "../../lib/dom.js";
import { formatLeft, safeText } from "../../lib/format.js";
import { keyHint } from "../../lib/keys.js";
import { callPath } from "../../lib/router.js";
import { tick } from "../../lib/time.js";
import { frozenRing } from "../marks/clocks.js";
import { actionButton, openButton } from "../controls.js";
import { floatingPanel } from "../floating_panel.js";
import { approvalBody } from "./approval.js";
import { earlierAnswers } from "./earlier.js";
import { fillForm } from "./fill.js";
import { refuseForm, refuseWord } from "./refuse.js";
import { sender } from "./send.js";

const MAX_TITLE_CHARS = 120; // a longer message of a tool is a paragraph
/** @type {Record<string, string>} */
const KIND_TITLES = { form: "A question", url: "A page to visit" };

/**
 * `place`: as "1 of 3"; `refuse`: opens the rejection elsewhere; `earlier`: answers about the same tool.
 * @typedef {import("./send.js").Outcomes & {place?: () => string, isSelected?: () => boolean,
 *   refuse?: () => void, earlier?: import("./earlier.js").Earlier}} Options
 */

/** @param {QuestionView} question @param {Options} [options] */
export function wholeQuestion(question, options = {}) {
  const { id, kind, tool, message } = question;
  const { place, isSelected = () => false, earlier = earlierAnswers(question) } = options;
  const send = sender(question, options);
  const refuse = refuseButton(question, send, isSelected, options.refuse);
  const skip = actionButton("Skip", () => send({ action: "cancel" }), {
    title: "The tool is told that nobody answered",
  });
  const titled = kind === "form" && message.length <= MAX_TITLE_CHARS && !message.includes("\n") ? message : "";
  const title =
    kind === "approval"
      ? `Run ${safeText(tool, 200)}?`
      : safeText(titled) || (KIND_TITLES[kind] ?? "A question for the caller");
  const body =
    kind === "approval"
      ? approvalBody(question, send, refuse, { isSelected, earlier })
      : fillForm(titled ? { ...question, message: "" } : question, send, [skip, refuse]);
  return h("div.question", { "data-question": id }, questionHead(question, place), h("h2", title), body);
}

/** Its place, whose call it is, and the time to answer. @param {QuestionView} question @param {(() => string) | undefined} place */
function questionHead({ tool, server, caller, call, source, to, expires }, place) {
  const owner = safeText(source ? source.replace(":", " ") : server, 100);
  const asker = `${safeText(caller, 100)}${to === "caller" ? ", who is asked as well" : ""}`;
  const left = () => `${formatLeft(expires - tick())} to answer`;
  return h(
    "div.question-head",
    place && h("span.faint", place),
    h("span.dim", h("a", { href: callPath(call) }, safeText(tool, 200)), ` of ${owner}, asked by ${asker}`),
    h("span.t-you.time-left", frozenRing(), h("b.mid", left)),
  );
}

/** @param {QuestionView} question @param {import("./send.js").Send} send @param {() => boolean} isSelected @param {(() => void) | undefined} elsewhere */
function refuseButton(question, send, isSelected, elsewhere) {
  const word = refuseWord(question);
  const panel = floatingPanel(`${word} ${safeText(question.tool, 100)}`, () => refuseForm(question, send));
  const about = { "data-act": "refuse", "aria-keyshortcuts": "n" };
  return openButton(`${word}…`, elsewhere ?? panel, about, keyHint("n", isSelected));
}
