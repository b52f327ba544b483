// Store: the state of all calls. Facts and readings are applied as the feed delivers them, and shown once per frame.

import { beginCall, evolve, callFromView, addReading } from "./fold.js";
import { batch, signal } from "./signal.js";
import { preciseNow, syncClock } from "./time.js";

/** @typedef {(kind: "asked" | "finished", entry: Entry) => void} Listener */
/** @typedef {"facts" | "reading"} Change */

const KEEP_ENDED_S = 30; // an ended call stays visible for a while
const MAX_ENDED = 200; // ended trees that stay visible
const MAX_NEW_PER_FRAME = 10; // so that no frame takes long

export class Store {
  roots = signal(/** @type {Entry[]} */ ([])); // calls without a parent, in the order of arrival
  questions = signal(/** @type {OpenQuestion[]} */ ([])); // that a person here may answer, oldest first
  about = signal({ degraded: /** @type {string | null} */ (null), ready: false });
  pointerHeldUntil = 0; // while the pointer is over a card, no card moves
  #calls = new Map(/** @type {[string, Entry][]} */ ([]));
  #dirty = new Map(/** @type {[string, Change][]} */ ([]));
  #newEntries = /** @type {Entry[]} */ ([]);
  #listeners = new Set(/** @type {Listener[]} */ ([]));
  #isFrameRequested = false;
  #questionsChanged = false; // whether the list of open questions must be updated
  #frame;
  #isHidden;

  /**
   * A hidden page has no animation frames.
   * @param {(draw: () => void) => void} frame
   * @param {() => boolean} [isHidden]
   */
  constructor(frame, isHidden = () => false) {
    this.#frame = frame;
    this.#isHidden = isHidden;
  }

  /** @param {string} id */
  get = (id) => this.#calls.get(id);

