// The tools that a page has registered and not withdrawn, and how they are told.
"use strict";
(() => {
  /** @type {Parts} */
  const parts = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.parts")];
  const { isAborted, listen, parse, String } = parts.builtins;
  const { cut, encode, object } = parts.encoding;
  const world = /** @type {any} */ (globalThis);

  const LISTED = 500; // the rest is counted
  const WORDS_LIMIT = 16_000;
  const SCHEMA_LIMIT = 256 * 1024;
  const ALL_LIMIT = 8 * 1024 * 1024; // characters of all together
  const GATHER_MS = 100;

  /** The JSON text of what a page says of a tool; all of it is the page's own word. @param {any} tool */
  const describe = (tool) => {
    const words = {
      name: textOf(tool.name),
      title: textOf(tool.title),
      description: textOf(tool.description),
    };
    let text = parts.builtins.slice(object({ ...words, progress: tool.progress, form: tool.form }), 0, -1);
    for (const part in { __proto__: null, inputSchema: 0, outputSchema: 0, annotations: 0 }) {
      const encoded = schemaOf(tool[part]);
      if (encoded !== undefined) text += `,"${part}":${encoded}`;
    }
    return `${text}}`;
  };

  /** @param {any} words */
  const textOf = (words) => (words === undefined ? "" : cut(String(words), WORDS_LIMIT));

  /** A schema is an object; some write it as JSON text. @param {any} schema @returns {string | undefined} */
  const schemaOf = (schema) => {
    const value = typeof schema === "string" ? parse(schema) : schema;
    return typeof value === "object" && value !== null ? encode(value) : undefined;
  };

  class Shelf {
    /** @type {Record<string, any>} */
    #entries = /** @type {any} */ ({ __proto__: null });
    /** @type {Record<string, boolean>} */
    #noted = /** @type {any} */ ({ __proto__: null });
    #send;
    #clock;
    /** @type {any} */
    #gathering = null; // the document whose timer runs: a window may get another one

    /** @param {(text: string) => void} send @param {any} clock */
    constructor(send, clock) {
      this.#send = send;
      this.#clock = clock;
    }

    /** A tool of this name is about to be registered. @param {string} name */
    note(name) {
      this.#noted[name] = true;
    }

    /** The frame with all names that tools ever had here: what the browser lists besides is not ours. */
    names() {
      let names = "";
      for (const name in this.#noted) names += (names && ",") + parts.builtins.stringify(name);
      return `{"method":"tab.names","params":{"names":[${names}]}}`;
    }

    /** A tool was registered; its signal will withdraw it. @param {any} entry @param {AbortSignal | undefined} unregister */
    add(entry, unregister) {
      if (unregister !== undefined && isAborted(unregister)) return;
      this.#entries[entry.name] = entry;
      this.changed();
      if (unregister === undefined) return;
      listen(unregister, "abort", () => {
        if (this.#entries[entry.name] !== entry) return;
        delete this.#entries[entry.name];
        this.changed();
      });
    }

    /** The entry of a tool that somebody holds. @param {any} context @param {any} tool */
    find(context, tool) {
      const entry = typeof tool?.name === "string" ? this.#entries[tool.name] : undefined;
      return entry?.context === context && tool.window === world ? entry : undefined;
    }

    /** The entry of a name. @param {string} name */
    get(name) {
      const entry = this.#entries[name];
      return entry?.document === world.document ? entry : undefined;
    }

    /** Sends the list, soon. */
    changed() {
      if (this.#gathering === world.document) return;
      this.#gathering = world.document;
      this.#clock.later(GATHER_MS, () => {
        this.#gathering = null;
        this.#send(this.list());
      });
    }

    /** The frame with all tools. */
    list() {
      let tools = "";
      let listed = 0;
      let leftOut = 0;
      for (const name in this.#entries) {
        const { words, document } = this.#entries[name];
        if (document !== world.document) continue;
        const isListed =
          listed < LISTED && words.length <= SCHEMA_LIMIT && tools.length + words.length <= ALL_LIMIT;
        if (isListed) tools += (tools && ",") + words;
        if (isListed) listed += 1;
        else leftOut += 1;
      }
      return `{"method":"tab.tools","params":{"tools":[${tools}],"leftOut":${leftOut}}}`;
    }
  }

  parts.describe = describe;
  parts.Shelf = Shelf;
})();
