// Tools that only the browser knows: of forms, or registered before us. They are listed and run from the relay's world,
// and cannot report (B3).
"use strict";
(() => {
  /** @type {Parts} */
  const parts = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.parts")];

  const GATHER_MS = 100;

  /** The browser's own context, if it has one and this document may use it. @returns {any} */
  const context = () => /** @type {any} */ (document).modelContext;

  class NativeTools {
    /** @type {Map<string, any>} */
    #tools = new Map();
    #runs;
    #clock;
    #changed;
    #isAlone;
    /** @type {any} */
    #context = null; // the one that is followed
    #isGathering = false;

    /** @param {any} runs @param {any} clock @param {() => void} changed @param {() => boolean} isAlone out of the page's touch */
    constructor(runs, clock, changed, isAlone) {
      this.#runs = runs;
      this.#clock = clock;
      this.#changed = changed;
      this.#isAlone = isAlone;
    }

    /** Follows the browser's list; again, if there is another document. */
    watch() {
      // Chromium 156 crashes if the context of a frame's first document was looked at and a `javascript:` address
      // then fills it.
      if (location.href === "about:blank") return;
      if (typeof context()?.getTools !== "function" || context() === this.#context) return;
      this.#context = context();
      this.#isGathering = false;
      this.#tools.clear();
      this.#context.addEventListener("toolchange", () => this.#soon());
      this.#soon();
    }

    #soon() {
      if (this.#isGathering) return;
      this.#isGathering = true;
      this.#clock.later(GATHER_MS, () => this.#read());
    }

    async #read() {
      this.#isGathering = false;
      // Chromium 156 as a whole dies now and then if a list is asked for here while a frame of another site loads: it
      // is asked for only where it can tell of a tool that the page's own world does not.
      const isNeeded = this.#isAlone() || document.querySelector("form[toolname]") !== null;
      const asked = isNeeded ? context().getTools() : [];
      /** @type {any[]} */
      const tools = await Promise.resolve(asked).catch(() => []); // it may not be allowed here
      this.#tools = new Map(tools.filter((tool) => tool.window === window).map((tool) => [tool.name, tool]));
      this.#changed();
    }

    /**
     * What there is beside the page's own, as it is told.
     * @param {Set<string>} names that the page's own tools ever had @param {any[]} theirs those that there are
     */
    list(names, theirs) {
      const taken = new Set(theirs.map((tool) => tool.name));
      const isOwn = (/** @type {string} */ name) => taken.has(name) || (names.has(name) && !findForm(name));
      const own = [...this.#tools.values()].filter((tool) => !isOwn(tool.name));
      return own.map((tool) => {
        const words = { ...tool, outputSchema: tool.outputSchema, progress: false };
        return JSON.parse(parts.describe({ ...words, form: isWaiting(tool.name) || undefined }));
      });
    }

    /** Runs one. @param {string} run @param {string} name @param {any} input */
    async run(run, name, input) {
      const one = this.#runs.open(run, name);
      if (one === null) return;
      if (isWaiting(name)) this.#runs.ask(one, `the form ${name} in the tab is filled in; send it there`);
      const call = async (/** @type {any} */ { signal }) =>
        readResult(await context().executeTool(this.#tools.get(name), input, { signal }));
      await this.#runs.perform(one, call).catch(() => {}); // it has told its end
    }
  }

  /** Whether a tool is a form that a person sends. @param {string} name */
  const isWaiting = (name) => findForm(name)?.hasAttribute("toolautosubmit") === false;

  /** @param {string} name */
  const findForm = (name) => document.querySelector(`form[toolname=${JSON.stringify(name)}]`);

  /** The browser gives text: JSON, or a string as it was. @param {unknown} text */
  const readResult = (text) => {
    if (typeof text !== "string") return text;
    if (text === "undefined") return undefined;
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  };

  parts.NativeTools = NativeTools;
})();
