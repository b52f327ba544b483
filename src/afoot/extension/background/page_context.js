// PageContext: one world of one document in which tools run, as the service worker knows it (the wire says `room`).
//
// The worker may be stopped at any moment and started again, and the link may be lost, so the frames of a run are kept
// in the page alone (content/outbox.js). Kept here is only what `link.hello` must say at once: the address of each
// context, its state, its tools, and which runs it has.

import { addContext } from "./frames.js";

/** @typedef {import("./frames.js").Frame} Frame */
/** @typedef {import("./messages.js").PageContext} ContextView */
/** @typedef {import("./messages.js").RunPosition} Running */
/**
 * The identity of a context. The browser's description of the sender gives it, never a message (B7).
 * @typedef {object} ContextAddress
 * @property {string} id the same after a restart of the worker
 * @property {string} tab
 * @property {string} frame
 * @property {string} document
 * @property {string} origin the frame's
 * @property {string} top the tab's origin
 * @property {string} url
 * @property {string} source "page", or the plugin
 */
/**
 * @typedef {object} ContextOutput
 * @property {(frame: Frame) => void} send
 * @property {(what: string) => void} count counts something odd
 */

const KEEP_ENDED_MS = 30_000; // as long as the page's outbox keeps a result that nobody acknowledged
const MAX_RUNS = 1000;
const MAX_URL = 4000;
const MAX_TITLE = 500;

/** A context whose port is open. */
export class PageContext {
  /** @type {Map<string, {seq: number}>} */
  #runs = new Map();
  /** @type {Frame | null} */
  #tools = null;
  /** @type {Frame | null} */
  #readiness = null;
  /** @type {ContextView} */
  #view;
  #output;
  openedAt = performance.now();
  saidGoodbye = false;

  /**
   * @param {ContextAddress} address
   * @param {chrome.runtime.Port} port
   * @param {Record<string, any>} opened the params of its frame `open`
   * @param {ContextOutput} output
   */
  constructor(address, port, opened, output) {
    this.address = address;
    this.port = port;
    this.#output = output;
    this.#view = { ...address, title: "", visible: true, frozen: false };
    this.#updateView(opened);
    const running = Array.isArray(opened.running) ? opened.running.slice(0, MAX_RUNS) : [];
    for (const { run, seq } of running) {
      if (typeof run === "string") this.#runs.set(run, { seq: safeSeq(seq) });
    }
  }

  get id() {
    return this.address.id;
  }

  /** @returns {ContextView} */
  get view() {
    return this.#view;
  }

