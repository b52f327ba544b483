// PageContexts: all contexts of this browser. It accepts their ports, passes frames between them and the link, and
// finds out why a document is gone (B1, B6, B7).

import { RETRY_MS, closeReason, isCached } from "./document_close_reason.js";
import { isFrame } from "./frames.js";
import { PageContext, contextAddress } from "./page_context.js";
import { post, scheduleWake, sendPageValue } from "./port_requests.js";

/** @typedef {import("./frames.js").Frame} Frame */
/**
 * A port of a relay or of a plugin.
 * @typedef {object} PortConnection
 * @property {chrome.runtime.Port} port
 * @property {boolean} isPlugin
 * @property {PageContext | null} context
 * @property {Frame[] | null} waiting frames that arrive while the sender is being identified
 * @property {{persisted?: unknown, why?: unknown} | null} goodbye
 * @property {number} wakes
 * @property {boolean} isClosed
 * @property {number} openedAt
 */
/**
 * @typedef {object} ContextsOptions
 * @property {(method: string, params: Record<string, any>) => void} send
 * @property {(sender: chrome.runtime.MessageSender | undefined) => Promise<boolean>} isAllowed by its site
 * @property {(key: unknown) => Promise<string | null>} sourceOf the plugin that has a key
 * @property {(source: string) => boolean} isCurrent whether a plugin is to be run
 * @property {(at: number) => boolean} isStale whether a plugin that connected then is of an earlier load
 * @property {() => void} changed
 */

const MAX_WAITING = 1000;

export class PageContexts {
  /** @type {Map<string, PageContext>} */
  #contexts = new Map();
  /** @type {Map<string, PageContext>} contexts whose port is closed for a reason that is not known yet */
  #closing = new Map();
  /** @type {Set<string>} tabs that got another id */
  #replaced = new Set();
  /** @type {Record<string, number>} odd events, by kind */
  counts = {};
  #options;

  /** @param {ContextsOptions} options */
  constructor(options) {
    this.#options = options;
  }

