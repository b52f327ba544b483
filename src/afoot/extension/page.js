// What runs in the page's own world, in every frame, before the page's first script: tools with progress (B3, B4).
// It gives pages `document.modelContext` where the browser has none, and everywhere `reportProgress`, `alive` and
// `toolExecutionId` in what `execute` gets, `ToolProgressEvent`, `ontoolprogress`, and `monitor` in `executeTool`.
// With the relay it speaks over the channel, in frames as in the gateway's wire/link.py, without `room`:
//   up    tab.tools, tool.progress, tool.result, wake {id, ms}, tab.names {names}
//   down  tool.dispatch, tool.cancel, woken {id}, tab.names (answered before it returns)
"use strict";
(() => {
  const world = /** @type {any} */ (globalThis);
  const KEY = Symbol.for("dev.afoot.parts");
  /** @type {Parts} */
  const parts = world[KEY];
  delete world[KEY];
  const RAN = Symbol.for("dev.afoot.page");
  if (world[RAN]) return; // its document was written anew, and the window is the same
  const { apply, DOMException, hasOwn, parse } = parts.builtins;
  Reflect.defineProperty(world, RAN, { value: true });

  const channel = new parts.Channel(
    "page",
    (/** @type {string} */ text) => hear(parse(text)),
    () => shelf.changed(),
  );
  const send = (/** @type {string} */ text) => channel.send(text);

  const clock = new parts.Clock("p", send);
  const shelf = new parts.Shelf(send, clock);
  const runs = new parts.Runs(send, clock);
  const wrapping = new parts.Wrapping(runs, shelf);

  // The browser's own context is not looked at before somebody uses it: Chromium 156 crashes if that was done in a
  // frame's first document and a `javascript:` address then fills it.
  const isSupplied = !("modelContext" in world.document);
  if (isSupplied) parts.supply();
  const kind = world.ModelContext?.prototype;
  const isUsual = typeof kind?.registerTool === "function";
  const methods = isUsual ? kind : world.document.modelContext; // a polyfill's may be anything
  const before = wrapping.around(methods);
  before.isNative ||= isSupplied;
  if (!("ontoolprogress" in methods)) {
    const { get, value } = findAttribute(world.document, "modelContext");
    const isContext = (/** @type {unknown} */ it) =>
      it === (get === undefined ? value : apply(get, world.document, []));
    parts.events.defineHandler(methods, "toolprogress", isContext);
  }
  parts.events.expose("ToolProgressEvent", parts.events.ToolProgressEvent);

  /** @type {Record<string, (params: any) => void>} */
  const answers = /** @type {any} */ ({
    __proto__: null,
    "tool.dispatch": dispatch,
    "tool.cancel": cancel,
    "tab.names": () => send(shelf.names()),
    woken: (/** @type {any} */ params) => clock.woken(params.id),
  });
  channel.join();

  /** @param {any} frame */
  function hear(frame) {
    answers[frame.method]?.(frame.params);
  }

  /** @param {any} params */
  async function dispatch({ run, tool, input }) {
    await undefined; // or the tool would see in `window.event` what carried this, and the channel with it
    const one = runs.open(run, tool);
    if (one === null) return;
    try {
      const entry = shelf.get(tool);
      if (entry === undefined) throw new DOMException(`there is no tool ${tool} here`, "NotFoundError");
      await wrapping.dispatch(one, entry, input, before);
      if (!one.began) throw new DOMException(`the browser did not run ${tool}`, "UnknownError");
    } catch (error) {
      // A tool that began tells its end itself, also where the browser has given it up.
      if (!one.began) runs.fail(one, error);
    }
  }

  /** @param {any} params */
  async function cancel(params) {
    await undefined; // as above
    runs.cancel(params.run, hasOwn(params, "reason") ? params.reason : "");
  }

  /** How an object has an attribute, wherever it has it from. @param {any} object @param {string} name */
  function findAttribute(object, name) {
    let holder = object;
    while (!hasOwn(holder, name)) holder = Object.getPrototypeOf(holder);
    return /** @type {PropertyDescriptor} */ (Reflect.getOwnPropertyDescriptor(holder, name));
  }
})();
