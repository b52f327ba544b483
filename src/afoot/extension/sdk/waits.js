// Waiting in a tool: each wait gives signs of life for its run, and ends when its run is cancelled.

const BEAT_MS = 5000;
const WAIT_MS = 10_000;

/** @typedef {{waits: number, last: number, stop: () => void}} Heart */
/** @type {WeakMap<SomeContext, Heart>} */
const hearts = new WeakMap();

/**
 * Do work that takes time, for a run. Its signal is aborted at the limit, with the run, and when all is done.
 * @template T
 * @param {Waiting} waiting @param {string} what @param {(signal: AbortSignal) => Promise<T>} work
 * @returns {Promise<T>}
 */
async function bounded(waiting, what, work) {
  const { context = onlyRun(), timeoutMs = WAIT_MS } = waiting;
  const ending = new AbortController();
  const given = [ending.signal, context?.signal, waiting.signal];
  const signal = AbortSignal.any(given.filter((one) => one !== undefined));
  signal.throwIfAborted();
  const late = () => ending.abort(ToolError.timeout(`${what}: not within ${timeoutMs / 1000} s`));
  const callOff = after(timeoutMs, late);
  const rest = beat(context);
  try {
    return await untilAborted(work(signal), signal);
  } finally {
    callOff();
    rest();
    ending.abort();
  }
}

/** @template T @param {Promise<T>} promise @param {AbortSignal} signal @returns {Promise<T>} */
function untilAborted(promise, signal) {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    promise.then(resolve, reject);
  });
}

/** Give signs of life for a run until what is given back is called. @param {SomeContext | undefined} context */
function beat(context) {
  if (!context?.alive) return () => {};
  const heart = hearts.get(context) ?? { waits: 0, last: performance.now(), stop: () => {} };
  hearts.set(context, heart);
  // Many short waits in a row are one long one.
  const due = heart.last + BEAT_MS - performance.now();
  if (due <= 0) pulse(context, heart);
  else if (heart.waits === 0) heart.stop = after(due, () => pulse(context, heart));
  heart.waits += 1;
  return () => {
    heart.waits -= 1;
    if (heart.waits === 0) heart.stop();
  };
}

/** @param {SomeContext} context @param {Heart} heart */
function pulse(context, heart) {
  heart.stop();
  heart.last = performance.now();
  context.alive?.();
  heart.stop = after(BEAT_MS, () => pulse(context, heart));
}

/** Wait so many milliseconds. @param {number} ms @param {Waiting} [waiting] @returns {Promise<void>} */
function sleep(ms, waiting = {}) {
  return bounded({ ...waiting, timeoutMs: Infinity }, "sleep", (signal) => {
    return new Promise((resolve) => signal.addEventListener("abort", after(ms, resolve), { once: true }));
  });
}

/**
 * Wait until a function says something that counts as true; gives that back.
 * @template T
 * @param {() => T | Promise<T>} predicate
 * @param {Waiting & {intervalMs?: number, what?: string}} [waiting]
 * @returns {Promise<T>}
 */
function waitUntil(predicate, waiting = {}) {
  const { intervalMs = 200, what = "what was waited for" } = waiting;
  return bounded(waiting, what, async (signal) => {
    for (;;) {
      const found = await predicate();
      if (found) return found;
      await sleep(intervalMs, { signal, context: {} });
    }
  });
}

/**
 * Wait until there is an element; gives it back.
 * @param {string} selector @param {Waiting & {root?: ParentNode & Node}} [waiting]
 * @returns {Promise<Element>}
 */
function waitForSelector(selector, waiting = {}) {
  const root = waiting.root ?? document;
  return bounded(waiting, `an element ${selector}`, (signal) => {
    return watched(root, signal, () => root.querySelector(selector) ?? undefined);
  });
}

/**
 * Wait until there is no such element any more.
 * @param {string} selector @param {Waiting & {root?: ParentNode & Node}} [waiting]
 * @returns {Promise<void>}
 */
async function waitForSelectorRemoval(selector, waiting = {}) {
  const root = waiting.root ?? document;
  await bounded(waiting, `the end of ${selector}`, (signal) => {
    return watched(root, signal, () => (root.querySelector(selector) ? undefined : true));
  });
}

/**
 * Look at once, and after each change of the page, until something is found.
 * @template T
 * @param {Node} root @param {AbortSignal} signal @param {() => T | undefined} look
 * @returns {Promise<T>}
 */
function watched(root, signal, look) {
  return new Promise((resolve, reject) => {
    const attempt = () => {
      try {
        const found = look();
        if (found !== undefined) resolve(found);
      } catch (error) {
        reject(error); // the selector is none
      }
    };
    const observer = new MutationObserver(attempt);
    signal.addEventListener("abort", () => observer.disconnect(), { once: true });
    observer.observe(root, { childList: true, subtree: true, attributes: true, characterData: true });
    attempt();
  });
}

/**
 * Do something again while it fails in a way that may pass (`retryable`), each time after a longer pause.
 * @template T
 * @param {(attempt: number) => T | Promise<T>} work
 * @param {Waiting & {attempts?: number, delayMs?: number, maxDelayMs?: number}} [waiting]
 * @returns {Promise<T>}
 */
async function retry(work, waiting = {}) {
  const { attempts = 3, delayMs = 1000, maxDelayMs = 30_000, context, signal } = waiting;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work(attempt);
    } catch (error) {
      const failure = /** @type {Failure} */ (error ?? {});
      if (failure.retryable !== true || attempt >= attempts) throw error;
      const pause = failure.retryAfterMs ?? delayMs * 2 ** (attempt - 1);
      await sleep(Math.min(pause, maxDelayMs), { context, signal });
    }
  }
}
