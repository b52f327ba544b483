// A polyfill of WebMCP for browsers that have none: `document.modelContext` as in Chromium 156, without progress (B3).
"use strict";
(() => {
  /** @type {Modules} */
  const modules = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.modules")];
  const { abort, AbortController, apply, attribute, defineProperty, dispatch, DOMException } =
    modules.builtins;
  const { Event, EventTarget, isAborted, listen, parse, reason, signal, String } = modules.builtins;
  const { hasOwn, member, method, TypeError } = modules.builtins;
  const { defineHandlerAttribute, exposeInterface, createEventClass, hiddenProperty } = modules.events;
  const { encode } = modules.encoding;
  const world = /** @type {any} */ (globalThis);
  const { Promise } = world;
  const matches = method(RegExp.prototype, "test");
  const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;

  const ToolActivatedEvent = createEventClass("ToolActivatedEvent", { __proto__: null, toolName: "" });
  const ToolCancelEvent = createEventClass("ToolCancelEvent", { __proto__: null, toolName: "" });
  const constructionToken = {}; // the constructor accepts nothing else

  class ModelContext extends EventTarget {
    /** @type {Record<string, any>} */
    #tools = /** @type {any} */ ({ __proto__: null });

    constructor() {
      if (arguments[0] !== constructionToken) throw new TypeError("Illegal constructor");
      super();
    }

    /** @param {any} tool @param {any} options */
    async registerTool(tool, options = {}) {
      const tools = checkContext(this).#tools;
      const entry = readTool(tool);
      const given = readSignal(options);
      if (given !== undefined && isAborted(given)) throw reason(given);
      if (tools[entry.name]) throw new DOMException("Duplicate tool name", "InvalidStateError");
      tools[entry.name] = entry;
      this.#fireToolChange();
      if (given === undefined) return;
      listen(given, "abort", () => {
        if (tools[entry.name] !== entry) return;
        delete tools[entry.name];
        this.#fireToolChange();
      });
    }

    async getTools(_options = {}) {
      const tools = checkContext(this).#tools;
      /** @type {any[]} */
      const list = [];
      for (const name in tools) {
        const item = { ...parse(tools[name].description), origin: world.origin, window: world };
        defineProperty(list, list.length, hiddenProperty(item, true, true));
      }
      return list;
    }

    /** @param {any} tool @param {any} input @param {any} options */
    async executeTool(tool, input = undefined, options = {}) {
      const tools = checkContext(this).#tools;
      if (!isObject(tool)) throw new TypeError("The tool is not an object");
      const entry = tools[tool.name];
      if (!entry || tool.window !== world) throw new DOMException("Tool not found", "UnknownError");
      if (input !== undefined && (typeof input !== "object" || input === null)) {
        throw new TypeError("The tool's input is not an object");
      }
      const given = input === undefined ? {} : parse(encode(input) ?? "{}");
      const caller = readSignal(options);
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
        runTool(
          () => apply(entry.execute, undefined, [input, { signal: signal(controller) }]),
          resolve,
          reject,
        );
      });
    }

    /** Fires `toolchange` in a task of its own. */
    #fireToolChange() {
      modules.builtins.setTimeout(() => dispatch(this, new Event("toolchange")), 0);
    }

    /** Whether an object is a context of this polyfill. @param {any} it */
    static is(it) {
      return typeof it === "object" && it !== null && #tools in it;
    }
  }

  /** @param {any} it @returns {ModelContext} */
  const checkContext = (it) => {
    if (!isContext(it)) throw new TypeError("Illegal invocation");
    return it;
  };

  /**
   * @param {() => any} call
   * @param {(value: any) => void} resolve
   * @param {(error: any) => void} reject
   */
  const runTool = async (call, resolve, reject) => {
    try {
      const value = await call();
      resolve(typeof value === "string" ? value : String(encode(value)));
    } catch (error) {
      reject(error);
    }
  };

  /** @param {any} it */
  const isObject = (it) => (typeof it === "object" && it !== null) || typeof it === "function";

  /** The signal of options, which are an object or nothing, as for a browser. @param {any} options */
  const readSignal = (options) => {
    if (options !== null && !isObject(options)) throw new TypeError("The options are not an object");
    return options === null ? undefined : member(options, "signal");
  };

  /** @param {any} tool @param {string} member */
  const requiredText = (tool, member) => {
    if (tool[member] === undefined) throw new TypeError(`The tool has no ${member}`);
    return String(tool[member]);
  };

  /** @param {any} tool */
  const readTool = (tool) => {
    if (!isObject(tool)) throw new TypeError("The tool is not an object");
    const { execute } = tool;
    const inputSchema = member(tool, "inputSchema");
    const annotations = member(tool, "annotations");
    const name = requiredText(tool, "name");
    const description = requiredText(tool, "description");
    if (typeof execute !== "function") throw new TypeError("The tool's execute is not a function");
    if (inputSchema !== undefined && !isObject(inputSchema)) {
      throw new TypeError("The tool's inputSchema is not an object");
    }
    if (!matches(TOOL_NAME, name)) throw new DOMException("Invalid tool name", "InvalidStateError");
    if (description === "") throw new DOMException("A tool needs a description", "InvalidStateError");
    const title = member(tool, "title") === undefined ? "" : String(tool.title);
    const texts = modules.encoding.encodeFields({ name, title, description });
    const schema = inputSchema === undefined ? "" : `,"inputSchema":${encode(inputSchema)}`;
    const hints = isObject(annotations) ? `,"annotations":${encode(annotations) ?? "{}"}` : "";
    return { name, execute, description: `${modules.builtins.slice(texts, 0, -1)}${schema}${hints}}` };
  };

  const Context = /** @type {any} */ (ModelContext);
  const isContext = ModelContext.is;
  delete (/** @type {any} */ (ModelContext).is);

  const isDocument = attribute(Document.prototype, "URL"); // throws for anything else
  /** @type {any} */
  let current = null; // the document and its context; the window of a frame may get another document
  const documentAccessor = {
    get modelContext() {
      isDocument(this);
      if (/** @type {any} */ (this) !== world.document) return null;
      if (current?.document !== this) current = { document: this, context: new Context(constructionToken) };
      return current.context;
    },
  };

  /** Defines the interfaces and `document.modelContext`. */
  modules.installPolyfill = () => {
    const { prototype } = ModelContext;
    for (const name in { registerTool: 0, getTools: 0, executeTool: 0 }) {
      if (!hasOwn(prototype, name)) continue;
      defineProperty(prototype, name, hiddenProperty(/** @type {any} */ (prototype)[name], true, true));
    }
    defineHandlerAttribute(prototype, "toolchange", isContext);
    defineHandlerAttribute(prototype, "toolactivated", isContext);
    defineHandlerAttribute(prototype, "toolcancel", isContext);
    defineProperty(prototype, Symbol.toStringTag, hiddenProperty("ModelContext", false));
    const got = /** @type {any} */ (
      modules.builtins.getOwnPropertyDescriptor(documentAccessor, "modelContext")
    );
    defineProperty(Document.prototype, "modelContext", { __proto__: null, ...got, enumerable: true });
    exposeInterface("ModelContext", ModelContext);
    exposeInterface("ToolActivatedEvent", ToolActivatedEvent);
    exposeInterface("ToolCancelEvent", ToolCancelEvent);
  };
})();
