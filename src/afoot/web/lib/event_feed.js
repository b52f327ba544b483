// Feed: one event stream for all tabs of a browser. The tab that holds a Web Lock reads it and shares it over a
// BroadcastChannel; no fact is lost or repeated.

import { get, session, stream } from "./api.js";
import { effect, signal } from "./signal.js";
import { setTimer } from "./time.js";

/** A frame of the stream: `before` is the position before it, `id` the position after it, if it has facts. */
/** @typedef {{kind: "frame", event: string, id: string, before: string, data: string}} Frame */
/** @typedef {Frame | {kind: "state", online: boolean} | {kind: "hello"}} TabMessage between tabs */
/** @typedef {{postMessage: (message: TabMessage) => void, close: () => void, onmessage: any}} Channel */
/** The browser and gateway functions that a feed uses; tests replace them. */
/** @typedef {{take: (event: string, data: any) => void, locks: Pick<LockManager, "request">, channel: Channel,
 *   stream: (listening: import("./api.js").StreamOptions) => Promise<void>, snapshot: () => Promise<any>,
 *   clock: () => number, after: typeof setTimer, isHidden: () => boolean}} Dependencies */

const FEED_NAME = "afoot.feed";
const FIRST_RETRY_MS = 250; // before the second attempt; then twice as long each time
const LONGEST_RETRY_MS = 5_000;
const WATCH_INTERVAL_MS = 1_000; // between two checks that the stream is alive
const SLEEP_MS = 10_000; // more between two checks: the machine slept
const SLACK_MS = 2_000;
const MAX_WAITING = 2_000; // frames that wait for a snapshot; with more, it is fetched again

/** Whether the gateway can be reached, as far as is known. */
export const online = signal(true);
/** Whether this tab reads the stream. */
export const isLeading = signal(false);

/**
 * Give every frame to `take`, in every tab, while there is a session.
 * @param {Dependencies["take"]} take
 */
export function startFeed(take) {
  /** @type {Feed | null} */ let feed = null;
  const stop = () => {
    feed?.stop();
    feed = null;
  };
  const run = () => {
    stop();
    if (!session.peek()) return;
    feed = new Feed(browserDependencies(take));
    void feed.run();
  };
  effect(() => {
    session();
    run();
  });
  addEventListener("pagehide", stop); // the next tab takes over at once
  addEventListener("pageshow", ({ persisted }) => persisted && run());
  for (const name of ["online", "visibilitychange"]) addEventListener(name, () => feed?.retryNow());
}

/** @param {Dependencies["take"]} take @returns {Dependencies} */
const browserDependencies = (take) => ({
  take,
  locks: navigator.locks,
  channel: new BroadcastChannel(FEED_NAME),
  stream: (listening) => stream("/api/events", listening),
  snapshot: () => get("/api/snapshot"),
  clock: () => Date.now(),
  after: setTimer,
  isHidden: () => document.hidden,
});

/** The feed of one tab. */
export class Feed {
  #dependencies;
  #stopped = new AbortController();
  #reading = new AbortController();
  #position = ""; // of the newest fact that was delivered: EPOCH:POS
  #silenceLimitMs = 30_000; // a stream that is silent longer is dead
  #lastHeard = 0;
  #isLeader = false;
  /** @type {boolean | null} */ #isOnline = null; // while this tab leads, once it is known
  /** @type {Frame[] | null} */ #waiting = null; // while a snapshot is fetched
  /** Reconnect now, if the feed waits to reconnect. */
  retryNow = () => {};

  /** @param {Dependencies} dependencies */
  constructor(dependencies) {
    this.#dependencies = dependencies;
    dependencies.channel.onmessage = (/** @type {{data: TabMessage}} */ { data }) => this.#onTabMessage(data);
  }

