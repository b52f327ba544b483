// Requests with the login of the page: failures become a ToolError, and no request is waited for for ever.

const REQUEST_MS = 30_000;
const QUOTED = 300; // so much of an answer that says no is told

/** @typedef {Omit<RequestInit, "signal"> & Waiting} Asking */

/**
 * What an address answers, as JSON; nothing (204) is null.
 * @template [T=any]
 * @param {string | URL} url @param {Asking} [asking]
 * @returns {Promise<T>}
 */
function fetchJSON(url, asking = {}) {
  const headers = withHeaders(asking.headers, { Accept: "application/json" });
  return ask(url, { ...asking, headers }, async (response, what) => {
    const text = await response.text();
    if (!text) return null;
    try {
      return JSON.parse(text);
    } catch {
      const kind = response.headers.get("Content-Type") ?? "something else";
      const hint = response.redirected ? `, after it was sent on to ${bare(response.url)}` : "";
      throw ToolError.internal(`${what} answered ${kind} and no JSON${hint}`, "not_json");
    }
  });
}

/** What an address answers, as text. @param {string | URL} url @param {Asking} [asking] @returns {Promise<string>} */
function fetchText(url, asking = {}) {
  return ask(url, asking, (response) => response.text());
}

/** @template [T=any] @param {string | URL} url @param {unknown} body @param {Asking} [asking] @returns {Promise<T>} */
function postJSON(url, body, asking = {}) {
  return fetchJSON(url, withJSON("POST", body, asking));
}

/** @template [T=any] @param {string | URL} url @param {unknown} body @param {Asking} [asking] @returns {Promise<T>} */
function putJSON(url, body, asking = {}) {
  return fetchJSON(url, withJSON("PUT", body, asking));
}

/** @template [T=any] @param {string | URL} url @param {unknown} body @param {Asking} [asking] @returns {Promise<T>} */
function patchJSON(url, body, asking = {}) {
  return fetchJSON(url, withJSON("PATCH", body, asking));
}

/** @template [T=any] @param {string | URL} url @param {Asking} [asking] @returns {Promise<T>} */
function deleteJSON(url, asking = {}) {
  return fetchJSON(url, { ...asking, method: "DELETE" });
}

/**
 * Send a form as a page does; gives back JSON, as fetchJSON does.
 * @template [T=any]
 * @param {string | URL} url @param {Record<string, string> | FormData} fields @param {Asking} [asking]
 * @returns {Promise<T>}
 */
function postForm(url, fields, asking = {}) {
  const body = fields instanceof FormData ? fields : new URLSearchParams(fields);
  return fetchJSON(url, { ...asking, method: "POST", body });
}

/**
 * @template T
 * @param {string | URL} url @param {Asking} asking
 * @param {(response: Response, what: string) => Promise<T>} read
 */
function ask(url, asking, read) {
  const { context, signal: given, timeoutMs = REQUEST_MS, ...init } = asking;
  const what = `${init.method ?? "GET"} ${bare(url)}`;
  return bounded({ context, signal: given, timeoutMs }, what, async (signal) => {
    const forbidden = watchPolicy(signal);
    try {
      const response = await fetch(url, { credentials: "include", ...init, signal });
      if (!response.ok) throw await refusal(response, what);
      return await read(response, what);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof TypeError)) throw error;
      if (await forbidden()) {
        throw ToolError.internal(`${what} is forbidden by the page's Content-Security-Policy`, "csp");
      }
      throw ToolError.unavailable(`${what} could not be reached: ${error.message}`, undefined, "network");
    }
  });
}

/**
 * Whether the page's policy has forbidden a request since: over CDP it binds plugins, too, and the error does not say.
 * @param {AbortSignal} signal
 */
function watchPolicy(signal) {
  let isForbidden = false;
  const heard = (/** @type {Event} */ event) => {
    isForbidden ||= /** @type {SecurityPolicyViolationEvent} */ (event).effectiveDirective === "connect-src";
  };
  globalThis.document?.addEventListener?.("securitypolicyviolation", heard, { signal });
  return async () => {
    // The event is a task of its own, which may come behind the error.
    if (!isForbidden && globalThis.document) await new Promise((done) => setTimeout(done, 0));
    return isForbidden;
  };
}

/** @param {Response} response @param {string} what */
async function refusal(response, what) {
  const said = (await response.text()).trim();
  const isText = !/html/i.test(response.headers.get("Content-Type") ?? "");
  const more = said && isText ? `: ${said.slice(0, QUOTED)}` : "";
  const message = `${what} answered ${response.status} ${response.statusText}`.trim() + more;
  return ToolError.fromStatus(response.status, message, retryAfter(response.headers.get("Retry-After")));
}

/** Seconds or a date, as milliseconds from now. @param {string | null} text */
function retryAfter(text) {
  if (text === null || text.trim() === "") return undefined;
  const ms = /^\d+$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

/** An address without what may be secret in it. @param {string | URL} url */
function bare(url) {
  const whole = String(url);
  if (!URL.canParse(whole, globalThis.location?.href)) return whole.split(/[?#]/)[0];
  const { origin, pathname } = new URL(whole, globalThis.location?.href);
  return origin === globalThis.location?.origin ? pathname : origin + pathname;
}

/** @param {string} method @param {unknown} body @param {Asking} asking @returns {Asking} */
function withJSON(method, body, asking) {
  const headers = withHeaders(asking.headers, { "Content-Type": "application/json" });
  return { ...asking, method, headers, body: JSON.stringify(body) };
}

/** @param {HeadersInit | undefined} given @param {Record<string, string>} usual */
function withHeaders(given, usual) {
  const headers = new Headers(given);
  for (const [name, value] of Object.entries(usual)) if (!headers.has(name)) headers.set(name, value);
  return headers;
}
