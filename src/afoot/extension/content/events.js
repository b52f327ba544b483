// The events of a page's tools that browsers do not have (yet), and their handler attributes (B4).
"use strict";
(() => {
  /** @type {Parts} */
  const parts = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.parts")];
  const { apply, defineProperty, dispatch, Event, EventTarget, hasOwn, listen, String, TypeError } =
    parts.builtins;
  const world = /** @type {any} */ (globalThis);

  /** Names of attributes, and what they are where nobody says otherwise. @typedef {Record<string, any>} Fields */

  /**
   * An event class as browsers define them: what it carries are attributes of its prototype.
   * @param {string} name @param {Fields} fields
   */
  const makeEvent = (name, fields) => {
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
      defineProperty(Kind.prototype, field, attributeOf(getter));
    }
    defineProperty(Kind.prototype, Symbol.toStringTag, quiet(name, false));
    defineProperty(Kind, "name", quiet(name, false));
    return Kind;
  };

  /** @param {any} get @param {any} [set] */
  const attributeOf = (get, set) => ({ __proto__: null, get, set, enumerable: true, configurable: true });

  /** @param {unknown} value @param {boolean} writable @param {boolean} enumerable */
  const quiet = (value, writable = true, enumerable = false) => ({
    __proto__: null,
    value,
    writable,
    enumerable,
    configurable: true,
  });

  /** Puts an interface where browsers have theirs, unless there is one. @param {string} name @param {any} value */
  const expose = (name, value) => {
    if (!hasOwn(world, name)) defineProperty(world, name, quiet(value));
  };

  /**
   * A handler attribute: `context.ontoolprogress = f`, on whatever `isContext` says is one.
   * @param {any} prototype @param {string} type @param {(it: unknown) => boolean} isContext
   */
  const defineHandler = (prototype, type, isContext) => {
    /** @type {any} */
    let held = null; // the context and its handler: a window has one context at a time
    const check = (/** @type {unknown} */ it) => {
      if (!isContext(it)) throw new TypeError("Illegal invocation");
    };
    const name = `on${type}`;
    const access = {
      /** @returns {any} */
      get [name]() {
        check(this);
        return held?.context === this ? held.handler : null;
      },
      /** @param {any} handler */
      set [name](handler) {
        check(this);
        if (held?.context !== this) held = hold(this, type);
        held.handler = typeof handler === "function" ? handler : null;
      },
    };
    defineProperty(prototype, name, { ...parts.builtins.getOwnPropertyDescriptor(access, name) });
  };

  /** @param {any} context @param {string} type */
  const hold = (context, type) => {
    const held = { context, handler: /** @type {any} */ (null) };
    listen(context, type, (/** @type {Event} */ event) => {
      if (held.handler !== null) apply(held.handler, context, [event]);
    });
    return held;
  };

  const REPORT = {
    toolName: "",
    message: null,
    toolExecutionId: "",
    progress: null,
    total: null,
    data: null,
  };
  const ToolProgressEvent = makeEvent("ToolProgressEvent", { __proto__: null, ...REPORT });

  /**
   * Tells everybody in the page of a report; nobody's mistake there reaches the tool.
   * @param {any} target @param {string} type @param {{tool: string, id: string}} run @param {any} report
   */
  const announce = (target, type, run, report) => {
    try {
      const init = { __proto__: null, ...report, toolName: run.tool, toolExecutionId: run.id };
      dispatch(target, new ToolProgressEvent(type, init));
    } catch {
      // The page has broken the class.
    }
  };

  /** What `monitor(m)` gets: it hears of one run. @param {{tool: string, id: string}} run */
  const makeMonitor = (run) => {
    const monitor = new EventTarget();
    defineProperty(monitor, "toolExecutionId", quiet(run.id, false, true));
    defineProperty(monitor, "toolName", quiet(run.tool, false, true));
    return monitor;
  };

  parts.events = {
    __proto__: null,
    announce,
    attributeOf,
    defineHandler,
    expose,
    makeEvent,
    makeMonitor,
    quiet,
  };
  parts.events.ToolProgressEvent = ToolProgressEvent;
})();
