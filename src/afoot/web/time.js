// The gateway's clock as this page knows it, and the only timers.

import { signal } from "./signal.js";

const JUMP_S = 2; // a difference that no slow network explains: the laptop slept, or a clock was set
let offset = 0;

/** The gateway's time in seconds; it goes on once a second. */
export const now = signal(Date.now() / 1000);

/** The gateway's time, exactly. */
export const exactly = () => Date.now() / 1000 + offset;

/** Take in what time it is at the gateway. @param {number} server seconds since 1970 */
export function sync(server) {
  const found = server - Date.now() / 1000;
  // What is underway takes time, so of two that are near each other the later is the better one.
  if (found > offset || offset - found > JUMP_S) offset = found;
}

/** Do something later. @param {number} ms @param {() => void} then @returns {() => void} calls it off */
export function after(ms, then) {
  const timer = setTimeout(then, ms);
  return () => clearTimeout(timer);
}

/** Let the clock go. */
export const tick = () => void setInterval(() => now.set(exactly()), 1000);
