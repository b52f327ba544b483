// The only fetch: the gateway's API with this browser's session, and how a browser logs in and out.

import { parse } from "./exact.js";
import { signal } from "./signal.js";

/** @typedef {{event: string, id: string, data: string}} Event an event of a stream; its data as it came */
/** @typedef {{lastId?: string, onEvent: (event: Event) => void, onAlive?: () => void, signal?: AbortSignal}} Listening */
/** @typedef {{body?: unknown, signal?: AbortSignal, headers?: Record<string, string>, token?: string}} Sent */

const KEY = "afoot.session"; // storage is this origin's alone
const PATIENCE_MS = 30_000;

/** The session of this browser, in all its tabs. */
export const session = signal(recall());
/** What is wrong with the link that this page was opened with. */
export const loginProblem = signal("");

/** What the gateway says instead of an answer; status 0: it says nothing. */
export class ApiError extends Error {
  /** @param {number} status @param {{message: string, category: string, fields?: string[]}} told */
  constructor(status, { message, category, fields = [], ...more }) {
    super(message);
    Object.assign(this, { status, category, fields, more });
  }
}

/** @param {string} path @returns {Promise<any>} */
export const get = (path) => whole("GET", path);

/** @param {string} path @param {unknown} [body] @returns {Promise<any>} of a call that is started: its view, at once */
export const post = (path, body = {}) => whole("POST", path, { body, headers: { prefer: "respond-async" } });

/** @param {string} path @param {Sent} [sent] @returns {Promise<any>} */
export const del = (path, sent) => whole("DELETE", path, sent);

/** Read a stream of events to its end, from behind the last one. @param {string} path @param {Listening} listening */
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
    if (before) await del("/api/session/me", { token: before.token }).catch(() => {}); // as good as gone
  } catch (error) {
    loginProblem.set(/** @type {Error} */ (error).message);
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
    for (const block of blocks) if (/^data/m.test(block)) onEvent(read(block)); // else it is a comment
  };
}

/** @param {string} block @returns {Event} */
function read(block) {
  const lines = block.split("\n").map((line) => /^([^:]*):? ?(.*)$/.exec(line)?.slice(1) ?? []);
  const of = (/** @type {string} */ name) => lines.filter(([key]) => key === name).map(([, value]) => value);
  return { event: of("event").at(-1) ?? "message", id: of("id").at(-1) ?? "", data: of("data").join("\n") };
}

/** @param {string} method @param {string} path @param {Sent} [sent] @returns {Promise<any>} */
async function whole(method, path, sent) {
  const response = await send(method, path, { signal: AbortSignal.timeout(PATIENCE_MS), ...sent });
  return parse(await response.text().catch((error) => Promise.reject(broken(error))));
}

/** @param {string} method @param {string} path @param {Sent} sent @returns {Promise<Response>} */
async function send(method, path, { body, signal, headers, token = session.peek()?.token ?? "" }) {
  const all = new Headers(headers);
  if (token) all.set("authorization", `Bearer ${token}`);
  if (body !== undefined) all.set("content-type", "application/json");
  const how = /** @type {const} */ ({ cache: "no-store", credentials: "omit", redirect: "error" });
  const request = { ...how, method, headers: all, body: JSON.stringify(body), signal };
  const response = await fetch(path, request).catch((error) => Promise.reject(broken(error, signal)));
  if (response.ok) return response;
  // Another tab may have logged in meanwhile: only the session that was refused is over.
  if (response.status === 401 && token) recall()?.token === token ? remember(null) : session.set(recall());
  const told = await response.json().catch(() => null);
  const nothing = { message: `the gateway answered with HTTP ${response.status}`, category: "internal" };
  throw new ApiError(response.status, told?.error ?? nothing);
}

/** @param {any} error @param {AbortSignal} [signal] */
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
