// A plugin's room in a tab: it tells the gateway of the plugin's tools, and runs them (B2).
//
// Frames are those of relay.js; besides, up: `open` has the plugin's `key`, tab.ready {ready, why}, value {id, path};
// `bye {persisted, why: "replaced"}`; down: valued {id, ok, value, why};
// retire {}: other code is there, finish; revive {}: it is wanted again; leave {}: the site is no longer allowed.

const FILES_MS = 3000; // so long after the SDK its files may come
const RETIRED_MS = 1000;
const LINE_LIMIT = 4000;

/**
 * What Python says of a plugin.
 * @typedef {{name: string, version: string, hash: string, key: string, matches: string[], excludes: string[],
 *   probe: Probe}} PluginFacts
 */
/** @typedef {(offered: object) => {ready?: () => unknown} | undefined} PluginFiles its files, as one function */

class PluginRoom {
  isOver = false;
  #isRetired = false;
  #broken = "the page is loading";
  /** @type {(() => unknown) | undefined} */
  #probe;
  /** @type {any[]} */
  #tools = [];
  #plugin;
  #offered;
  #way;
  #outbox;
  #runs;
  #sight;
  #readiness;

  /** @param {PluginFacts} plugin @param {object} offered what its files may use @param {Record<string, any>} parts */
  constructor(plugin, offered, parts) {
    this.#plugin = plugin;
    this.#offered = offered;
    this.#way = parts.findWay({
      opened: () => this.#opened(),
      hear: (/** @type {any} */ frame) => this.#hear(frame),
      lost: () => this.#end("the browser's extension was reloaded or removed"),
    });
    this.#outbox = new parts.Outbox((/** @type {any} */ frame) => this.#way.send(frame));
    const send = (/** @type {string} */ text) => this.#outbox.take(JSON.parse(text));
    this.#runs = new parts.Runs(send, { now: () => performance.now(), later });
    this.#sight = new parts.Sight({
      changed: (/** @type {any} */ sight) => this.#changed(sight),
      left: (/** @type {boolean} */ persisted) => this.#left(persisted),
      came: () => this.#came(),
    });
    this.#readiness = new ReadinessWatch(
      () => this.#whyNot(),
      (now) => this.#say("tab.ready", now),
    );
  }

  /** Open the room; the plugin's files come next. */
  start() {
    surroundings.send = (method, params) => this.#say(method, params);
    this.#way.open();
    this.#sight.watch();
    after(FILES_MS, () => {
      if (this.#files === null) this.#fail("its code could not be read: the browser's console says where");
    });
  }

  /** @type {PluginFiles | null} */
  #files = null;

  /** Run the plugin's files, once, when the page has been parsed. @param {PluginFiles} files */
  take(files) {
    if (this.#files !== null) return;
    this.#files = files;
    if (document.readyState !== "loading") this.#load(files);
    else addEventListener("DOMContentLoaded", () => this.#load(files), { once: true });
  }

  /** @param {PluginFiles} files */
  #load(files) {
    try {
      this.#probe = files(this.#offered)?.ready;
      this.#tools = JSON.parse(JSON.stringify(toldTools()));
    } catch (error) {
      console.error(error);
      this.#fail(`its code failed: ${explain(error)}`);
      return;
    }
    this.#broken = "";
    this.#tellTools();
    void this.#readiness.ask();
  }

  /** @param {string} why */
  #fail(why) {
    this.#broken = why;
    void this.#readiness.ask();
  }

  async #whyNot() {
    if (this.#broken) return this.#broken;
    const { matches, excludes, probe } = this.#plugin;
    if (!coversAddress(matches, excludes, location.href))
      return `${bare(location.href)} is none of its pages`;
    return askProbe(probe, this.#probe);
  }

  /** @param {string} method @param {object} params @returns {boolean} */
  #say(method, params) {
    return this.#way.send({ method, params });
  }

  #opened() {
    const { key } = this.#plugin;
    this.#say("open", { key, ...this.#sight.look(), running: this.#outbox.running() });
    this.#tellTools();
    this.#say("tab.ready", this.#readiness.now);
    this.#outbox.replay();
    renewAlarms();
    renewLookups();
  }

  #tellTools() {
    this.#say("tab.tools", { tools: this.#isRetired ? [] : this.#tools, leftOut: 0 });
  }

  /** @param {any} frame */
  #hear({ method, params }) {
    if (method === "tool.dispatch") this.#dispatch(params);
    else if (method === "tool.cancel") this.#runs.cancel(params.run, params.reason);
    else if (method === "tool.settled") this.#settle(params.run);
    else if (method === "woken") ringAlarms();
    else if (method === "valued") answerLookup(params);
    else if (method === "retire") this.#retire();
    else if (method === "revive") this.#revive();
    else if (method === "leave") this.#leave();
  }

  /** @param {{run: string, tool: string, input: any}} params */
  #dispatch({ run, tool, input }) {
    if (!this.#outbox.open(run)) return;
    const one = this.#runs.open(run, tool);
    const log = logOf((text, level) => this.#runs.log(one, text, level));
    // What it throws is sent by the run itself.
    this.#runs
      .perform(one, (/** @type {any} */ some) => this.#handle(tool, input, { ...some, log }))
      .catch(() => {});
  }

  /** @param {string} tool @param {any} input @param {any} some all of a context but its sleep */
  async #handle(tool, input, some) {
    /** @type {ToolContext} */
    const context = { ...some, sleep: (/** @type {number} */ ms) => sleep(ms, { context }) };
    surroundings.runs.add(context);
    try {
      if (this.#isRetired)
        throw ToolError.unavailable("the plugin has new code: call it again", 0, "plugin_replaced");
      const { ready, why } = this.#readiness.now.ready ? this.#readiness.now : await this.#readiness.ask();
      if (!ready)
        throw ToolError.unavailable(
          `${this.#plugin.name} is not ready here: ${why}`,
          undefined,
          "tab_not_ready",
        );
      if (!definedTools.has(tool))
        throw ToolError.notFound(`${this.#plugin.name} has no tool ${tool}`, "no_tool");
      return await findTool(tool).handle(input, context);
    } finally {
      surroundings.runs.delete(context);
    }
  }

  /** @param {any} sight */
  #changed(sight) {
    this.#say("tab.state", sight);
    if (!this.#broken) void this.#readiness.askAnew();
  }

  /** @param {boolean} persisted */
  #left(persisted) {
    this.#say("bye", { persisted });
    this.#cancelAll("the page was left");
    this.#way.close();
  }

  #came() {
    if (this.isOver) return;
    this.#way.close();
    this.#way.open();
    if (!this.#broken) void this.#readiness.askAnew();
  }

  /** @param {string} reason */
  #cancelAll(reason) {
    this.#runs.cancelAll(reason);
    this.#outbox.clear();
  }

  /** @param {string} run */
  #settle(run) {
    this.#outbox.settle(run);
    if (this.#isRetired) this.#finish();
  }

  /** Other code is there: what runs may end, nothing new begins. */
  #retire() {
    if (this.#isRetired) return;
    this.#isRetired = true;
    this.#readiness.stop();
    this.#tellTools();
    this.#finish();
  }

  /** Nobody may come here any more. */
  #leave() {
    this.#end("afoot may no longer use this site");
    this.#way.close();
  }

  /** What was retired is wanted again: somebody took back a change while something still ran. */
  #revive() {
    if (!this.#isRetired || this.isOver) return;
    this.#isRetired = false;
    this.#tellTools();
    void this.#readiness.ask();
  }

  #finish() {
    if (this.isOver || !this.#isRetired) return;
    if (this.#outbox.running().length > 0) {
      after(RETIRED_MS, () => this.#finish());
      return;
    }
    this.#say("bye", { persisted: false, why: "replaced" });
    this.#end("the plugin has new code");
    this.#way.close();
  }

  /** @param {string} reason */
  #end(reason) {
    this.isOver = true;
    this.#readiness.stop();
    this.#cancelAll(reason);
  }
}

