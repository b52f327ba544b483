// RunCorrelation: finds the run of a call again after it went through the browser's own `executeTool`. The id of the run
// travels in the input, under `_meta`.
"use strict";
(() => {
  /** @type {Modules} */
  const modules = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.modules")];
  const { getPrototypeOf, hasOwn, objects } = modules.builtins;

  const META_KEY = "dev.afoot/run";

  /**
   * A run whose tool will be called: its monitor, and its caller's signal. `previousValue` is the value that had our
   * key in `_meta`, `replacedMeta` a `_meta` that is no object, if there was one.
   * @typedef {{run: any, monitor: EventTarget | null, caller?: AbortSignal, hadMeta?: boolean, previousValue?: any,
   *   replacedMeta?: any}} Correlation
   */

  class RunCorrelation {
    /** @type {Record<string, Correlation>} */
    #pending = /** @type {any} */ ({ __proto__: null });

    /**
     * Whether an id fits into an input: it must be a plain object, which JSON copies member by member.
     * @param {any} input
     */
    canAttach(input) {
      if (typeof input !== "object" || input === null || typeof input.toJSON === "function") return false;
      const kind = getPrototypeOf(input);
      return kind === objects || kind === null;
    }

    /**
     * A copy of an input with the id of its run.
     * @param {any} input
     * @param {Correlation} correlation
     */
    attach(input, correlation) {
      correlation.hadMeta = hasOwn(input, "_meta");
      this.#pending[correlation.run.id] = correlation;
      let meta = correlation.hadMeta ? input._meta : undefined;
      if (typeof meta !== "object" || meta === null || isArray(meta)) {
        correlation.replacedMeta = meta;
        meta = {};
      }
      correlation.previousValue = hasOwn(meta, META_KEY) ? meta[META_KEY] : undefined;
      return { ...input, _meta: { ...meta, [META_KEY]: correlation.run.id } };
    }

    /**
     * Removes the id from an input and returns its correlation; undefined if there is none of ours.
     * @param {any} input
     */
    detach(input) {
      if (typeof input !== "object" || input === null || !hasOwn(input, "_meta")) return undefined;
      const meta = input._meta;
      if (typeof meta !== "object" || meta === null || !hasOwn(meta, META_KEY)) return undefined;
      const correlation = typeof meta[META_KEY] === "string" ? this.#pending[meta[META_KEY]] : undefined;
      if (correlation === undefined) return undefined;
      delete this.#pending[correlation.run.id];
      if (correlation.previousValue === undefined) delete meta[META_KEY];
      else meta[META_KEY] = correlation.previousValue;
      if (!correlation.hadMeta) delete input._meta;
      else if (correlation.replacedMeta !== undefined) input._meta = correlation.replacedMeta;
      return correlation;
    }

    /** Forgets a run whose tool was not called. @param {Correlation} correlation */
    forget(correlation) {
      delete this.#pending[correlation.run.id];
    }
  }

  const isArray = modules.builtins.isArray;

  modules.RunCorrelation = RunCorrelation;
})();
