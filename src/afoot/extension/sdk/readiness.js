// ReadinessMonitor: checks again and again whether a plugin's tools can run in the page, and why not.

const PROBE_TIMEOUT_MS = 5000;
const MAX_INTERVAL_MS = 30_000;
const FIRST_INTERVAL_MS = 1000; // a page that has just loaded is often ready a moment later

/** @typedef {{call?: string, selector?: string, value?: string}} Probe plugin.json's `readiness` */
/** @typedef {{ready: boolean, why: string}} Readiness */

class ReadinessMonitor {
  /** @type {Readiness} */
  current = { ready: false, why: "the page is loading" };
  #probe;
  #onChange;
  #cancelTimer = () => {};
  #intervalMs = FIRST_INTERVAL_MS;
  /** @type {Promise<Readiness> | null} */
  #pending = null;

  /**
   * @param {() => Promise<string>} probe gives the reason why not; empty if ready
   * @param {(now: Readiness) => void} onChange
   */
  constructor(probe, onChange) {
    this.#probe = probe;
    this.#onChange = onChange;
  }

  /** Check now; calls in the meantime share the result. @returns {Promise<Readiness>} */
  check() {
    this.#pending ??= this.#runCheck().finally(() => (this.#pending = null));
    return this.#pending;
  }

  /** Check now after a change, and soon again if the page is not ready. */
  checkSoon() {
    this.#intervalMs = FIRST_INTERVAL_MS;
    return this.check();
  }

  /** Stop checking. */
  stop() {
    this.#cancelTimer();
  }

  async #runCheck() {
    this.#cancelTimer();
    const before = this.current;
    const why = await this.#probe().catch(errorText);
    this.current = { ready: !why, why };
    this.#cancelTimer = setTimer(why ? this.#intervalMs : MAX_INTERVAL_MS, () => void this.check());
    this.#intervalMs = why ? Math.min(this.#intervalMs * 2, MAX_INTERVAL_MS) : FIRST_INTERVAL_MS;
    if (before.ready !== this.current.ready || before.why !== why) this.#onChange(this.current);
    return this.current;
  }
}

/** @param {unknown} error @returns {string} the text of an error, never empty */
function errorText(error) {
  const text = error instanceof Error && error.message ? error.message : String(error);
  return text.slice(0, 500) || "it does not say why";
}

/**
 * Run a probe; returns the reason why the page is not ready, empty if it is.
 * @param {Probe} probe @param {(() => unknown) | undefined} call
 * @returns {Promise<string>}
 */
async function runProbe(probe, call) {
  const waiting = { timeoutMs: PROBE_TIMEOUT_MS, context: {} };
  if (probe.selector) {
    return document.querySelector(probe.selector) ? "" : `there is no element ${probe.selector} in the page`;
  }
  if (probe.value) {
    return (await pageValue(probe.value, waiting)) ? "" : `the page's ${probe.value} is not set`;
  }
  if (!probe.call) return "";
  if (!call) return `its code has no function ${probe.call}`;
  const isReady = await withTimeout(waiting, `${probe.call}()`, async () => call());
  return isReady ? "" : `${probe.call}() says that the page is not ready`;
}
