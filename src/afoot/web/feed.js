// One stream for all tabs of a browser: whoever holds a Web Lock reads it and shares it; no fact is lost or repeated.

import { get, session, stream } from "./api.js";
import { effect, signal } from "./signal.js";
import { after } from "./time.js";

/** A frame of the stream: `before` is the place it goes on from, `id` the place it ends at, if facts are in it. */
/** @typedef {{kind: "frame", event: string, id: string, before: string, data: string}} Frame */
/** @typedef {Frame | {kind: "state", online: boolean} | {kind: "hello"}} Shared between tabs */
/** @typedef {{postMessage: (message: Shared) => void, close: () => void, onmessage: any}} Channel */
/** What a feed needs of its browser and its gateway. */
/** @typedef {{take: (event: string, data: any) => void, locks: Pick<LockManager, "request">, channel: Channel,
 *   stream: (listening: import("./api.js").Listening) => Promise<void>, snapshot: () => Promise<any>,
 *   clock: () => number, after: typeof after, isHidden: () => boolean}} Means */

const NAME = "afoot.feed";
const FIRST_MS = 250; // before the second attempt; then twice as long each time
const LONGEST_MS = 5_000;
const LOOK_MS = 1_000; // how often it is looked whether the stream lives
const JUMP_MS = 10_000; // between two looks: the machine slept
const SLACK_MS = 2_000;
const MOST_WAITING = 2_000; // frames that wait for a snapshot; then it is asked for again

/** Whether the gateway is heard, as far as we know. */
export const online = signal(true);
/** Whether this tab holds the stream. */
export const leads = signal(false);

/** Hand every frame to `take`, in every tab, as long as somebody is logged in. @param {Means["take"]} take */
export function start(take) {
  /** @type {Feed | null} */ let feed = null;
  const stop = () => (feed?.stop(), (feed = null));
  const run = () => (stop(), (feed = session.peek() && new Feed(means(take))), void feed?.run());
  effect(() => (session(), run()));
  addEventListener("pagehide", stop); // the next tab need not wait until this one is torn down
  addEventListener("pageshow", ({ persisted }) => persisted && run());
  for (const name of ["online", "visibilitychange"]) addEventListener(name, () => feed?.hurry());
}

/** @param {Means["take"]} take @returns {Means} */
const means = (take) => ({
  take,
  locks: navigator.locks,
  channel: new BroadcastChannel(NAME),
  stream: (listening) => stream("/api/events", listening),
  snapshot: () => get("/api/snapshot"),
  clock: () => Date.now(),
  after,
  isHidden: () => document.hidden,
});

/** One tab's part in it. */
export class Feed {
  #means;
  #over = new AbortController();
  #reading = new AbortController();
  #place = ""; // facts up to here were taken: EPOCH:POS
  #silentMs = 30_000; // a stream that says nothing for so long is dead
  #heard = 0;
  #isLeader = false;
  /** @type {boolean | null} */ #isOnline = null; // while we lead, once it is known
  /** @type {Frame[] | null} */ #waiting = null; // while a snapshot is fetched
  /** Something may have changed: try again now if nothing is heard. */
  hurry = () => {};

  /** @param {Means} given */
  constructor(given) {
    this.#means = given;
    given.channel.onmessage = (/** @type {{data: Shared}} */ { data }) => this.#hear(data);
  }

