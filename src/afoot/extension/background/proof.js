// Proves both sides of the link to each other; the key itself never travels (B7).

const SIZE = 32; // bytes of the key and of each nonce

/** @typedef {"ext" | "gw"} Side */
/** @typedef {{gateway: string, extension: string}} Nonces both as hex digits */

/**
 * A nonce, as hex digits.
 * @returns {string}
 */
export function makeNonce() {
  return toHex(crypto.getRandomValues(new Uint8Array(SIZE)));
}

/**
 * Whether a text is a key or a nonce.
 * @param {unknown} text
 * @returns {text is string}
 */
export function isSecretShaped(text) {
  return typeof text === "string" && text.length === 2 * SIZE && /^[0-9a-f]+$/i.test(text);
}

/**
 * What a side says to prove that it knows the key.
 * @param {string} key
 * @param {Side} side
 * @param {Nonces} nonces
 * @returns {Promise<string>}
 */
export async function prove(key, side, nonces) {
  const signed = await crypto.subtle.sign("HMAC", await imported(key), message(side, nonces));
  return toHex(new Uint8Array(signed));
}

/**
 * Whether a side has proved itself; takes as long for a wrong proof as for a right one.
 * @param {string} key
 * @param {Side} side
 * @param {Nonces} nonces
 * @param {unknown} proof
 * @returns {Promise<boolean>}
 */
export async function isProved(key, side, nonces, proof) {
  if (!isSecretShaped(proof)) return false;
  return crypto.subtle.verify("HMAC", await imported(key), fromHex(proof), message(side, nonces));
}

/**
 * @param {string} key
 * @returns {Promise<CryptoKey>}
 */
function imported(key) {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  return crypto.subtle.importKey("raw", fromHex(key), algorithm, false, ["sign", "verify"]);
}

/**
 * @param {Side} side
 * @param {Nonces} nonces
 * @returns {Uint8Array<ArrayBuffer>}
 */
function message(side, nonces) {
  const label = new TextEncoder().encode(side);
  const found = new Uint8Array(label.length + 2 * SIZE);
  found.set(label);
  found.set(fromHex(nonces.gateway), label.length);
  found.set(fromHex(nonces.extension), label.length + SIZE);
  return found;
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
