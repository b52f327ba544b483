// The content script of the page's own world (MAIN). It runs in every frame before the page's first script, and gives
// WebMCP tools progress (B3, B4): `document.modelContext` where the browser has none, and everywhere `reportProgress`,
// `alive` and `toolExecutionId` in the context of `execute`, `ToolProgressEvent`, `ontoolprogress`, and `monitor` in
// `executeTool`. Over the channel it exchanges frames with the relay, as those of the link but without `room`:
//   up    tab.tools, tool.progress, tool.result, wake {id, ms}, tab.names {names}
//   down  tool.dispatch, tool.cancel, woken {id}, tab.names (answered before it returns)
"use strict";
(() => {
  const world = /** @type {any} */ (globalThis);
  const KEY = Symbol.for("dev.afoot.modules");
  /** @type {Modules} */
  const modules = world[KEY];
  delete world[KEY];
  const INSTALLED = Symbol.for("dev.afoot.page");
  if (world[INSTALLED]) return; // document.open() has replaced the document in the same window
  const { apply, DOMException, hasOwn, parse } = modules.builtins;
  Reflect.defineProperty(world, INSTALLED, /** @type {any} */ ({ __proto__: null, value: true }));

  const channel = new modules.Channel(
    "page",
    (/** @type {string} */ text) => receive(parse(text)),
    () => tools.scheduleUpdate(),
  );
  const send = (/** @type {string} */ text) => channel.send(text);

  const timers = new modules.Timers("p", send);
  const tools = new modules.RegisteredTools(send, timers);
  const runs = new modules.ToolRuns(send, timers);
  const shim = new modules.WebMCPShim(runs, tools);

  // The browser's own context is not touched before the page uses it: Chromium 156 crashes if that was done in the
  // initial document of a frame that a `javascript:` URL then fills.
  const isPolyfilled = !("modelContext" in world.document);
  if (isPolyfilled) modules.installPolyfill();
  const kind = world.ModelContext?.prototype;
  const isInterface = typeof kind?.registerTool === "function";
  const methods = isInterface ? kind : world.document.modelContext; // a polyfill of the page has no interface
  const original = shim.install(methods);
  original.isNative ||= isPolyfilled;
  if (!("ontoolprogress" in methods)) {
    const { get, value } = findDescriptor(world.document, "modelContext");
    const isContext = (/** @type {unknown} */ it) =>
      it === (get === undefined ? value : apply(get, world.document, []));
    modules.events.defineHandlerAttribute(methods, "toolprogress", isContext);
  }
  modules.events.exposeInterface("ToolProgressEvent", modules.events.ToolProgressEvent);

  /** @type {Record<string, (params: any) => void>} */
  const handlers = /** @type {any} */ ({
    __proto__: null,
    "tool.dispatch": dispatch,
    "tool.cancel": cancel,
    "tab.names": () => send(tools.namesFrame()),
    woken: (/** @type {any} */ params) => timers.onWoken(params.id),
  });
  channel.join();
  if (isPolyfilled && modules.FormTools) {
    const { registerTool } = methods; // ours, which lists what it registers
    new modules.FormTools((/** @type {any} */ tool, /** @type {any} */ options) =>
      apply(registerTool, world.document.modelContext, [tool, options]),
    ).watch();
  }

  /** @param {any} frame */
  function receive(frame) {
    handlers[frame.method]?.(frame.params);
  }

  /** @param {any} params */
  async function dispatch({ run, tool, input }) {
    await undefined; // else the tool would find the channel's event, and so the channel, in `window.event`
    const one = runs.open(run, tool);
    if (one === null) return;
    try {
      const entry = tools.get(tool);
      if (entry === undefined) throw new DOMException(`there is no tool ${tool} here`, "NotFoundError");
      await shim.dispatch(one, entry, input, original);
      if (!one.hasStarted) throw new DOMException(`the browser did not run ${tool}`, "UnknownError");
    } catch (error) {
      // A tool that has started sends its own end, even if the browser gave it up.
      if (!one.hasStarted) runs.fail(one, error);
    }
  }

  /** @param {any} params */
  async function cancel(params) {
    await undefined; // as above
    runs.cancel(params.run, hasOwn(params, "reason") ? params.reason : "");
  }

  /** The descriptor of a property, own or inherited. @param {any} object @param {string} name */
  function findDescriptor(object, name) {
    let holder = object;
    while (!hasOwn(holder, name)) holder = Object.getPrototypeOf(holder);
    return /** @type {PropertyDescriptor} */ (Reflect.getOwnPropertyDescriptor(holder, name));
  }
})();
