// WebMCP for browsers that have none, as Chromium 156 has it: `document.modelContext`, without progress (B3).
"use strict";
(() => {
  /** @type {Parts} */
  const parts = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.parts")];
  const { abort, AbortController, apply, attribute, defineProperty, dispatch, DOMException } = parts.builtins;
  const { Event, EventTarget, isAborted, listen, parse, reason, signal, String } = parts.builtins;
  const { hasOwn, method, TypeError } = parts.builtins;
  const { defineHandler, expose, makeEvent, quiet } = parts.events;
  const { encode } = parts.encoding;
  const world = /** @type {any} */ (globalThis);
  const { Promise } = world;
  const fits = method(RegExp.prototype, "test");
  const NAME = /^[A-Za-z0-9_.-]{1,128}$/;

  const ToolActivatedEvent = makeEvent("ToolActivatedEvent", { __proto__: null, toolName: "" });
  const ToolCancelEvent = makeEvent("ToolCancelEvent", { __proto__: null, toolName: "" });
  const secret = {}; // who has it may construct

  class ModelContext extends EventTarget {
    /** @type {Record<string, any>} */
    #tools = /** @type {any} */ ({ __proto__: null });

    constructor() {
      if (arguments[0] !== secret) throw new TypeError("Illegal constructor");
      super();
    }

    /** @param {any} tool @param {any} options */
    async registerTool(tool, options = {}) {
      const tools = own(this).#tools;
      const entry = readTool(tool);
      const given = readOptions(options).signal;
      if (given !== undefined && isAborted(given)) throw reason(given);
      if (tools[entry.name]) throw new DOMException("Duplicate tool name", "InvalidStateError");
      tools[entry.name] = entry;
      this.#changed();
      if (given === undefined) return;
      listen(given, "abort", () => {
        if (tools[entry.name] !== entry) return;
        delete tools[entry.name];
        this.#changed();
      });
    }

    async getTools(_options = {}) {
      const tools = own(this).#tools;
      /** @type {any[]} */
      const list = [];
      for (const name in tools) {
        const item = { ...parse(tools[name].words), origin: world.origin, window: world };
        defineProperty(list, list.length, quiet(item, true, true));
      }
      return list;
    }

    /** @param {any} tool @param {any} input @param {any} options */
    async executeTool(tool, input = undefined, options = {}) {
      const tools = own(this).#tools;
      if (!isObject(tool)) throw new TypeError("The tool is not an object");
      const entry = tools[tool.name];
      if (!entry || tool.window !== world) throw new DOMException("Tool not found", "UnknownError");
      if (input !== undefined && (typeof input !== "object" || input === null)) {
        throw new TypeError("The tool's input is not an object");
      }
      const given = input === undefined ? {} : parse(encode(input) ?? "{}");
      const caller = readOptions(options).signal;
      if (caller !== undefined && isAborted(caller)) throw reason(caller);
      return await this.#run(entry, given, caller);
    }

    /** @param {any} entry @param {any} input @param {any} caller its signal */
    #run(entry, input, caller) {
      const controller = new AbortController();
      return new Promise((/** @type {any} */ resolve, /** @type {any} */ reject) => {
        if (caller !== undefined) {
          listen(caller, "abort", () => {
            abort(controller);
            reject(reason(caller));
            dispatch(this, new ToolCancelEvent("toolcancel", { __proto__: null, toolName: entry.name }));
          });
        }
        dispatch(this, new ToolActivatedEvent("toolactivated", { __proto__: null, toolName: entry.name }));
        settle(
          () => apply(entry.execute, undefined, [input, { signal: signal(controller) }]),
          resolve,
          reject,
        );
      });
    }

    /** Tells the page, in a task of its own. */
    #changed() {
      parts.builtins.setTimeout(() => dispatch(this, new Event("toolchange")), 0);
    }

    /** Whether it is one of ours. @param {any} it */
    static is(it) {
      return typeof it === "object" && it !== null && #tools in it;
    }
  }

  /** @param {any} it @returns {ModelContext} */
  const own = (it) => {
    if (!isContext(it)) throw new TypeError("Illegal invocation");
    return it;
  };

  /** @param {() => any} call @param {(value: any) => void} resolve @param {(error: any) => void} reject */
  const settle = async (call, resolve, reject) => {
    try {
      const value = await call();
      resolve(typeof value === "string" ? value : String(encode(value)));
    } catch (error) {
      reject(error);
    }
  };

  /** @param {any} it */
  const isObject = (it) => (typeof it === "object" && it !== null) || typeof it === "function";

  /** What a browser would read as options: an object, or nothing. @param {any} options */
  const readOptions = (options) => {
    if (options !== null && !isObject(options)) throw new TypeError("The options are not an object");
    return options ?? {};
  };

  /** @param {any} tool @param {string} member */
  const required = (tool, member) => {
    if (tool[member] === undefined) throw new TypeError(`The tool has no ${member}`);
    return String(tool[member]);
  };

  /** @param {any} tool */
  const readTool = (tool) => {
    if (!isObject(tool)) throw new TypeError("The tool is not an object");
    const { execute, inputSchema, annotations } = tool;
    const name = required(tool, "name");
    const description = required(tool, "description");
    if (typeof execute !== "function") throw new TypeError("The tool's execute is not a function");
    if (inputSchema !== undefined && !isObject(inputSchema)) {
      throw new TypeError("The tool's inputSchema is not an object");
    }
    if (!fits(NAME, name)) throw new DOMException("Invalid tool name", "InvalidStateError");
    if (description === "") throw new DOMException("A tool needs a description", "InvalidStateError");
    const title = tool.title === undefined ? "" : String(tool.title);
    const texts = parts.encoding.object({ name, title, description });
    const schema = inputSchema === undefined ? "" : `,"inputSchema":${encode(inputSchema)}`;
    const hints = annotations === undefined ? "" : `,"annotations":${encode(annotations)}`;
    return { name, execute, words: `${parts.builtins.slice(texts, 0, -1)}${schema}${hints}}` };
  };

  const Context = /** @type {any} */ (ModelContext);
  const isContext = ModelContext.is;
  delete (/** @type {any} */ (ModelContext).is);

  const isDocument = attribute(Document.prototype, "URL"); // throws for anything else
  /** @type {any} */
  let held = null; // the newest document and its context: a frame's window may get another document
  const access = {
    get modelContext() {
      isDocument(this);
      if (/** @type {any} */ (this) !== world.document) return null;
      if (held?.document !== this) held = { document: this, context: new Context(secret) };
      return held.context;
    },
  };

  /** Puts it all where a browser would have it. */
  parts.supply = () => {
    const { prototype } = ModelContext;
    for (const name in { registerTool: 0, getTools: 0, executeTool: 0 }) {
      if (!hasOwn(prototype, name)) continue;
      defineProperty(prototype, name, quiet(/** @type {any} */ (prototype)[name], true, true));
    }
    defineHandler(prototype, "toolchange", isContext);
    defineHandler(prototype, "toolactivated", isContext);
    defineHandler(prototype, "toolcancel", isContext);
    defineProperty(prototype, Symbol.toStringTag, quiet("ModelContext", false));
    const got = /** @type {any} */ (parts.builtins.getOwnPropertyDescriptor(access, "modelContext"));
    defineProperty(Document.prototype, "modelContext", { ...got, enumerable: true });
    expose("ModelContext", ModelContext);
    expose("ToolActivatedEvent", ToolActivatedEvent);
    expose("ToolCancelEvent", ToolCancelEvent);
  };
})();
