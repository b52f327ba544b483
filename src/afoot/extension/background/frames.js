// The frames that a context may send: their known fields, and their largest size.

/** @typedef {{method: string, params: Record<string, any>}} Frame */

export const MAX_FRAME_BYTES = 40 * 1024 * 1024; // as JSON; the gateway closes the link over a larger frame

/** @type {Record<string, readonly string[]>} */
const ALLOWED_FIELDS = {
  "tab.tools": ["tools", "leftOut"],
  "tab.ready": ["ready", "why"],
  "tab.state": ["visible", "frozen", "url", "title"],
  "tool.progress": ["run", "seq", "reports", "dropped"],
  "tool.asking": ["run", "message"],
  "tool.log": ["run", "text", "level"],
  "tool.result": ["run", "seq", "value", "error", "aborted"],
};

/**
 * Whether a value has the shape of a frame.
 * @param {unknown} thing
 * @returns {thing is Frame}
 */
export function isFrame(thing) {
  const frame = /** @type {any} */ (thing);
  return typeof frame?.method === "string" && typeof frame.params === "object" && frame.params !== null;
}

/**
 * A frame of a context as it goes over the link: known fields alone, and the context's id, which the worker adds.
 * @param {string} contextId
 * @param {Frame} frame
 * @returns {Frame | null} null: no context may send this
 */
export function addContext(contextId, frame) {
  const fields = Object.hasOwn(ALLOWED_FIELDS, frame.method) ? ALLOWED_FIELDS[frame.method] : null;
  if (!fields) return null;
  const params = frame.params;
  if (fields.includes("run") && typeof params.run !== "string") return null;
  if (frame.method === "tool.progress" && !Array.isArray(params.reports)) return null;
  const known = fields.filter((field) => params[field] !== undefined).map((field) => [field, params[field]]);
  return { method: frame.method, params: { ...Object.fromEntries(known), room: contextId } };
}

/**
 * The JSON-RPC text of a frame. A result that is too large becomes an error.
 * @param {Frame} frame
 * @returns {string | null} null: too large to be sent
 */
export function encodeFrame(frame) {
  const text = JSON.stringify({ jsonrpc: "2.0", method: frame.method, params: frame.params });
  if (text.length * 3 <= MAX_FRAME_BYTES || new TextEncoder().encode(text).length <= MAX_FRAME_BYTES)
    return text;
  if (frame.method !== "tool.result") return null;
  const { room, run, seq } = frame.params;
  const message = `the result has more than ${MAX_FRAME_BYTES} bytes`;
  const error = { name: "RangeError", message, code: "too_large" };
  return JSON.stringify({ jsonrpc: "2.0", method: frame.method, params: { room, run, seq, error } });
}
