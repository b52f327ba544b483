// watchStillness: whether an element has stood still for half a second, so that nobody presses a button that has just
// appeared or moved under the pointer.

import { onCleanup, signal } from "../lib/signal.js";
import { setTimer } from "../lib/time.js";

const STILL_MS = 500;
const CHECK_INTERVAL_MS = 100;

/** @typedef {{place: string, since: number, isStill: Signal<boolean>}} Watched */

/** @type {Map<Element, Watched>} */ const watched = new Map(); // one timer reads the layout for all of them
let stopTimer = () => {};

/**
 * Watch an element until the current scope ends.
 * @param {Element} element
 * @returns {() => boolean}
 */
export function watchStillness(element) {
  const isStill = signal(false);
  watched.set(element, { place: "", since: performance.now(), isStill });
  if (watched.size === 1) watchAll();
  onCleanup(() => {
    watched.delete(element);
    if (!watched.size) stopTimer();
  });
  return isStill;
}

/** Whether a watched element has stood still up to this moment. @param {Element} element */
export function isStillNow(element) {
  const one = watched.get(element);
  if (one) check(element, one);
  return one?.isStill.peek() ?? false;
}

function watchAll() {
  watched.forEach((one, element) => check(element, one));
  stopTimer = setTimer(CHECK_INTERVAL_MS, watchAll);
}

/** @param {Element} element @param {Watched} one */
function check(element, one) {
  const place = placeOf(element);
  if (place !== one.place) {
    one.place = place;
    one.since = performance.now();
  }
  one.isStill.set(place !== "" && performance.now() - one.since >= STILL_MS);
}

/** Its place in the window; empty where it is not seen, so that the layout of what is off screen is not computed. @param {Element} element */
function placeOf(element) {
  if (!element.checkVisibility({ contentVisibilityAuto: true })) return "";
  const { x, y, width, height } = element.getBoundingClientRect();
  return [x, y, width, height].join();
}
