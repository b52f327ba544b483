// Formats text, numbers, times and progress for people. Characters that are invisible, or that change how text is shown,
// are replaced by visible marks.

// Control characters except tab and line feed, bidirectional, zero-width, lone surrogates, fillers. A joiner between two
// emoji may stay.
const FILLERS = "\\u115f|\\u1160|\\u3164|\\uffa0|\\u034f|\\u180b|\\u180c|\\u180d|\\u180e|\\u180f";
const JOINS = "(?<=\\p{Extended_Pictographic}[\\ufe0f\\p{Emoji_Modifier}]?)\\u200d(?=\\p{Extended_Pictographic})";
const INVISIBLE = new RegExp(`(?!\\n|\\t|${JOINS})(?:[\\p{C}\\p{Zl}\\p{Zp}]|${FILLERS})`, "gu");
const DIGITS = [2, 1, 0].map((most) => new Intl.NumberFormat("en", { maximumFractionDigits: most }));

/**
 * A text with marks for invisible characters, truncated if it is long.
 * @param {unknown} text
 * @param {number} [most]
 */
export function safeText(text, most = 4000) {
  const whole = String(text ?? "");
  return markInvisible(
    whole.length > most ? `${whole.slice(0, most)}… (${formatNumber(whole.length)} characters)` : whole,
  );
}

/** @param {string} text */
export const markInvisible = (text) =>
  text.replace(INVISIBLE, (char) => {
    const code = char.codePointAt(0) ?? 0;
    if (code < 32) return String.fromCodePoint(0x2400 + code);
    return code === 127 ? "␡" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });

/** A number for people. Short ones do not use Intl, which is slow. @param {number} value */
export function formatNumber(value) {
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1000) return String(value);
  return DIGITS[size < 10 ? 0 : size < 100 ? 1 : 2].format(value);
}

/** The fraction that is done, from 0 to 1; null if unknown. @param {Pick<Call, "latest">} call */
export function progressFraction({ latest }) {
  const { progress, total } = latest ?? {};
  return progress == null || !total || total < 0 ? null : Math.min(1, Math.max(0, progress / total));
}

/** "37 of 120", "37", "21 %" of numbers that child calls make, or empty. @param {Pick<Call, "latest">} call */
export function formatProgress({ latest }) {
  const { progress, total, source } = latest ?? {};
  const share = progressFraction({ latest });
  if (source === "below" && share !== null) return `${Math.round(share * 100)} %`;
  return progress == null ? "" : total ? `${formatNumber(progress)} of ${formatNumber(total)}` : formatNumber(progress);
}

/** The most important message about a call now. @param {Call} call */
export function statusMessage({ state, open, failure, hindered, starting, cancel, latest, result_line }) {
  const question = open.values().next().value;
  if (question) return question.message || "waits for an answer";
  if (failure) return failure.message;
  if (result_line) return result_line;
  if (state === "queued" && starting) return starting;
  if (state === "cancelling" && cancel?.reason) return cancel.reason;
  return state === "running" && hindered ? joinNonEmpty(hindered.by, hindered.hint) : latest?.message;
}

/** The parts that are not empty, joined by commas. @param {...unknown} parts */
export const joinNonEmpty = (...parts) => parts.filter(Boolean).join(", ");

/** An elapsed time: 0:07, 12:40, 1:02:03. @param {number} seconds */
export function formatElapsed(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  const rest = whole % 60;
  const two = (/** @type {number} */ part) => String(part).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** A span of time in a column: 8.4 s below ten seconds, then 0:42, 12:05, 1:02:03. @param {number} seconds */
export const formatSpan = (seconds) =>
  seconds < 9.95 ? `${Math.max(0, seconds).toFixed(1)} s` : formatElapsed(Math.max(10, seconds));

/**
 * A time that is left, or a limit: 5.6 s below ten seconds, then whole ones, rounded up. A time that was used is rounded
 * down, so the two add up to the limit.
 * @param {number} seconds
 */
export const formatLeft = (seconds) => (seconds < 9.95 ? formatSpan(seconds) : formatElapsed(Math.ceil(seconds)));

/** The estimated time left, as one number: ~1:24; empty if unknown. @param {Eta | null | undefined} eta */
export const formatEstimate = (eta) => (eta ? `~${formatElapsed(Math.max(1, Math.round(eta.left_s)))}` : "");

/** A fraction as per cent: 60 %. @param {number} share from 0 to 1 */
export const formatPercent = (share) => `${Math.floor(share * 100 + 1e-9)} %`;

/** A small share with one decimal: 1.8 %, but 0 % and 12 %. @param {number} share from 0 to 1 */
export const formatSmallPercent = (share) =>
  `${share > 0 && share < 0.0995 ? (share * 100).toFixed(1) : Math.round(share * 100)} %`;

/** A whole number with a comma for thousands: 1,234. @param {number} count */
export const formatCount = (count) => String(Math.round(count)).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

/** A size: 812 bytes, 84 kB, 1.2 MB. @param {number} bytes */
export function formatBytes(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  const power = Math.min(3, Math.floor(Math.log10(bytes) / 3));
  return `${formatNumber(bytes / 1000 ** power)} ${["", "kB", "MB", "GB"][power]}`;
}

/** "1 tool", "3 tools", "1,000 tools". @param {number} number @param {string} what */
export const plural = (number, what) => `${formatCount(number)} ${what}${number === 1 ? "" : "s"}`;

/** The time of day: 14:20:07. @param {number} at */
export function formatClock(at) {
  const day = new Date(at * 1000);
  return [day.getHours(), day.getMinutes(), day.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}

/** An instant in local time: 14:20:07 today, else 2026-11-13 14:20:07. @param {number} at */
export function formatTime(at) {
  const day = new Date(at * 1000);
  const isToday = day.toDateString() === new Date().toDateString();
  const two = (/** @type {number} */ part) => String(part).padStart(2, "0");
  const date = `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
  return isToday ? formatClock(at) : `${date} ${formatClock(at)}`;
}

/** The day of an instant: Nov 18. @param {number} at */
export const formatDay = (at) => new Date(at * 1000).toLocaleDateString("en", { month: "short", day: "numeric" });

/** An instant for a selected time: seconds only where the time is short, the day only where it is long. @param {number} at @param {number} length_s */
export function formatMinute(at, length_s) {
  if (length_s < 300) return formatClock(at);
  return length_s < 86_400 ? formatClock(at).slice(0, 5) : `${formatDay(at)} ${formatClock(at).slice(0, 5)}`;
}

/** A time on an axis whose times are so many seconds apart. @param {number} at @param {number} step_s */
export function formatAxisTime(at, step_s) {
  if (step_s >= 86_400) return formatDay(at);
  return step_s < 60 ? formatClock(at) : formatClock(at).slice(0, 5);
}

/** How long ago something was: just now, 5 min ago, 3 h ago, 2 days ago. @param {number} seconds */
export function formatAgo(seconds) {
  if (seconds < 60) return "just now";
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  return seconds < 129_600 ? `${Math.round(seconds / 3600)} h ago` : `${Math.round(seconds / 86_400)} days ago`;
}
