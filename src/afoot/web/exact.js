// JSON without a digit lost: numbers that JavaScript cannot hold stay as they were written.

const json = /** @type {any} */ (JSON); // rawJSON is newer than the types
const PERHAPS = /[\d.]{16}|[eE][+-]?\d{3}/; // most texts have no such number, and are read the fast way

/**
 * The value of a text; a number too long for JavaScript becomes a `JSON.rawJSON`, which is written back as it was.
 * @param {string} text
 * @returns {any}
 */
export function parse(text) {
  if (!PERHAPS.test(text)) return JSON.parse(text);
  return json.parse(text, (/** @type {string} */ _, /** @type {any} */ value, /** @type {any} */ context) =>
    typeof value === "number" && isLossy(value, context.source) ? json.rawJSON(context.source) : value,
  );
}

/** A number as it is written. @param {string} source */
export const number = (source) => (isLossy(Number(source), source) ? json.rawJSON(source) : Number(source));

/** Whether it is a number that was kept as it was written. @param {unknown} value @returns {boolean} */
export const isRaw = (value) => json.isRawJSON(value);

/** @param {number} value @param {string} source */
function isLossy(value, source) {
  if (!Number.isFinite(value)) return true;
  if (/^-?\d+$/.test(source)) return !Number.isSafeInteger(value) && BigInt(source) !== BigInt(value);
  return (
    source
      .replace(/[eE].*$/, "")
      .replace(/\D/g, "")
      .replace(/^0+/, "").length > 17
  );
}
