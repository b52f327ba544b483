// openHost: the program that shows this page in a frame, as MCP Apps speak to it: JSON-RPC by postMessage.

/** @typedef {{jsonrpc: "2.0", id?: number | string, method?: string, params?: Json, result?: Json, error?: Json}} Message */
/** @typedef {Record<string, (params: Json) => void>} Listeners by the last part of a notification's name */
/** @typedef {{start: () => Promise<Json>, callTool: (name: string, given: object) => Promise<Json>, tellSize: (height: number) => void}} Host */

const PROTOCOL = "2026-01-26";
const PREFIX = "ui/notifications/";
const TEARDOWN = "ui/resource-teardown";

/**
 * The host. Its notifications go to the listeners; `resource-teardown` is the request to end.
 * @param {Listeners} listeners
 * @returns {Host}
 */
export function openHost(listeners) {
  /** @type {Map<number | string, {resolve: (result: Json) => void, reject: (error: Error) => void}>} */
  const waiting = new Map();
  let last = 0;
  const send = (/** @type {Partial<Message>} */ message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  const ask = (/** @type {string} */ method, /** @type {Json} */ params) =>
    new Promise((resolve, reject) => {
      last += 1;
      waiting.set(last, { resolve, reject });
      send({ id: last, method, params });
    });
  addEventListener("message", ({ source, data }) => {
    // Any page may post to this frame; only the one around it is the host.
    if (source === parent && data?.jsonrpc === "2.0") takeMessage(data, waiting, listeners, send);
  });
  return {
    async start() {
      const appInfo = { name: "afoot", version: "1" };
      const said = await ask("ui/initialize", { appInfo, appCapabilities: {}, protocolVersion: PROTOCOL });
      send({ method: `${PREFIX}initialized`, params: {} });
      return said;
    },
    callTool: (name, given) => ask("tools/call", { name, arguments: given }),
    tellSize: (height) => send({ method: `${PREFIX}size-changed`, params: { height } }),
  };
}

/**
 * @param {Message} message
 * @param {Map<number | string, {resolve: (result: Json) => void, reject: (error: Error) => void}>} waiting
 * @param {Listeners} listeners
 * @param {(message: Partial<Message>) => void} send
 */
function takeMessage({ id, method, params, result, error }, waiting, listeners, send) {
  if (method === undefined) {
    const asked = waiting.get(id ?? "");
    waiting.delete(id ?? "");
    if (error) asked?.reject(new Error(String(error.message)));
    else asked?.resolve(result);
    return;
  }
  if (id === undefined) {
    if (method.startsWith(PREFIX)) listeners[method.slice(PREFIX.length)]?.(params ?? {});
    return;
  }
  if (method === TEARDOWN) listeners["resource-teardown"]?.(params ?? {});
  const isKnown = method === TEARDOWN || method === "ping";
  send(isKnown ? { id, result: {} } : { id, error: { code: -32601, message: `unknown method ${method}` } });
}
