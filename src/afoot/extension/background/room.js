// One room: what it has said so far, so that a new link can be told all of it, and the runs it has.

import { fromRoom } from "./frames.js";
import { Gate } from "./gate.js";
import { addressOf } from "./place.js";

/** @typedef {import("./gate.js").Frame} Frame */
/** @typedef {import("./place.js").Place} Place */
/** @typedef {import("../messages.js").Room} RoomView */
/** @typedef {import("../messages.js").Running} Running */
/**
 * @typedef {object} Run
 * @property {number} seq
 * @property {Frame} [progress] the newest
 * @property {Frame} [asking]
 * @property {Frame} [result]
 */
/**
 * @typedef {object} Way
 * @property {(frame: Frame) => void} send
 * @property {() => boolean} isBusy
 * @property {(what: string) => void} count
 */

const KEPT_MS = 30_000; // so long an end is kept that nobody has acknowledged
const MOST_RUNS = 1000;

/** A room whose port is open. */
export class Room {
  /** @type {Map<string, Run>} */
  #runs = new Map();
  /** @type {Frame | null} */
  #tools = null;
  /** @type {Frame | null} */
  #ready = null;
  /** @type {RoomView} */
  #view;
  #gate;
  #way;
  opened = performance.now();
  saidBye = false;

  /**
   * @param {Place} place
   * @param {chrome.runtime.Port} port
   * @param {Record<string, any>} said
   * @param {Way} way
   */
  constructor(place, port, said, way) {
    this.place = place;
    this.port = port;
    this.#way = way;
    this.#gate = new Gate({
      send: way.send,
      isBusy: way.isBusy,
      now: () => performance.now(),
      later: (then, ms) => setTimeout(then, ms),
    });
    this.#view = { ...place, title: "", visible: true, frozen: false };
    this.#see(said);
    const known = Array.isArray(said.running) ? said.running.slice(0, MOST_RUNS) : [];
    for (const { run, seq } of known) {
      if (typeof run === "string") this.#runs.set(run, { seq: whole(seq) });
    }
  }

  get id() {
    return this.place.id;
  }

  /** @returns {RoomView} */
  get view() {
    return this.#view;
  }

  /** @returns {Running[]} with those that have ended, until that is acknowledged */
  get running() {
    return [...this.#runs].map(([run, { seq }]) => ({ run, room: this.id, seq }));
  }

  /** @returns {Frame[]} what a new link must hear besides the view */
  get kept() {
    const runs = [...this.#runs.values()].flatMap((run) => [run.asking, run.progress, run.result]);
    return [this.#tools, this.#ready, ...runs].filter((frame) => frame !== null && frame !== undefined);
  }

  /**
   * @param {string} run
   * @returns {boolean}
   */
  has(run) {
    return this.#runs.has(run);
  }

  /** @param {string} run */
  start(run) {
    this.#runs.set(run, { seq: 0 });
  }

  /** @param {string} run */
  settle(run) {
    this.#runs.delete(run);
  }

  /** The room ends: what it said last is still worth telling. */
  end() {
    this.#gate.empty();
  }

  /** Its relay has a new port, and says everything again. */
  yield() {
    this.#gate.forget();
  }

  /**
   * Take a frame of the room's.
   * @param {Frame} said
   */
  hear(said) {
    const frame = fromRoom(this.id, said);
    if (!frame) return this.#way.count("frames that no room may send");
    if (frame.method.startsWith("tool.")) return this.#hearRun(frame);
    if (frame.method === "tab.tools") this.#tools = frame;
    if (frame.method === "tab.ready") this.#ready = frame;
    if (frame.method === "tab.state") this.#see(frame.params);
    this.#gate.offer(frame.method === "tab.state" ? this.#stated() : frame);
  }

  /** @param {Frame} frame */
  #hearRun(frame) {
    const { run: id, seq } = frame.params;
    const run = this.#runs.get(id);
    const isEnd = frame.method === "tool.result";
    if (!run || run.result) {
      if (isEnd)
        this.#gate.offer(frame); // one that it kept from before this port
      else this.#way.count("frames about a run that is not open there");
      return;
    }
    run.seq = Math.max(run.seq, whole(seq));
    if (frame.method === "tool.progress") run.progress = frame;
    if (frame.method === "tool.asking") run.asking = frame;
    if (!isEnd) return this.#gate.offer(frame);
    run.result = frame;
    setTimeout(() => this.#runs.get(id) === run && this.#runs.delete(id), KEPT_MS);
    this.#gate.pass(frame);
  }

  /** @returns {Frame} the whole state: a frame that waits may be replaced by the next */
  #stated() {
    const { visible, frozen, url, title } = this.#view;
    return { method: "tab.state", params: { room: this.id, visible, frozen, url, title } };
  }

  /** @param {Record<string, any>} said */
  #see(said) {
    const view = { ...this.#view };
    if (said.url !== undefined) view.url = addressOf(this.place, said.url);
    if (typeof said.title === "string") view.title = said.title.slice(0, 500);
    if (typeof said.visible === "boolean") view.visible = said.visible;
    if (typeof said.frozen === "boolean") view.frozen = said.frozen;
    this.#view = view;
  }
}

/**
 * A number of a frame; a hello with anything else would cost all rooms the link.
 * @param {unknown} seq
 * @returns {number}
 */
function whole(seq) {
  return Number.isSafeInteger(seq) ? Number(seq) : 0;
}