  /** Take part until stopped: behind whoever leads, and in its place when it has gone. */
  async run() {
    const [{ locks }, { signal }, lead] = [this.#means, this.#over, () => this.#lead()];
    await locks.request(NAME, { ifAvailable: true }, (lock) => (lock ? lead() : void this.#join()));
    // Stopped meanwhile, nobody waits for the lock any more.
    if (!signal.aborted) await locks.request(NAME, { signal }, lead).catch(() => {});
  }

  /** Leave; another tab takes over. */
  stop() {
    this.#over.abort();
    this.#reading.abort();
    this.hurry();
    this.#means.channel.close();
    leads.set(false);
  }

  async #lead() {
    if (this.#over.signal.aborted) return;
    [this.#isLeader, this.#waiting] = [true, null];
    leads.set(true);
    for (let wait = FIRST_MS; ;) {
      const isHeard = await this.#read();
      if (this.#over.signal.aborted) return;
      this.#show(false);
      wait = isHeard ? FIRST_MS : Math.min(2 * wait, LONGEST_MS);
      await this.#pause(wait * (0.5 + Math.random() / 2));
    }
  }

  /** Read the stream until it breaks. @returns {Promise<boolean>} whether anything came */
  async #read() {
    const { channel, stream, clock } = this.#means;
    const reading = (this.#reading = new AbortController());
    let isHeard = false;
    this.#heard = clock();
    const unwatch = this.#watch(reading);
    const onAlive = () => {
      [isHeard, this.#heard] = [true, clock()];
      this.#show(true);
    };
    const onEvent = (/** @type {import("./api.js").Event} */ event) => {
      const frame = /** @type {Frame} */ ({ kind: "frame", before: this.#place, ...event });
      channel.postMessage(frame);
      this.#apply(frame);
    };
    // Whatever breaks it, it is begun again.
    await stream({ lastId: this.#place, onEvent, onAlive, signal: reading.signal }).catch(() => {});
    unwatch();
    return isHeard;
  }

  /** Break off a stream that is dead, or that the machine has slept through. @param {AbortController} reading */
  #watch(reading) {
    const { clock, after, isHidden } = this.#means;
    let [last, wasHidden] = [clock(), isHidden()];
    const look = () => {
      const [time, hidden] = [clock(), isHidden()];
      const hasSlept = time - last > JUMP_MS && !hidden && !wasHidden; // timers of hidden pages are slow, too
      if (hasSlept || time - this.#heard > this.#silentMs) return reading.abort();
      [last, wasHidden, cancel] = [time, hidden, after(LOOK_MS, look)];
    };
    let cancel = after(LOOK_MS, look);
    return () => cancel();
  }

  /** @param {number} ms @returns {Promise<void>} */
  #pause(ms) {
    return new Promise((resolve) => {
      const cancel = this.#means.after(ms, resolve);
      this.hurry = () => (cancel(), resolve());
    });
  }

  /** @param {boolean} isOnline */
  #show(isOnline) {
    if (isOnline !== this.#isOnline) this.#means.channel.postMessage({ kind: "state", online: isOnline });
    this.#isOnline = isOnline;
    online.set(isOnline);
  }

  /** Begin with what there is now; what the leader sends meanwhile comes after it. */
  async #join() {
    const frames = (this.#waiting = /** @type {Frame[]} */ ([]));
    this.#means.channel.postMessage({ kind: "hello" });
    const snapshot = await this.#means.snapshot().catch(() => null);
    const isBad = !snapshot || frames.length >= MOST_WAITING;
    if (isBad) await this.#pause(FIRST_MS);
    if (this.#isLeader || this.#over.signal.aborted) return;
    if (isBad) return void this.#join();
    this.#waiting = null;
    this.#take("snapshot", snapshot, `${snapshot.epoch}:${snapshot.pos}`);
    frames.forEach((frame) => this.#follow(frame));
  }

  /** @param {Shared} message */
  #hear(message) {
    if (message.kind !== "hello" && this.#isLeader) return;
    if (message.kind === "frame") this.#follow(message);
    else if (message.kind === "state") online.set(message.online);
    else if (this.#isOnline !== null) this.#means.channel.postMessage({ kind: "state", online: this.#isOnline });
  }

  /** @param {Frame} frame */
  #follow(frame) {
    if (this.#waiting) return void (this.#waiting.length < MOST_WAITING && this.#waiting.push(frame));
    if (frame.event !== "changes") return this.#apply(frame);
    const [[epoch, at], [from, before], [, end]] = [this.#place, frame.before, frame.id].map(parted);
    if (epoch !== from || before > at) void this.#join();
    else if (frame.id ? end > at : before === at) this.#apply(frame); // else it is known already
  }

  /** @param {Frame} frame */
  #apply({ event, id, data }) {
    const read = JSON.parse(data);
    if (event === "snapshot") return this.#take(event, read, `${read.epoch}:${read.pos}`);
    this.#take(event, read, event === "reset" ? "" : id || this.#place);
  }

  /** @param {string} event @param {any} read @param {string} place the facts up to which are taken then */
  #take(event, read, place) {
    this.#place = place;
    if (read.keepalive_s) this.#silentMs = 2_000 * read.keepalive_s + SLACK_MS;
    try {
      this.#means.take(event, read);
    } catch (error) {
      console.error(error); // a page that cannot show something goes on with the next
    }
  }
}

/** @param {string} place @returns {[string, number]} its epoch and position */
function parted(place) {
  const cut = place.lastIndexOf(":");
  return [place.slice(0, cut), Number(place.slice(cut + 1))];
}
