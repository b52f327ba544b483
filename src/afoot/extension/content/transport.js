// createTransport: the connection of a context to its carrier, over a port of the extension or over a pair of functions
// that CDP puts into the world.
"use strict";
(() => {
  /** @type {Modules} */
  const modules = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.modules")];
  const world = /** @type {any} */ (globalThis);

  const MAX_RETRY_MS = 1000;

  /**
   * `onOpened` is called for each new connection, `onLost` when none is possible any more.
   * @typedef {{onOpened: () => void, onFrame: (frame: any) => void, onLost: () => void}} TransportListener
   */

  /** A port to the service worker. When the worker stops, the port closes; opening it again starts the worker. */
  class ExtensionTransport {
    /** @type {chrome.runtime.Port | null} */
    #port = null;
    #failures = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    #retry;
    #listener;

    /** @param {TransportListener} listener */
    constructor(listener) {
      this.#listener = listener;
    }

    open() {
      clearTimeout(this.#retry);
      if (this.#port || !this.isAlive()) return;
      const port = chrome.runtime.connect({ name: "afoot.room" });
      this.#port = port;
      port.onMessage.addListener((frame) => {
        this.#failures = 0;
        if (this.#port === port) this.#listener.onFrame(frame);
      });
      port.onDisconnect.addListener(() => {
        void chrome.runtime?.lastError;
        if (this.#port === port) this.#onDisconnect();
      });
      this.#listener.onOpened();
    }

    /** Whether the extension is still there. No event tells a page that it was reloaded or removed. */
    isAlive() {
      if (chrome.runtime?.id) return true;
      this.close();
      this.#listener.onLost();
      return false;
    }

    #onDisconnect() {
      this.#port = null;
      const wait = this.#failures ? Math.min(25 * 2 ** this.#failures, MAX_RETRY_MS) : 0;
      this.#failures += 1;
      if (wait) this.#retry = setTimeout(() => this.open(), wait);
      else this.open();
    }

    /** Sends a frame; false if there is no connection. @param {any} frame */
    send(frame) {
      try {
        this.#port?.postMessage(frame);
        return this.#port !== null;
      } catch {
        return false; // it is closed, and onDisconnect follows
      }
    }

    close() {
      clearTimeout(this.#retry);
      const port = this.#port;
      this.#port = null;
      if (chrome.runtime?.id) port?.disconnect();
    }
  }

  /** The functions of CDP: `afootSend(text)` exists while the gateway listens; `afootReceive(text)` is defined here. */
  class CdpTransport {
    #listener;
    #isOpen = false;

    /** @param {TransportListener} listener */
    constructor(listener) {
      this.#listener = listener;
    }

    open() {
      this.#isOpen = true;
      world.afootReceive = (/** @type {string} */ text) => this.#receive(JSON.parse(text));
      this.#listener.onOpened();
    }

    /** Whether a connection is possible, now or later. */
    isAlive() {
      return true;
    }

    /** @param {any} frame */
    #receive(frame) {
      if (!this.#isOpen) return;
      if (frame.method === "hello") this.#listener.onOpened();
      else this.#listener.onFrame(frame);
    }

    /** Sends a frame; false if there is no connection. @param {any} frame */
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

  /** The transport of this world, not opened yet. @param {TransportListener} listener */
  modules.createTransport = (listener) =>
    world.chrome?.runtime?.id ? new ExtensionTransport(listener) : new CdpTransport(listener);
})();
