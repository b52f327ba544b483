// Store: the state of all calls. Facts and readings are applied as the feed delivers them. Facts are shown with the next
// frame; readings and clocks of calls in view are shared out over the next few frames.
//
// Hundreds of calls report twenty times a second. Drawn all at once, one frame in three was late by half of its time;
// shared out, every frame has a little to do, and a row still moves ten times a second.

import { applyNews, beginCall, callFromView, evolve } from "./fold.js";
import { batch, signal } from "./signal.js";
import { preciseNow, syncClock } from "./time.js";

/** @typedef {(kind: "asked" | "finished", entry: Entry) => void} Listener */
/** @typedef {"facts" | "reading" | "clocks"} Change */

const KEEP_ENDED_S = 300; // an ended call stays visible for a while
const MAX_ENDED = 1000; // ended trees that stay visible
const SHARING_FRAMES = 6; // over which readings and clocks are shared out: a tenth of a second
const MIN_SHARE = 4; // calls in a frame

export class Store {
  roots = signal(/** @type {Entry[]} */ ([])); // calls without a parent, in the order of arrival
  questions = signal(/** @type {OpenQuestion[]} */ ([])); // that a person here may answer, oldest first
  about = signal({ degraded: /** @type {string | null} */ (null), ready: false, isCluster: false });
  pointerHeldUntil = 0; // while the pointer is over a list, no call is forgotten
  changed = signal(null); // touched once a frame if calls came, went, or have new facts
  #calls = new Map(/** @type {[string, Entry][]} */ ([]));
  #changedCalls = new Set(/** @type {string[]} */ ([])); // that have new facts
  #movedCalls = new Map(/** @type {[string, Change][]} */ ([])); // in view, with newer readings or clocks, in turn
  #share = 0; // of the moved calls, how many are drawn in a frame
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

  /** All calls, at all depths. */
  all = () => this.#calls.values();

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
    for (const one of data.readings) this.#applyNews(one);
    const about = this.about.peek();
    if (data.degraded !== about.degraded) this.about.set({ ...about, degraded: data.degraded });
    if (this.#isHidden()) this.draw();
  }

  /** The clocks of the calls in view go on. */
  moveClocks() {
    for (const { id, pulse, call } of this.all())
      if (pulse.isRead() && call.peek().state !== "finished") this.#markDirty(id, "clocks");
  }

