// `registerTool` and `executeTool` as pages see them: the browser's (or a polyfill's) own, and around them progress.
"use strict";
(() => {
  /** @type {Parts} */
  const parts = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.parts")];
  const { apply, create, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, hasOwn } = parts.builtins;
  const { isAborted, listen, objects, ownKeys, parse, reason, signal, source, stringify } = parts.builtins;
  const { announce, makeMonitor } = parts.events;
  const { clean } = parts.encoding;
  const world = /** @type {any} */ (globalThis);
  const IS_OPAQUE = world.origin === "null";

  /**
   * A tool that the page registered with us around it: its words, whose it is, the page's function, and ours.
   * @typedef {{name: string, context: any, document: any, words: string, tool: any, execute: any, call: any}} Entry
   */

  class Wrapping {
    #runs;
    #shelf;
    #tickets = new parts.Tickets();

    /** @param {any} runs @param {any} shelf where tools are put that were registered */
    constructor(runs, shelf) {
      this.#runs = runs;
      this.#shelf = shelf;
    }

    /**
     * Wraps the methods where they are defined, with the attributes that they have there.
     * @param {any} methods a context, or what it has them from @returns {any} what there was
     */
    around(methods) {
      const before = { __proto__: null, getTools: methods.getTools, executeTool: null, isNative: true };
      replace(methods, "registerTool", (/** @type {any} */ own) => {
        before.isNative = isNative(own);
        return this.#registerTool(own);
      });
      replace(methods, "executeTool", (/** @type {any} */ own) => {
        before.executeTool = own;
        return this.#executeTool(own);
      });
      return before;
    }

    /** @param {any} own */
    #registerTool(own) {
      const wrapping = this;
      return {
        /** @param {any} tool */
        async registerTool(tool) {
          const entry = wrapping.#read(this, tool);
          if (entry === null) return await apply(own, this, arguments);
          const options = arguments[1];
          wrapping.#shelf.note(entry.name);
          const unregister = typeof options === "object" && options !== null ? options.signal : undefined;
          const done = await apply(own, this, [wrapping.#hand(tool, entry), options]);
          wrapping.#shelf.add(entry, unregister);
          return done;
        },
      }.registerTool;
    }

    /** What we know of a tool; null for what is none, of which the browser says so. @param {any} context @param {any} tool */
    #read(context, tool) {
      try {
        if (typeof tool?.execute !== "function") return null;
        const words = parts.describe(tool);
        const { document } = world;
        return { name: parse(words).name, context, document, words, tool, execute: tool.execute, call: null };
      } catch {
        return null;
      }
    }

    /**
     * The tool as the browser gets it: the page's own object but for `execute`. Getters still see that object, as
     * those of a class may look into private fields.
     * @param {any} tool @param {Entry} entry
     */
    #hand(tool, entry) {
      const execute = (/** @type {any} */ input, /** @type {any} */ context) =>
        this.#perform(entry, input, context);
      const handed = create(tool, {
        __proto__: null,
        execute: { __proto__: null, value: execute, enumerable: true },
      });
      for (let from = tool; from !== null && from !== objects; from = getPrototypeOf(from)) {
        const keys = ownKeys(from);
        for (let i = 0; i < keys.length; i += 1) {
          const found = getOwnPropertyDescriptor(from, keys[i]) ?? {}; // a proxy may not know its own keys
          if (!hasOwn(found, "get") || found.get === undefined || hasOwn(handed, keys[i])) continue;
          defineProperty(
            handed,
            keys[i],
            parts.events.attributeOf(() => apply(found.get, tool, [])),
          );
        }
      }
      entry.call = execute;
      return handed;
    }

    /** A call of a tool, whoever made it. @param {Entry} entry @param {any} input @param {any} [context] the browser's */
    #perform(entry, input, context) {
      const ticket = this.#tickets.take(input);
      const run = ticket?.run ?? this.#runs.open("", entry.name);
      const stop = context?.signal;
      if (stop !== undefined) {
        const pass = () =>
          this.#runs.stop(run, reason(ticket?.caller && isAborted(ticket.caller) ? ticket.caller : stop));
        if (isAborted(stop)) pass();
        else listen(stop, "abort", pass);
      }
      const native = typeof context?.reportProgress === "function" ? context.reportProgress : null;
      run.heard = (/** @type {any} */ report) => {
        if (native !== null) tellNative(native, context, report);
        else announce(entry.context, "toolprogress", run, report);
        if (ticket?.monitor) announce(ticket.monitor, "progress", run, report);
      };
      const call = (/** @type {any} */ ours) => apply(entry.execute, entry.tool, [input, ours]);
      return this.#runs.perform(run, call, context);
    }

    /** @param {any} own */
    #executeTool(own) {
      const wrapping = this;
      return {
        /** @param {any} tool */
        async executeTool(tool) {
          const asked = readAsked(tool, arguments[1], arguments[2]);
          const entry = wrapping.#shelf.find(this, tool);
          if (entry === undefined && asked.monitor === null) return await apply(own, this, arguments);
          const run = wrapping.#runs.open("", asked.name);
          const ticket = { run, monitor: /** @type {any} */ (null), caller: asked.options?.signal };
          if (asked.monitor !== null) {
            ticket.monitor = makeMonitor(run);
            apply(asked.monitor, undefined, [ticket.monitor]);
          }
          const input = entry === undefined ? asked.input : wrapping.#ticketed(asked.input, ticket);
          try {
            return await apply(own, this, [tool, input, asked.options]);
          } finally {
            wrapping.#tickets.drop(ticket);
          }
        },
      }.executeTool;
    }

    /** The input with a ticket in it, in the form that its caller chose: an object, or JSON text. @param {any} input @param {any} ticket */
    #ticketed(input, ticket) {
      if (input === undefined) return this.#tickets.issue({}, ticket);
      if (this.#tickets.fits(input)) return this.#tickets.issue(input, ticket);
      if (typeof input !== "string") return input;
      try {
        const read = parse(input);
        return this.#tickets.fits(read) ? stringify(this.#tickets.issue(read, ticket)) : input;
      } catch {
        return input; // no JSON: whoever takes it says so
      }
    }

    /**
     * Runs a tool for the gateway: through the browser, which then knows of it; a polyfill's straight.
     * @param {any} run @param {Entry} entry @param {any} input @param {any} before what `around` gave
     */
    async dispatch(run, entry, input, before) {
      const ticket = { run, monitor: null };
      const given = this.#tickets.issue(input, ticket);
      try {
        // The browser does not run tools of a page without an origin, though it takes them.
        if (!before.isNative || IS_OPAQUE) return await entry.call(given);
        const tool = await findTool(before.getTools, entry);
        return await apply(before.executeTool, entry.context, [
          tool,
          clean(given),
          { signal: signal(run.controller) },
        ]);
      } finally {
        this.#tickets.drop(ticket);
      }
    }
  }

  /** @param {any} own @param {any} context @param {any} report */
  const tellNative = (own, context, report) => {
    try {
      apply(own, context, [report]);
    } catch {
      // It wants another form of report than ours.
    }
  };

  /**
   * What a page asks of `executeTool`. Issue 196 has `monitor` beside the input; no JSON has a function there.
   * @param {any} tool @param {any} input @param {any} options
   */
  const readAsked = (tool, input, options) => {
    const asked = { name: typeof tool?.name === "string" ? tool.name : "", monitor: null, input, options };
    if (typeof options?.monitor === "function") {
      asked.monitor = options.monitor;
    } else if (typeof input === "object" && typeof input?.monitor === "function") {
      asked.monitor = input.monitor;
      asked.input = { ...input };
      delete asked.input.monitor;
    }
    return asked;
  };

  /** @param {any} getTools @param {Entry} entry */
  const findTool = async (getTools, entry) => {
    const tools = await apply(getTools, entry.context, []);
    for (let i = 0; i < tools.length; i += 1) {
      if (tools[i].name === entry.name && tools[i].window === world) return tools[i];
    }
    throw new parts.builtins.DOMException(`there is no tool ${entry.name} here any more`, "NotFoundError");
  };

  const OWN = /\{\s*\[native code\]\s*\}$/;
  const ends = parts.builtins.method(RegExp.prototype, "test");

  /** @param {any} own */
  const isNative = (own) => ends(OWN, source(own));

  /** @param {any} context @param {string} name @param {(own: any) => any} wrap */
  const replace = (context, name, wrap) => {
    let holder = context;
    while (holder !== null && !hasOwn(holder, name)) holder = getPrototypeOf(holder);
    const found = holder === null ? undefined : getOwnPropertyDescriptor(holder, name);
    if (typeof found?.value !== "function" || !(found.configurable || found.writable)) return;
    const value = wrap(found.value);
    defineProperty(holder, name, { ...found, value });
  };

  parts.Wrapping = Wrapping;
})();
