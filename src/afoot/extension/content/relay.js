// The relay: the content script in an isolated world beside each page. It passes frames between the page and a carrier,
// which is the extension's service worker or a CDP connection of the gateway (B1, B7).
//
// The extension registers the files of content/files.json in this order as content scripts (page: MAIN; relay:
// ISOLATED; document_start, all frames). Over CDP each list is joined to one script for new documents, the relay's in
// the isolated world "afoot.relay". In a document that was open before, `afootLate = true` comes first, and the tools
// of the page's own world cannot be reached. Running it twice in one world does nothing.
//
// Frames are {method, params}, as in the gateway's wire/extension.py, without `room`: the carrier knows the sender, and adds
// it. Extension: objects over a port named "afoot.room". CDP: JSON text, up by the binding `afootSend(text)`, down by
// `afootReceive(text)` in this world; `hello {}` down says that a new connection listens.
//   up    open {url, title, visible, frozen, running: [{run, seq}]}  first on each connection, again on a new one;
//         tab.tools, tab.state, tool.progress, tool.asking, tool.log, tool.result; wake {id, ms};
//         bye {persisted} when the document ends or is put into the back/forward cache
//   down  tool.dispatch, tool.cancel, tool.settled; woken {id} so many ms after wake; resend {}: send what
//         the outbox keeps; leave {}: send nothing more
"use strict";
(() => {
  const world = /** @type {any} */ (globalThis);
  const KEY = Symbol.for("dev.afoot.modules");
  /** @type {Modules} */
  const modules = world[KEY];
  delete world[KEY];
  if (world.afootRelay) return;
  world.afootRelay = true;

  const MONITOR_MS = 1000;

  /** The fields of the frames that a page may send; nothing else is passed on. @type {Record<string, string[]>} */
  const PAGE_FRAME_FIELDS = {
    "tool.progress": ["run", "seq", "reports", "dropped"],
    "tool.result": ["run", "seq", "value", "error", "aborted"],
  };

  const transport = modules.createTransport({ onOpened, onFrame: receive, onLost });
  const outbox = new modules.Outbox((/** @type {any} */ frame) => transport.send(frame));
  const channel = new modules.Channel("relay", (/** @type {string} */ text) =>
    receiveFromPage(JSON.parse(text)),
  );
  const timers = new modules.Timers("r", (/** @type {string} */ text) => transport.send(JSON.parse(text)));
  const runs = new modules.ToolRuns((/** @type {string} */ text) => outbox.send(JSON.parse(text)), timers);
  const nativeTools = new modules.NativeTools(runs, timers, sendTools, () => !channel.isJoined);
  const documentState = new modules.DocumentState({ onChange: sendState, onPageHide, onPageShow });
  /** @type {{tools: any[], leftOut: number}} */
  let pageTools = { tools: [], leftOut: 0 };
  let pageToolNames = new Set(); // every name that was ever registered in the page's world
  let isDisabled = false;
  let isMonitoring = false; // whether a timer checks that the carrier can be reached
  let lastTools = ""; // the last list that was sent, as JSON

  if (/** @type {any} */ (document).prerendering) {
    document.addEventListener("prerenderingchange", start, { once: true });
  } else {
    start();
  }
  if (!world.afootLate) channel.join();

  function start() {
    transport.open();
    documentState.watch();
    nativeTools.watch();
  }

  /** A new connection: it gets the whole state. */
  function onOpened() {
    transport.send({ method: "open", params: { ...documentState.read(), running: outbox.running() } });
    lastTools = "";
    sendTools();
    outbox.resend();
  }

  /** No connection is possible any more: the extension was reloaded or removed. */
  function onLost() {
    cancelAll("the browser's extension was reloaded or removed");
  }

  /**
   * The document ends or enters the back/forward cache, and its runs are over. The runs of a document that ends are not
   * aborted: Chromium 156 crashes if a native tool ends in that moment.
   * @param {boolean} persisted
   */
  function onPageHide(persisted) {
    transport.send({ method: "bye", params: { persisted } });
    if (persisted) cancelAll("the page was left");
    else pageTools = { tools: [], leftOut: 0 }; // the window may get another document
    outbox.clear();
    transport.close();
  }

  /** The document is back, or its window has another one. */
  function onPageShow() {
    if (isDisabled) return;
    nativeTools.watch();
    transport.close();
    transport.open();
  }

  /** @param {string} reason */
  function cancelAll(reason) {
    for (const { run } of outbox.running()) cancel({ run, reason });
    outbox.clear();
  }

  /** @param {any} params */
  function sendState(params) {
    transport.send({ method: "tab.state", params });
  }

  function sendTools() {
    channel.send('{"method":"tab.names"}'); // answered before it returns
    const params = {
      tools: [...pageTools.tools, ...nativeTools.list(pageToolNames, pageTools.tools)],
      leftOut: pageTools.leftOut,
    };
    const text = JSON.stringify(params);
    if (text !== lastTools && transport.send({ method: "tab.tools", params })) lastTools = text;
  }

  /** @param {any} frame of the gateway */
  function receive({ method, params }) {
    if (method === "tool.dispatch") dispatch(params);
    else if (method === "tool.cancel") cancel(params);
    else if (method === "tool.settled") outbox.settle(params.run);
    else if (method === "resend") outbox.resend();
    else if (method === "woken") onWoken(params.id);
    else if (method === "leave") disable();
  }

  /** A person has removed the permission for this site. */
  function disable() {
    cancelAll("this site is no longer allowed");
    transport.close();
    isDisabled = true;
  }

  /** @param {string} id */
  function onWoken(id) {
    timers.onWoken(id);
    channel.send(JSON.stringify({ method: "woken", params: { id } }));
  }

  /** @param {any} params */
  function dispatch({ run, tool, input }) {
    if (!outbox.open(run)) return;
    if (!isMonitoring) monitorRuns();
    const isIt = (/** @type {any} */ { name }) => name === tool;
    const frame = { method: "tool.dispatch", params: { run, tool, input } };
    const pageTool = pageTools.tools.find(isIt);
    if (pageTool) {
      // The page's own word would stop no clock: the form must be there.
      const message = pageTool.form ? modules.personMessage(tool) : "";
      if (message) outbox.send({ method: "tool.asking", params: { run, message } });
      channel.send(JSON.stringify(frame));
    } else if (nativeTools.list(pageToolNames, pageTools.tools).some(isIt)) nativeTools.run(run, tool, input);
    else rejectRun(run, `there is no tool ${tool} in this page`);
  }

  /** Checks once a second, while something runs, that the extension is still there. */
  function monitorRuns() {
    isMonitoring = outbox.running().length > 0 && transport.isAlive();
    if (isMonitoring) setTimeout(monitorRuns, MONITOR_MS);
  }

  /** @param {string} run @param {string} message */
  function rejectRun(run, message) {
    const error = { name: "NotFoundError", message, code: "no_tool", category: "not_found" };
    outbox.send({ method: "tool.result", params: { run, seq: 1, error } });
  }

  /** @param {any} params */
  function cancel({ run, reason }) {
    runs.cancel(run, reason);
    channel.send(JSON.stringify({ method: "tool.cancel", params: { run, reason } }));
  }

  /** @param {any} frame of the page's world */
  function receiveFromPage({ method, params }) {
    documentState.checkDocument();
    if (method === "tab.tools") {
      const tools = params.tools.filter((/** @type {any} */ tool) => !modules.isTooDeep(tool));
      pageTools = { tools, leftOut: params.leftOut + params.tools.length - tools.length };
      sendTools();
    } else if (method === "tab.names") {
      pageToolNames = new Set(params.names);
    } else if (method === "wake") {
      transport.send({ method, params: { id: String(params.id), ms: Number(params.ms) } });
    } else if (method in PAGE_FRAME_FIELDS) {
      const known = PAGE_FRAME_FIELDS[method]
        .filter((field) => field in params)
        .map((field) => [field, params[field]]);
      outbox.send({ method, params: Object.fromEntries(known) });
    }
  }
})();
