// Whether a plugin's tools can run in a page now, and if not, why: asked again and again.

const PROBE_MS = 5000;
const AGAIN_MS = 30_000;
const SOON_MS = 1000; // a page that has only just loaded is often ready a moment later

/** @typedef {{call?: string, selector?: string, value?: string}} Probe plugin.json's `readiness` */
/** @typedef {{ready: boolean, why: string}} Readiness */

class ReadinessWatch {
  /** @type {Readiness} */
  now = { ready: false, why: "the page is loading" };
  #check;
  #changed;
  #callOff = () => {};
  #pause = SOON_MS;
  /** @type {Promise<Readiness> | null} */
  #asking = null;

  /**
   * @param {() => Promise<string>} check says why not; nothing if all is well
   * @param {(now: Readiness) => void} changed
   */
  constructor(check, changed) {
    this.#check = check;
    this.#changed = changed;
  }

  /** Ask now; who asks meanwhile gets the same answer. @returns {Promise<Readiness>} */
  ask() {
    this.#asking ??= this.#ask().finally(() => (this.#asking = null));
    return this.#asking;
  }

  /** Something has changed: ask now, and often again if it says no. */
  askAnew() {
    this.#pause = SOON_MS;
    return this.ask();
  }

  /** Ask no more. */
  stop() {
    this.#callOff();
  }

  async #ask() {
    this.#callOff();
    const before = this.now;
    const why = await this.#check().catch(explain);
    this.now = { ready: !why, why };
    this.#callOff = after(why ? this.#pause : AGAIN_MS, () => void this.ask());
    this.#pause = why ? Math.min(this.#pause * 2, AGAIN_MS) : SOON_MS;
    if (before.ready !== this.now.ready || before.why !== why) this.#changed(this.now);
    return this.now;
  }
}

/** @param {unknown} error @returns {string} what was thrown, for people; never nothing */
function explain(error) {
  const text = error instanceof Error && error.message ? error.message : String(error);
  return text.slice(0, 500) || "it does not say why";
}

/**
 * Why a probe says no; nothing if it says yes.
 * @param {Probe} probe @param {(() => unknown) | undefined} call
 * @returns {Promise<string>}
 */
async function askProbe(probe, call) {
  const waiting = { timeoutMs: PROBE_MS, context: {} };
  if (probe.selector) {
    return document.querySelector(probe.selector) ? "" : `there is no element ${probe.selector} in the page`;
  }
  if (probe.value) {
    return (await pageValue(probe.value, waiting)) ? "" : `the page's ${probe.value} is not set`;
  }
  if (!probe.call) return "";
  if (!call) return `its code has no function ${probe.call}`;
  const isReady = await bounded(waiting, `${probe.call}()`, async () => call());
  return isReady ? "" : `${probe.call}() says that the page is not ready`;
}
