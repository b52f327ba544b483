// parse: JSON without loss of digits. Numbers that JavaScript cannot represent keep their source text. Also finds the
// markers of redacted values.

const MAYBE_LOSSY = /[\d.]{16}|[eE][+-]?\d{3}/; // most texts have no such number, and take the fast path

/**
 * The value of a JSON text; a number that JavaScript cannot represent is written back unchanged.
 * @param {string} text
 * @returns {Json}
 */
export const parse = (text) =>
  MAYBE_LOSSY.test(text)
    ? JSON.parse(text, (_, value, { source }) => (typeof value === "number" ? parseNumber(source) : value))
    : JSON.parse(text);

/** A number from its source text. @param {string} source */
export const parseNumber = (source) => (isLossy(Number(source), source) ? JSON.rawJSON(source) : Number(source));

/** Whether a value is an object or an array. @param {unknown} value */
export const isContainer = (value) => typeof value === "object" && value !== null && !JSON.isRawJSON(value);

/** @param {Json} value @returns {value is Record<string, any>} */
export const isObject = (value) => isContainer(value) && !Array.isArray(value);

/** Whether a value is the marker of a redacted value. @param {Json} value */
export const isRedacted = (value) =>
  isObject(value) &&
  value["dev.afoot/redacted"] === true &&
  Object.keys(value).every((name) => name === "dev.afoot/redacted" || name === "shown");

/**
 * The paths of all redacted values.
 * @param {Json} value
 * @param {string} [path]
 * @returns {string[]}
 */
export function redactedPaths(value, path = "") {
  if (isRedacted(value)) return [path];
  if (!isContainer(value)) return [];
  return Object.entries(value).flatMap(([name, one]) => redactedPaths(one, joinPath(path, name)));
}

/**
 * The path of a member, as error messages name it.
 * @param {string} path
 * @param {string | number} name
 */
export const joinPath = (path, name) => (path ? `${path}.${name}` : String(name));

/** @param {number} value @param {string} source */
function isLossy(value, source) {
  if (!Number.isFinite(value)) return true;
  if (/^-?\d+$/.test(source)) return !Number.isSafeInteger(value) && BigInt(source) !== BigInt(value);
  return source.replace(/[eE].*|\D/g, "").replace(/^0+/, "").length > 17;
}