  /** Follow the leading tab until stopped, and lead when it is gone. */
  async run() {
    const { locks } = this.#dependencies;
    const { signal } = this.#stopped;
    const lead = () => this.#lead();
    await locks.request(FEED_NAME, { ifAvailable: true }, (lock) => (lock ? lead() : void this.#join()));
    // It may have been stopped meanwhile.
    if (!signal.aborted) await locks.request(FEED_NAME, { signal }, lead).catch(() => {});
  }

  /** Stop; another tab takes over. */
  stop() {
    this.#stopped.abort();
    this.#reading.abort();
    this.retryNow();
    this.#dependencies.channel.close();
    isLeading.set(false);
  }

  async #lead() {
    if (this.#stopped.signal.aborted) return;
    this.#isLeader = true;
    this.#waiting = null;
    isLeading.set(true);
    for (let wait = FIRST_RETRY_MS; ;) {
      const isHeard = await this.#read();
      if (this.#stopped.signal.aborted) return;
      this.#setOnline(false);
      wait = isHeard ? FIRST_RETRY_MS : Math.min(2 * wait, LONGEST_RETRY_MS);
      await this.#pause(wait * (0.5 + Math.random() / 2));
    }
  }

  /** Read the stream until it breaks. @returns {Promise<boolean>} whether anything arrived */
  async #read() {
    const { channel, stream, clock } = this.#dependencies;
    const reading = new AbortController();
    this.#reading = reading;
    let isHeard = false;
    this.#lastHeard = clock();
    const unwatch = this.#watchSilence(reading);
    const onAlive = () => {
      isHeard = true;
      this.#lastHeard = clock();
      this.#setOnline(true);
    };
    const onEvent = (/** @type {import("./api.js").StreamEvent} */ event) => {
      const frame = /** @type {Frame} */ ({ kind: "frame", before: this.#position, ...event });
      channel.postMessage(frame);
      this.#apply(frame);
    };
    // Every error leads to a reconnect.
    await stream({ lastId: this.#position, onEvent, onAlive, signal: reading.signal }).catch(() => {});
    unwatch();
    return isHeard;
  }

  /**
   * Abort a stream that is dead, or during which the machine slept.
   * @param {AbortController} reading
   */
  #watchSilence(reading) {
    const { clock, after, isHidden } = this.#dependencies;
    let last = clock();
    let wasHidden = isHidden();
    const check = () => {
      const time = clock();
      const hidden = isHidden();
      const hasSlept = time - last > SLEEP_MS && !hidden && !wasHidden; // hidden pages have slow timers
      if (hasSlept || time - this.#lastHeard > this.#silenceLimitMs) return reading.abort();
      last = time;
      wasHidden = hidden;
      cancel = after(WATCH_INTERVAL_MS, check);
    };
    let cancel = after(WATCH_INTERVAL_MS, check);
    return () => cancel();
  }

  /** @param {number} ms @returns {Promise<void>} */
  #pause(ms) {
    return new Promise((resolve) => {
      const cancel = this.#dependencies.after(ms, resolve);
      this.retryNow = () => {
        cancel();
        resolve();
      };
    });
  }

  /** @param {boolean} isOnline */
  #setOnline(isOnline) {
    if (isOnline !== this.#isOnline) this.#dependencies.channel.postMessage({ kind: "state", online: isOnline });
    this.#isOnline = isOnline;
    online.set(isOnline);
  }

  /** Begin with a snapshot; frames that the leader sends meanwhile are applied after it. */
  async #join() {
    /** @type {Frame[]} */
    const frames = [];
    this.#waiting = frames;
    this.#dependencies.channel.postMessage({ kind: "hello" });
    const snapshot = await this.#dependencies.snapshot().catch(() => null);
    const isBad = !snapshot || frames.length >= MAX_WAITING;
    if (isBad) await this.#pause(FIRST_RETRY_MS);
    if (this.#isLeader || this.#stopped.signal.aborted) return;
    if (isBad) return void this.#join();
    this.#waiting = null;
    this.#deliver("snapshot", snapshot, `${snapshot.epoch}:${snapshot.pos}`);
    frames.forEach((frame) => this.#followLeader(frame));
  }

  /** @param {TabMessage} message */
  #onTabMessage(message) {
    if (message.kind !== "hello" && this.#isLeader) return;
    if (message.kind === "frame") this.#followLeader(message);
    else if (message.kind === "state") online.set(message.online);
    else if (this.#isOnline !== null) this.#dependencies.channel.postMessage({ kind: "state", online: this.#isOnline });
  }

  /** @param {Frame} frame */
  #followLeader(frame) {
    if (this.#waiting) {
      if (this.#waiting.length < MAX_WAITING) this.#waiting.push(frame);
      return;
    }
    if (frame.event !== "changes") return this.#apply(frame);
    const [epoch, at] = splitPosition(this.#position);
    const [from, before] = splitPosition(frame.before);
    const [, end] = splitPosition(frame.id);
    if (epoch !== from || before > at) void this.#join();
    else if (frame.id ? end > at : before === at) this.#apply(frame); // else it was applied already
  }

  /** @param {Frame} frame */
  #apply({ event, id, data }) {
    const read = JSON.parse(data);
    if (event === "snapshot") return this.#deliver(event, read, `${read.epoch}:${read.pos}`);
    this.#deliver(event, read, event === "reset" ? "" : id || this.#position);
  }

  /** @param {string} event @param {any} read @param {string} place the position after it */
  #deliver(event, read, place) {
    this.#position = place;
    if (read.keepalive_s) this.#silenceLimitMs = 2_000 * read.keepalive_s + SLACK_MS;
    try {
      this.#dependencies.take(event, read);
    } catch (error) {
      console.error(error); // the next frame may still be shown
    }
  }
}

/** @param {string} place @returns {[string, number]} epoch and number */
function splitPosition(place) {
  const cut = place.lastIndexOf(":");
  return [place.slice(0, cut), Number(place.slice(cut + 1))];
}
