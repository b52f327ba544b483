// setTimer: timers that the carrier wakes, because the timers of a hidden page run once a minute.

/** @typedef {{due: number, then: () => void}} Timer */

/** @type {Set<Timer>} */
const timers = new Set();
let nextWakeAt = Infinity; // when the earliest requested wake is due
let wakeRequests = 0;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let fallbackTimer; // used while no carrier can be reached

/**
 * Call a function after so many milliseconds; returns a function that cancels.
 * @param {number} ms @param {() => void} then
 */
function setTimer(ms, then) {
  const timer = { due: performance.now() + ms, then };
  if (ms === Infinity) return () => {};
  timers.add(timer);
  if (timer.due < nextWakeAt) requestWake();
  return () => {
    timers.delete(timer);
    if (timers.size === 0) requestWake(); // clears the fallback timer
  };
}

/** Ask the carrier to wake us for the earliest timer; without a carrier a timer of the page is used. */
function requestWake() {
  clearTimeout(fallbackTimer);
  nextWakeAt = Math.min(Infinity, ...[...timers].map((timer) => timer.due));
  if (nextWakeAt === Infinity) return;
  const ms = Math.max(0, nextWakeAt - performance.now());
  const id = `w${++wakeRequests}`;
  if (!runtime.send?.("wake", { id, ms })) fallbackTimer = setTimeout(fireTimers, ms);
}

/** Fire the timers that are due. An early or extra wake does no harm. */
function fireTimers() {
  nextWakeAt = Infinity;
  const now = performance.now() + 1;
  for (const timer of [...timers]) {
    if (timer.due <= now && timers.delete(timer)) timer.then();
  }
  if (nextWakeAt === Infinity) requestWake();
}

/** Request a wake again: the carrier has changed, and the old one will not wake us. */
function renewTimers() {
  nextWakeAt = Infinity;
  requestWake();
}