  get all() {
    return [...this.#contexts.values()];
  }

  /**
   * Accept a port that a relay or a plugin opened.
   * @param {chrome.runtime.Port} port
   * @param {boolean} isPlugin
   */
  connect(port, isPlugin) {
    /** @type {PortConnection} */
    const connection = {
      port,
      isPlugin,
      context: null,
      waiting: null,
      goodbye: null,
      wakes: 0,
      isClosed: false,
      openedAt: performance.now(),
    };
    port.onMessage.addListener((frame) => this.#receive(connection, frame));
    port.onDisconnect.addListener(() => {
      connection.isClosed = true;
      this.#onDisconnect(connection, chrome.runtime.lastError?.message);
    });
  }

  /**
   * Remember that a tab has another id now: it was discarded.
   * @param {number} tab
   */
  markReplaced(tab) {
    this.#replaced.add(String(tab));
  }

  /**
   * Pass a frame of the gateway to its context.
   * @param {Frame} frame
   */
  deliver(frame) {
    const { room: id, ...params } = frame.params;
    const context = this.#contexts.get(id);
    if (!context) {
      const isAwaited = frame.method === "tool.dispatch" && !this.#closing.has(id);
      if (isAwaited) this.#options.send("tab.gone", { room: id, why: "lost" });
      return;
    }
    if (frame.method === "tool.dispatch") context.startRun(params.run);
    if (frame.method === "tool.settled") context.forgetRun(params.run);
    post(context.port, frame.method, params);
  }

  /** Tell a new link the tools of every context, and ask the pages to send again what the old link may have lost. */
  resend() {
    for (const context of this.all) {
      for (const frame of context.stateFrames) this.#options.send(frame.method, frame.params);
      post(context.port, "resend", {});
    }
  }

  /**
   * Stop runs that the gateway does not know.
   * @param {string[]} runs
   */
  abort(runs) {
    for (const run of runs) {
      const context = this.all.find((one) => one.hasRun(run));
      if (context) post(context.port, "tool.cancel", { run, reason: "the gateway does not know this run" });
      context?.forgetRun(run);
    }
  }

  /** Retire plugins that are not to be run any more, and revive those whose code came back. */
  syncPlugins() {
    for (const context of this.all) this.#syncPlugin(context);
  }

  /**
   * Close every context for which the predicate is true.
   * @param {(context: PageContext) => boolean} isOver
   */
  close(isOver) {
    for (const context of this.all.filter(isOver)) {
      this.#contexts.delete(context.id);
      post(context.port, "leave", {});
      context.port.disconnect();
      this.#options.send("tab.gone", { room: context.id, why: "lost" });
    }
    this.#options.changed();
  }

  /**
   * @param {PortConnection} connection
   * @param {unknown} frame
   */
  #receive(connection, frame) {
    if (!isFrame(frame)) return this.#count("messages that are no frames");
    if (connection.waiting) {
      if (connection.waiting.push(frame) <= MAX_WAITING) return;
      connection.isClosed = true; // onDisconnect does not fire on the side that disconnects
      connection.port.disconnect();
    } else if (frame.method === "open") this.#open(connection, frame);
    else if (!connection.context) this.#count("frames before a context was open");
    else if (frame.method === "bye") this.#onGoodbye(connection, frame.params);
    else if (frame.method === "wake") scheduleWake(connection, frame.params);
    else if (frame.method === "value" && connection.isPlugin)
      void sendPageValue(connection.port, frame.params);
    else connection.context.receive(frame);
  }

  /**
   * @param {PortConnection} connection
   * @param {Frame} frame
   */
  #open(connection, frame) {
    const waiting = (connection.waiting = /** @type {Frame[]} */ ([]));
    void this.#identify(connection, frame.params.key).then((source) => {
      connection.waiting = null;
      if (source === null || connection.isClosed) return;
      this.#register(connection, source, frame.params);
      for (const one of waiting) this.#receive(connection, one);
    });
  }

  /**
   * @param {PortConnection} connection
   * @param {unknown} key
   * @returns {Promise<string | null>} null: the port was refused
   */
  async #identify(connection, key) {
    if (!(await this.#options.isAllowed(connection.port.sender))) {
      post(connection.port, "leave", {});
      connection.port.disconnect();
      return null;
    }
    const source = connection.isPlugin ? await this.#options.sourceOf(key) : "page";
    const isStale = connection.isPlugin && this.#options.isStale(connection.openedAt);
    if (source !== null && !isStale) return source;
    this.#count("ports of unknown plugins");
    connection.port.disconnect();
    return null;
  }

  /**
   * @param {PortConnection} connection
   * @param {string} source
   * @param {Record<string, any>} opened
   */
  #register(connection, source, opened) {
    const address = contextAddress(connection.port.sender, source);
    if (!address) return connection.port.disconnect();
    const old = this.#contexts.get(address.id);
    if (old && old.port !== connection.port) old.port.disconnect();
    this.#closing.delete(address.id); // only its port was gone
    const context = new PageContext(address, connection.port, opened, {
      send: (frame) => this.#options.send(frame.method, frame.params),
      count: (what) => this.#count(what),
    });
    connection.context = context;
    connection.goodbye = null;
    this.#contexts.set(address.id, context);
    post(connection.port, "taken", {}); // a relay that gets no answer reconnects more and more slowly
    this.#options.send("tab.opened", { room: context.view, running: context.running });
    this.#options.changed();
    this.#syncPlugin(context);
  }

  /** @param {PageContext} context */
  #syncPlugin(context) {
    const { source } = context.address;
    if (source !== "page") post(context.port, this.#options.isCurrent(source) ? "revive" : "retire", {});
  }

  /**
   * @param {PortConnection} connection
   * @param {Record<string, unknown>} goodbye
   */
  #onGoodbye(connection, goodbye) {
    connection.goodbye = goodbye;
    if (connection.context) connection.context.saidGoodbye = true;
    if (isCached(undefined, goodbye)) this.#remove(connection, "cached");
  }

  /**
   * @param {PortConnection} connection
   * @param {string | undefined} error
   */
  #onDisconnect(connection, error) {
    const context = connection.context;
    if (!context || this.#contexts.get(context.id) !== context) return;
    if (isCached(error, connection.goodbye)) return this.#remove(connection, "cached");
    if (connection.goodbye?.why === "replaced") return this.#remove(connection, "replaced");
    this.#contexts.delete(context.id);
    this.#closing.set(context.id, context);
    void this.#findCloseReason(context).then((why) => {
      if (this.#closing.get(context.id) !== context) return;
      this.#closing.delete(context.id);
      this.#options.send("tab.gone", { room: context.id, why });
      this.#options.changed();
    });
  }

  /**
   * @param {PortConnection} connection
   * @param {string} why
   */
  #remove(connection, why) {
    const context = connection.context;
    connection.context = null;
    if (!context || this.#contexts.get(context.id) !== context) return;
    this.#contexts.delete(context.id);
    this.#options.send("tab.gone", { room: context.id, why });
    this.#options.changed();
  }

  /**
   * @param {PageContext} context
   * @returns {Promise<string>}
   */
  async #findCloseReason(context) {
    for (let attempts = 0; ; attempts += 1) {
      const tab = await chrome.tabs.get(Number(context.address.tab)).catch(() => null);
      const why = closeReason(this.#closeEvidence(context, tab, attempts));
      if (why !== null) return why;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  /**
   * @param {PageContext} context
   * @param {chrome.tabs.Tab | null} tab
   * @param {number} attempts
   * @returns {import("./document_close_reason.js").CloseEvidence}
   */
  #closeEvidence(context, tab, attempts) {
    const { tab: id, frame } = context.address;
    const tops = this.all.filter(
      ({ address }) => address.tab === id && address.frame === "0" && address.source === "page",
    );
    return {
      isTop: frame === "0",
      url: context.view.url ?? "",
      saidGoodbye: context.saidGoodbye,
      isTopOpen: tops.some((one) => one.openedAt <= context.openedAt && !one.saidGoodbye),
      hasSuccessor: tops.some((one) => one.address.document !== context.address.document),
      wasReplaced: this.#replaced.has(id),
      attempts,
      tab,
    };
  }

  /** @param {string} what */
  #count(what) {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }
}