/**
 * A timer for the batches of a run: the page's own is quicker, but sleeps in a hidden page.
 * @param {number} ms @param {() => void} then
 */
function later(ms, then) {
  if (document.hidden) return after(ms, then);
  const timer = setTimeout(then, ms);
  return () => clearTimeout(timer);
}

/** @param {(text: string, level: string) => void} write @returns {Log} */
function logOf(write) {
  const line =
    (/** @type {string} */ level) =>
    (/** @type {unknown[]} */ ...words) => {
      write(words.map(inWords).join(" ").slice(0, LINE_LIMIT), level);
    };
  return { debug: line("debug"), info: line("info"), warn: line("warning"), error: line("error") };
}

/** @param {unknown} value @returns {string} */
function inWords(value) {
  if (typeof value === "string") return value;
  try {
    return value instanceof Error ? String(value) : (JSON.stringify(value) ?? String(value));
  } catch {
    return String(value);
  }
}

/**
 * Open the room of a plugin in this document, unless it is there or the document is none of its pages.
 * @param {PluginFacts} plugin @param {object} offered
 */
function openRoom(plugin, offered) {
  const world = /** @type {any} */ (globalThis);
  const key = Symbol.for("dev.afoot.parts");
  const parts = world[key];
  delete world[key];
  const mark = Symbol.for(`dev.afoot.plugin.${plugin.hash}`);
  if (world[mark] && !world[mark].room.isOver) return;
  delete world[mark];
  if (!coversAddress(plugin.matches, plugin.excludes, location.href)) return;
  const room = new PluginRoom(plugin, offered, parts);
  // The files are a script of their own, which hands itself over here.
  world[mark] = Object.assign((/** @type {PluginFiles} */ files) => room.take(files), { room });
  const doc = /** @type {any} */ (document);
  if (doc.prerendering) doc.addEventListener("prerenderingchange", () => room.start(), { once: true });
  else room.start();
}
