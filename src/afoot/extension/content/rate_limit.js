// RateLimit: the only limit on the way of a progress report from a tool to the gateway. The relay and the service
// worker pass on what they get, and the engine samples for the history.
//
// The first report is sent at once. Reports that follow closely are sent together, MIN_GAP_MS later. A flood loses its
// oldest reports, which are counted; the newest one is always sent, at the latest before the result. A flush also has
// a cost in time, by its size and by its reports with data, which the gateway writes into the history one by one. A
// run may be BURST_MS ahead of its costs; then the next flush waits.
"use strict";
(() => {
  /** @type {Modules} */
  const modules = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.modules")];

  const MIN_GAP_MS = 8;
  const MAX_REPORTS = 64; // of one flush
  const MAX_CHARS = 1_000_000; // of one flush
  const CHARS_PER_MS = 500;
  const DATA_REPORT_MS = 2;
  const BURST_MS = 2000;

  /**
   * The timers that a limit needs; `later` returns a function that cancels.
   * @typedef {{now: () => number, later: (ms: number, then: () => void) => () => void}} ReportTimers
   */

  class RateLimit {
    /** @type {any} */
    #reports = { __proto__: null }; // {text, hasData} by number, from #first up to and without #next
    #first = 0;
    #next = 0;
    #chars = 0;
    #dropped = 0;
    #flushedAt = -Infinity;
    #paidUntil = -Infinity; // the time at which the costs of all flushes so far are paid
    /** @type {(() => void) | null} */
    #cancelTimer = null;
    #timers;
    #send;

    /**
     * @param {ReportTimers} timers
     * @param {(reports: string, dropped: number) => void} send gets a JSON array
     */
    constructor(timers, send) {
      this.#timers = timers;
      this.#send = send;
    }

    /**
     * Takes the JSON text of a report. A heartbeat beside a waiting report is dropped.
     * @param {string} text
     * @param {boolean} hasData
     */
    add(text, hasData = false) {
      if (text === modules.reports.HEARTBEAT && this.#next > this.#first) return;
      this.#reports[this.#next] = { text, hasData };
      this.#next += 1;
      this.#chars += text.length;
      this.#dropOldest();
      this.#flushWhenDue();
    }

    /** Sends all waiting reports now. */
    flush() {
      this.#cancelTimer?.();
      this.#cancelTimer = null;
      if (this.#next === this.#first) return;
      let text = "";
      let cost = this.#chars / CHARS_PER_MS;
      for (let i = this.#first; i < this.#next; i += 1) {
        text += (text && ",") + this.#reports[i].text;
        if (this.#reports[i].hasData) cost += DATA_REPORT_MS;
      }
      const dropped = this.#dropped;
      this.#reports = { __proto__: null };
      this.#first = this.#next;
      this.#chars = 0;
      this.#dropped = 0;
      this.#flushedAt = this.#timers.now();
      this.#paidUntil = (this.#paidUntil > this.#flushedAt ? this.#paidUntil : this.#flushedAt) + cost;
      this.#send(`[${text}]`, dropped);
    }

    /** Flushes at the time of the next flush. A browser drops the fraction of a delay, and its timer may come early. */
    #flushWhenDue() {
      const wait = this.#nextFlushAt() - this.#timers.now();
      if (wait <= 0) {
        this.flush();
        return;
      }
      this.#cancelTimer ??= this.#timers.later(wait % 1 ? wait - (wait % 1) + 1 : wait, () => {
        this.#cancelTimer = null;
        this.#flushWhenDue();
      });
    }

    #nextFlushAt() {
      const afterGap = this.#flushedAt + MIN_GAP_MS;
      const afterBurst = this.#paidUntil - BURST_MS;
      return afterBurst > afterGap ? afterBurst : afterGap;
    }

    /** Drops and counts the oldest reports that a flush cannot carry. The newest report stays, whatever its size. */
    #dropOldest() {
      while (
        this.#next - this.#first > MAX_REPORTS ||
        (this.#chars > MAX_CHARS && this.#next - this.#first > 1)
      ) {
        this.#chars -= this.#reports[this.#first].text.length;
        delete this.#reports[this.#first];
        this.#first += 1;
        this.#dropped += 1;
      }
    }
  }

  modules.RateLimit = RateLimit;
})();
