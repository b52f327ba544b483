// Formats times, numbers, reasons and sites for people.

/** @typedef {import("../background/messages.js").CallView} Call */
/** @typedef {import("../background/messages.js").Tab} Tab */

/**
 * An elapsed time: 0:07, 12:40, 1:02:03.
 * @param {number} seconds
 * @returns {string}
 */
export function formatElapsed(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  const rest = whole % 60;
  const two = (/** @type {number} */ part) => String(part).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/**
 * The progress of a call: "37 of 120 · 31 %", "37", "21 %" of numbers that child calls make, or empty.
 * @param {Pick<Call, "progress" | "total" | "source">} call
 * @returns {string}
 */
export function formatProgress({ progress, total, source }) {
  if (progress === null || progress === undefined) return "";
  const share = progressFraction({ progress, total });
  if (source === "below" && share !== null) return `${Math.round(share * 100)} %`;
  return share === null
    ? formatNumber(progress)
    : `${formatNumber(progress)} of ${formatNumber(total ?? 0)} · ${Math.floor(share * 100)} %`;
}

/**
 * The fraction of a call that is done, from 0 to 1; null if unknown.
 * @param {Pick<Call, "progress" | "total">} call
 * @returns {number | null}
 */
export function progressFraction({ progress, total }) {
  if (progress === null || progress === undefined || !total || total <= 0) return null;
  return Math.min(1, Math.max(0, progress / total));
}

/**
 * The status of a call in a word or two.
 * @param {Pick<Call, "state" | "outcome" | "waiting" | "stalled" | "hindered">} call
 * @returns {string}
 */
export function statusText(call) {
  if (call.state === "finished") return call.outcome === "ok" ? "done" : (call.outcome ?? "over");
  if (call.state === "cancelling") return "stopping";
  if (call.waiting) return "waits for an answer";
  if (call.hindered?.by) return safeText(call.hindered.by);
  return call.stalled ? "not advancing" : call.state;
}

/**
 * The tool and its owner from the message of an approval, without the arguments.
 * @param {string} message "Run NAME of page ORIGIN (ARGUMENTS)?"
 * @returns {string}
 */
export function approvalSubject(message) {
  return message.replace(/\s*\(.*$/s, "").replace(/^Run /, "");
}

/**
 * Explain why no tool can run in a tab.
 * @param {string} why
 * @returns {string}
 */
export function explainUnavailable(why) {
  if (why === "reload") return "it was open before its site was allowed, or has crashed: reload it";
  if (why === "closed to extensions") return "no extension may run there";
  return safeText(why);
}

/**
 * A match pattern as people read it.
 * @param {string} pattern
 * @returns {string}
 */
export function formatSite(pattern) {
  if (pattern === "<all_urls>" || pattern === "*://*/*") return "all sites";
  const [, scheme = "", host = pattern] = /^(\*|https?):\/\/(.*?)\/\*$/.exec(pattern) ?? [];
  if (host === "*") return `all ${scheme} sites`;
  const name = host.startsWith("*.") ? `${host.slice(2)} and below` : host;
  return scheme === "http" ? `http://${name}` : name;
}

/**
 * The match pattern for a site that a person typed; null if it is not valid.
 * @param {string} typed
 * @returns {string | null}
 */
export function parseSitePattern(typed) {
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
 * A value as text in which control and other invisible characters are escaped.
 * @param {unknown} value
 * @returns {string}
 */
export function safeText(value) {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
  const written = (/** @type {string} */ char) =>
    char === "\n" ? char : `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, written);
}

/**
 * @param {number} value
 * @returns {string}
 */
function formatNumber(value) {
  return Number.isInteger(value) ? String(value) : value.toFixed(Math.abs(value) < 10 ? 2 : 1);
}
