// Reports on their way: the first goes at once, those close behind it go together, and a flood loses its oldest.
"use strict";
(() => {
  /** @type {Parts} */
  const parts = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.parts")];

  const GAP_MS = 8; // so long after a flush a report waits for others
  const NEWEST = 64; // so many a flush carries

  /**
   * What a batch knows of time; `later` gives a function that calls it off.
   * @typedef {{now: () => number, later: (ms: number, then: () => void) => () => void}} RunClock
   */

  class Batch {
    /** @type {any} */
    #waiting = { __proto__: null }; // texts by number, from #first up to and without #next
    #first = 0;
    #next = 0;
    #dropped = 0;
    #flushed = -Infinity;
    /** @type {(() => void) | null} */
    #callOff = null;
    #clock;
    #send;

    /** @param {RunClock} clock @param {(reports: string, dropped: number) => void} send gets a JSON array */
    constructor(clock, send) {
      this.#clock = clock;
      this.#send = send;
    }

    /** Takes the JSON text of a report. A heartbeat says nothing beside what already waits. @param {string} text */
    add(text) {
      if (text === parts.reporting.ALIVE && this.#next > this.#first) return;
      this.#waiting[this.#next] = text;
      this.#next += 1;
      if (this.#next - this.#first > NEWEST * 2) this.#forget();
      const wait = this.#flushed + GAP_MS - this.#clock.now();
      if (wait <= 0) this.flush();
      else this.#callOff ??= this.#clock.later(wait, () => this.flush());
    }

    /** Sends what waits. */
    flush() {
      this.#callOff?.();
      this.#callOff = null;
      if (this.#next === this.#first) return;
      this.#forget();
      let text = "";
      for (let i = this.#first; i < this.#next; i += 1) text += (text && ",") + this.#waiting[i];
      const dropped = this.#dropped;
      this.#waiting = { __proto__: null };
      this.#first = this.#next;
      this.#dropped = 0;
      this.#flushed = this.#clock.now();
      this.#send(`[${text}]`, dropped);
    }

    /** Drops all but the newest, and counts them. */
    #forget() {
      for (; this.#next - this.#first > NEWEST; this.#first += 1) {
        delete this.#waiting[this.#first];
        this.#dropped += 1;
      }
    }
  }

  parts.Batch = Batch;
})();
