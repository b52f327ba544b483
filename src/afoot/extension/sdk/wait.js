// sleep, waitUntil and their relatives: waits in a tool. Each wait sends heartbeats for its run, and ends when the run is
// cancelled.

const HEARTBEAT_MS = 5000;
const DEFAULT_TIMEOUT_MS = 10_000;

/** @typedef {{waits: number, last: number, stop: () => void}} Heartbeat */
/** @type {WeakMap<PartialContext, Heartbeat>} */
const heartbeats = new WeakMap();

/**
 * Do work for a run, with a time limit. Its signal is aborted at the limit, with the run, and when the work is done.
 * @template T
 * @param {WaitOptions} options @param {string} description @param {(signal: AbortSignal) => Promise<T>} work
 * @returns {Promise<T>}
 */
async function withTimeout(options, description, work) {
  const { context = currentRun(), timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const ending = new AbortController();
  const signals = [ending.signal, context?.signal, options.signal];
  const signal = AbortSignal.any(signals.filter((one) => one !== undefined));
  signal.throwIfAborted();
  const onTimeout = () => ending.abort(ToolError.timeout(`${description}: not within ${timeoutMs / 1000} s`));
  const cancelTimer = setTimer(timeoutMs, onTimeout);
  const stopHeartbeat = startHeartbeat(context);
  try {
    return await rejectOnAbort(work(signal), signal);
  } finally {
    cancelTimer();
    stopHeartbeat();
    ending.abort();
  }
}

/** @template T @param {Promise<T>} promise @param {AbortSignal} signal @returns {Promise<T>} */
function rejectOnAbort(promise, signal) {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    promise.then(resolve, reject);
  });
}

/**
 * Send heartbeats for a run until the returned function is called.
 * @param {PartialContext | undefined} context
 */
function startHeartbeat(context) {
  if (!context?.alive) return () => {};
  const heart = heartbeats.get(context) ?? { waits: 0, last: performance.now(), stop: () => {} };
  heartbeats.set(context, heart);
  // Many short waits in a row count as one long wait.
  const due = heart.last + HEARTBEAT_MS - performance.now();
  if (due <= 0) sendHeartbeat(context, heart);
  else if (heart.waits === 0) heart.stop = setTimer(due, () => sendHeartbeat(context, heart));
  heart.waits += 1;
  return () => {
    heart.waits -= 1;
    if (heart.waits === 0) heart.stop();
  };
}

/** @param {PartialContext} context @param {Heartbeat} heart */
function sendHeartbeat(context, heart) {
  heart.stop();
  heart.last = performance.now();
  context.alive?.();
  heart.stop = setTimer(HEARTBEAT_MS, () => sendHeartbeat(context, heart));
}

/**
 * Wait so many milliseconds.
 * @param {number} ms
 * @param {WaitOptions} [options]
 * @returns {Promise<void>}
 */
function sleep(ms, options = {}) {
  return withTimeout({ ...options, timeoutMs: Infinity }, "sleep", (signal) => {
    return new Promise((resolve) => signal.addEventListener("abort", setTimer(ms, resolve), { once: true }));
  });
}

/**
 * Wait until a function returns a true value, and return it.
 * @template T
 * @param {() => T | Promise<T>} predicate
 * @param {WaitOptions & {intervalMs?: number, what?: string}} [options]
 * @returns {Promise<T>}
 */
function waitUntil(predicate, options = {}) {
  const { intervalMs = 200, what = "what was waited for" } = options;
  return withTimeout(options, what, async (signal) => {
    for (;;) {
      const found = await predicate();
      if (found) return found;
      await sleep(intervalMs, { signal, context: {} });
    }
  });
}

/**
 * Wait until there is an element, and return it.
 * @param {string} selector @param {WaitOptions & {root?: ParentNode & Node}} [options]
 * @returns {Promise<Element>}
 */
function waitForSelector(selector, options = {}) {
  const root = options.root ?? document;
  return withTimeout(options, `an element ${selector}`, (signal) => {
    return observeUntil(root, signal, () => root.querySelector(selector) ?? undefined);
  });
}

/**
 * Wait until no element matches any more.
 * @param {string} selector @param {WaitOptions & {root?: ParentNode & Node}} [options]
 * @returns {Promise<void>}
 */
async function waitForSelectorRemoval(selector, options = {}) {
  const root = options.root ?? document;
  await withTimeout(options, `the end of ${selector}`, (signal) => {
    return observeUntil(root, signal, () => (root.querySelector(selector) ? undefined : true));
  });
}

/**
 * Look now and after each change of the page until something is found.
 * @template T
 * @param {Node} root @param {AbortSignal} signal @param {() => T | undefined} look
 * @returns {Promise<T>}
 */
function observeUntil(root, signal, look) {
  return new Promise((resolve, reject) => {
    const attempt = () => {
      try {
        const found = look();
        if (found !== undefined) resolve(found);
      } catch (error) {
        reject(error); // the selector is not valid
      }
    };
    const observer = new MutationObserver(attempt);
    signal.addEventListener("abort", () => observer.disconnect(), { once: true });
    observer.observe(root, { childList: true, subtree: true, attributes: true, characterData: true });
    attempt();
  });
}

/**
 * Repeat work while it fails with a `retryable` error, each time after a longer pause.
 * @template T
 * @param {(attempt: number) => T | Promise<T>} work
 * @param {WaitOptions & {attempts?: number, delayMs?: number, maxDelayMs?: number}} [options]
 * @returns {Promise<T>}
 */
async function retry(work, options = {}) {
  const { attempts = 3, delayMs = 1000, maxDelayMs = 30_000, context, signal } = options;
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
