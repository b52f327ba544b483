// What is known of all calls: facts and readings come in as the feed sends them, and are shown once a frame.

import { begin, evolve, fromView, note } from "./fold.js";
import { batch, signal } from "./signal.js";
import { exactly, sync } from "./time.js";

/** @typedef {import("./fold.js").Call} Call */
/** @template T @typedef {import("./signal.js").Signal<T>} Signal */
/**
 * A call in the store. `call` tells of facts, `reading` of numbers too; both give one object that changes.
 * @typedef {{id: string, call: Signal<Call>, reading: Signal<Call>, below: Signal<Entry[]>}} Entry
 */
/** @typedef {import("./fold.js").Asked & Pick<Call, "tool" | "server" | "caller"> & {call: string}} Open */
/** @typedef {{epoch: string, version: string, degraded: string | null, ready: boolean}} About */
/** @typedef {(kind: "asked" | "finished", entry: Entry) => void} Listener */

const STAY_S = 30; // an ended call is shown a while longer
const MOST_ENDED = 200; // trees that have ended
const ARRIVALS = 10; // new nodes a frame, so that no frame takes long

export class Store {
  /** @type {Signal<Entry[]>} calls that are below no other, in the order they came */
  roots = signal(/** @type {Entry[]} */ ([]));
  /** @type {Signal<Open[]>} */
  questions = signal(/** @type {Open[]} */ ([]));
  /** @type {Signal<About>} */
  about = signal(/** @type {About} */ ({ epoch: "", version: "", degraded: null, ready: false }));
  /** @type {Map<string, Entry>} */ #calls = new Map();
  /** @type {Map<string, "facts" | "reading">} */ #dirty = new Map();
  /** @type {Entry[]} */ #arrived = [];
  /** @type {Set<Listener>} */ #listeners = new Set();
  heldUntil = 0;
  #isDue = false;
  #asks = false; // whether the open questions may be others
  /** @type {(draw: () => void) => void} */ #frame;
  /** @type {() => boolean} */ #isHidden;

