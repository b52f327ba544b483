// The challenge by which the gateway proves that it knows a secret before that is sent (S6); see wire/gateway_proof.py.
// Another user of the machine may listen at the port of a gateway that has ended.

const LABEL = "afoot.proof.1";
const NONCE_BYTES = 32;

/** @typedef {{path: string, isMet: (mac: unknown) => Promise<boolean>}} Challenge */

/**
 * Make a challenge for one secret, with a new nonce.
 * @param {string} secret
 * @param {string} host as the browser sends it
 * @returns {Promise<Challenge>}
 */
export async function makeChallenge(secret, host) {
  const digest = await sha256(secret);
  const id = (await sha256(digest)).slice(0, 32);
  const nonce = toHex(crypto.getRandomValues(new Uint8Array(NONCE_BYTES)));
  const message = encode(`${LABEL}\n${host.toLowerCase()}\n${nonce}`);
  const isMet = async (/** @type {unknown} */ mac) => {
    if (typeof mac !== "string" || !/^[0-9a-f]{64}$/.test(mac)) return false;
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    const key = await crypto.subtle.importKey("raw", encode(digest), algorithm, false, ["verify"]);
    return crypto.subtle.verify("HMAC", key, fromHex(mac), message);
  };
  return { path: `/api/proof?key=${id}&nonce=${nonce}`, isMet };
}

/** @param {string} text @returns {Uint8Array<ArrayBuffer>} */
const encode = (text) => new TextEncoder().encode(text);

/** @param {string} text */
const sha256 = async (text) => toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", encode(text))));

/** @param {Uint8Array} bytes */
const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** @param {string} text @returns {Uint8Array<ArrayBuffer>} */
const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
