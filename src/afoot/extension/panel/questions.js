// The open questions: nothing is decided by a click on a card that has just moved under the pointer, nor by a key before a
// person can have read it.

import { narrowQuestion } from "../shared/components/narrow/narrow_question.js";
import { each } from "../shared/lib/dom.js";
import { tick } from "../shared/lib/time.js";

/** @typedef {ReturnType<typeof import("./state.js").panelState>} Panel */
/** @typedef {import("./state.js").SendToWorker} SendToWorker */

const STILL_MS = 500;
const CARD = ".narrow-question";
/** @type {WeakMap<Element, {top: number, since: number}>} */
const cardPositions = new WeakMap();

/**
 * A card for each open question.
 * @param {Panel} panel
 * @param {SendToWorker} send
 */
export const questionCards = ({ state, decisions, isOnline }, send) =>
  each(
    () => state().questions,
    "id",
    ({ id }, now) =>
      narrowQuestion(now(), {
        at: tick,
        canAllow: true,
        hasKeys: true,
        isBusy: () => !isOnline() || decisions.isSending(id),
        error: () => decisions.error(id),
        answer(given) {
          decisions.begin(id);
          send("answer", { question: id, ...given });
        },
      }),
  );

/** Take note of where each card stands. Call it after every change. */
export const noteCardPositions = () => document.querySelectorAll(CARD).forEach(hasStoodStill);

/** Ignore clicks on cards that have just moved, and let y and n decide the first card, or the one with focus. */
export function startDeciding() {
  document.addEventListener(
    "click",
    (event) => {
      const card = /** @type {Element} */ (event.target).closest(CARD);
      if (event.detail === 0 || !card || hasStoodStill(card)) return; // 0: a key was pressed
      event.preventDefault();
      event.stopPropagation();
    },
    true,
  );
  document.addEventListener("keydown", (event) => {
    const isTyping = /** @type {Element} */ (event.target).matches("input, textarea, select");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const card = document.activeElement?.closest(CARD) ?? document.querySelector(CARD);
    const button = { y: "[data-yes]", n: "button.no" }[event.key];
    if (!card || !button || !hasStoodStill(card)) return;
    event.preventDefault();
    /** @type {HTMLButtonElement | null} */ (card.querySelector(button))?.click();
  });
}

/**
 * Whether a card has stood still for a moment.
 * @param {Element} card
 * @returns {boolean}
 */
function hasStoodStill(card) {
  const top = /** @type {HTMLElement} */ (card).offsetTop;
  const now = performance.now();
  const known = cardPositions.get(card);
  const place = known?.top === top ? known : { top, since: now };
  cardPositions.set(card, place);
  return now - place.since >= STILL_MS;
}
