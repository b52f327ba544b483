// A clock that also goes in a hidden page, where the browser holds timers back for up to a minute.
"use strict";
(() => {
  /** @type {Parts} */
  const parts = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.parts")];
  const { attribute, clearTimeout, now, setTimeout } = parts.builtins;
  const isHidden = attribute(Document.prototype, "hidden");

  class Clock {
    /** @type {Record<string, () => void>} */
    #sleeping = /** @type {any} */ ({ __proto__: null });
    #count = 0;
    #mark;
    #ask;

    /**
     * @param {string} mark the first letter of its ids
     * @param {(text: string) => void} ask sends a frame `wake {id, ms}`, which `woken {id}` answers
     */
    constructor(mark, ask) {
      this.#mark = mark;
      this.#ask = ask;
    }

    now() {
      return now();
    }

    /** Does something after so many ms; gives a function that calls it off. @param {number} ms @param {() => void} then */
    later(ms, then) {
      this.#count += 1;
      const id = `${this.#mark}${this.#count}`;
      const callOff = () => {
        clearTimeout(timer);
        delete this.#sleeping[id];
      };
      const wake = () => {
        callOff();
        then();
      };
      const timer = setTimeout(wake, ms);
      if (isHidden(document)) {
        this.#sleeping[id] = wake;
        this.#ask(`{"method":"wake","params":{"id":"${id}","ms":${ms}}}`);
      }
      return callOff;
    }

    /** The time has come, says who was asked. @param {string} id */
    woken(id) {
      this.#sleeping[id]?.();
    }
  }

  parts.Clock = Clock;
})();
