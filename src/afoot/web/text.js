// Text that cannot trick the eye: what is not seen, or steers what is, gets a mark.

// Controls but tab and line end, bidirectional, zero-width, halves of characters, fillers. What joins two emoji may stay.
const FILLERS = "\\u115f|\\u1160|\\u3164|\\uffa0|\\u034f|\\u180b|\\u180c|\\u180d|\\u180e|\\u180f";
const JOINS = "(?<=\\p{Extended_Pictographic}[\\ufe0f\\p{Emoji_Modifier}]?)\\u200d(?=\\p{Extended_Pictographic})";
const UNSEEN = new RegExp(`(?!\\n|\\t|${JOINS})(?:[\\p{C}\\p{Zl}\\p{Zp}]|${FILLERS})`, "gu");
const DIGITS = [2, 1, 0].map((most) => new Intl.NumberFormat("en", { maximumFractionDigits: most }));

/** Any text with marks for characters that are not seen, cut if it is long. @param {unknown} text @param {number} [most] */
export function visible(text, most = 4000) {
  const whole = String(text ?? "");
  return marked(whole.length > most ? `${whole.slice(0, most)}… (${amount(whole.length)} characters)` : whole);
}

/** @param {string} text */
export const marked = (text) =>
  text.replace(UNSEEN, (char) => {
    const code = char.codePointAt(0) ?? 0;
    if (code < 32) return String.fromCodePoint(0x2400 + code);
    return code === 127 ? "␡" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });

/** A number as people write it; most are short, and Intl is slow. @param {number} value */
export function amount(value) {
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1000) return String(value);
  return DIGITS[size < 10 ? 0 : size < 100 ? 1 : 2].format(value);
}
