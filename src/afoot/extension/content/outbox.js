// Outbox: keeps the newest progress and the result of each run until the gateway acknowledges the end, and sends them
// again on a new connection. It is the only place where frames of runs are kept.
"use strict";
(() => {
  /** @type {Modules} */
  const modules = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.modules")];

  const KEEP_RESULT_MS = 30_000; // if no `tool.settled` comes
  const MAX_DEPTH = 500; // levels of a value; the gateway's decoder reads few more

  /** A frame. @typedef {{method: string, params: any}} OutboxFrame */

  class Outbox {
    /** @type {Map<string, {seq: number, asking?: OutboxFrame, progress?: OutboxFrame, result?: OutboxFrame}>} */
    #runs = new Map();
    #deliver;

    /** @param {(frame: OutboxFrame) => void} send */
    constructor(send) {
      this.#deliver = send;
    }

    /** Adds a run; false if it is known already. @param {string} run */
    open(run) {
      if (this.#runs.has(run)) return false;
      this.#runs.set(run, { seq: 0 });
      return true;
    }

    /**
     * Keeps and sends a frame of a run; frames of unknown or ended runs are dropped.
     * @param {OutboxFrame} frame
     */
    send(frame) {
      const run = this.#runs.get(frame.params.run);
      if (!run || run.result) return;
      if (frame.method === "tool.progress") {
        for (const report of frame.params.reports ?? []) if (isTooDeep(report.data)) delete report.data;
        run.progress = frame;
      }
      if (frame.method === "tool.asking") run.asking = frame;
      if (frame.method === "tool.result") {
        if (isTooDeep(frame.params.value)) frame = tooDeepResult(frame);
        run.result = frame;
        setTimeout(() => this.settle(frame.params.run), KEEP_RESULT_MS);
      }
      run.seq = frame.params.seq ?? run.seq;
      this.#deliver(frame);
    }

    /** Forgets a run whose end the gateway has. @param {string} run */
    settle(run) {
      if (this.#runs.get(run)?.result) this.#runs.delete(run);
    }

    /** The runs whose end is not acknowledged, as `open` lists them. */
    running() {
      return [...this.#runs].map(([run, { seq }]) => ({ run, seq }));
    }

    /** Sends all kept frames again: after `open`, and on `resend`. */
    resend() {
      for (const { asking, progress, result } of this.#runs.values()) {
        for (const frame of [asking, progress, result]) if (frame) this.#deliver(frame);
      }
    }

    /** Forgets everything. */
    clear() {
      this.#runs.clear();
    }
  }

  /**
   * Whether a value has more levels than the gateway can read.
   * @param {any} value
   * @param {number} [levels]
   * @returns {boolean}
   */
  const isTooDeep = (value, levels = MAX_DEPTH) => {
    if (typeof value !== "object" || value === null) return false;
    if (levels === 0) return true;
    for (const key in value) if (isTooDeep(value[key], levels - 1)) return true;
    return false;
  };

  /**
   * The error that replaces a result with too many levels.
   * @param {OutboxFrame} frame
   * @returns {OutboxFrame}
   */
  const tooDeepResult = ({ method, params: { run, seq } }) => {
    const error = { name: "TypeError", message: `the tool's result is nested over ${MAX_DEPTH} levels deep` };
    return { method, params: { run, seq, error } };
  };

  modules.isTooDeep = isTooDeep;
  modules.Outbox = Outbox;
})();