  /** Call a function when a call asks or ends. @param {Listener} listener @returns {() => void} */
  listen(listener) {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Apply a frame of /api/events. @param {string} event @param {any} data */
  receive(event, data) {
    if (data.now) syncClock(data.now);
    if (event === "snapshot") this.#applySnapshot(data);
    if (event !== "changes") return;
    for (const one of data.facts) this.#applyFact(one);
    for (const one of data.readings) this.#applyReading(one);
    const about = this.about.peek();
    if (data.degraded !== about.degraded) this.about.set({ ...about, degraded: data.degraded });
    if (this.#isHidden()) this.draw();
  }

  /** Show all changes. The next animation frame calls this, and the page when it becomes visible. */
  draw() {
    if (!this.#isFrameRequested) return;
    this.#isFrameRequested = false;
    const dirty = this.#dirty;
    this.#dirty = new Map();
    batch(() => {
      this.#insert(this.#newEntries.splice(0, MAX_NEW_PER_FRAME));
      for (const [id, what] of dirty) {
        this.get(id)?.reading.touch();
        if (what === "facts") this.get(id)?.call.touch();
      }
      if (this.#questionsChanged) this.questions.set(openQuestions([...this.#calls.values()]));
      this.#questionsChanged = false;
    });
    if (this.#newEntries.length) this.#markDirty("", "reading");
  }

  /** Forget trees that ended a while ago, but not while the pointer is over a card, which would move. */
  prune() {
    if (preciseNow() < this.pointerHeldUntil) return;
    const over = this.roots.peek().filter(isOver);
    const last = preciseNow() - KEEP_ENDED_S;
    const gone = new Set(over.filter((entry, at) => at < over.length - MAX_ENDED || finishedAt(entry) < last));
    const drop = (/** @type {Entry} */ entry) => {
      this.#calls.delete(entry.id);
      entry.below.peek().forEach(drop);
    };
    gone.forEach(drop);
    if (gone.size) this.roots.set(this.roots.peek().filter((entry) => !gone.has(entry)));
  }

  /**
   * Begin again with the live calls of a snapshot; known entries keep their nodes.
   * @param {any} snapshot
   */
  #applySnapshot({ calls, degraded }) {
    const known = this.#calls;
    this.#calls = new Map();
    this.#newEntries = [];
    this.#questionsChanged = true;
    batch(() => {
      for (const view of calls) this.#addCall(callFromView(view), known.get(view.id));
      const all = this.#newEntries.sort((a, b) => a.call.peek().opened - b.call.peek().opened);
      this.#newEntries = all.filter((entry) => !known.has(entry.id));
      this.roots.set([]);
      this.#insert(all.filter((entry) => known.has(entry.id)));
      this.about.set({ degraded, ready: true });
      this.#markDirty("", "reading");
      this.draw();
    });
  }

  /** @param {{call: string, seq: number, fact: Fact}} one */
  #applyFact({ call: id, seq, fact }) {
    const known = this.get(id);
    if (known ? seq <= known.call.peek().seq : fact.type !== "opened") return; // applied already, or its call is forgotten
    const entry = known ?? this.#addCall(beginCall(id, fact));
    const call = entry.call.peek();
    if (known) evolve(call, fact);
    this.#markDirty(id, "facts");
    if (fact.type === "opened" || fact.type === "finished") this.#countChild(call);
    this.#questionsChanged ||= ["asked", "answered", "finished"].includes(fact.type);
    const kind = fact.type === "asked" || fact.type === "finished" ? fact.type : null;
    if (kind) this.#listeners.forEach((listen) => listen(kind, entry));
  }

  /** @param {any} seen the newest reading of a call */
  #applyReading({ call: id, reading, readings, eta = null, rate = null, stalled = false, detached = false }) {
    const call = this.get(id)?.call.peek();
    if (!call) return;
    const wasStalled = call.stalled ?? false;
    if (reading) addReading(call, reading);
    Object.assign(call, { readings, eta, rate, stalled, detached });
    this.#markDirty(id, stalled === wasStalled ? "reading" : "facts");
  }

  /** @param {Call} call @param {Entry} [known] */
  #addCall(call, known) {
    const below = signal(/** @type {Entry[]} */ ([]));
    const entry = known ?? { id: call.id, call: signal(call), reading: signal(call), below };
    if (known) {
      known.call.set(call);
      known.reading.set(call);
      known.below.set([]);
    }
    this.#calls.set(call.id, entry);
    this.#newEntries.push(entry);
    return entry;
  }

  /** Update the counts of the parent when a call is opened or ends. @param {Call} call */
  #countChild({ parent, outcome }) {
    const above = this.get(parent ?? "")?.call.peek();
    if (!above) return;
    above.children.live += outcome === null ? 1 : -1;
    if (outcome === null) above.children.total += 1;
    else if (outcome !== "ok") above.children.failed += 1;
    this.#markDirty(above.id, "facts");
  }

  /** @param {string} id @param {Change} what */
  #markDirty(id, what) {
    if (what === "facts" || !this.#dirty.has(id)) this.#dirty.set(id, what);
    if (this.#isFrameRequested) return;
    this.#isFrameRequested = true;
    if (!this.#isHidden()) this.#frame(() => this.draw());
  }

  /** Insert new calls below their parent, or among the roots. @param {Entry[]} entries */
  #insert(entries) {
    const listOf = (/** @type {Entry} */ { call }) => this.get(call.peek().parent ?? "")?.below ?? this.roots;
    for (const [list, added] of Map.groupBy(entries, listOf)) list.set([...list.peek(), ...added]);
  }
}

/** @param {Entry} entry @returns {boolean} whether it and all calls below it have ended */
const isOver = ({ call, below }) => call.peek().state === "finished" && below.peek().every(isOver);

/** @param {Entry} entry */
const finishedAt = ({ call }) => call.peek().finished ?? 0;

/** @param {Entry[]} entries @returns {OpenQuestion[]} */
function openQuestions(entries) {
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
