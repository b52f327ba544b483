// The only fetch: the gateway's API with this browser's session, and how a browser logs in and out.

import { parse } from "./exact.js";
import { computed, signal } from "./signal.js";

/** @typedef {{token: string, id: string, expires: number}} Session */
/** @typedef {{event: string, id: string, data: string}} Event an event of a stream; its data as it came */
/** @typedef {{lastId?: string, onEvent: (event: Event) => void, onAlive?: () => void, signal?: AbortSignal}} Reading */
/** @typedef {{body?: unknown, signal?: AbortSignal, headers?: Record<string, string>, token?: string}} Sent */

const KEY = "afoot.session"; // storage is this origin's alone
const PATIENCE_MS = 30_000;

/** The session of this browser, in all its tabs. */
export const session = signal(recall());
export const signedIn = computed(() => session() !== null);
/** What is wrong with the link that this page was opened with. */
export const loginProblem = signal("");

/** What the gateway says instead of an answer; status 0: it says nothing. */
export class ApiError extends Error {
  /** @param {number} status @param {{message: string, category: string, fields?: string[]}} told */
  constructor(status, { message, category, fields = [], ...more }) {
    super(message);
    this.status = status;
    this.category = category;
    this.fields = fields;
    /** @type {Record<string, unknown>} */ this.more = more;
  }
}

/** @param {string} path @returns {Promise<any>} */
export const get = (path) => whole("GET", path);

/** @param {string} path @param {unknown} [body] @returns {Promise<any>} of a call that is started: its view, at once */
export const post = (path, body = {}) => whole("POST", path, { body, headers: { prefer: "respond-async" } });

/** @param {string} path @returns {Promise<any>} */
export const del = (path) => whole("DELETE", path);

/** Read a stream of events to its end, from behind the last one. @param {string} path @param {Reading} reading */
export async function stream(path, { lastId = "", onEvent, onAlive = () => {}, signal }) {
  const response = await send("GET", path, { signal, headers: lastId ? { "last-event-id": lastId } : {} });
  const take = parser(onEvent);
  const text = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (response.body);
  const reader = text.pipeThrough(new TextDecoderStream()).getReader();
  for (onAlive(); ; onAlive()) {
    const { value, done } = await reader.read().catch((error) => Promise.reject(broken(error, signal)));
    if (done) return;
    take(value);
  }
}

/** Log in by the address, now and whenever a login link is put there; know what other tabs do. */
export async function enter() {
  addEventListener("storage", ({ key }) => (key ?? KEY) === KEY && session.set(recall()));
  addEventListener("hashchange", logIn);
  await logIn();
}

/** Use the code of a login link; it is taken out of the address first. */
async function logIn() {
  const code = new URLSearchParams(location.hash.slice(1)).get("login");
  if (!code) return;
  history.replaceState(history.state, "", location.pathname + location.search);
  const before = session.peek();
  loginProblem.set("");
  try {
    remember(await whole("POST", "/api/session", { body: { code }, token: "" }));
    if (before) await whole("DELETE", "/api/session/me", { token: before.token }).catch(() => {}); // as good as gone
  } catch (error) {
    loginProblem.set(error instanceof Error ? error.message : String(error));
  }
}

/** End this browser's session. */
export async function leave() {
  await del("/api/session/me").catch(() => {}); // what cannot be told expires
  remember(null);
}

/** Text in, events out; what is no whole event yet is kept. @param {(event: Event) => void} onEvent */
export function parser(onEvent) {
  /** @type {string[]} */ let parts = [];
  return (/** @type {string} */ text) => {
    const isWhole = ((parts.at(-1) ?? "").slice(-1) + text).includes("\n\n");
    parts.push(text); // joined once, however many pieces a long event comes in
    if (!isWhole) return;
    const blocks = parts.join("").split("\n\n");
    parts = [blocks.pop() ?? ""];
    for (const block of blocks) {
      const event = read(block);
      if (event) onEvent(event);
    }
  };
}

/** @param {string} block @returns {Event | null} null: a comment */
function read(block) {
  const found = { event: "message", id: "" };
  const data = [];
  for (const line of block.split("\n")) {
    const [, name, value] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (name === "data") data.push(value);
    else if (name === "event" || name === "id") found[name] = value;
  }
  return data.length ? { ...found, data: data.join("\n") } : null;
}

/** @param {string} method @param {string} path @param {Sent} [sent] @returns {Promise<any>} */
async function whole(method, path, sent = {}) {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const response = await send(method, path, { ...sent, signal });
  return parse(await response.text().catch((error) => Promise.reject(broken(error, undefined))));
}

/** @param {string} method @param {string} path @param {Sent} sent @returns {Promise<Response>} */
async function send(method, path, { body, signal, headers = {}, token = session.peek()?.token ?? "" }) {
  const all = new Headers(headers);
  if (token) all.set("authorization", `Bearer ${token}`);
  if (body !== undefined) all.set("content-type", "application/json");
  const text = body === undefined ? undefined : JSON.stringify(body);
  /** @type {RequestInit} */
  const how = {
    method,
    headers: all,
    body: text,
    signal,
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
  };
  const response = await fetch(path, how).catch((error) => Promise.reject(broken(error, signal)));
  if (response.ok) return response;
  if (response.status === 401 && token) {
    const known = recall(); // another tab may have logged in meanwhile: only the session that was refused is over
    if (known?.token === token) remember(null);
    else session.set(known);
  }
  const told = await response.json().catch(() => null);
  const nothing = { message: `the gateway answered with HTTP ${response.status}`, category: "internal" };
  throw new ApiError(response.status, told?.error ?? nothing);
}

/** @param {unknown} error @param {AbortSignal | undefined} signal @returns {unknown} */
function broken(error, signal) {
  if (signal?.aborted && signal.reason?.name !== "TimeoutError") return error; // called off by whoever asked
  return new ApiError(0, { message: "the gateway does not answer", category: "unavailable" });
}

/** @param {Session | null} known */
function remember(known) {
  if (known) localStorage.setItem(KEY, JSON.stringify(known));
  else localStorage.removeItem(KEY);
  session.set(known);
}

/** @returns {Session | null} */
function recall() {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "null");
  } catch {
    return null; // no storage, or not our words in it
  }
}