  /**
   * @param {(draw: () => void) => void} frame asks for the next frame
   * @param {() => boolean} [isHidden] a page that is hidden has no frames
   */
  constructor(frame, isHidden = () => false) {
    [this.#frame, this.#isHidden] = [frame, isHidden];
  }

  /** @param {string} id @returns {Entry | undefined} */
  get(id) {
    return this.#calls.get(id);
  }

  /** Be told when a call asks or ends. @param {Listener} listener @returns {() => void} */
  listen(listener) {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Take in a frame of /api/events. @param {string} event @param {any} data */
  take(event, data) {
    if (data.now) sync(data.now);
    if (event === "snapshot") this.#begin(data);
    if (event !== "changes") return;
    for (const one of data.facts) this.#fact(one);
    for (const one of data.readings) this.#reading(one);
    const about = this.about.peek();
    if (data.degraded !== about.degraded) this.about.set({ ...about, degraded: data.degraded });
    if (this.#isHidden()) this.draw();
  }

  /** Show what has changed: the next frame does, and whoever shows a page that was hidden. */
  draw() {
    if (!this.#isDue) return;
    this.#isDue = false;
    const [dirty, arrivals] = [this.#dirty, this.#arrived.splice(0, ARRIVALS)];
    this.#dirty = new Map();
    batch(() => {
      if (arrivals.length) this.#place(arrivals);
      dirty.forEach((what, id) => {
        const entry = this.#calls.get(id);
        entry?.reading.touch();
        if (what === "facts") entry?.call.touch();
      });
      if (this.#asks) this.questions.set(openOf(this.#calls));
      this.#asks = false;
    });
    if (this.#arrived.length) this.#mark("", "reading");
  }

  /** Forget trees that ended a while ago, but not while somebody points at what would move. */
  forget() {
    if (exactly() < this.heldUntil) return;
    const over = this.roots.peek().filter(isOver);
    const last = exactly() - STAY_S;
    const gone = new Set(over.filter((entry, at) => at < over.length - MOST_ENDED || endOf(entry) < last));
    const drop = (/** @type {Entry} */ entry) => (
      this.#calls.delete(entry.id),
      entry.below.peek().forEach(drop)
    );
    gone.forEach(drop);
    if (gone.size) this.roots.set(this.roots.peek().filter((entry) => !gone.has(entry)));
  }

  /** Begin anew with what lives; what ended meanwhile is history, the shown stays. @param {any} snapshot */
  #begin({ calls, epoch, version, degraded }) {
    const known = this.#calls;
    [this.#calls, this.#arrived, this.#asks] = [new Map(), [], true];
    batch(() => {
      for (const view of calls) this.#enter(fromView(view), known.get(view.id));
      this.#arrived.sort((a, b) => a.call.peek().opened - b.call.peek().opened);
      const stay = this.#arrived.filter((entry) => known.has(entry.id));
      this.#arrived = this.#arrived.filter((entry) => !known.has(entry.id));
      this.roots.set([]);
      this.#place(stay);
      this.about.set({ epoch, version, degraded, ready: true });
      this.#mark("", "reading");
      this.draw();
    });
  }

  /** @param {{call: string, seq: number, fact: import("./fold.js").Fact}} one */
  #fact({ call: id, seq, fact }) {
    const known = this.#calls.get(id);
    if (known ? seq <= known.call.peek().seq : fact.type !== "opened") return; // seen, or its call is gone
    const entry = known ?? this.#enter(begin(id, fact));
    if (known) evolve(known.call.peek(), fact);
    else this.#countAbove(entry.call.peek().parent);
    this.#mark(id, "facts");
    this.#asks ||= fact.type === "asked" || fact.type === "answered" || fact.type === "finished";
    const kind = fact.type === "asked" || fact.type === "finished" ? fact.type : null;
    if (kind) this.#listeners.forEach((listen) => listen(kind, entry));
  }

  /** @param {any} seen the newest reading of a call */
  #reading({ call: id, reading, readings, eta = null, rate = null, stalled = false }) {
    const call = this.#calls.get(id)?.call.peek();
    if (!call) return;
    const wasStalled = call.stalled;
    if (reading) note(call, reading);
    Object.assign(call, { readings, eta, rate, stalled });
    this.#mark(id, stalled === wasStalled ? "reading" : "facts");
  }

  /** @param {Call} call @param {Entry} [known] */
  #enter(call, known) {
    const below = signal(/** @type {Entry[]} */ ([]));
    const entry = known ?? { id: call.id, call: signal(call), reading: signal(call), below };
    if (known) (known.call.set(call), known.reading.set(call), known.below.set([]));
    this.#calls.set(call.id, entry);
    this.#arrived.push(entry);
    return entry;
  }

  /** @param {string | null} parent */
  #countAbove(parent) {
    const above = this.#calls.get(parent ?? "")?.call.peek();
    if (above) above.children += 1;
  }

  /** @param {string} id @param {"facts" | "reading"} what */
  #mark(id, what) {
    if (what === "facts" || !this.#dirty.has(id)) this.#dirty.set(id, what);
    if (this.#isDue) return;
    this.#isDue = true;
    if (!this.#isHidden()) this.#frame(() => this.draw());
  }

  /** Put new calls where they belong: below one that is known, or on their own. @param {Entry[]} entries */
  #place(entries) {
    /** @type {Map<Signal<Entry[]>, Entry[]>} */ const more = new Map();
    for (const entry of entries) {
      const above = this.#calls.get(entry.call.peek().parent ?? "");
      const list = above?.below ?? this.roots;
      if (above) this.#dirty.set(above.id, "facts");
      more.set(list, [...(more.get(list) ?? []), entry]);
    }
    more.forEach((added, list) => list.set([...list.peek(), ...added]));
  }
}

/** @param {Entry} entry @returns {boolean} whether it and all below it has ended */
const isOver = (entry) => entry.call.peek().state === "finished" && entry.below.peek().every(isOver);

/** @param {Entry} entry */
const endOf = (entry) => entry.call.peek().finished ?? 0;

/** What somebody here may answer, oldest first. @param {Map<string, Entry>} calls @returns {Open[]} */
function openOf(calls) {
  const found = [...calls.values()].flatMap((entry) => {
    const { id, tool, server, caller, open } = entry.call.peek();
    const own = [...open.values()].filter((one) => one.kind !== "below" && !one.below);
    return own.map((one) => ({ ...one, call: id, tool, server, caller }));
  });
  return found.sort((a, b) => a.at - b.at);
}

/** The store of this page. */
export const store = new Store(
  (draw) => requestAnimationFrame(draw),
  () => document.hidden,
);