  /** @returns {Running[]} the open runs, and those whose end is not acknowledged yet */
  get running() {
    return [...this.#runs].map(([run, { seq }]) => ({ run, room: this.id, seq }));
  }

  /** @returns {Frame[]} the tools and their readiness, for a new link */
  get stateFrames() {
    return [this.#tools, this.#readiness].filter((frame) => frame !== null);
  }

  /**
   * @param {string} run
   * @returns {boolean}
   */
  hasRun(run) {
    return this.#runs.has(run);
  }

  /** @param {string} run */
  startRun(run) {
    this.#runs.set(run, { seq: 0 });
  }

  /** @param {string} run */
  forgetRun(run) {
    this.#runs.delete(run);
  }

  /**
   * Check a frame of the context, and send it to the gateway.
   * @param {Frame} received
   */
  receive(received) {
    const frame = addContext(this.id, received);
    if (!frame) return this.#output.count("frames that no context may send");
    if (frame.method.startsWith("tool.")) return this.#receiveFromRun(frame);
    if (frame.method === "tab.tools") this.#tools = frame;
    if (frame.method === "tab.ready") this.#readiness = frame;
    if (frame.method === "tab.state") this.#updateView(frame.params);
    this.#output.send(frame.method === "tab.state" ? this.#stateFrame() : frame);
  }

  /** @param {Frame} frame */
  #receiveFromRun(frame) {
    const { run: id, seq } = frame.params;
    const isEnd = frame.method === "tool.result";
    const run = this.#runs.get(id);
    // A result counts also where the run is unknown here: the page kept it from before this port.
    if (!run && !isEnd) return this.#output.count("frames about a run that is not open there");
    if (run) run.seq = Math.max(run.seq, safeSeq(seq));
    if (run && isEnd) setTimeout(() => this.#runs.get(id) === run && this.#runs.delete(id), KEEP_ENDED_MS);
    this.#output.send(frame);
  }

  /** @returns {Frame} */
  #stateFrame() {
    const { visible, frozen, url, title } = this.#view;
    return { method: "tab.state", params: { room: this.id, visible, frozen, url, title } };
  }

  /** @param {Record<string, any>} state */
  #updateView(state) {
    const view = { ...this.#view };
    if (state.url !== undefined) view.url = checkedUrl(this.address, state.url);
    if (typeof state.title === "string") view.title = state.title.slice(0, MAX_TITLE);
    if (typeof state.visible === "boolean") view.visible = state.visible;
    if (typeof state.frozen === "boolean") view.frozen = state.frozen;
    this.#view = view;
  }
}

/**
 * The address of a sender; null where no context can be.
 * @param {chrome.runtime.MessageSender | undefined} sender
 * @param {string} source
 * @returns {ContextAddress | null}
 */
export function contextAddress(sender, source) {
  const tab = sender?.tab?.id;
  if (tab === undefined || tab < 0 || !sender?.documentId || sender.frameId === undefined) return null;
  if (sender.documentLifecycle === "prerender") return null; // no person has seen this document yet
  const origin = sender.origin ?? "null";
  const base = `${tab}.${sender.frameId}.${sender.documentId}`;
  return {
    id: source === "page" ? base : `${base}.${source}`,
    tab: String(tab),
    frame: String(sender.frameId),
    document: sender.documentId,
    origin,
    top: sender.frameId === 0 ? origin : originOf(sender.tab?.url),
    url: sender.url ?? "",
    source,
  };
}

/**
 * The site of a sender. A document without an origin of its own belongs to the site of its URL, or of its tab.
 * @param {chrome.runtime.MessageSender | undefined} sender
 * @returns {string} empty where it is unknown
 */
export function senderSite(sender) {
  const all = [sender?.origin ?? "", originOf(sender?.url), originOf(sender?.tab?.url)];
  return all.find((one) => one && one !== "null") ?? "";
}

/**
 * The URL that a page claims, if it has the page's origin; otherwise the URL that the browser gave.
 * @param {ContextAddress} address
 * @param {unknown} claimed
 * @returns {string}
 */
export function checkedUrl(address, claimed) {
  const isOwn = typeof claimed === "string" && originOf(claimed) === address.origin;
  return (isOwn ? claimed : address.url).slice(0, MAX_URL);
}

/**
 * Whether the relay of a page context was started by this load of the extension. A relay of an earlier load can reach
 * the new worker, but lives in an isolated world that nobody enters any more.
 * @param {PageContext} context
 * @returns {Promise<boolean>}
 */
export async function isFromThisLoad(context) {
  const target = { tabId: Number(context.address.tab), documentIds: [context.address.document] };
  const func = () => "afootRelay" in globalThis;
  try {
    const [found] = await chrome.scripting.executeScript({ target, func });
    return found?.result !== false;
  } catch {
    return true; // the document is gone already; its port will say so
  }
}

/**
 * @param {string | undefined} url
 * @returns {string} empty for a URL that cannot be parsed
 */
function originOf(url) {
  if (!url || !URL.canParse(url)) return "";
  return new URL(url).origin;
}

/**
 * The sequence number of a frame. The gateway refuses a hello with anything but a safe integer.
 * @param {unknown} seq
 * @returns {number}
 */
function safeSeq(seq) {
  return Number.isSafeInteger(seq) ? Number(seq) : 0;
}
