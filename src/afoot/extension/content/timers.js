// Timers: timers that also run in a hidden page, where the browser delays them by up to a minute. The carrier wakes it.
"use strict";
(() => {
  /** @type {Modules} */
  const modules = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.modules")];
  const { attribute, clearTimeout, now, setTimeout } = modules.builtins;
  const isHidden = attribute(Document.prototype, "hidden");

  class Timers {
    /** @type {Record<string, () => void>} */
    #waiting = /** @type {any} */ ({ __proto__: null });
    #count = 0;
    #prefix;
    #requestWake;

    /**
     * @param {string} prefix the first letter of its ids
     * @param {(text: string) => void} requestWake sends a frame `wake {id, ms}`, which `woken {id}` answers
     */
    constructor(prefix, requestWake) {
      this.#prefix = prefix;
      this.#requestWake = requestWake;
    }

    now() {
      return now();
    }

    /**
     * Calls a function after so many ms; returns a function that cancels.
     * @param {number} ms
     * @param {() => void} then
     */
    later(ms, then) {
      this.#count += 1;
      const id = `${this.#prefix}${this.#count}`;
      const cancel = () => {
        clearTimeout(timer);
        delete this.#waiting[id];
      };
      const wake = () => {
        cancel();
        then();
      };
      const timer = setTimeout(wake, ms);
      if (isHidden(document)) {
        this.#waiting[id] = wake;
        this.#requestWake(`{"method":"wake","params":{"id":"${id}","ms":${ms}}}`);
      }
      return cancel;
    }

    /** The carrier says that the time is over. @param {string} id */
    onWoken(id) {
      this.#waiting[id]?.();
    }
  }

  modules.Timers = Timers;
})();
