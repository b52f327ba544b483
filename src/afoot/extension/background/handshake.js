// Handshake: both sides of the link prove to each other that they have the key, which is never sent (B7).

const SECRET_BYTES = 32; // of the key, and of each nonce

/** @typedef {"ext" | "gw"} Side */
/** @typedef {{gateway: string, extension: string}} Nonces both as hex digits */

/** The beginning of a conversation: until both sides have proved themselves, no frame but proofs counts. */
export class Handshake {
  #key;
  #send;
  /** @type {Nonces | null} */
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
   * Read a message of the other side, and answer a challenge.
   * @param {unknown} text
   * @returns {Promise<boolean>} whether the other side has proved itself
   * @throws {Error} if the other side does not have the key
   */
  async receive(text) {
    const frame = JSON.parse(String(text));
    if (!this.#nonces && frame?.method === "link.challenge" && isHexSecret(frame.params?.nonce)) {
      this.#nonces = { gateway: frame.params.nonce, extension: makeNonce() };
      const mac = await makeProof(this.#key, "ext", this.#nonces);
      const params = { mac, nonce: this.#nonces.extension };
      this.#send(JSON.stringify({ jsonrpc: "2.0", method: "link.proof", params }));
      return false;
    }
    const isProof = this.#nonces && frame?.method === "link.proof";
    if (this.#nonces && isProof && (await verifyProof(this.#key, "gw", this.#nonces, frame.params?.mac)))
      return true;
    throw new Error("what answers there is not your gateway: it does not know the key");
  }
}

/**
 * Make a nonce, as hex digits.
 * @returns {string}
 */
export function makeNonce() {
  return toHex(crypto.getRandomValues(new Uint8Array(SECRET_BYTES)));
}

/**
 * Whether a text has the form of a key or a nonce.
 * @param {unknown} text
 * @returns {text is string}
 */
export function isHexSecret(text) {
  return typeof text === "string" && text.length === 2 * SECRET_BYTES && /^[0-9a-f]+$/i.test(text);
}

/**
 * Make the proof of a side: an HMAC over its label and both nonces.
 * @param {string} key
 * @param {Side} side
 * @param {Nonces} nonces
 * @returns {Promise<string>}
 */
export async function makeProof(key, side, nonces) {
  const signed = await crypto.subtle.sign("HMAC", await importKey(key), signedMessage(side, nonces));
  return toHex(new Uint8Array(signed));
}

/**
 * Whether the proof of a side is right; takes the same time for a wrong one.
 * @param {string} key
 * @param {Side} side
 * @param {Nonces} nonces
 * @param {unknown} proof
 * @returns {Promise<boolean>}
 */
export async function verifyProof(key, side, nonces, proof) {
  if (!isHexSecret(proof)) return false;
  return crypto.subtle.verify("HMAC", await importKey(key), fromHex(proof), signedMessage(side, nonces));
}

/**
 * @param {string} key
 * @returns {Promise<CryptoKey>}
 */
function importKey(key) {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  return crypto.subtle.importKey("raw", fromHex(key), algorithm, false, ["sign", "verify"]);
}

/**
 * @param {Side} side
 * @param {Nonces} nonces
 * @returns {Uint8Array<ArrayBuffer>}
 */
function signedMessage(side, nonces) {
  const label = new TextEncoder().encode(side);
  const bytes = new Uint8Array(label.length + 2 * SECRET_BYTES);
  bytes.set(label);
  bytes.set(fromHex(nonces.gateway), label.length);
  bytes.set(fromHex(nonces.extension), label.length + SECRET_BYTES);
  return bytes;
}

/**
 * @param {Uint8Array} bytes
 * @returns {string}
 */
function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * @param {string} text
 * @returns {Uint8Array<ArrayBuffer>}
 */
function fromHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}
