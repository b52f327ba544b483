// ToolRuns: the runs of tools in a world. Their reports and ends become frames with rising numbers; a cancel aborts their
// signal.
"use strict";
(() => {
  /** @type {Modules} */
  const modules = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.modules")];
  const { abort, AbortController, DOMException, hasOwn, isAborted, makeId, signal, stringify } =
    modules.builtins;
  const { encodeError, encodeResult } = modules.encoding;
  const { HEARTBEAT, encodeReport, readReport } = modules.reports;

  /**
   * One run. `run` is the gateway's id for it, or "" for a run that the page started itself, of which nothing is sent.
   * @typedef {{run: string, tool: string, id: string, seq: number, controller: AbortController, rateLimit: any,
   *   hasStarted: boolean, hasEnded: boolean, onReport: ((report: any) => void) | null}} PageRun
   */

  class ToolRuns {
    /** @type {Record<string, PageRun>} */
    #open = /** @type {any} */ ({ __proto__: null });
    #send;
    #timers;

    /**
     * @param {(text: string) => void} send takes the JSON text of a frame
     * @param {any} timers a ReportTimers
     */
    constructor(send, timers) {
      this.#send = send;
      this.#timers = timers;
    }

    /**
     * A new run that has not started; null if its id is known.
     * @param {string} run
     * @param {string} tool
     */
    open(run, tool) {
      if (run && this.#open[run]) return null;
      /** @type {PageRun} */
      const one = {
        ...{ run, tool, id: makeId(), seq: 0, controller: new AbortController() },
        ...{ rateLimit: null, hasStarted: false, hasEnded: false, onReport: null },
      };
      if (!run) return one;
      one.rateLimit = new modules.RateLimit(
        this.#timers,
        (/** @type {string} */ reports, /** @type {number} */ dropped) => {
          const droppedField = dropped ? `,"dropped":${dropped}` : "";
          this.#sendNumbered(one, "tool.progress", `"reports":${reports}${droppedField}`);
        },
      );
      this.#open[run] = one;
      return one;
    }

    /**
     * Runs a tool and sends its end; returns or throws as the tool did.
     * @param {PageRun} one @param {(context: any) => any} call @param {object} more goes into the context, too
     */
    async perform(one, call, more = {}) {
      one.hasStarted = true;
      let value;
      try {
        value = await call(this.#context(one, more));
        // The value of a run that the page started itself is not sent, so it may be anything.
        this.#finish(one, one.run ? encodeResult(value) : undefined);
      } catch (error) {
        this.fail(one, error);
        throw error;
      }
      return typeof value === "symbol" ? undefined : value; // Chromium 156 crashes over a symbol
    }

    /**
     * Ends a run with an error, unless it has ended.
     * @param {PageRun} one
     * @param {unknown} error
     */
    fail(one, error) {
      this.#finish(one, undefined, encodeError(error));
    }

    /**
     * Aborts a run by its id. The tool gets the reason, and ends by itself.
     * @param {string} run
     * @param {string} reason
     */
    cancel(run, reason) {
      const one = this.#open[run];
      if (one) this.abort(one, new DOMException(reason || "cancelled", "AbortError"));
    }

    /** Aborts a run. @param {PageRun} one @param {unknown} reason */
    abort(one, reason) {
      if (!isAborted(signal(one.controller))) abort(one.controller, reason);
    }

    /** Aborts everything that runs. @param {string} reason */
    cancelAll(reason) {
      for (const run in this.#open) this.cancel(run, reason);
    }

    /**
     * Says that a run waits for a person, or (without a message) that it waits no more.
     * @param {PageRun} one
     * @param {string} [message]
     */
    waitForPerson(one, message) {
      const fields = message === undefined ? "" : `,"message":${stringify(message)}`;
      if (!one.hasEnded) this.#sendFrame(one, "tool.asking", fields);
    }

    /** Sends a line for the log. @param {PageRun} one @param {string} text @param {string} level */
    log(one, text, level = "info") {
      const fields = `,"text":${stringify(text)},"level":${stringify(level)}`;
      if (!one.hasEnded) this.#sendFrame(one, "tool.log", fields);
    }

    /** The context of a tool: its second argument. @param {PageRun} one @param {any} more */
    #context(one, more) {
      return {
        ...more,
        signal: signal(one.controller),
        toolExecutionId: one.id,
        reportProgress: (/** @type {any} */ first, /** @type {any} */ second, /** @type {any} */ third) => {
          if (one.hasEnded) return;
          const report = readReport(first, second, third);
          one.rateLimit?.add(encodeReport(report), hasOwn(report, "encoded"));
          one.onReport?.(report);
        },
        alive: () => {
          if (!one.hasEnded) one.rateLimit?.add(HEARTBEAT);
        },
      };
    }

    /** @param {PageRun} one @param {string} [value] @param {string} [error] */
    #finish(one, value, error) {
      if (one.hasEnded) return;
      one.rateLimit?.flush();
      one.hasEnded = true;
      delete this.#open[one.run];
      const outcome =
        error !== undefined ? `"error":${error}` : value !== undefined ? `"value":${value}` : "";
      const aborted = isAborted(signal(one.controller)) ? '"aborted":true' : "";
      this.#sendNumbered(one, "tool.result", outcome + (outcome && aborted && ",") + aborted);
    }

    /** @param {PageRun} one @param {string} method @param {string} fields */
    #sendNumbered(one, method, fields) {
      one.seq += 1;
      this.#sendFrame(one, method, `,"seq":${one.seq}${fields && ","}${fields}`);
    }

    /** @param {PageRun} one @param {string} method @param {string} fields */
    #sendFrame(one, method, fields) {
      if (one.run) this.#send(`{"method":"${method}","params":{"run":${stringify(one.run)}${fields}}}`);
    }
  }

  modules.ToolRuns = ToolRuns;
})();
