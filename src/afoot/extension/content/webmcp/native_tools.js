// NativeTools: tools that only the browser knows, of forms or registered before our script ran. The relay lists and runs
// them; they cannot report progress (B3).
"use strict";
(() => {
  /** @type {Modules} */
  const modules = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.modules")];

  const UPDATE_DELAY_MS = 100;

  /** The browser's own context, if it has one and this document may use it. @returns {any} */
  const modelContext = () => /** @type {any} */ (document).modelContext;

  class NativeTools {
    /** @type {Map<string, any>} */
    #tools = new Map();
    #runs;
    #timers;
    #onChange;
    #isPageUnreachable;
    /** @type {any} */
    #context = null; // the one whose events are listened to
    #isScheduled = false;

    /**
     * @param {any} runs
     * @param {any} timers
     * @param {() => void} onChange
     * @param {() => boolean} isPageUnreachable whether our script in the page's world cannot be reached
     */
    constructor(runs, timers, onChange, isPageUnreachable) {
      this.#runs = runs;
      this.#timers = timers;
      this.#onChange = onChange;
      this.#isPageUnreachable = isPageUnreachable;
    }

    /** Listens to changes of the browser's list, and again if there is another document. */
    watch() {
      // Chromium 156 crashes if the context of a frame's initial document was touched and a `javascript:` URL then
      // fills it.
      if (location.href === "about:blank") return;
      if (typeof modelContext()?.getTools !== "function" || modelContext() === this.#context) return;
      this.#context = modelContext();
      this.#isScheduled = false;
      this.#tools.clear();
      this.#context.addEventListener("toolchange", () => this.#scheduleUpdate());
      this.#scheduleUpdate();
    }

    #scheduleUpdate() {
      if (this.#isScheduled) return;
      this.#isScheduled = true;
      this.#timers.later(UPDATE_DELAY_MS, () => this.#update());
    }

    async #update() {
      this.#isScheduled = false;
      // Chromium 156 crashes as a whole now and then if getTools is called here while a frame of another site loads. It
      // is called only where it can have a tool that the page's own world does not.
      const isNeeded = this.#isPageUnreachable() || document.querySelector("form[toolname]") !== null;
      const asked = isNeeded ? modelContext().getTools() : [];
      /** @type {any[]} */
      const tools = await Promise.resolve(asked).catch(() => []); // a permissions policy may forbid it
      this.#tools = new Map(tools.filter((tool) => tool.window === window).map((tool) => [tool.name, tool]));
      this.#onChange();
    }

    /**
     * Descriptions of the tools beside those of the page's own world.
     * @param {Set<string>} names that the page's own tools ever had @param {any[]} pageTools those that there are
     */
    list(names, pageTools) {
      const pageNames = new Set(pageTools.map((tool) => tool.name));
      const isOwn = (/** @type {string} */ name) =>
        pageNames.has(name) || (names.has(name) && !findForm(name));
      const own = [...this.#tools.values()].filter((tool) => !isOwn(tool.name));
      return own.map((tool) => {
        const description = { ...tool, outputSchema: tool.outputSchema, progress: false };
        return JSON.parse(
          modules.describeTool({ ...description, form: needsPerson(tool.name) || undefined }),
        );
      });
    }

    /** Runs one. @param {string} run @param {string} name @param {any} input */
    async run(run, name, input) {
      const one = this.#runs.open(run, name);
      if (one === null) return;
      const message = personMessage(name);
      if (message) this.#runs.waitForPerson(one, message);
      const call = async (/** @type {any} */ { signal }) =>
        readResult(await modelContext().executeTool(this.#tools.get(name), input, { signal }));
      await this.#runs.perform(one, call).catch(() => {}); // the run has sent its end
    }
  }

  /** Whether a tool is a form that a person sends. @param {string} name */
  const needsPerson = (name) => findForm(name)?.hasAttribute("toolautosubmit") === false;

  /** The request to the person who sends the form of a tool; "" if nobody needs to. @param {string} name */
  const personMessage = (name) =>
    needsPerson(name) ? `the form ${name} in the tab is filled in; send it there` : "";

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

  modules.NativeTools = NativeTools;
  modules.personMessage = personMessage;
})();
