// What is known of all calls: facts and readings come in as the feed sends them, and are shown once a frame.

import { begin, evolve, fromView, note } from "./fold.js";
import { batch, signal } from "./signal.js";
import { exactly, sync } from "./time.js";

/** @typedef {(kind: "asked" | "finished", entry: Entry) => void} Listener */
/** @typedef {"facts" | "reading"} Change */

const STAY_S = 30; // an ended call is shown a while longer
const MOST_ENDED = 200; // trees that have ended
const ARRIVALS = 10; // new nodes a frame, so that no frame takes long

export class Store {
  roots = signal(/** @type {Entry[]} */ ([])); // calls that are below no other, in the order they came
  questions = signal(/** @type {OpenQuestion[]} */ ([])); // that somebody here may answer, oldest first
  about = signal({ degraded: /** @type {string | null} */ (null), ready: false });
  heldUntil = 0; // somebody points at what is shown: nothing moves
  #calls = new Map(/** @type {[string, Entry][]} */ ([]));
  #dirty = new Map(/** @type {[string, Change][]} */ ([]));
  #arrived = /** @type {Entry[]} */ ([]);
  #listeners = new Set(/** @type {Listener[]} */ ([]));
  #isDue = false;
  #asks = false; // whether the open questions may be others
  #frame;
  #isHidden;

  /** A page that is hidden has no frames. @param {(draw: () => void) => void} frame @param {() => boolean} [isHidden] */
  constructor(frame, isHidden = () => false) {
    this.#frame = frame;
    this.#isHidden = isHidden;
  }

  /** @param {string} id */
  get = (id) => this.#calls.get(id);

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
    const dirty = this.#dirty;
    this.#dirty = new Map();
    batch(() => {
      this.#place(this.#arrived.splice(0, ARRIVALS));
      for (const [id, what] of dirty) {
        this.get(id)?.reading.touch();
        if (what === "facts") this.get(id)?.call.touch();
      }
      if (this.#asks) this.questions.set(openOf([...this.#calls.values()]));
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
    const drop = (/** @type {Entry} */ entry) => (this.#calls.delete(entry.id), entry.below.peek().forEach(drop));
    gone.forEach(drop);
    if (gone.size) this.roots.set(this.roots.peek().filter((entry) => !gone.has(entry)));
  }

  /** Begin anew with what lives; what ended meanwhile is history, the shown stays. @param {any} snapshot */
  #begin({ calls, degraded }) {
    const known = this.#calls;
    [this.#calls, this.#arrived, this.#asks] = [new Map(), [], true];
    batch(() => {
      for (const view of calls) this.#enter(fromView(view), known.get(view.id));
      const all = this.#arrived.sort((a, b) => a.call.peek().opened - b.call.peek().opened);
      this.#arrived = all.filter((entry) => !known.has(entry.id));
      this.roots.set([]);
      this.#place(all.filter((entry) => known.has(entry.id)));
      this.about.set({ degraded, ready: true });
      this.#mark("", "reading");
      this.draw();
    });
  }

  /** @param {{call: string, seq: number, fact: Fact}} one */
  #fact({ call: id, seq, fact }) {
    const known = this.get(id);
    if (known ? seq <= known.call.peek().seq : fact.type !== "opened") return; // seen, or its call is gone
    const entry = known ?? this.#enter(begin(id, fact));
    const call = entry.call.peek();
    if (known) evolve(call, fact);
    this.#mark(id, "facts");
    if (fact.type === "opened" || fact.type === "finished") this.#count(call);
    this.#asks ||= ["asked", "answered", "finished"].includes(fact.type);
    const kind = fact.type === "asked" || fact.type === "finished" ? fact.type : null;
    if (kind) this.#listeners.forEach((listen) => listen(kind, entry));
  }

  /** @param {any} seen the newest reading of a call */
  #reading({ call: id, reading, readings, eta = null, rate = null, stalled = false, detached = false }) {
    const call = this.get(id)?.call.peek();
    if (!call) return;
    const wasStalled = call.stalled ?? false;
    if (reading) note(call, reading);
    Object.assign(call, { readings, eta, rate, stalled, detached });
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

  /** A call came, or ended: the one above it counts. @param {Call} call */
  #count({ parent, outcome }) {
    const above = this.get(parent ?? "")?.call.peek();
    if (!above) return;
    above.children.live += outcome === null ? 1 : -1;
    if (outcome === null) above.children.total += 1;
    else if (outcome !== "ok") above.children.failed += 1;
    this.#mark(above.id, "facts");
  }

  /** @param {string} id @param {Change} what */
  #mark(id, what) {
    if (what === "facts" || !this.#dirty.has(id)) this.#dirty.set(id, what);
    if (this.#isDue) return;
    this.#isDue = true;
    if (!this.#isHidden()) this.#frame(() => this.draw());
  }

  /** Put new calls where they belong: below one that is known, or on their own. @param {Entry[]} entries */
  #place(entries) {
    const listOf = (/** @type {Entry} */ { call }) => this.get(call.peek().parent ?? "")?.below ?? this.roots;
    for (const [list, added] of Map.groupBy(entries, listOf)) list.set([...list.peek(), ...added]);
  }
}

/** @param {Entry} entry @returns {boolean} whether it and all below it has ended */
const isOver = ({ call, below }) => call.peek().state === "finished" && below.peek().every(isOver);

/** @param {Entry} entry */
const endOf = ({ call }) => call.peek().finished ?? 0;

/** @param {Entry[]} entries @returns {OpenQuestion[]} */
function openOf(entries) {
  const found = entries.flatMap((entry) => {
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
