// The socket to the gateway: opened, proved, kept alive, and opened again when it is lost (B1, B7).

import { encode, isFrame } from "./frames.js";
import { Unpaired, readPairing } from "./pairing.js";
import { isProved, isSecretShaped, makeNonce, prove } from "./proof.js";
import { BEAT_MS, PROOF_MS, SUBPROTOCOL } from "../messages.js";

/** @typedef {import("./gate.js").Frame} Frame */
/** @typedef {import("./pairing.js").Pairing} Pairing */
/** @typedef {"unpaired" | "off" | "connecting" | "on"} State */
/**
 * @typedef {object} Outside
 * @property {string} pairing where the pairing file is
 * @property {() => Promise<() => void>} greet what is to be gathered first; what comes back says it at once
 * @property {(frame: Frame) => void} hear
 * @property {() => void} changed
 * @property {() => boolean} isWanted whether somebody waits for the gateway
 */

const AGAIN_MS = [1000, 2000, 3000];
const TRIES = 10; // so often it is tried again though nobody waits
const SILENCE_MS = 2.5 * BEAT_MS;
const REPLACED = 4409;

/** @type {Record<number, string>} */
const WHY = {
  1001: "the gateway is stopping",
  1006: "no gateway answers there: is `afoot serve` running?",
  4401: "the gateway has another key: run `afoot browser` again",
  4403: "the key was changed: run `afoot browser` again",
  4408: "the gateway heard nothing for too long",
  4409: "the same profile is connected from elsewhere",
};

/** One link, over as many sockets as it takes. */
export class Link {
  /** @type {State} */
  state = "off";
  why = "";
  url = "";
  /** @type {WebSocket | null} */
  #socket = null;
  #isOpening = false;
  tries = 0;
  #heard = 0;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #beat;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #again;
  #outside;

  /** @param {Outside} outside */
  constructor(outside) {
    this.#outside = outside;
  }

  /** Whether more waits to be sent than should. */
  get isBusy() {
    return (this.#socket?.bufferedAmount ?? 0) > 8_000_000;
  }

  /** Connect, unless that is done or under way. */
  async connect() {
    if (this.#socket || this.#isOpening) return;
    this.#isOpening = true;
    clearTimeout(this.#again);
    try {
      this.#open(await readPairing(this.#outside.pairing));
    } catch (error) {
      if (!(error instanceof Unpaired)) throw error;
      this.#turn("unpaired", error.message);
    } finally {
      this.#isOpening = false;
    }
  }

  /**
   * Say something; it is dropped while there is no link, as rooms say it again.
   * @param {string} method
   * @param {Record<string, any>} params
   * @returns {boolean} whether it was said
   */
  say(method, params) {
    if (this.state !== "on" || this.#socket?.readyState !== WebSocket.OPEN) return false;
    const text = encode({ method, params });
    if (text !== null) this.#socket.send(text);
    return text !== null;
  }

  /** Leave, and come back at once: what the gateway knows of this browser has changed. */
  renew() {
    this.#socket?.close(1000, "coming back");
  }

  /** @param {Pairing} pairing */
  #open(pairing) {
    this.url = pairing.url;
    if (this.state !== "connecting") this.#turn("connecting", this.why);
    const socket = new WebSocket(pairing.url, SUBPROTOCOL);
    this.#socket = socket;
    const proof = new Proving(pairing.key, (text) => socket.send(text));
    const late = setTimeout(() => this.#lose(socket, "the gateway did not prove itself in time"), PROOF_MS);
    let turn = Promise.resolve();
    socket.onmessage = (event) => {
      if (this.state === "on") this.#take(socket, event.data);
      else turn = turn.then(() => this.#prove(socket, proof, event.data, late));
    };
    socket.onclose = (event) => {
      clearTimeout(late);
      this.#lose(socket, event.reason || WHY[event.code] || `the link was lost (${event.code})`, event.code);
    };
  }

  /**
   * @param {WebSocket} socket
   * @param {Proving} proof
   * @param {unknown} text
   * @param {ReturnType<typeof setTimeout>} late
   */
  async #prove(socket, proof, text, late) {
    if (socket !== this.#socket) return;
    if (this.state === "on") return this.#take(socket, text);
    try {
      if (!(await proof.hear(text)) || socket !== this.#socket) return;
      clearTimeout(late);
      const greet = await this.#outside.greet();
      if (socket !== this.#socket) return;
      this.tries = 0;
      this.#heard = Date.now();
      this.#beat = setInterval(() => this.#tick(socket), BEAT_MS);
      this.state = "on";
      greet();
      this.#turn("on", "");
    } catch (error) {
      this.#lose(socket, error instanceof Error ? error.message : String(error));
    }
  }

  /**
   * @param {WebSocket} socket
   * @param {unknown} text
   */
  #take(socket, text) {
    if (socket !== this.#socket) return;
    this.#heard = Date.now();
    const frame = JSON.parse(String(text));
    if (isFrame(frame)) this.#outside.hear(frame);
  }

  /** @param {WebSocket} socket */
  #tick(socket) {
    if (Date.now() - this.#heard > SILENCE_MS) this.#lose(socket, "the gateway says nothing");
    else this.say("ping", {});
  }

  /**
   * @param {WebSocket} socket
   * @param {string} why
   * @param {number} [code]
   */
  #lose(socket, why, code) {
    if (socket !== this.#socket) return;
    this.#socket = null;
    clearInterval(this.#beat);
    socket.close(1000);
    this.#turn("off", why);
    if (code === REPLACED) return; // the alarm tries again
    const wait = AGAIN_MS[Math.min(this.tries, AGAIN_MS.length - 1)];
    this.tries += 1;
    if (this.tries > TRIES && !this.#outside.isWanted()) return;
    this.#again = setTimeout(() => void this.connect(), wait);
  }

  /**
   * @param {State} state
   * @param {string} why
   */
  #turn(state, why) {
    this.state = state;
    this.why = why;
    this.#outside.changed();
  }
}

/** The part of a conversation in which nothing but proofs counts. */
export class Proving {
  #key;
  #send;
  /** @type {import("./proof.js").Nonces | null} */
  #nonces = null;

  /**
   * @param {string} key
   * @param {(text: string) => void} send
   */
  constructor(key, send) {
    this.#key = key;
    this.#send = send;
  }

  /**
   * Take what the other side says.
   * @param {unknown} text
   * @returns {Promise<boolean>} whether it has proved itself now
   * @throws {Error} where it is not the gateway of this key
   */
  async hear(text) {
    const frame = JSON.parse(String(text));
    if (!this.#nonces && frame?.method === "link.challenge" && isSecretShaped(frame.params?.nonce)) {
      this.#nonces = { gateway: frame.params.nonce, extension: makeNonce() };
      const mac = await prove(this.#key, "ext", this.#nonces);
      const params = { mac, nonce: this.#nonces.extension };
      this.#send(JSON.stringify({ jsonrpc: "2.0", method: "link.proof", params }));
      return false;
    }
    const isProof = this.#nonces && frame?.method === "link.proof";
    if (this.#nonces && isProof && (await isProved(this.#key, "gw", this.#nonces, frame.params?.mac)))
      return true;
    throw new Error("what answers there is not your gateway: it does not know the key");
  }
}
