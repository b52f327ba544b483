// A browser with several tabs and a gateway, small enough to stop and turn: for the tests of the feed.

import { Feed } from "../../src/afoot/web/lib/event_feed.js";

/** Everything that is due now, done. */
export const settle = async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
};

/** Time that goes on when told to. */
export class Time {
  now = 1_000_000;
  #due = [];
  after = (ms, then) => {
    const one = { at: this.now + ms, then };
    this.#due.push(one);
    return () => void (this.#due = this.#due.filter((other) => other !== one));
  };
  async pass(ms) {
    const end = this.now + ms;
    for (;;) {
      await settle();
      const [next] = this.#due.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
      if (!next) break;
      this.now = Math.max(this.now, next.at);
      this.#due = this.#due.filter((other) => other !== next);
      next.then();
    }
    this.now = end;
    await settle();
  }
}

/** Web Locks: one name, one holder, the others in a row. */
export class Locks {
  #isHeld = false;
  #row = [];
  async request(_name, { ifAvailable, signal }, held) {
    if (this.#isHeld) {
      if (ifAvailable) return held(null);
      await new Promise((resolve, reject) => {
        this.#row.push(resolve);
        signal?.addEventListener("abort", () => {
          this.#row = this.#row.filter((one) => one !== resolve);
          reject(signal.reason);
        });
      });
    }
    this.#isHeld = true;
    try {
      await held({});
    } finally {
      this.#isHeld = false;
      this.#row.shift()?.();
    }
  }
}

/** Broadcast channels: to all others, later, in the order of each sender. */
export class Hub {
  #all = new Set();
  dropped = () => false; // what gets lost on the way
  open() {
    const channel = { onmessage: null, close: () => this.#all.delete(channel) };
    channel.postMessage = (data) => {
      for (const other of this.#all)
        if (other !== channel && !this.dropped(data, other))
          setImmediate(() => this.#all.has(other) && other.onmessage?.({ data: structuredClone(data) }));
    };
    this.#all.add(channel);
    return channel;
  }
}

/** A gateway with one call that has ever more facts; it may be down. */
export class Gateway {
  epoch = "e";
  pos = 0;
  isUp = true;
  kept = Infinity; // how far back a stream can go on
  streams = new Set();
  opened = 0;
  refused = 0;

  add() {
    this.pos++;
    for (const one of this.streams) one.send(this.pos - 1);
  }

  note() {
    const data = JSON.stringify({ now: 1, facts: [], readings: [{ call: "c", readings: this.pos }] });
    for (const one of this.streams) one.reading.onEvent({ event: "changes", id: "", data });
  }

  stream = (reading) => {
    if (!this.isUp) return (this.refused++, Promise.reject(new Error("down")));
    this.opened++;
    return new Promise((resolve, reject) => {
      const one = { reading, send: (from) => this.#changes(reading, from), end: resolve };
      reading.signal.addEventListener(
        "abort",
        () => (this.streams.delete(one), reject(reading.signal.reason)),
      );
      this.streams.add(one);
      reading.onAlive();
      this.#begin(one, reading);
    });
  };

  snapshot = () =>
    this.isUp
      ? Promise.resolve({ epoch: this.epoch, pos: this.pos, keepalive_s: 15, calls: [] })
      : Promise.reject(new Error("down"));

  down() {
    this.isUp = false;
    for (const one of this.streams) one.end();
    this.streams.clear();
  }

  async #begin(one, { lastId, onEvent }) {
    const [epoch, pos] = [lastId.split(":")[0], Number(lastId.split(":")[1])];
    if (epoch === this.epoch && this.pos - pos <= this.kept) return pos < this.pos && one.send(pos);
    if (lastId) onEvent({ event: "reset", id: "", data: JSON.stringify({ reason: "no longer kept" }) });
    const data = JSON.stringify(await this.snapshot());
    onEvent({ event: "snapshot", id: `${this.epoch}:${this.pos}`, data });
  }

  #changes({ onEvent, onAlive }, from) {
    onAlive();
    const facts = [];
    for (let seq = from + 1; seq <= this.pos; seq++) facts.push({ call: "c", seq });
    onEvent({
      event: "changes",
      id: `${this.epoch}:${this.pos}`,
      data: JSON.stringify({ now: 1, facts, readings: [] }),
    });
  }
}

/** A browser: its tabs, and what each has taken in. */
export class World {
  time = new Time();
  locks = new Locks();
  hub = new Hub();
  gateway = new Gateway();
  tabs = [];
  isHidden = false;

  async open() {
    const tab = { place: null, snapshots: 0, readings: 0, gaps: 0, repeats: 0 };
    tab.feed = new Feed({
      take: (event, data) => taken(tab, event, data),
      locks: this.locks,
      channel: this.hub.open(),
      clock: () => this.time.now,
      after: this.time.after,
      isHidden: () => this.isHidden,
      stream: this.gateway.stream,
      snapshot: this.gateway.snapshot,
    });
    void tab.feed.run();
    this.tabs.push(tab);
    await settle();
    return tab;
  }

  async close(tab) {
    tab.feed.stop();
    this.tabs = this.tabs.filter((other) => other !== tab);
    await settle();
  }
}

/** As the store does: a fact of a frame that begins before our place is known by its number. */
function taken(tab, event, data) {
  if (event === "snapshot") [tab.place, tab.snapshots] = [data.pos, tab.snapshots + 1];
  if (event !== "changes") return;
  tab.readings += data.readings.length;
  for (const { seq } of data.facts) {
    if (seq > tab.place + 1) tab.gaps++;
    if (seq <= tab.place) tab.repeats++;
    tab.place = Math.max(tab.place, seq);
  }
}
