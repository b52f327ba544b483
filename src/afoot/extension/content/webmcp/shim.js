// WebMCPShim: wraps `registerTool` and `executeTool` of the browser, or of a polyfill, and adds progress.
"use strict";
(() => {
  /** @type {Modules} */
  const modules = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.modules")];
  const { apply, create, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, hasOwn } =
    modules.builtins;
  const { isAborted, listen, member, objects, ownKeys, parse, reason, signal, source, stringify } =
    modules.builtins;
  const { dispatchProgress, createMonitor } = modules.events;
  const { withoutPageToJSON } = modules.encoding;
  const world = /** @type {any} */ (globalThis);
  const IS_OPAQUE = world.origin === "null";

  /**
   * A tool that the page registered: its description as JSON, its context, the page's `execute`, and our wrapper `call`.
   * @typedef {{name: string, context: any, document: any, description: string, tool: any, execute: any, call: any}} RegisteredTool
   */

  class WebMCPShim {
    #runs;
    #tools;
    #correlation = new modules.RunCorrelation();

    /** @param {any} runs @param {any} tools the RegisteredTools */
    constructor(runs, tools) {
      this.#runs = runs;
      this.#tools = tools;
    }

    /**
     * Wraps the methods on the object that defines them, and keeps their property attributes.
     * @param {any} methods a context, or its prototype @returns {any} the original methods
     */
    install(methods) {
      const original = { __proto__: null, getTools: methods.getTools, executeTool: null, isNative: true };
      replaceMethod(methods, "registerTool", (/** @type {any} */ own) => {
        original.isNative = isNative(own);
        return this.#registerTool(own);
      });
      replaceMethod(methods, "executeTool", (/** @type {any} */ own) => {
        original.executeTool = own;
        return this.#executeTool(own);
      });
      return original;
    }

    /** @param {any} own */
    #registerTool(own) {
      const shim = this;
      return {
        /** @param {any} tool */
        async registerTool(tool) {
          const entry = shim.#readTool(this, tool);
          if (entry === null) return await apply(own, this, arguments);
          const options = arguments[1];
          shim.#tools.reserveName(entry.name);
          const unregister =
            typeof options === "object" && options !== null ? member(options, "signal") : undefined;
          const done = await apply(own, this, [shim.#wrapTool(tool, entry), options]);
          shim.#tools.add(entry, unregister);
          return done;
        },
      }.registerTool;
    }

    /**
     * The entry of a tool; null for a value that is no tool, which the browser will refuse.
     * @param {any} context
     * @param {any} tool
     */
    #readTool(context, tool) {
      try {
        if (typeof tool?.execute !== "function") return null;
        const description = modules.describeTool(tool);
        const { document } = world;
        return {
          name: parse(description).name,
          context,
          document,
          description,
          tool,
          execute: tool.execute,
          call: null,
        };
      } catch {
        return null;
      }
    }

    /**
     * The tool that the browser gets: it inherits from the page's object and has our `execute`. Getters still run on the
     * page's object, because those of a class may read private fields.
     * @param {any} tool @param {RegisteredTool} entry
     */
    #wrapTool(tool, entry) {
      const execute = (/** @type {any} */ input, /** @type {any} */ context) =>
        this.#execute(entry, input, context);
      const handed = create(tool, {
        __proto__: null,
        execute: { __proto__: null, value: execute, enumerable: true },
      });
      for (let from = tool; from !== null && from !== objects; from = getPrototypeOf(from)) {
        const keys = ownKeys(from);
        for (let i = 0; i < keys.length; i += 1) {
          const found = getOwnPropertyDescriptor(from, keys[i]) ?? {}; // a proxy may list keys that it does not have
          if (!hasOwn(found, "get") || found.get === undefined || hasOwn(handed, keys[i])) continue;
          defineProperty(
            handed,
            keys[i],
            modules.events.accessorDescriptor(() => apply(found.get, tool, [])),
          );
        }
      }
      entry.call = execute;
      return withoutInherited(handed);
    }

    /**
     * Runs a tool for a call of the browser, the page or the gateway.
     * @param {RegisteredTool} entry
     * @param {any} input
     * @param {any} [context] the browser's
     */
    #execute(entry, input, context) {
      const correlation = this.#correlation.detach(input);
      const run = correlation?.run ?? this.#runs.open("", entry.name);
      const browserSignal = context?.signal;
      if (browserSignal !== undefined) {
        const pass = () =>
          this.#runs.abort(
            run,
            reason(correlation?.caller && isAborted(correlation.caller) ? correlation.caller : browserSignal),
          );
        if (isAborted(browserSignal)) pass();
        else listen(browserSignal, "abort", pass);
      }
      const native = typeof context?.reportProgress === "function" ? context.reportProgress : null;
      run.onReport = (/** @type {any} */ report) => {
        if (native !== null) reportToNative(native, context, report);
        else dispatchProgress(entry.context, "toolprogress", run, report);
        if (correlation?.monitor) dispatchProgress(correlation.monitor, "progress", run, report);
      };
      const call = (/** @type {any} */ ours) => apply(entry.execute, entry.tool, [input, ours]);
      return this.#runs.perform(run, call, context);
    }

    /** @param {any} own */
    #executeTool(own) {
      const shim = this;
      return {
        /** @param {any} tool */
        async executeTool(tool) {
          const request = readArguments(tool, arguments[1], arguments[2]);
          const entry = shim.#tools.find(this, tool);
          if (entry === undefined && request.monitor === null) return await apply(own, this, arguments);
          const run = shim.#runs.open("", request.name);
          const correlation = { run, monitor: /** @type {any} */ (null), caller: request.options?.signal };
          if (request.monitor !== null) {
            correlation.monitor = createMonitor(run);
            apply(request.monitor, undefined, [correlation.monitor]);
          }
          const input = entry === undefined ? request.input : shim.#attachRun(request.input, correlation);
          try {
            return await apply(own, this, [tool, input, request.options]);
          } finally {
            shim.#correlation.forget(correlation);
          }
        },
      }.executeTool;
    }

    /**
     * The input with the id of its run, in the form that the caller chose: an object, or JSON text.
     * @param {any} input
     * @param {any} correlation
     */
    #attachRun(input, correlation) {
      if (input === undefined) return this.#correlation.attach({}, correlation);
      if (this.#correlation.canAttach(input)) return this.#correlation.attach(input, correlation);
      if (typeof input !== "string") return input;
      try {
        const read = parse(input);
        return this.#correlation.canAttach(read)
          ? stringify(this.#correlation.attach(read, correlation))
          : input;
      } catch {
        return input; // no JSON: the browser refuses it
      }
    }

    /**
     * Runs a tool for the gateway: through the browser, so that it knows of the run, or directly with a polyfill.
     * @param {any} run @param {RegisteredTool} entry @param {any} input @param {any} before the result of `install`
     */
    async dispatch(run, entry, input, before) {
      const correlation = { run, monitor: null };
      const given = this.#correlation.attach(input, correlation);
      try {
        // The browser registers the tools of a page without an origin, but does not run them.
        if (!before.isNative || IS_OPAQUE) return await entry.call(given);
        const tool = await findTool(before.getTools, entry);
        return await apply(before.executeTool, entry.context, [
          withoutInherited(tool),
          withoutPageToJSON(given),
          { __proto__: null, signal: signal(run.controller) },
        ]);
      } finally {
        this.#correlation.forget(correlation);
      }
    }
  }

  /**
   * A tool without members that the page gave to all objects: the browser reads them, and refuses what fits no tool.
   * @param {any} tool
   */
  const withoutInherited = (tool) => {
    let found = tool;
    for (const name in { __proto__: null, title: 0, inputSchema: 0, annotations: 0 }) {
      if (!hasOwn(objects, name) || member(tool, name) !== undefined) continue;
      if (found === tool) found = create(tool);
      defineProperty(found, name, modules.events.hiddenProperty(undefined));
    }
    return found;
  };

  /** @param {any} own @param {any} context @param {any} report */
  const reportToNative = (own, context, report) => {
    try {
      apply(own, context, [report]);
    } catch {
      // The browser's reportProgress wants another form of report.
    }
  };

  /**
   * Reads the arguments of `executeTool`. In WebMCP issue 196 `monitor` is beside the input, where JSON has no function.
   * @param {any} tool @param {any} input @param {any} options
   */
  const readArguments = (tool, input, options) => {
    const request = { name: typeof tool?.name === "string" ? tool.name : "", monitor: null, input, options };
    if (typeof options?.monitor === "function") {
      request.monitor = options.monitor;
    } else if (typeof input === "object" && typeof input?.monitor === "function") {
      request.monitor = input.monitor;
      request.input = { ...input };
      delete request.input.monitor;
    }
    return request;
  };

  /** @param {any} getTools @param {RegisteredTool} entry */
  const findTool = async (getTools, entry) => {
    const tools = await apply(getTools, entry.context, []);
    for (let i = 0; i < tools.length; i += 1) {
      if (tools[i].name === entry.name && tools[i].window === world) return tools[i];
    }
    throw new modules.builtins.DOMException(`there is no tool ${entry.name} here any more`, "NotFoundError");
  };

  const NATIVE_CODE = /\{\s*\[native code\]\s*\}$/;
  const matches = modules.builtins.method(RegExp.prototype, "test");

  /** @param {any} own */
  const isNative = (own) => matches(NATIVE_CODE, source(own));

  /** @param {any} context @param {string} name @param {(own: any) => any} wrap */
  const replaceMethod = (context, name, wrap) => {
    let holder = context;
    while (holder !== null && !hasOwn(holder, name)) holder = getPrototypeOf(holder);
    const found = holder === null ? undefined : getOwnPropertyDescriptor(holder, name);
    if (typeof found?.value !== "function" || !(found.configurable || found.writable)) return;
    const value = wrap(found.value);
    defineProperty(holder, name, { __proto__: null, ...found, value });
  };

  modules.WebMCPShim = WebMCPShim;
})();
