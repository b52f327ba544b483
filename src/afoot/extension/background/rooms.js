// All rooms: ports come and go, frames find their way between them and the link (B1, B6, B7).

import { LOOK_MS, isCached, reasonOf } from "./ending.js";
import { isFrame } from "./frames.js";
import { placeOf } from "./place.js";
import { Room } from "./room.js";
import { post, tellValue, wake } from "./service.js";

/** @typedef {import("./gate.js").Frame} Frame */
/**
 * @typedef {object} Seat
 * @property {chrome.runtime.Port} port
 * @property {boolean} isPlugin
 * @property {Room | null} room
 * @property {Frame[] | null} waiting frames that came while it is found out whose port this is
 * @property {{persisted?: unknown, why?: unknown} | null} bye
 * @property {number} wakes
 * @property {boolean} isClosed
 * @property {number} at when it was opened
 */
/**
 * @typedef {object} Outside
 * @property {(method: string, params: Record<string, any>) => void} say
 * @property {() => boolean} isBusy
 * @property {(sender: chrome.runtime.MessageSender | undefined) => Promise<boolean>} isWelcome by its site
 * @property {(key: unknown) => Promise<string | null>} sourceOf the plugin that has a key
 * @property {(source: string) => boolean} isCurrent whether a plugin is to be run
 * @property {(at: number) => boolean} isStale whether a plugin that came then is of an earlier load
 * @property {() => void} changed
 */

const MOST_WAITING = 1000;

/** The rooms of this browser. */
export class Rooms {
  /** @type {Map<string, Room>} */
  #rooms = new Map();
  /** @type {Map<string, Room>} rooms whose port is closed, and nobody knows yet why */
  #leaving = new Map();
  /** @type {Set<string>} tabs that got another id */
  #replaced = new Set();
  /** @type {Record<string, number>} what was odd */
  counted = {};
  #outside;

  /** @param {Outside} outside */
  constructor(outside) {
    this.#outside = outside;
  }

