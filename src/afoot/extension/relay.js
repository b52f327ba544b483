// What runs in a world of its own beside each page, and passes frames between the page and a carrier (B1, B7).
//
// The extension registers the files of content/files.json in this order as content scripts (page: MAIN; relay:
// ISOLATED; document_start, all frames). Over CDP each list is joined to one script for new documents, the relay's in
// the isolated world "afoot.relay"; where a document was open before, `afootLate = true` stands before it, and the
// tools of the page's own world are out of reach. To run it twice in one world does nothing.
//
// Frames are {method, params}, as in the gateway's wire/link.py, without `room`: the carrier knows who speaks, and adds
// it. Extension: objects over a port named "afoot.room". CDP: JSON text, up by the binding `afootSend(text)`, down by
// `afootReceive(text)` in this world; `hello {}` down says that somebody new listens.
//   up    open {url, title, visible, frozen, running: [{run, seq}]}  first on each connection, again on a new one;
//         tab.tools, tab.state, tool.progress, tool.asking, tool.log, tool.result; wake {id, ms};
//         bye {persisted} when the document ends or is put into the back/forward cache
//   down  tool.dispatch, tool.cancel, tool.settled; woken {id} so many ms after wake; leave {}: say no more
"use strict";
(() => {
  const world = /** @type {any} */ (globalThis);
  const KEY = Symbol.for("dev.afoot.parts");
  /** @type {Parts} */
  const parts = world[KEY];
  delete world[KEY];
  if (world.afootRelay) return;
  world.afootRelay = true;

  const CHECK_MS = 1000;

  /** The fields of the frames that a page may send; nothing else is passed on. @type {Record<string, string[]>} */
  const FROM_PAGE = {
    "tool.progress": ["run", "seq", "reports", "dropped"],
    "tool.result": ["run", "seq", "value", "error", "aborted"],
  };

  const way = parts.findWay({ opened, hear, lost });
  const outbox = new parts.Outbox((/** @type {any} */ frame) => way.send(frame));
  const channel = new parts.Channel("relay", (/** @type {string} */ text) => hearPage(JSON.parse(text)));
  const clock = new parts.Clock("r", (/** @type {string} */ text) => way.send(JSON.parse(text)));
  const runs = new parts.Runs((/** @type {string} */ text) => outbox.take(JSON.parse(text)), clock);
  const natives = new parts.NativeTools(runs, clock, tellTools, () => !channel.isJoined);
  const sight = new parts.Sight({ changed: tellState, left, came });
  /** @type {{tools: any[], leftOut: number}} */
  let page = { tools: [], leftOut: 0 };
  let names = new Set(); // that tools of the page's own ever had
  let isSilenced = false;
  let isLooking = false; // whether runs are looked after
  let told = ""; // the tools that were told last

  if (/** @type {any} */ (document).prerendering) {
    document.addEventListener("prerenderingchange", start, { once: true });
  } else {
    start();
  }
  if (!world.afootLate) channel.join();

  function start() {
    way.open();
    sight.watch();
    natives.watch();
  }

  /** There is a new way to the gateway: it gets all that there is. */
  function opened() {
    way.send({ method: "open", params: { ...sight.look(), running: outbox.running() } });
    told = "";
    tellTools();
    outbox.replay();
  }

  /** There will never be a way again: the extension is another now, or gone. */
  function lost() {
    stopAll("the browser's extension was reloaded or removed");
  }

  /**
   * The document ends, or is put away: no run there is waited for any more. What ends is not aborted: its tools go with
   * it, and Chromium 156 crashes if a tool of its own ends in that moment.
   * @param {boolean} persisted
   */
  function left(persisted) {
    way.send({ method: "bye", params: { persisted } });
    if (persisted) stopAll("the page was left");
    else page = { tools: [], leftOut: 0 }; // another document may follow in this window
    outbox.clear();
    way.close();
  }

  /** It is there again, or another one in its window. */
  function came() {
    if (isSilenced) return;
    natives.watch();
    way.close();
    way.open();
  }

  /** @param {string} reason */
  function stopAll(reason) {
    for (const { run } of outbox.running()) cancel({ run, reason });
    outbox.clear();
  }

  /** @param {any} params */
  function tellState(params) {
    way.send({ method: "tab.state", params });
  }

  function tellTools() {
    channel.send('{"method":"tab.names"}'); // answered before it returns
    const params = { tools: [...page.tools, ...natives.list(names, page.tools)], leftOut: page.leftOut };
    const text = JSON.stringify(params);
    if (text !== told && way.send({ method: "tab.tools", params })) told = text;
  }

  /** @param {any} frame of the gateway */
  function hear({ method, params }) {
    if (method === "tool.dispatch") dispatch(params);
    else if (method === "tool.cancel") cancel(params);
    else if (method === "tool.settled") outbox.settle(params.run);
    else if (method === "woken") wake(params.id);
    else if (method === "leave") leave();
  }

  /** A person does not allow it here any more. */
  function leave() {
    stopAll("this site is no longer allowed");
    way.close();
    isSilenced = true;
  }

  /** @param {string} id */
  function wake(id) {
    clock.woken(id);
    channel.send(JSON.stringify({ method: "woken", params: { id } }));
  }

  /** @param {any} params */
  function dispatch({ run, tool, input }) {
    if (!outbox.open(run)) return;
    if (!isLooking) lookAfter();
    const isIt = (/** @type {any} */ { name }) => name === tool;
    const frame = { method: "tool.dispatch", params: { run, tool, input } };
    if (page.tools.some(isIt)) channel.send(JSON.stringify(frame));
    else if (natives.list(names, page.tools).some(isIt)) natives.run(run, tool, input);
    else refuse(run, `there is no tool ${tool} in this page`);
  }

  /** As long as something runs, sees to it that there is somebody to hear of it. */
  function lookAfter() {
    isLooking = outbox.running().length > 0 && way.check();
    if (isLooking) setTimeout(lookAfter, CHECK_MS);
  }

  /** @param {string} run @param {string} message */
  function refuse(run, message) {
    const error = { name: "NotFoundError", message, code: "no_tool", category: "not_found" };
    outbox.take({ method: "tool.result", params: { run, seq: 1, error } });
  }

  /** @param {any} params */
  function cancel({ run, reason }) {
    runs.cancel(run, reason);
    channel.send(JSON.stringify({ method: "tool.cancel", params: { run, reason } }));
  }

  /** @param {any} frame of the page's world */
  function hearPage({ method, params }) {
    sight.check();
    if (method === "tab.tools") {
      const tools = params.tools.filter((/** @type {any} */ tool) => !parts.isDeeper(tool));
      page = { tools, leftOut: params.leftOut + params.tools.length - tools.length };
      tellTools();
    } else if (method === "tab.names") {
      names = new Set(params.names);
    } else if (method === "wake") {
      way.send({ method, params: { id: String(params.id), ms: Number(params.ms) } });
    } else if (method in FROM_PAGE) {
      const known = FROM_PAGE[method]
        .filter((field) => field in params)
        .map((field) => [field, params[field]]);
      outbox.take({ method, params: Object.fromEntries(known) });
    }
  }
})();
