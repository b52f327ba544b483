// The gateway's clock as this page knows it, and the only timers of the console.

import { signal } from "./signal.js";

const CLOCK_JUMP_S = 2; // more than a slow network explains: the machine slept, or a clock was set
let offset = 0;

/** The gateway's time in seconds, updated once a second. */
export const now = signal(Date.now() / 1000);

/** The gateway's time now, with fractions. */
export const preciseNow = () => Date.now() / 1000 + offset;

/** Set the clock by a time that the gateway sent. @param {number} server seconds since 1970 */
export function syncClock(server) {
  const found = server - Date.now() / 1000;
  // Messages arrive late, never early, so of two similar offsets the larger one is better.
  if (found > offset || offset - found > CLOCK_JUMP_S) offset = found;
}

/**
 * Call a function later.
 * @param {number} ms
 * @param {() => void} then
 * @returns {() => void} cancels it
 */
export function setTimer(ms, then) {
  const timer = setTimeout(then, ms);
  return () => clearTimeout(timer);
}

/** Start the clock; it stands still while the gateway cannot be reached. @param {() => boolean} isOnline */
export const startClock = (isOnline) => void setInterval(() => isOnline() && now.set(preciseNow()), 1000);
