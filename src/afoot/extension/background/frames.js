// The frames that rooms may send: which fields of them are known, and how large they may be.

/** @typedef {import("./gate.js").Frame} Frame */

export const LARGEST = 40 * 1024 * 1024; // bytes of a frame as JSON: a larger one would cost all rooms the link

/** @type {Record<string, readonly string[]>} */
const FIELDS = {
  "tab.tools": ["tools", "leftOut"],
  "tab.ready": ["ready", "why"],
  "tab.state": ["visible", "frozen", "url", "title"],
  "tool.progress": ["run", "seq", "reports", "dropped"],
  "tool.asking": ["run", "message"],
  "tool.log": ["run", "text", "level"],
  "tool.result": ["run", "seq", "value", "error", "aborted"],
};

/**
 * Whether something has a frame's shape.
 * @param {unknown} thing
 * @returns {thing is Frame}
 */
export function isFrame(thing) {
  const frame = /** @type {any} */ (thing);
  return typeof frame?.method === "string" && typeof frame.params === "object" && frame.params !== null;
}

/**
 * A frame of a room as it goes over the link: only fields that are known, and the room from us.
 * @param {string} room
 * @param {Frame} frame
 * @returns {Frame | null} null: no room may say this
 */
export function fromRoom(room, frame) {
  const fields = Object.hasOwn(FIELDS, frame.method) ? FIELDS[frame.method] : null;
  if (!fields) return null;
  const params = frame.params;
  if (fields.includes("run") && typeof params.run !== "string") return null;
  if (frame.method === "tool.progress" && !Array.isArray(params.reports)) return null;
  const known = fields.filter((field) => params[field] !== undefined).map((field) => [field, params[field]]);
  return { method: frame.method, params: { ...Object.fromEntries(known), room } };
}

/**
 * A frame as text.
 * @param {Frame} frame
 * @returns {string | null} null: too large to be sent
 */
export function encode(frame) {
  const text = JSON.stringify({ jsonrpc: "2.0", method: frame.method, params: frame.params });
  if (text.length * 3 <= LARGEST || new TextEncoder().encode(text).length <= LARGEST) return text;
  if (frame.method !== "tool.result") return null;
  const { room, run, seq } = frame.params;
  const message = `the result has more than ${LARGEST} bytes`;
  const error = { name: "RangeError", message, code: "too_large" };
  return JSON.stringify({ jsonrpc: "2.0", method: frame.method, params: { room, run, seq, error } });
}
