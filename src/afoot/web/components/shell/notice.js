// tell: says in a corner what went wrong with something that has no place of its own, such as a key.

import { h } from "../../lib/dom.js";
import { safeText } from "../../lib/format.js";
import { signal } from "../../lib/signal.js";
import { setTimer } from "../../lib/time.js";

const SHOWN_MS = 6_000;

const words = signal("");
let stopTimer = () => {};

/** Say it for a few seconds. @param {string} text */
export function tell(text) {
  stopTimer();
  words.set(text);
  stopTimer = setTimer(SHOWN_MS, () => words.set(""));
}

/** The place where it is said. */
export const noticePlace = () =>
  h("div.notice", { shown: words }, () => (words() ? h("p", { role: "alert" }, safeText(words(), 400)) : null));
