// mediaMatches: whether the window is as a media query says, as a signal.

import { onCleanup, signal } from "./signal.js";

/** @param {string} query @returns {() => boolean} */
export function mediaMatches(query) {
  const list = matchMedia(query);
  const matches = signal(list.matches);
  const update = () => matches.set(list.matches);
  list.addEventListener("change", update);
  onCleanup(() => list.removeEventListener("change", update));
  return matches;
}
