// PluginContext: a plugin in a document. It lists the plugin's tools to the gateway, and runs them (B2).
//
// Its frames are those of content/relay.js, and these:
//   up    `open` with the plugin's `key`; tab.ready {ready, why}; value {id, path}; bye {persisted, why: "replaced"}
//   down  valued {id, ok, value, why}; retire {}: the plugin has new code, finish; revive {}: this code is wanted
//         again; leave {}: the site is no longer allowed

const FILES_TIMEOUT_MS = 3000; // from the SDK to the plugin's own files, which are a second script
const RETIRE_POLL_MS = 1000;
const MAX_LOG_LINE = 4000;

/**
 * The plugin, as the gateway describes it.
 * @typedef {{name: string, version: string, hash: string, key: string, matches: string[], excludes: string[],
 *   probe: Probe}} PluginInfo
 */
/** @typedef {(offered: object) => {ready?: () => unknown} | undefined} PluginFiles the plugin's files, as one function */

class PluginContext {
  isOver = false;
  #isRetired = false;
  #loadError = "the page is loading";
  /** @type {(() => unknown) | undefined} */
  #probe;
  /** @type {any[]} */
  #tools = [];
  #plugin;
  #sdk;
  #transport;
  #outbox;
  #runs;
  #documentState;
  #readiness;

  /**
   * @param {PluginInfo} plugin
   * @param {object} offered the names of the SDK for its files
   * @param {Record<string, any>} modules
   */
  constructor(plugin, offered, modules) {
    this.#plugin = plugin;
    this.#sdk = offered;
    this.#transport = modules.createTransport({
      onOpened: () => this.#onOpened(),
      onFrame: (/** @type {any} */ frame) => this.#receive(frame),
      onLost: () => this.#stopRuns("the browser's extension was reloaded or removed"),
    });
    this.#outbox = new modules.Outbox((/** @type {any} */ frame) => this.#transport.send(frame));
    const send = (/** @type {string} */ text) => this.#outbox.send(JSON.parse(text));
    this.#runs = new modules.ToolRuns(send, { now: () => performance.now(), later: scheduleLater });
    this.#documentState = new modules.DocumentState({
      onChange: (/** @type {any} */ state) => this.#onStateChanged(state),
      onPageHide: (/** @type {boolean} */ persisted) => this.#onPageHide(persisted),
      onPageShow: () => this.#onPageShow(),
    });
    this.#readiness = new ReadinessMonitor(
      () => this.#unreadyReason(),
      (now) => this.#send("tab.ready", now),
    );
  }

  /** Connect to the gateway; the plugin's files come next. */
  start() {
    runtime.send = (method, params) => this.#send(method, params);
    this.#transport.open();
    this.#documentState.watch();
    setTimer(FILES_TIMEOUT_MS, () => {
      if (this.#files === null) this.#fail("its code could not be read: the browser's console says where");
    });
  }

  /** @type {PluginFiles | null} */
  #files = null;

  /** Run the plugin's files once, when the document has been parsed. @param {PluginFiles} files */
  setFiles(files) {
    if (this.#files !== null) return;
    this.#files = files;
    if (document.readyState !== "loading") this.#load(files);
    else addEventListener("DOMContentLoaded", () => this.#load(files), { once: true });
  }

  /** @param {PluginFiles} files */
  #load(files) {
    try {
      this.#probe = files(this.#sdk)?.ready;
      this.#tools = JSON.parse(JSON.stringify(toolDescriptions()));
    } catch (error) {
      console.error(error);
      this.#fail(`its code failed: ${errorText(error)}`);
      return;
    }
    this.#loadError = "";
    this.#sendTools();
    void this.#readiness.check();
  }

  /** @param {string} why */
  #fail(why) {
    this.#loadError = why;
    void this.#readiness.check();
  }

  async #unreadyReason() {
    if (this.#loadError) return this.#loadError;
    const { matches, excludes, probe } = this.#plugin;
    if (!matchesUrl(matches, excludes, location.href))
      return `${urlWithoutQuery(location.href)} is none of its pages`;
    return runProbe(probe, this.#probe);
  }

  /** @param {string} method @param {object} params @returns {boolean} */
  #send(method, params) {
    return this.#transport.send({ method, params });
  }

  #onOpened() {
    const { key } = this.#plugin;
    this.#send("open", { key, ...this.#documentState.read(), running: this.#outbox.running() });
    this.#sendTools();
    this.#send("tab.ready", this.#readiness.current);
    this.#outbox.resend();
    renewTimers();
    resendLookups();
  }

  #sendTools() {
    this.#send("tab.tools", { tools: this.#isRetired ? [] : this.#tools, leftOut: 0 });
  }

  /** @param {any} frame */
  #receive({ method, params }) {
    if (method === "tool.dispatch") this.#dispatch(params);
    else if (method === "tool.cancel") this.#runs.cancel(params.run, params.reason);
    else if (method === "tool.settled") this.#onSettled(params.run);
    else if (method === "resend") this.#outbox.resend();
    else if (method === "woken") fireTimers();
    else if (method === "valued") resolveLookup(params);
    else if (method === "retire") this.#retire();
    else if (method === "revive") this.#revive();
    else if (method === "leave") this.#leave();
  }

  /** @param {{run: string, tool: string, input: any}} params */
  #dispatch({ run, tool, input }) {
    if (!this.#outbox.open(run)) return;
    const one = this.#runs.open(run, tool);
    const log = createLog((text, level) => this.#runs.log(one, text, level));
    // The run has sent the error.
    this.#runs
      .perform(one, (/** @type {any} */ some) => this.#handle(tool, input, { ...some, log }))
      .catch(() => {});
  }

  /** @param {string} tool @param {any} input @param {any} some a context without `sleep` */
  async #handle(tool, input, some) {
    /** @type {ToolContext} */
    const context = { ...some, sleep: (/** @type {number} */ ms) => sleep(ms, { context }) };
    runtime.runs.add(context);
    try {
      if (this.#isRetired)
        throw ToolError.unavailable("the plugin has new code: call it again", 0, "plugin_replaced");
      const { ready, why } = this.#readiness.current.ready
        ? this.#readiness.current
        : await this.#readiness.check();
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
      runtime.runs.delete(context);
    }
  }

  /** @param {any} state */
  #onStateChanged(state) {
    this.#send("tab.state", state);
    if (!this.#loadError) void this.#readiness.checkSoon();
  }

  /** @param {boolean} persisted */
  #onPageHide(persisted) {
    this.#send("bye", { persisted });
    this.#cancelAll("the page was left");
    this.#transport.close();
  }

  #onPageShow() {
    if (this.isOver) return;
    this.#transport.close();
    this.#transport.open();
    if (!this.#loadError) void this.#readiness.checkSoon();
  }

  /** @param {string} reason */
  #cancelAll(reason) {
    this.#runs.cancelAll(reason);
    this.#outbox.clear();
  }

  /** @param {string} run */
  #onSettled(run) {
    this.#outbox.settle(run);
    if (this.#isRetired) this.#closeWhenIdle();
  }

  /** The plugin has new code: running tools may finish, and none starts. */
  #retire() {
    if (this.#isRetired) return;
    this.#isRetired = true;
    this.#readiness.stop();
    this.#sendTools();
    this.#closeWhenIdle();
  }

  /** The permission for this site was removed. */
  #leave() {
    this.#stopRuns("afoot may no longer use this site");
    this.#transport.close();
  }

  /** This code is wanted again: a change was undone while something still ran. */
  #revive() {
    if (!this.#isRetired || this.isOver) return;
    this.#isRetired = false;
    this.#sendTools();
    void this.#readiness.check();
  }

  #closeWhenIdle() {
    if (this.isOver || !this.#isRetired) return;
    if (this.#outbox.running().length > 0) {
      setTimer(RETIRE_POLL_MS, () => this.#closeWhenIdle());
      return;
    }
    this.#send("bye", { persisted: false, why: "replaced" });
    this.#stopRuns("the plugin has new code");
    this.#transport.close();
  }

  /** @param {string} reason */
  #stopRuns(reason) {
    this.isOver = true;
    this.#readiness.stop();
    this.#cancelAll(reason);
  }
}

