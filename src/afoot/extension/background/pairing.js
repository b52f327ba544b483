// readPairing: the gateway's address and key, from the file that `afoot browser` wrote beside the manifest.

import { isHexSecret } from "./handshake.js";

/** @typedef {{url: string, key: string}} Pairing */

const LOOPBACK_HOSTS = new Set(["127.0.0.1", "localhost"]);

/** No gateway is known; the message says what to do. */
export class Unpaired extends Error {}

/**
 * Read the pairing file again: the gateway rewrites it when it starts.
 * @param {string} address
 * @returns {Promise<Pairing>}
 * @throws {Unpaired}
 */
export async function readPairing(address) {
  let text;
  try {
    text = await (await fetch(address, { cache: "no-store" })).text();
  } catch {
    throw new Unpaired("this folder has no pairing.json: run `afoot browser`, and load the folder it names");
  }
  return parsePairing(text);
}

/**
 * @param {string} text
 * @returns {Pairing}
 * @throws {Unpaired}
 */
export function parsePairing(text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Unpaired("pairing.json is not JSON: run `afoot browser` again");
  }
  if (!isHexSecret(found?.key)) {
    throw new Unpaired("pairing.json has no key of 64 hex digits: run `afoot browser` again");
  }
  if (!isGatewayAddress(found.url)) {
    throw new Unpaired("pairing.json names no gateway on this machine: run `afoot browser` again");
  }
  return { url: found.url, key: found.key };
}

/**
 * Whether this is the URL of a gateway: on this machine, as the content security policy demands, too.
 * @param {unknown} text
 * @returns {boolean}
 */
function isGatewayAddress(text) {
  if (typeof text !== "string" || !URL.canParse(text)) return false;
  const url = new URL(text);
  return url.protocol === "ws:" && LOOPBACK_HOSTS.has(url.hostname);
}
