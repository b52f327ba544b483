// The client of the gateway's API, with the only fetch of the console, and the login session of this browser.

import { parse } from "./text/exact_json.js";
import { makeChallenge } from "./proof.js";
import { signal } from "./signal.js";

/** @typedef {{event: string, id: string, data: string}} StreamEvent an event of a stream; its data as it came */
/** @typedef {{lastId?: string, onEvent: (event: StreamEvent) => void, onAlive?: () => void, signal?: AbortSignal}} StreamOptions */
/** @typedef {{body?: unknown, signal?: AbortSignal, headers?: Record<string, string>, token?: string, code?: string}} RequestOptions */

const SESSION_KEY = "afoot.session"; // localStorage belongs to this origin alone
const REQUEST_TIMEOUT_MS = 30_000;
const PROOF_TIMEOUT_MS = 10_000;
const FETCH_DEFAULTS = /** @type {const} */ ({ cache: "no-store", credentials: "omit", redirect: "error" });
const SESSION_OVER = "this browser is logged out; `afoot console` makes a new link";
const IMPOSTOR = "another program than the gateway answers here, so nothing was sent to it";

/** The session of this browser, in all its tabs. */
export const session = signal(loadSession());
/** Why the login link of this page did not work; empty if it did. */
export const loginProblem = signal("");

/** An error response of the gateway; status 0: there was no response. */
export class ApiError extends Error {
  /** @param {number} status @param {{message: string, category: string, fields?: string[]}} told */
  constructor(status, { message, category, fields = [], ...more }) {
    super(message);
    Object.assign(this, { status, category, fields, more });
  }
}

/** @param {string} path @returns {Promise<any>} */
export const get = (path) => request("GET", path);

/**
 * @param {string} path
 * @param {unknown} [body]
 * @returns {Promise<any>} for a started call its view, at once
 */
export const post = (path, body = {}) => request("POST", path, { body, headers: { prefer: "respond-async" } });

/** The body of a response as a file, however long it takes. @param {string} path */
export const getBlob = async (path) =>
  (await send("GET", path, {})).blob().catch((error) => Promise.reject(networkError(error)));

/** @param {string} path @param {RequestOptions} [options] @returns {Promise<any>} */
export const del = (path, options) => request("DELETE", path, options);

/**
 * Read a stream of events to its end, starting after `lastId`.
 * @param {string} path
 * @param {StreamOptions} listening
 */
export async function stream(path, { lastId = "", onEvent, onAlive = () => {}, signal }) {
  const response = await send("GET", path, { signal, headers: lastId ? { "last-event-id": lastId } : {} });
  const take = eventParser(onEvent);
  const text = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (response.body);
  const reader = text.pipeThrough(new TextDecoderStream()).getReader();
  for (onAlive(); ; onAlive()) {
    const { value, done } = await reader.read().catch((error) => Promise.reject(networkError(error, signal)));
    if (done) return;
    take(value);
  }
}

/** Log in with the login link in the URL, now and whenever one is opened; follow logins of other tabs. */
export async function startSession() {
  addEventListener("storage", ({ key }) => (key ?? SESSION_KEY) === SESSION_KEY && session.set(loadSession()));
  addEventListener("hashchange", logIn);
  await logIn();
}

/** Use the code of a login link. It is removed from the URL first. */
async function logIn() {
  const code = new URLSearchParams(location.hash.slice(1)).get("login");
  if (!code) return;
  history.replaceState(history.state, "", location.pathname + location.search);
  const before = session.peek();
  loginProblem.set("");
  try {
    saveSession(await request("POST", "/api/session", { body: { code }, token: "", code }));
    if (before) await del("/api/session/me", { token: before.token }).catch(() => {}); // an old session that cannot be ended expires
  } catch (error) {
    loginProblem.set(/** @type {Error} */ (error).message);
  }
}

/** End this browser's session. */
export async function logOut() {
  await del("/api/session/me").catch(() => {}); // a session that cannot be ended expires
  saveSession(null);
}

/**
 * Parse text into events; an incomplete event is kept until its end arrives.
 * @param {(event: StreamEvent) => void} onEvent
 */
export function eventParser(onEvent) {
  /** @type {string[]} */ let parts = [];
  return (/** @type {string} */ text) => {
    const isWhole = ((parts.at(-1) ?? "").slice(-1) + text).includes("\n\n");
    parts.push(text); // joined once, in however many pieces a long event arrives
    if (!isWhole) return;
    const blocks = parts.join("").split("\n\n");
    parts = [blocks.pop() ?? ""];
    for (const block of blocks) if (/^data/m.test(block)) onEvent(parseEvent(block)); // a block without data is a comment
  };
}

