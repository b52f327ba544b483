// The way from a room to its carrier: a port of the extension, or a pair of functions that CDP puts into the world.
"use strict";
(() => {
  /** @type {Parts} */
  const parts = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.parts")];
  const world = /** @type {any} */ (globalThis);

  const LONGEST_MS = 1000;

  /**
   * Who uses the way: `opened` is told of each new beginning, `hear` of each frame, `lost` of the end of all.
   * @typedef {{opened: () => void, hear: (frame: any) => void, lost: () => void}} WayUser
   */

  /** A port of the extension. It is opened again when it dies: its worker rests, and wakes by that. */
  class Port {
    /** @type {chrome.runtime.Port | null} */
    #port = null;
    #failures = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    #retry;
    #user;

    /** @param {WayUser} user */
    constructor(user) {
      this.#user = user;
    }

    open() {
      clearTimeout(this.#retry);
      if (this.#port || !this.check()) return;
      const port = chrome.runtime.connect({ name: "afoot.room" });
      this.#port = port;
      port.onMessage.addListener((frame) => {
        this.#failures = 0;
        if (this.#port === port) this.#user.hear(frame);
      });
      port.onDisconnect.addListener(() => {
        void chrome.runtime?.lastError;
        if (this.#port === port) this.#died();
      });
      this.#user.opened();
    }

    /** Whether there is still an extension; a page is not told when it was reloaded or removed. */
    check() {
      if (chrome.runtime?.id) return true;
      this.close();
      this.#user.lost();
      return false;
    }

    #died() {
      this.#port = null;
      const wait = this.#failures ? Math.min(25 * 2 ** this.#failures, LONGEST_MS) : 0;
      this.#failures += 1;
      if (wait) this.#retry = setTimeout(() => this.open(), wait);
      else this.open();
    }

    /** Sends a frame; false if there is nobody to take it. @param {any} frame */
    send(frame) {
      try {
        this.#port?.postMessage(frame);
        return this.#port !== null;
      } catch {
        return false; // it has died, and says so next
      }
    }

    close() {
      clearTimeout(this.#retry);
      const port = this.#port;
      this.#port = null;
      if (chrome.runtime?.id) port?.disconnect();
    }
  }

  /** The functions of CDP: `afootSend(text)` is there while somebody listens, `afootReceive(text)` is ours. */
  class Binding {
    #user;
    #isOpen = false;

    /** @param {WayUser} user */
    constructor(user) {
      this.#user = user;
    }

    open() {
      this.#isOpen = true;
      world.afootReceive = (/** @type {string} */ text) => this.#receive(JSON.parse(text));
      this.#user.opened();
    }

    /** Whether somebody may still listen, now or later. */
    check() {
      return true;
    }

    /** @param {any} frame */
    #receive(frame) {
      if (!this.#isOpen) return;
      if (frame.method === "hello") this.#user.opened();
      else this.#user.hear(frame);
    }

    /** Sends a frame; false if there is nobody to take it. @param {any} frame */
    send(frame) {
      const send = world.afootSend;
      if (!this.#isOpen || typeof send !== "function") return false;
      send(JSON.stringify(frame));
      return true;
    }

    close() {
      this.#isOpen = false;
    }
  }

  /** The way that there is in this world; it has to be opened. @param {WayUser} user */
  parts.findWay = (user) => (world.chrome?.runtime?.id ? new Port(user) : new Binding(user));
})();