  /** Show changes. The next animation frame calls this, and the page when it becomes visible. */
  draw() {
    if (!this.#isFrameRequested) return;
    this.#isFrameRequested = false;
    const changed = this.#changedCalls;
    this.#changedCalls = new Set();
    batch(() => {
      this.#insert(this.#newEntries.splice(0));
      for (const id of changed) {
        this.#movedCalls.delete(id);
        this.get(id)?.reading.touch();
        this.get(id)?.call.touch();
      }
      this.#drawMoved();
      if (this.#questionsChanged) this.questions.set(openQuestions(this.all()));
      this.#questionsChanged = false;
      if (changed.size) this.changed.touch();
    });
    if (this.#movedCalls.size) this.#requestFrame();
  }

  /** Show the newest readings and clocks of the calls whose turn it is; of all if the page is hidden. */
  #drawMoved() {
    let left = this.#isHidden() ? Infinity : this.#share;
    for (const [id, what] of this.#movedCalls) {
      if (left-- <= 0) return;
      this.#movedCalls.delete(id);
      const entry = this.get(id);
      if (what === "reading") entry?.reading.touch();
      else entry?.pulse.touch();
    }
    this.#share = 0;
  }

  /** Forget the calls that ended a while ago, with all below them, if those have ended, too. */
  prune() {
    if (preciseNow() < this.pointerHeldUntil) return;
    const last = preciseNow() - KEEP_ENDED_S;
    const tooMany = this.roots.peek().filter(isOver).slice(0, -MAX_ENDED);
    const gone = new Set(tooMany);
    let hasChanged = false;
    const prune = (/** @type {Signal<Entry[]>} */ list) => {
      const before = list.peek();
      const kept = before.filter((entry) => {
        const isGone = gone.has(entry) || (isOver(entry) && finishedAt(entry) < last);
        if (isGone) this.#drop(entry);
        else prune(entry.below);
        return !isGone;
      });
      if (kept.length === before.length) return;
      list.set(kept);
      hasChanged = true;
    };
    batch(() => {
      prune(this.roots);
      if (hasChanged) this.changed.touch();
    });
  }

  /**
   * Take in calls of the history that have just ended, as far as they are not known.
   * @param {CallView[]} views
   */
  addEnded(views) {
    const last = preciseNow() - KEEP_ENDED_S;
    const isWanted = (/** @type {CallView} */ { id, parent, finished }) =>
      !this.get(id) && (finished ?? 0) >= last && (!parent || this.get(parent));
    for (const view of views.toSorted((a, b) => a.opened - b.opened)) {
      if (!isWanted(view)) continue;
      this.#addCall(callFromView({ ...view, seq: Infinity })); // facts of it that are still to come are in the view
      this.#markDirty("", "facts");
    }
  }

  /** @param {Entry} entry */
  #drop(entry) {
    this.#calls.delete(entry.id);
    entry.below.peek().forEach((child) => this.#drop(child));
  }

  /**
   * Begin again with the live calls of a snapshot; known entries keep their nodes, and calls that ended stay a while.
   * @param {any} snapshot
   */
  #applySnapshot({ calls, degraded, cluster }) {
    const known = this.#calls;
    this.#calls = new Map();
    this.#newEntries = [];
    this.#questionsChanged = true;
    batch(() => {
      for (const view of calls) this.#addCall(callFromView(view), known.get(view.id));
      for (const entry of known.values()) {
        const call = entry.call.peek();
        const isEnded = call.state === "finished" && !this.get(call.id);
        if (isEnded && (!call.parent || this.get(call.parent))) this.#addCall(call, entry); // it stays for a while
      }
      this.#newEntries.sort((a, b) => a.call.peek().opened - b.call.peek().opened);
      this.roots.set([]);
      this.about.set({ degraded, ready: true, isCluster: cluster === true });
      this.#markDirty("", "facts");
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

  /** @param {CallNews} news */
  #applyNews(news) {
    const call = this.get(news.call)?.call.peek();
    if (!call) return;
    const before = [call.stalled ?? false, call.cancel_due ?? null].join();
    applyNews(call, news);
    const isSame = before === [call.stalled, call.cancel_due].join();
    this.#markDirty(call.id, isSame ? "reading" : "facts");
  }

  /** @param {Call} call @param {Entry} [known] */
  #addCall(call, known) {
    const below = signal(/** @type {Entry[]} */ ([]));
    const entry = known ?? { id: call.id, call: signal(call), reading: signal(call), pulse: signal(null), below };
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
    if (what === "facts") this.#changedCalls.add(id);
    else if (what === "reading" ? !this.get(id)?.reading.isRead() : this.#movedCalls.has(id)) return;
    else this.#movedCalls.set(id, what);
    this.#share = Math.max(MIN_SHARE, this.#share, Math.ceil(this.#movedCalls.size / SHARING_FRAMES));
    this.#requestFrame();
  }

  #requestFrame() {
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

/** @param {Iterable<Entry>} entries @returns {OpenQuestion[]} */
function openQuestions(entries) {
  /** @type {OpenQuestion[]} */ const found = [];
  for (const entry of entries) {
    const { id, tool, server, caller, open } = entry.call.peek();
    for (const one of open.values())
      if (one.kind !== "below" && !one.below) found.push({ ...one, call: id, tool, server, caller });
  }
  return found.sort((a, b) => a.at - b.at);
}

/** The store of this page. */
export const store = new Store(
  (draw) => requestAnimationFrame(draw),
  () => document.hidden,
);
