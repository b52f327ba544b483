// The gateway's clock as this page knows it, and the only timers of the console.

import { signal } from "./signal.js";

const CLOCK_JUMP_S = 2; // more than a slow network explains: the machine slept, or the gateway did not run
const TICK_MS = 100;
// The offset falls only after so many messages and so much time: one late message says nothing.
const WINDOW_MESSAGES = 20;
const WINDOW_S = 5;

// The page's own clock is not asked for the date: somebody may have set it wrong, or set it again meanwhile.
const pageClock = () => performance.now() / 1000;

let offset = Date.now() / 1000 - pageClock(); // until the gateway has sent its time
let isSynced = false;
let isRunning = () => true;
let recent = { since: 0, messages: 0, best: -Infinity };

/** The gateway's time now, with fractions. */
export const preciseNow = () => pageClock() + offset;

/** The gateway's time in seconds, updated once a second. */
export const now = signal(preciseNow());

/** The gateway's time, updated ten times a second: for the clocks of calls. */
export const tick = signal(preciseNow());

/**
 * Set the clock by a time that the gateway sent. Messages arrive late, never early, so of two offsets the larger one is
 * better. It falls again if the gateway's clock stood still, as it does while the gateway does not run.
 * @param {number} server seconds since 1970
 */
export function syncClock(server) {
  const here = pageClock();
  const found = server - here;
  recent.messages += 1;
  recent.best = Math.max(recent.best, found);
  const isEnough = recent.messages >= WINDOW_MESSAGES && here - recent.since >= WINDOW_S;
  const hasJumped = !isSynced || Math.abs(offset - found) > CLOCK_JUMP_S;
  if (hasJumped || found > offset) offset = found;
  else if (isEnough) offset = recent.best;
  else return;
  isSynced = true;
  recent = { since: here, messages: 0, best: -Infinity };
  if (hasJumped) showTime(); // what the message brings is never shown at the time that was wrong
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

/** The gateway's time as clocks show it now: it stands still while the gateway cannot be reached. */
export const shownNow = () => (isRunning() ? preciseNow() : tick.peek());

/** Start the clock; it stands still while the gateway cannot be reached. @param {() => boolean} isOnline */
export function startClock(isOnline) {
  isRunning = isOnline;
  const step = () => {
    if (isOnline()) showTime();
  };
  setInterval(step, TICK_MS);
}

function showTime() {
  const at = preciseNow();
  tick.set(at);
  if (Math.floor(at) !== Math.floor(now.peek())) now.set(at);
}
