// serialized and coalesced: functions that may be called at any time, and run once at a time or once for many calls.

/**
 * Run the work one at a time. A call while it runs makes it run once more afterwards.
 * @param {() => Promise<void>} work
 * @returns {() => Promise<void>} resolves when a run that began after the call has ended
 */
export function serialized(work) {
  /** @type {Promise<void> | null} */
  let running = null;
  /** @type {Promise<void> | null} */
  let next = null;

  const start = () => {
    running = work().finally(() => {
      running = null;
    });
    return running;
  };
  return () => {
    if (!running) return start();
    next ??= running
      .catch(() => undefined)
      .then(() => {
        next = null;
        return start();
      });
    return next;
  };
}

/**
 * Run the work a moment later, once for all calls in that moment.
 * @param {() => void} work
 * @param {number} ms
 * @returns {() => void}
 */
export function coalesced(work, ms) {
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    setTimeout(() => {
      isWaiting = false;
      work();
    }, ms);
  };
}
