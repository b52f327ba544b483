// Work that may not run twice at once, and that may be asked for while it runs.

/**
 * The work, one at a time: asked for while it runs, it runs once more afterwards.
 * @param {() => Promise<void>} work
 * @returns {() => Promise<void>} settles when the work has run that was asked for
 */
export function inTurn(work) {
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
 * The work, a moment later: however often it is asked for meanwhile, it runs once.
 * @param {() => void} work
 * @param {number} ms
 * @returns {() => void}
 */
export function gathered(work, ms) {
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
