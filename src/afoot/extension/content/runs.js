// The runs of a world: their signals, their reports, their ends, as frames with rising numbers.
"use strict";
(() => {
  /** @type {Parts} */
  const parts = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.parts")];
  const { abort, AbortController, DOMException, isAborted, makeId, signal, stringify } = parts.builtins;
  const { encodeError, encodeResult } = parts.encoding;
  const { ALIVE, encodeReport, readReport } = parts.reporting;

  /**
   * One run. `run` is the gateway's name for it; "" for a run that somebody in the page started, of which nothing
   * is sent.
   * @typedef {{run: string, tool: string, id: string, seq: number, controller: AbortController, batch: any,
   *   began: boolean, ended: boolean, heard: ((report: any) => void) | null}} PageRun
   */

  class Runs {
    /** @type {Record<string, PageRun>} */
    #open = /** @type {any} */ ({ __proto__: null });
    #send;
    #clock;

    /** @param {(text: string) => void} send takes the JSON text of a frame @param {any} clock a RunClock */
    constructor(send, clock) {
      this.#send = send;
      this.#clock = clock;
    }

    /** A new run, not yet begun; null if there is one of this name. @param {string} run @param {string} tool */
    open(run, tool) {
      if (run && this.#open[run]) return null;
      /** @type {PageRun} */
      const one = {
        ...{ run, tool, id: makeId(), seq: 0, controller: new AbortController() },
        ...{ batch: null, began: false, ended: false, heard: null },
      };
      if (!run) return one;
      one.batch = new parts.Batch(
        this.#clock,
        (/** @type {string} */ reports, /** @type {number} */ dropped) => {
          const lost = dropped ? `,"dropped":${dropped}` : "";
          this.#number(one, "tool.progress", `"reports":${reports}${lost}`);
        },
      );
      this.#open[run] = one;
      return one;
    }

    /**
     * Runs a tool, and sends what comes of it; gives or throws what the tool did.
     * @param {PageRun} one @param {(context: any) => any} call @param {object} more goes into the context, too
     */
    async perform(one, call, more = {}) {
      one.began = true;
      let value;
      try {
        value = await call(this.#context(one, more));
        // Nobody outside waits for a run of the page's own, so its value may be anything.
        this.#end(one, one.run ? encodeResult(value) : undefined);
      } catch (error) {
        this.fail(one, error);
        throw error;
      }
      return typeof value === "symbol" ? undefined : value; // over which Chromium 156 crashes; JSON has none
    }

    /** Ends a run with an error, unless it has ended. @param {PageRun} one @param {unknown} error */
    fail(one, error) {
      this.#end(one, undefined, encodeError(error));
    }

    /** Aborts a run; its tool hears the reason, and still ends by itself. @param {string} run @param {string} reason */
    cancel(run, reason) {
      const one = this.#open[run];
      if (one) this.stop(one, new DOMException(reason || "cancelled", "AbortError"));
    }

    /** Aborts a run for whatever reason. @param {PageRun} one @param {unknown} reason */
    stop(one, reason) {
      if (!isAborted(signal(one.controller))) abort(one.controller, reason);
    }

    /** Aborts everything that runs. @param {string} reason */
    cancelAll(reason) {
      for (const run in this.#open) this.cancel(run, reason);
    }

    /** Says that a run waits for a person, or (no message) no more. @param {PageRun} one @param {string} [message] */
    ask(one, message) {
      const words = message === undefined ? "" : `,"message":${stringify(message)}`;
      if (!one.ended) this.#frame(one, "tool.asking", words);
    }

    /** Sends a line for the log. @param {PageRun} one @param {string} text @param {string} level */
    log(one, text, level = "info") {
      const words = `,"text":${stringify(text)},"level":${stringify(level)}`;
      if (!one.ended) this.#frame(one, "tool.log", words);
    }

    /** What a tool gets beside its input. @param {PageRun} one @param {any} more */
    #context(one, more) {
      return {
        ...more,
        signal: signal(one.controller),
        toolExecutionId: one.id,
        reportProgress: (/** @type {any} */ first, /** @type {any} */ second, /** @type {any} */ third) => {
          if (one.ended) return;
          const report = readReport(first, second, third);
          one.batch?.add(encodeReport(report));
          one.heard?.(report);
        },
        alive: () => {
          if (!one.ended) one.batch?.add(ALIVE);
        },
      };
    }

    /** @param {PageRun} one @param {string} [value] @param {string} [error] */
    #end(one, value, error) {
      if (one.ended) return;
      one.batch?.flush();
      one.ended = true;
      delete this.#open[one.run];
      const said = error !== undefined ? `"error":${error}` : value !== undefined ? `"value":${value}` : "";
      const aborted = isAborted(signal(one.controller)) ? '"aborted":true' : "";
      this.#number(one, "tool.result", said + (said && aborted && ",") + aborted);
    }

    /** @param {PageRun} one @param {string} method @param {string} words */
    #number(one, method, words) {
      one.seq += 1;
      this.#frame(one, method, `,"seq":${one.seq}${words && ","}${words}`);
    }

    /** @param {PageRun} one @param {string} method @param {string} words */
    #frame(one, method, words) {
      if (one.run) this.#send(`{"method":"${method}","params":{"run":${stringify(one.run)}${words}}}`);
    }
  }

  parts.Runs = Runs;
})();