  get all() {
    return [...this.#rooms.values()];
  }

  /**
   * A port was opened by a relay or by a plugin.
   * @param {chrome.runtime.Port} port
   * @param {boolean} isPlugin
   */
  join(port, isPlugin) {
    /** @type {Seat} */
    const seat = {
      ...{ port, isPlugin, room: null, waiting: null, bye: null },
      ...{ wakes: 0, isClosed: false, at: performance.now() },
    };
    port.onMessage.addListener((frame) => this.#hear(seat, frame));
    port.onDisconnect.addListener(() => {
      seat.isClosed = true;
      this.#part(seat, chrome.runtime.lastError?.message);
    });
  }

  /**
   * A tab has another id now: it was discarded.
   * @param {number} tab
   */
  replace(tab) {
    this.#replaced.add(String(tab));
  }

  /**
   * A frame of the gateway's for one room.
   * @param {Frame} frame
   */
  deliver(frame) {
    const { room: id, ...params } = frame.params;
    const room = this.#rooms.get(id);
    if (!room) {
      const isAwaited = frame.method === "tool.dispatch" && !this.#leaving.has(id);
      if (isAwaited) this.#outside.say("tab.gone", { room: id, why: "lost" });
      return;
    }
    if (frame.method === "tool.dispatch") room.start(params.run);
    if (frame.method === "tool.settled") room.settle(params.run);
    post(room.port, frame.method, params);
  }

  /**
   * Stop runs that the gateway does not know.
   * @param {string[]} runs
   */
  abort(runs) {
    for (const run of runs) {
      const room = this.all.find((one) => one.has(run));
      if (room) post(room.port, "tool.cancel", { run, reason: "the gateway does not know this run" });
      room?.settle(run);
    }
  }

  /** Tell plugins that are not to be run any more to end, and those whose code came back to stay. */
  sort() {
    for (const room of this.all) this.#sort(room);
  }

  /**
   * Close the rooms of which this is true.
   * @param {(room: Room) => boolean} isOver
   */
  close(isOver) {
    for (const room of this.all.filter(isOver)) {
      this.#rooms.delete(room.id);
      room.yield();
      post(room.port, "leave", {});
      room.port.disconnect();
      this.#outside.say("tab.gone", { room: room.id, why: "lost" });
    }
    this.#outside.changed();
  }

  /**
   * @param {Seat} seat
   * @param {unknown} frame
   */
  #hear(seat, frame) {
    if (!isFrame(frame)) return this.#count("messages that are no frames");
    if (seat.waiting) {
      if (seat.waiting.push(frame) <= MOST_WAITING) return;
      seat.isClosed = true; // nobody else says so
      seat.port.disconnect();
    } else if (frame.method === "open") this.#open(seat, frame);
    else if (!seat.room) this.#count("frames before a room was open");
    else if (frame.method === "bye") this.#bye(seat, frame.params);
    else if (frame.method === "wake") wake(seat, frame.params);
    else if (frame.method === "value" && seat.isPlugin) void tellValue(seat.port, frame.params);
    else seat.room.hear(frame);
  }

  /**
   * @param {Seat} seat
   * @param {Frame} frame
   */
  #open(seat, frame) {
    const waiting = (seat.waiting = /** @type {Frame[]} */ ([]));
    void this.#identify(seat, frame.params.key).then((source) => {
      seat.waiting = null;
      if (source === null || seat.isClosed) return;
      this.#seat(seat, source, frame.params);
      for (const one of waiting) this.#hear(seat, one);
    });
  }

  /**
   * @param {Seat} seat
   * @param {unknown} key
   * @returns {Promise<string | null>} null: it was sent away
   */
  async #identify(seat, key) {
    if (!(await this.#outside.isWelcome(seat.port.sender))) {
      post(seat.port, "leave", {});
      seat.port.disconnect();
      return null;
    }
    const source = seat.isPlugin ? await this.#outside.sourceOf(key) : "page";
    if (source !== null && !(seat.isPlugin && this.#outside.isStale(seat.at))) return source;
    this.#count("ports of unknown plugins");
    seat.port.disconnect();
    return null;
  }

  /**
   * @param {Seat} seat
   * @param {string} source
   * @param {Record<string, any>} said
   */
  #seat(seat, source, said) {
    const place = placeOf(seat.port.sender, source);
    if (!place) return seat.port.disconnect();
    const old = this.#rooms.get(place.id);
    old?.yield();
    if (old && old.port !== seat.port) old.port.disconnect();
    this.#leaving.delete(place.id); // it was the port alone that had gone
    const room = new Room(place, seat.port, said, {
      send: (one) => this.#outside.say(one.method, one.params),
      isBusy: this.#outside.isBusy,
      count: (what) => this.#count(what),
    });
    seat.room = room;
    seat.bye = null;
    this.#rooms.set(place.id, room);
    post(seat.port, "taken", {}); // a relay that is never answered comes back more and more slowly
    this.#outside.say("tab.opened", { room: room.view, running: room.running });
    this.#outside.changed();
    this.#sort(room);
  }

  /** @param {Room} room */
  #sort(room) {
    const { source } = room.place;
    if (source !== "page") post(room.port, this.#outside.isCurrent(source) ? "revive" : "retire", {});
  }

  /**
   * @param {Seat} seat
   * @param {Record<string, unknown>} bye
   */
  #bye(seat, bye) {
    seat.bye = bye;
    if (seat.room) seat.room.saidBye = true;
    if (isCached(undefined, bye)) this.#end(seat, "cached");
  }

  /**
   * A port was closed.
   * @param {Seat} seat
   * @param {string | undefined} error
   */
  #part(seat, error) {
    const room = seat.room;
    if (!room || this.#rooms.get(room.id) !== room) return;
    if (isCached(error, seat.bye)) return this.#end(seat, "cached");
    if (seat.bye?.why === "replaced") return this.#end(seat, "replaced");
    room.end();
    this.#rooms.delete(room.id);
    this.#leaving.set(room.id, room);
    void this.#reason(room).then((why) => {
      if (this.#leaving.get(room.id) !== room) return;
      this.#leaving.delete(room.id);
      this.#outside.say("tab.gone", { room: room.id, why });
      this.#outside.changed();
    });
  }

  /**
   * @param {Seat} seat
   * @param {string} why
   */
  #end(seat, why) {
    const room = seat.room;
    seat.room = null;
    if (!room || this.#rooms.get(room.id) !== room) return;
    room.end();
    this.#rooms.delete(room.id);
    this.#outside.say("tab.gone", { room: room.id, why });
    this.#outside.changed();
  }

  /**
   * @param {Room} room
   * @returns {Promise<string>}
   */
  async #reason(room) {
    for (let looks = 0; ; looks += 1) {
      const tab = await chrome.tabs.get(Number(room.place.tab)).catch(() => null);
      const why = reasonOf(this.#signs(room, tab, looks));
      if (why !== null) return why;
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  /**
   * @param {Room} room
   * @param {chrome.tabs.Tab | null} tab
   * @param {number} looks
   * @returns {import("./ending.js").Signs}
   */
  #signs(room, tab, looks) {
    const { tab: id, frame } = room.place;
    const tops = this.all.filter(
      ({ place }) => place.tab === id && place.frame === "0" && place.source === "page",
    );
    return {
      isTop: frame === "0",
      url: room.view.url ?? "",
      saidBye: room.saidBye,
      isTopThere: tops.some((one) => one.opened <= room.opened && !one.saidBye),
      hasNext: tops.some((one) => one.place.document !== room.place.document),
      wasReplaced: this.#replaced.has(id),
      looks,
      tab,
    };
  }

  /** @param {string} what */
  #count(what) {
    this.counted[what] = (this.counted[what] ?? 0) + 1;
  }
}
