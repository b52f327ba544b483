// keepVisit and keptVisit: what a view shows when it is left, found again when the person goes back to it.

import { route } from "../router.js";
import { effect, onCleanup } from "../signal.js";
import { setTimer } from "../time.js";

const MOST = 20; // visits that are kept
/** @type {Map<string, {scroll: number, state: any}>} */
const visits = new Map();
let count = 0;

/** What was kept of this entry of the browser's history; null if it is a new one. @returns {{scroll: number, state: any} | null} */
export const keptVisit = () => visits.get(history.state?.visit) ?? null;

/**
 * Keep what a view shows when it is left, and where it was scrolled to.
 * @param {string} view its name; the address may change while it is shown
 * @param {() => any} state
 */
export function keepVisit(view, state) {
  let id = "";
  let scroll = scrollY;
  const isHere = () => route.peek().view === view;
  const note = () => {
    if (isHere()) scroll = scrollY;
  };
  effect(() => {
    if (route().view === view) id = entryId();
  });
  addEventListener("scroll", note, { passive: true });
  onCleanup(() => {
    removeEventListener("scroll", note);
    visits.delete(id);
    visits.set(id, { scroll, state: state() });
    for (const old of visits.keys()) if (visits.size > MOST) visits.delete(old);
  });
}

/** Scroll to where the view was, once the console has scrolled to the top of a new view. @param {number} top */
export const restoreScroll = (top) => setTimer(0, () => scrollTo(0, top));

/** The name of this entry of the browser's history. @returns {string} */
function entryId() {
  const known = history.state?.visit;
  if (known) return known;
  count += 1;
  const id = `${performance.timeOrigin}.${count}`;
  history.replaceState({ ...history.state, visit: id }, "");
  return id;
}