/** @param {string} block @returns {StreamEvent} */
function parseEvent(block) {
  const lines = block.split("\n").map((line) => /^([^:]*):? ?(.*)$/.exec(line)?.slice(1) ?? []);
  const of = (/** @type {string} */ name) => lines.filter(([key]) => key === name).map(([, value]) => value);
  return { event: of("event").at(-1) ?? "message", id: of("id").at(-1) ?? "", data: of("data").join("\n") };
}

/**
 * @param {string} method
 * @param {string} path
 * @param {RequestOptions} [options]
 * @returns {Promise<any>}
 */
async function request(method, path, options) {
  const response = await send(method, path, { signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS), ...options });
  return parse(await response.text().catch((error) => Promise.reject(networkError(error))));
}

/**
 * @param {string} method
 * @param {string} path
 * @param {RequestOptions} sent
 * @returns {Promise<Response>}
 */
async function send(method, path, { body, signal, headers, token = session.peek()?.token ?? "", code = "" }) {
  if (token || code) await prove(token || code, Boolean(token));
  const allHeaders = new Headers(headers);
  if (token) allHeaders.set("authorization", `Bearer ${token}`);
  if (body !== undefined) allHeaders.set("content-type", "application/json");
  const request = { ...FETCH_DEFAULTS, method, headers: allHeaders, body: JSON.stringify(body), signal };
  const response = await fetch(path, request).catch((error) => Promise.reject(networkError(error, signal)));
  if (response.ok) return response;
  if (response.status === 401 && token) endSession(token);
  const errorBody = await response.json().catch(() => null);
  const nothing = { message: `the gateway answered with HTTP ${response.status}`, category: "internal" };
  throw new ApiError(response.status, errorBody?.error ?? nothing);
}

/** Only the refused session is over: another tab may have logged in meanwhile. @param {string} token */
function endSession(token) {
  if (loadSession()?.token === token) saveSession(null);
  else session.set(loadSession());
}

/** @type {Map<string, Promise<void>>} */
const proving = new Map(); // requests that begin together share one challenge

/**
 * Let the gateway prove that it knows a secret before it is sent (S6). Over TLS, the certificate is the proof.
 * @param {string} secret
 * @param {boolean} isToken whether it is this browser's session, which ends if it is not known
 */
function prove(secret, isToken) {
  const proof = proving.get(secret) ?? challenge(secret, isToken).finally(() => proving.delete(secret));
  proving.set(secret, proof);
  return proof;
}

/** @param {string} secret @param {boolean} isToken */
async function challenge(secret, isToken) {
  if (location.protocol === "https:") return;
  const { path, isMet } = await makeChallenge(secret, location.host);
  const request = { ...FETCH_DEFAULTS, signal: AbortSignal.timeout(PROOF_TIMEOUT_MS) };
  const response = await fetch(path, request).catch((error) => Promise.reject(networkError(error)));
  const told = await response.json().catch(() => null);
  if (response.ok && (await isMet(told?.mac))) return;
  if (response.status === 404 && told?.error) {
    if (isToken) endSession(secret);
    const message = isToken ? SESSION_OVER : "this login link is not known here; `afoot console` makes a new one";
    throw new ApiError(isToken ? 401 : 403, { message, category: "auth" });
  }
  if (told?.error) throw new ApiError(response.status, told.error);
  throw new ApiError(0, { message: IMPOSTOR, category: "unavailable" });
}

/** @param {any} error @param {AbortSignal} [signal] */
function networkError(error, signal) {
  if (signal?.aborted && signal.reason?.name !== "TimeoutError") return error; // aborted by the caller
  return new ApiError(0, { message: "the gateway does not answer", category: "unavailable" });
}

/** @param {Session | null} known */
function saveSession(known) {
  if (known) localStorage.setItem(SESSION_KEY, JSON.stringify(known));
  else localStorage.removeItem(SESSION_KEY);
  session.set(known);
}

/** @returns {Session | null} */
function loadSession() {
  try {
    return JSON.parse(localStorage.getItem(SESSION_KEY) ?? "null");
  } catch {
    return null; // no storage, or no JSON in it
  }
}
