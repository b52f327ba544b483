// Alarms that are rung by the carrier, as the timers of a hidden page run once a minute.

/** @typedef {{due: number, then: () => void}} Alarm */

/** @type {Set<Alarm>} */
const alarms = new Set();
let nextRing = Infinity; // when the earliest wake that was asked for is due
let wakesAsked = 0;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let ownTimer; // where no carrier can be reached

/**
 * Call a function in so many milliseconds; gives back what calls it off.
 * @param {number} ms @param {() => void} then
 */
function after(ms, then) {
  const alarm = { due: performance.now() + ms, then };
  if (ms === Infinity) return () => {};
  alarms.add(alarm);
  if (alarm.due < nextRing) askToBeWoken();
  return () => {
    alarms.delete(alarm);
    if (alarms.size === 0) askToBeWoken(); // a timer of ours need not go on
  };
}

/** Ask to be woken for the earliest alarm; where no carrier can be reached, a timer of the page has to do. */
function askToBeWoken() {
  clearTimeout(ownTimer);
  nextRing = Math.min(Infinity, ...[...alarms].map((alarm) => alarm.due));
  if (nextRing === Infinity) return;
  const ms = Math.max(0, nextRing - performance.now());
  const id = `w${++wakesAsked}`;
  if (!surroundings.send?.("wake", { id, ms })) ownTimer = setTimeout(ringAlarms, ms);
}

/** Ring what is due. Being woken too early or too often harms nothing. */
function ringAlarms() {
  nextRing = Infinity;
  const now = performance.now() + 1;
  for (const alarm of [...alarms]) {
    if (alarm.due <= now && alarms.delete(alarm)) alarm.then();
  }
  if (nextRing === Infinity) askToBeWoken();
}

/** The carrier is there again, or is gone: whoever was to wake us will not. */
function renewAlarms() {
  nextRing = Infinity;
  askToBeWoken();
}