/**
 * A timer for the rate limit of a run. The page's own timer is faster, but is delayed in a hidden page.
 * @param {number} ms @param {() => void} then
 */
function scheduleLater(ms, then) {
  if (document.hidden) return setTimer(ms, then);
  const timer = setTimeout(then, ms);
  return () => clearTimeout(timer);
}

/** @param {(text: string, level: string) => void} write @returns {Log} */
function createLog(write) {
  const line =
    (/** @type {string} */ level) =>
    (/** @type {unknown[]} */ ...words) => {
      write(words.map(logText).join(" ").slice(0, MAX_LOG_LINE), level);
    };
  return { debug: line("debug"), info: line("info"), warn: line("warning"), error: line("error") };
}

/** @param {unknown} value @returns {string} */
function logText(value) {
  if (typeof value === "string") return value;
  try {
    return value instanceof Error ? String(value) : (JSON.stringify(value) ?? String(value));
  } catch {
    return String(value);
  }
}

/**
 * Open the context of a plugin in this document, unless it is open or the URL does not match.
 * @param {PluginInfo} plugin @param {object} offered
 */
function openPluginContext(plugin, offered) {
  const world = /** @type {any} */ (globalThis);
  const key = Symbol.for("dev.afoot.modules");
  const modules = world[key];
  delete world[key];
  const mark = Symbol.for(`dev.afoot.plugin.${plugin.hash}`);
  const before = world[mark]?.context;
  if (before && !before.isOver) return;
  delete world[mark];
  if (!matchesUrl(plugin.matches, plugin.excludes, location.href)) return;
  const context = new PluginContext(plugin, offered, modules);
  // The plugin's files are a second script, which calls this function.
  world[mark] = Object.assign((/** @type {PluginFiles} */ files) => context.setFiles(files), { context });
  const doc = /** @type {any} */ (document);
  if (doc.prerendering) doc.addEventListener("prerenderingchange", () => context.start(), { once: true });
  else context.start();
}
