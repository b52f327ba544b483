// JSON without a digit lost: numbers that JavaScript cannot hold stay as they were written. And what is kept back in it.

const PERHAPS = /[\d.]{16}|[eE][+-]?\d{3}/; // most texts have no such number, and are read the fast way

/** The value of a text; a number too long for JavaScript is written back as it was. @param {string} text @returns {Json} */
export const parse = (text) =>
  PERHAPS.test(text)
    ? JSON.parse(text, (_, value, { source }) => (typeof value === "number" ? number(source) : value))
    : JSON.parse(text);

/** A number as it is written. @param {string} source */
export const number = (source) => (isLossy(Number(source), source) ? JSON.rawJSON(source) : Number(source));

/** Whether it is an object or an array. @param {unknown} value */
export const isDeep = (value) => typeof value === "object" && value !== null && !JSON.isRawJSON(value);

/** @param {Json} value @returns {value is Record<string, any>} */
export const isObject = (value) => isDeep(value) && !Array.isArray(value);

/** Whether it stands for a value that is not shown. @param {Json} value */
export const isRedacted = (value) =>
  isObject(value) && value["dev.afoot/redacted"] === true && Object.keys(value).length === 1;

/** The paths of all that is not shown. @param {Json} value @param {string} [path] @returns {string[]} */
export function redactedIn(value, path = "") {
  if (isRedacted(value)) return [path];
  if (!isDeep(value)) return [];
  return Object.entries(value).flatMap(([name, one]) => redactedIn(one, joined(path, name)));
}

/** The path of a member, as errors name it. @param {string} path @param {string | number} name */
export const joined = (path, name) => (path ? `${path}.${name}` : String(name));

/** @param {number} value @param {string} source */
function isLossy(value, source) {
  if (!Number.isFinite(value)) return true;
  if (/^-?\d+$/.test(source)) return !Number.isSafeInteger(value) && BigInt(source) !== BigInt(value);
  return source.replace(/[eE].*|\D/g, "").replace(/^0+/, "").length > 17;
}
