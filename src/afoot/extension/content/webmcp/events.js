// The WebMCP events that browsers do not have yet, and their handler attributes (B4).
"use strict";
(() => {
  /** @type {Modules} */
  const modules = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.modules")];
  const { apply, defineProperty, dispatch, Event, EventTarget, hasOwn, listen, String, TypeError } =
    modules.builtins;
  const world = /** @type {any} */ (globalThis);

  /** Names of attributes, and their default values. @typedef {Record<string, any>} EventFields */

  /**
   * An event class as browsers define them: its fields are accessors of its prototype.
   * @param {string} name @param {EventFields} fields
   */
  const createEventClass = (name, fields) => {
    const Kind = class extends Event {
      #carried = /** @type {any} */ ({ __proto__: null });
      /** @param {string} type @param {any} init */
      constructor(type, init = {}) {
        if (arguments.length === 0) throw new TypeError(`${name} needs a type`);
        super(type, init);
        for (const field in fields) {
          const given = init === null ? undefined : init[field];
          const usual = fields[field];
          this.#carried[field] = given === undefined ? usual : usual === "" ? String(given) : given;
        }
      }
      /** @param {any} event @param {string} field */
      static read(event, field) {
        return event.#carried[field];
      }
    };
    const { read } = Kind;
    delete (/** @type {any} */ (Kind).read);
    for (const field in fields) {
      const getter = { [field]() { return read(this, field); } }[field]; // prettier-ignore
      defineProperty(Kind.prototype, field, accessorDescriptor(getter));
    }
    defineProperty(Kind.prototype, Symbol.toStringTag, hiddenProperty(name, false));
    defineProperty(Kind, "name", hiddenProperty(name, false));
    return Kind;
  };

  /** @param {any} get @param {any} [set] */
  const accessorDescriptor = (get, set) => ({
    __proto__: null,
    get,
    set,
    enumerable: true,
    configurable: true,
  });

  /** @param {unknown} value @param {boolean} writable @param {boolean} enumerable */
  const hiddenProperty = (value, writable = true, enumerable = false) => ({
    __proto__: null,
    value,
    writable,
    enumerable,
    configurable: true,
  });

  /** Defines a global interface, unless there is one. @param {string} name @param {any} value */
  const exposeInterface = (name, value) => {
    if (!hasOwn(world, name)) defineProperty(world, name, hiddenProperty(value));
  };

  /**
   * A handler attribute: `context.ontoolprogress = f`, on objects that `isContext` accepts.
   * @param {any} prototype @param {string} type @param {(it: unknown) => boolean} isContext
   */
  const defineHandlerAttribute = (prototype, type, isContext) => {
    /** @type {any} */
    let entry = null; // the context and its handler; a window has one context at a time
    const check = (/** @type {unknown} */ it) => {
      if (!isContext(it)) throw new TypeError("Illegal invocation");
    };
    const name = `on${type}`;
    const access = {
      /** @returns {any} */
      get [name]() {
        check(this);
        return entry?.context === this ? entry.handler : null;
      },
      /** @param {any} handler */
      set [name](handler) {
        check(this);
        if (entry?.context !== this) entry = addHandlerListener(this, type);
        entry.handler = typeof handler === "function" ? handler : null;
      },
    };
    const found = modules.builtins.getOwnPropertyDescriptor(access, name);
    defineProperty(prototype, name, { __proto__: null, ...found });
  };

  /** @param {any} context @param {string} type */
  const addHandlerListener = (context, type) => {
    const held = { context, handler: /** @type {any} */ (null) };
    listen(context, type, (/** @type {Event} */ event) => {
      if (held.handler !== null) apply(held.handler, context, [event]);
    });
    return held;
  };

  const REPORT_FIELDS = {
    toolName: "",
    message: null,
    toolExecutionId: "",
    progress: null,
    total: null,
    data: null,
  };
  const ToolProgressEvent = createEventClass("ToolProgressEvent", { __proto__: null, ...REPORT_FIELDS });

  /**
   * Dispatches a report to the page's listeners. Their errors do not reach the tool.
   * @param {any} target @param {string} type @param {{tool: string, id: string}} run @param {any} report
   */
  const dispatchProgress = (target, type, run, report) => {
    try {
      const init = { __proto__: null, ...report, toolName: run.tool, toolExecutionId: run.id };
      dispatch(target, new ToolProgressEvent(type, init));
    } catch {
      // The page has broken the class.
    }
  };

  /**
   * The argument of `monitor(m)`: an event target for the reports of one run.
   * @param {{tool: string, id: string}} run
   */
  const createMonitor = (run) => {
    const monitor = new EventTarget();
    defineProperty(monitor, "toolExecutionId", hiddenProperty(run.id, false, true));
    defineProperty(monitor, "toolName", hiddenProperty(run.tool, false, true));
    return monitor;
  };

  modules.events = {
    __proto__: null,
    dispatchProgress,
    accessorDescriptor,
    defineHandlerAttribute,
    exposeInterface,
    createEventClass,
    createMonitor,
    hiddenProperty,
  };
  modules.events.ToolProgressEvent = ToolProgressEvent;
})();
