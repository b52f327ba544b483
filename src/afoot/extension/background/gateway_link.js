// GatewayLink: the WebSocket to the gateway. It is opened, authenticated, kept alive, and reopened when it is lost (B1,
// B7).

import { encodeFrame, isFrame } from "./frames.js";
import { Unpaired, readPairing } from "./pairing.js";
import { Handshake } from "./handshake.js";
import { BEAT_MS, PROOF_MS, SUBPROTOCOL } from "./messages.js";

/** @typedef {import("./frames.js").Frame} Frame */
/** @typedef {import("./pairing.js").Pairing} Pairing */
/** @typedef {"unpaired" | "off" | "connecting" | "on"} State */
/**
 * @typedef {object} LinkOptions
 * @property {string} pairing URL of the pairing file
 * @property {() => Promise<() => void>} prepareHello gathers what a hello needs; the returned function sends it at once
 * @property {(frame: Frame) => void} receive
 * @property {() => void} changed
 * @property {() => boolean} isWanted whether a panel or a page needs the gateway
 */

const RETRY_MS = [1000, 2000, 3000];
const MAX_UNWANTED_TRIES = 10; // in a row, while no panel and no page needs the gateway
const SILENCE_LIMIT_MS = 2.5 * BEAT_MS;
const CLOSE_REPLACED = 4409;

/** @type {Record<number, string>} */
const CLOSE_REASONS = {
  1001: "the gateway is stopping",
  1006: "no gateway answers there: is `afoot serve` running?",
  4401: "the gateway has another key: run `afoot browser` again",
  4403: "the key was changed: run `afoot browser` again",
  4408: "the gateway heard nothing for too long",
  4409: "the same profile is connected from elsewhere",
};

export class GatewayLink {
  /** @type {State} */
  state = "off";
  why = "";
  url = "";
  /** @type {WebSocket | null} */
  #socket = null;
  #isOpening = false;
  tries = 0;
  #lastHeard = 0;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #heartbeatTimer;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #retryTimer;
  #options;

  /** @param {LinkOptions} options */
  constructor(options) {
    this.#options = options;
  }

  /** Connect, unless a socket is open or being opened. */
  async connect() {
    if (this.#socket || this.#isOpening) return;
    this.#isOpening = true;
    clearTimeout(this.#retryTimer);
    try {
      this.#open(await readPairing(this.#options.pairing));
    } catch (error) {
      if (!(error instanceof Unpaired)) throw error;
      this.#setState("unpaired", error.message);
    } finally {
      this.#isOpening = false;
    }
  }

  /**
   * Send a frame. It is dropped while there is no link: pages send it again on the next one.
   * @param {string} method
   * @param {Record<string, any>} params
   * @returns {boolean} whether it was sent
   */
  send(method, params) {
    if (this.state !== "on" || this.#socket?.readyState !== WebSocket.OPEN) return false;
    const text = encodeFrame({ method, params });
    if (text !== null) this.#socket.send(text);
    return text !== null;
  }

  /** Close the socket and connect again, with a new hello. */
  reconnect() {
    this.#socket?.close(1000, "coming back");
  }

  /** @param {Pairing} pairing */
  #open(pairing) {
    this.url = pairing.url;
    if (this.state !== "connecting") this.#setState("connecting", this.why);
    const socket = new WebSocket(pairing.url, SUBPROTOCOL);
    this.#socket = socket;
    const proof = new Handshake(pairing.key, (text) => socket.send(text));
    const late = setTimeout(
      () => this.#disconnect(socket, "the gateway did not prove itself in time"),
      PROOF_MS,
    );
    let handshakeQueue = Promise.resolve();
    socket.onmessage = (event) => {
      if (this.state === "on") this.#receive(socket, event.data);
      else handshakeQueue = handshakeQueue.then(() => this.#authenticate(socket, proof, event.data, late));
    };
    socket.onclose = (event) => {
      clearTimeout(late);
      this.#disconnect(
        socket,
        event.reason || CLOSE_REASONS[event.code] || `the link was lost (${event.code})`,
        event.code,
      );
    };
  }

  /**
   * @param {WebSocket} socket
   * @param {Handshake} proof
   * @param {unknown} text
   * @param {ReturnType<typeof setTimeout>} late
   */
  async #authenticate(socket, proof, text, late) {
    if (socket !== this.#socket) return;
    if (this.state === "on") return this.#receive(socket, text);
    try {
      if (!(await proof.receive(text)) || socket !== this.#socket) return;
      clearTimeout(late);
      const greet = await this.#options.prepareHello();
      if (socket !== this.#socket) return;
      this.tries = 0;
      this.#lastHeard = Date.now();
      this.#heartbeatTimer = setInterval(() => this.#heartbeat(socket), BEAT_MS);
      this.state = "on";
      greet();
      this.#setState("on", "");
    } catch (error) {
      this.#disconnect(socket, error instanceof Error ? error.message : String(error));
    }
  }

  /**
   * @param {WebSocket} socket
   * @param {unknown} text
   */
  #receive(socket, text) {
    if (socket !== this.#socket) return;
    this.#lastHeard = Date.now();
    const frame = JSON.parse(String(text));
    if (isFrame(frame)) this.#options.receive(frame);
  }

  /** @param {WebSocket} socket */
  #heartbeat(socket) {
    if (Date.now() - this.#lastHeard > SILENCE_LIMIT_MS) this.#disconnect(socket, "the gateway says nothing");
    else this.send("ping", {});
  }

  /**
   * @param {WebSocket} socket
   * @param {string} why
   * @param {number} [code]
   */
  #disconnect(socket, why, code) {
    if (socket !== this.#socket) return;
    this.#socket = null;
    clearInterval(this.#heartbeatTimer);
    socket.close(1000);
    this.#setState("off", why);
    if (code === CLOSE_REPLACED) return; // the alarm connects again
    const wait = RETRY_MS[Math.min(this.tries, RETRY_MS.length - 1)];
    this.tries += 1;
    if (this.tries > MAX_UNWANTED_TRIES && !this.#options.isWanted()) return;
    this.#retryTimer = setTimeout(() => void this.connect(), wait);
  }

  /**
   * @param {State} state
   * @param {string} why
   */
  #setState(state, why) {
    this.state = state;
    this.why = why;
    this.#options.changed();
  }
}
