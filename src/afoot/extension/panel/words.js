// What the panel says: times, amounts, reasons and sites in the words of people.

/** @typedef {import("../messages.js").CallView} Call */
/** @typedef {import("../messages.js").Tab} Tab */

/**
 * A span of time: 0:07, 12:40, 1:02:03.
 * @param {number} seconds
 * @returns {string}
 */
export function span(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (/** @type {number} */ part) => String(part).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/**
 * How far a call is: "37 of 120 · 31 %", "37", or nothing.
 * @param {Pick<Call, "progress" | "total">} call
 * @returns {string}
 */
export function howFar({ progress, total }) {
  if (progress === null || progress === undefined) return "";
  const share = shareOf({ progress, total });
  return share === null
    ? number(progress)
    : `${number(progress)} of ${number(total ?? 0)} · ${Math.floor(share * 100)} %`;
}

/**
 * The share of a call that is done, from 0 to 1; null if nobody knows.
 * @param {Pick<Call, "progress" | "total">} call
 * @returns {number | null}
 */
export function shareOf({ progress, total }) {
  if (progress === null || progress === undefined || !total || total <= 0) return null;
  return Math.min(1, Math.max(0, progress / total));
}

/**
 * What a call is doing, in a word or two.
 * @param {Pick<Call, "state" | "outcome" | "waiting" | "stalled" | "hindered">} call
 * @returns {string}
 */
export function doing(call) {
  if (call.state === "finished") return call.outcome === "ok" ? "done" : (call.outcome ?? "over");
  if (call.state === "cancelling") return "stopping";
  if (call.waiting) return "waits for an answer";
  if (call.hindered?.by) return readable(call.hindered.by);
  return call.stalled ? "not advancing" : call.state;
}

/**
 * What an approval's question says is to run, and whose it is, without the arguments.
 * @param {string} message "Run NAME of page ORIGIN (ARGUMENTS)?"
 * @returns {string}
 */
export function whatRuns(message) {
  return message.replace(/\s*\(.*$/s, "").replace(/^Run /, "");
}

/**
 * Why nothing can run in a tab.
 * @param {string} why
 * @returns {string}
 */
export function because(why) {
  if (why === "reload") return "it was open before its site was allowed, or has crashed: reload it";
  if (why === "closed to extensions") return "no extension may run there";
  return readable(why);
}

/**
 * A pattern of sites as people call it.
 * @param {string} pattern
 * @returns {string}
 */
export function siteName(pattern) {
  if (pattern === "<all_urls>" || pattern === "*://*/*") return "all sites";
  const [, scheme = "", host = pattern] = /^(\*|https?):\/\/(.*?)\/\*$/.exec(pattern) ?? [];
  if (host === "*") return `all ${scheme} sites`;
  const name = host.startsWith("*.") ? `${host.slice(2)} and below` : host;
  return scheme === "http" ? `http://${name}` : name;
}

/**
 * The pattern for a site that a person typed; null if it is none.
 * @param {string} typed
 * @returns {string | null}
 */
export function patternOf(typed) {
  const text = typed.trim();
  if (text === "*") return "*://*/*";
  const [, scheme = "*", rest = ""] = /^(?:(https?|\*):\/\/)?(.*)$/i.exec(text) ?? [];
  const host = rest
    .replace(/[/?#].*$/, "")
    .replace(/:\d+$/, "")
    .toLowerCase();
  const name = host.startsWith("*.") ? host.slice(2) : host;
  if (!/^([^:@\s*]+|\[[0-9a-f:.]+\])$/.test(name) || !URL.canParse(`https://${name}/`)) return null;
  const known = new URL(`https://${name}/`).hostname;
  if (!/^[a-z0-9.[\]:_-]+$/.test(known)) return null;
  return `${scheme.toLowerCase()}://${host.startsWith("*.") ? "*." : ""}${known}/*`;
}

/**
 * A value as people read it, with nothing in it that could steer what shows it.
 * @param {unknown} value
 * @returns {string}
 */
export function readable(value) {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
  const written = (/** @type {string} */ char) =>
    char === "\n" ? char : `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, written);
}

/**
 * @param {number} value
 * @returns {string}
 */
function number(value) {
  return Number.isInteger(value) ? String(value) : value.toFixed(Math.abs(value) < 10 ? 2 : 1);
}
