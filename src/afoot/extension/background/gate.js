// Lets a room's frames through, so many a second: what is too much is joined or left out, results never (B6).

/** @typedef {{method: string, params: Record<string, any>}} Frame */
/**
 * @typedef {object} Outside
 * @property {(frame: Frame) => void} send
 * @property {() => boolean} isBusy whether what was sent before still waits
 * @property {() => number} now in milliseconds
 * @property {(then: () => void, ms: number) => unknown} later
 */

export const RATE = 200; // frames a second
export const KEPT = 64; // reports of a run that wait
const STEP_MS = 25;

/** The door between one room and the link. */
export class Gate {
  /** @type {Map<string, Frame>} */
  #held = new Map();
  #tokens = RATE;
  #since;
  #isWaiting = false;
  #outside;
  left = 0; // frames that were left out

  /** @param {Outside} outside */
  constructor(outside) {
    this.#outside = outside;
    this.#since = outside.now();
  }

  /**
   * Send a frame, now or joined to others.
   * @param {Frame} frame
   */
  offer(frame) {
    const key = `${frame.method} ${frame.params.run ?? ""}`;
    if (!this.#held.has(key) && this.#take()) {
      this.#outside.send(frame);
      return;
    }
    if (frame.method === "tool.log") {
      this.left += 1;
      return;
    }
    const held = this.#held.get(key);
    this.#held.set(key, held && frame.method === "tool.progress" ? joined(held, frame) : frame);
    this.#wait();
  }

  /**
   * Send a frame that may not wait, after all that waits of its run.
   * @param {Frame} frame
   */
  pass(frame) {
    for (const [key, held] of this.#held) {
      if (held.params.run !== frame.params.run) continue;
      this.#held.delete(key);
      this.#outside.send(held);
    }
    this.#outside.send(frame);
  }

  /** Send all that waits: nothing comes after it. */
  empty() {
    for (const held of this.#held.values()) this.#outside.send(held);
    this.#held.clear();
  }

  /** Forget all that waits: it is said again by another way. */
  forget() {
    this.#held.clear();
  }

  #take() {
    const now = this.#outside.now();
    this.#tokens = Math.min(RATE, this.#tokens + ((now - this.#since) * RATE) / 1000);
    this.#since = now;
    if (this.#tokens < 1 || this.#outside.isBusy()) return false;
    this.#tokens -= 1;
    return true;
  }

  #wait() {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#outside.later(() => this.#release(), STEP_MS);
  }

  #release() {
    this.#isWaiting = false;
    for (const [key, held] of this.#held) {
      if (!this.#take()) break;
      this.#held.delete(key);
      this.#outside.send(held);
    }
    if (this.#held.size) this.#wait();
  }
}

/**
 * Two frames of progress as one: the newest reports of both.
 * @param {Frame} earlier
 * @param {Frame} later
 * @returns {Frame}
 */
export function joined(earlier, later) {
  const all = [...earlier.params.reports, ...later.params.reports];
  const over = Math.max(0, all.length - KEPT);
  const dropped = (earlier.params.dropped ?? 0) + (later.params.dropped ?? 0) + over;
  const params = { ...later.params, reports: all.slice(over) };
  return { method: later.method, params: dropped ? { ...params, dropped } : params };
}
