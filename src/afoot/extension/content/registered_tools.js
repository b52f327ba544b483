// RegisteredTools: the tools that a page has registered and not unregistered, and the frames that list them.
"use strict";
(() => {
  /** @type {Modules} */
  const modules = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.modules")];
  const { isAborted, listen, member, parse, String } = modules.builtins;
  const { truncate, encode, encodeFields } = modules.encoding;
  const world = /** @type {any} */ (globalThis);

  const MAX_TOOLS = 500; // more are counted as left out
  const MAX_TEXT = 16_000;
  const MAX_TOOL_TEXT = 256 * 1024;
  const MAX_LIST_TEXT = 8 * 1024 * 1024; // of all tools together
  const UPDATE_DELAY_MS = 100;

  /** The JSON text of a tool's description. All of it is untrusted. @param {any} tool */
  const describeTool = (tool) => {
    const texts = {
      name: shortText(tool.name),
      title: shortText(member(tool, "title")),
      description: shortText(tool.description),
    };
    const progress = member(tool, "progress") === false ? false : undefined;
    const form = member(tool, "form") === true || undefined;
    let text = modules.builtins.slice(encodeFields({ ...texts, progress, form }), 0, -1);
    for (const part in { __proto__: null, inputSchema: 0, outputSchema: 0, annotations: 0 }) {
      const encoded = encodeSchema(member(tool, part));
      if (encoded !== undefined) text += `,"${part}":${encoded}`;
    }
    return `${text}}`;
  };

  /** @param {any} text */
  const shortText = (text) => (text === undefined ? "" : truncate(String(text), MAX_TEXT));

  /**
   * A schema is an object; some pages write it as JSON text.
   * @param {any} schema
   * @returns {string | undefined}
   */
  const encodeSchema = (schema) => {
    const value = typeof schema === "string" ? parse(schema) : schema;
    return typeof value === "object" && value !== null ? encode(value) : undefined;
  };

  class RegisteredTools {
    /** @type {Record<string, any>} */
    #entries = /** @type {any} */ ({ __proto__: null });
    /** @type {Record<string, boolean>} */
    #names = /** @type {any} */ ({ __proto__: null });
    #send;
    #timers;
    /** @type {any} */
    #scheduledFor = null; // the document whose timer runs; a window may get another document

    /** @param {(text: string) => void} send @param {any} timers */
    constructor(send, timers) {
      this.#send = send;
      this.#timers = timers;
    }

    /** Notes the name of a tool before it is registered. @param {string} name */
    reserveName(name) {
      this.#names[name] = true;
    }

    /** The frame with every name that was ever registered here; other tools in the browser's list are native. */
    namesFrame() {
      let names = "";
      for (const name in this.#names) names += (names && ",") + modules.builtins.stringify(name);
      return `{"method":"tab.names","params":{"names":[${names}]}}`;
    }

    /**
     * Adds a registered tool; its signal removes it.
     * @param {any} entry
     * @param {AbortSignal | undefined} unregister
     */
    add(entry, unregister) {
      if (unregister !== undefined && isAborted(unregister)) return;
      this.#entries[entry.name] = entry;
      this.scheduleUpdate();
      if (unregister === undefined) return;
      listen(unregister, "abort", () => {
        if (this.#entries[entry.name] !== entry) return;
        delete this.#entries[entry.name];
        this.scheduleUpdate();
      });
    }

    /** The entry of a tool from `getTools`. @param {any} context @param {any} tool */
    find(context, tool) {
      const entry = typeof tool?.name === "string" ? this.#entries[tool.name] : undefined;
      return entry?.context === context && tool.window === world ? entry : undefined;
    }

    /** The entry with a name. @param {string} name */
    get(name) {
      const entry = this.#entries[name];
      return entry?.document === world.document ? entry : undefined;
    }

    /** Sends the list after a short delay. */
    scheduleUpdate() {
      if (this.#scheduledFor === world.document) return;
      this.#scheduledFor = world.document;
      this.#timers.later(UPDATE_DELAY_MS, () => {
        this.#scheduledFor = null;
        this.#send(this.toolsFrame());
      });
    }

    /** The frame with all tools. */
    toolsFrame() {
      let tools = "";
      let listed = 0;
      let leftOut = 0;
      for (const name in this.#entries) {
        const { description, document } = this.#entries[name];
        if (document !== world.document) continue;
        const isListed =
          listed < MAX_TOOLS &&
          description.length <= MAX_TOOL_TEXT &&
          tools.length + description.length <= MAX_LIST_TEXT;
        if (isListed) tools += (tools && ",") + description;
        if (isListed) listed += 1;
        else leftOut += 1;
      }
      return `{"method":"tab.tools","params":{"tools":[${tools}],"leftOut":${leftOut}}}`;
    }
  }

  modules.describeTool = describeTool;
  modules.RegisteredTools = RegisteredTools;
})();
