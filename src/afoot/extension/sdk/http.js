// fetchJSON and its relatives: requests with the page's cookies. Failures become a ToolError, and every request has a
// timeout.

const REQUEST_TIMEOUT_MS = 30_000;
const MAX_QUOTED = 300; // characters of an error response in the message

/** @typedef {Omit<RequestInit, "signal"> & WaitOptions} RequestOptions */

/**
 * The response of a URL as JSON; an empty response (204) is null.
 * @template [T=any]
 * @param {string | URL} url @param {RequestOptions} [options]
 * @returns {Promise<T>}
 */
function fetchJSON(url, options = {}) {
  const headers = addHeaders(options.headers, { Accept: "application/json" });
  return sendRequest(url, { ...options, headers }, async (response, what) => {
    const text = await response.text();
    if (!text) return null;
    try {
      return JSON.parse(text);
    } catch {
      const kind = response.headers.get("Content-Type") ?? "something else";
      const hint = response.redirected ? `, after it was sent on to ${urlWithoutQuery(response.url)}` : "";
      throw ToolError.internal(`${what} answered ${kind} and no JSON${hint}`, "not_json");
    }
  });
}

/**
 * The response of a URL as text.
 * @param {string | URL} url
 * @param {RequestOptions} [options]
 * @returns {Promise<string>}
 */
function fetchText(url, options = {}) {
  return sendRequest(url, options, (response) => response.text());
}

/**
 * @template [T=any]
 * @param {string | URL} url
 * @param {unknown} body
 * @param {RequestOptions} [options]
 * @returns {Promise<T>}
 */
function postJSON(url, body, options = {}) {
  return fetchJSON(url, jsonRequest("POST", body, options));
}

/**
 * @template [T=any]
 * @param {string | URL} url
 * @param {unknown} body
 * @param {RequestOptions} [options]
 * @returns {Promise<T>}
 */
function putJSON(url, body, options = {}) {
  return fetchJSON(url, jsonRequest("PUT", body, options));
}

/**
 * @template [T=any]
 * @param {string | URL} url
 * @param {unknown} body
 * @param {RequestOptions} [options]
 * @returns {Promise<T>}
 */
function patchJSON(url, body, options = {}) {
  return fetchJSON(url, jsonRequest("PATCH", body, options));
}

/**
 * @template [T=any]
 * @param {string | URL} url
 * @param {RequestOptions} [options]
 * @returns {Promise<T>}
 */
function deleteJSON(url, options = {}) {
  return fetchJSON(url, { ...options, method: "DELETE" });
}

/**
 * Send a form as a page does; returns JSON, as fetchJSON does.
 * @template [T=any]
 * @param {string | URL} url @param {Record<string, string> | FormData} fields @param {RequestOptions} [options]
 * @returns {Promise<T>}
 */
function postForm(url, fields, options = {}) {
  const body = fields instanceof FormData ? fields : new URLSearchParams(fields);
  return fetchJSON(url, { ...options, method: "POST", body });
}

/**
 * @template T
 * @param {string | URL} url @param {RequestOptions} options
 * @param {(response: Response, what: string) => Promise<T>} read
 */
function sendRequest(url, options, read) {
  const { context, signal: given, timeoutMs = REQUEST_TIMEOUT_MS, ...init } = options;
  const what = `${init.method ?? "GET"} ${urlWithoutQuery(url)}`;
  return withTimeout({ context, signal: given, timeoutMs }, what, async (signal) => {
    const forbidden = watchContentSecurityPolicy(signal);
    try {
      const response = await fetch(url, { credentials: "include", ...init, signal });
      if (!response.ok) throw await responseError(response, what);
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
 * Watch whether the page's Content-Security-Policy blocks a request. Over CDP it applies to plugins, too, and the error
 * of fetch does not say so.
 * @param {AbortSignal} signal
 */
function watchContentSecurityPolicy(signal) {
  let isForbidden = false;
  const heard = (/** @type {Event} */ event) => {
    isForbidden ||= /** @type {SecurityPolicyViolationEvent} */ (event).effectiveDirective === "connect-src";
  };
  globalThis.document?.addEventListener?.("securitypolicyviolation", heard, { signal });
  return async () => {
    // The event is fired in its own task, which may come after the error.
    if (!isForbidden && globalThis.document) await new Promise((done) => setTimeout(done, 0));
    return isForbidden;
  };
}

/** @param {Response} response @param {string} what */
async function responseError(response, what) {
  const body = (await response.text()).trim();
  const isText = !/html/i.test(response.headers.get("Content-Type") ?? "");
  const quoted = body && isText ? `: ${body.slice(0, MAX_QUOTED)}` : "";
  const message = `${what} answered ${response.status} ${response.statusText}`.trim() + quoted;
  return ToolError.fromStatus(response.status, message, parseRetryAfter(response.headers.get("Retry-After")));
}

/**
 * The header Retry-After, seconds or a date, as milliseconds from now.
 * @param {string | null} text
 */
function parseRetryAfter(text) {
  if (text === null || text.trim() === "") return undefined;
  const ms = /^\d+$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

/** A URL without its query and fragment, which may hold secrets. @param {string | URL} url */
function urlWithoutQuery(url) {
  const whole = String(url);
  if (!URL.canParse(whole, globalThis.location?.href)) return whole.split(/[?#]/)[0];
  const { origin, pathname } = new URL(whole, globalThis.location?.href);
  return origin === globalThis.location?.origin ? pathname : origin + pathname;
}

/**
 * @param {string} method
 * @param {unknown} body
 * @param {RequestOptions} options
 * @returns {RequestOptions}
 */
function jsonRequest(method, body, options) {
  const headers = addHeaders(options.headers, { "Content-Type": "application/json" });
  return { ...options, method, headers, body: JSON.stringify(body) };
}

/** @param {HeadersInit | undefined} given @param {Record<string, string>} usual */
function addHeaders(given, usual) {
  const headers = new Headers(given);
  for (const [name, value] of Object.entries(usual)) if (!headers.has(name)) headers.set(name, value);
  return headers;
}
