// What a room keeps of its runs until the gateway has it: the newest progress and the result, to be sent again.
"use strict";
(() => {
  /** @type {Parts} */
  const parts = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.parts")];

  const KEPT_MS = 30_000; // so long after its end, if nobody says that it has arrived
  const DEEPEST = 500; // levels of a value; no gateway reads many more

  /** A frame. @typedef {{method: string, params: any}} RoomFrame */

  class Outbox {
    /** @type {Map<string, {seq: number, asking?: RoomFrame, progress?: RoomFrame, result?: RoomFrame}>} */
    #runs = new Map();
    #send;

    /** @param {(frame: RoomFrame) => void} send */
    constructor(send) {
      this.#send = send;
    }

    /** A run was dispatched here; false if it is known. @param {string} run */
    open(run) {
      if (this.#runs.has(run)) return false;
      this.#runs.set(run, { seq: 0 });
      return true;
    }

    /** Keeps and sends a frame about a run; those about unknown or ended runs go nowhere. @param {RoomFrame} frame */
    take(frame) {
      const kept = this.#runs.get(frame.params.run);
      if (!kept || kept.result) return;
      if (frame.method === "tool.progress") {
        for (const report of frame.params.reports ?? []) if (isDeeper(report.data)) delete report.data;
        kept.progress = frame;
      }
      if (frame.method === "tool.asking") kept.asking = frame;
      if (frame.method === "tool.result") {
        if (isDeeper(frame.params.value)) frame = refused(frame);
        kept.result = frame;
        setTimeout(() => this.settle(frame.params.run), KEPT_MS);
      }
      kept.seq = frame.params.seq ?? kept.seq;
      this.#send(frame);
    }

    /** The gateway has the end of a run. @param {string} run */
    settle(run) {
      if (this.#runs.get(run)?.result) this.#runs.delete(run);
    }

    /** The runs that are not settled, as `open` tells them. */
    running() {
      return [...this.#runs].map(([run, { seq }]) => ({ run, seq }));
    }

    /** Sends again what is kept: after `open`, on a new way to the gateway. */
    replay() {
      for (const { asking, progress, result } of this.#runs.values()) {
        for (const frame of [asking, progress, result]) if (frame) this.#send(frame);
      }
    }

    /** Forgets everything: nobody waits for it any more. */
    clear() {
      this.#runs.clear();
    }
  }

  /** Whether a value has more levels than can be read. @param {any} value @param {number} [levels] @returns {boolean} */
  const isDeeper = (value, levels = DEEPEST) => {
    if (typeof value !== "object" || value === null) return false;
    if (levels === 0) return true;
    for (const key in value) if (isDeeper(value[key], levels - 1)) return true;
    return false;
  };

  /** The end of a run whose result cannot be passed on. @param {RoomFrame} frame @returns {RoomFrame} */
  const refused = ({ method, params: { run, seq } }) => {
    const error = { name: "TypeError", message: `the tool's result is nested over ${DEEPEST} levels deep` };
    return { method, params: { run, seq, error } };
  };

  parts.isDeeper = isDeeper;
  parts.Outbox = Outbox;
})();
