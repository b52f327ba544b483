// How values and errors of a page become JSON text, whatever the page has done to its prototypes.
"use strict";
(() => {
  /** @type {Parts} */
  const parts = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.parts")];
  const { apply, arrays, charCode, hasOwn, isArray, isFinite, objects, ownKeys } = parts.builtins;
  const { setPrototypeOf, slice, streams, String, stringify, TypeError } = parts.builtins;

  const RESULT_LIMIT = 32 * 1024 * 1024; // bytes, the gateway's own, unless it is told otherwise
  const WORDS_LIMIT = 4000;

  /**
   * The JSON text of a value; undefined for what JSON does not know. Throws where it cannot be written.
   * @param {unknown} value @returns {string | undefined}
   */
  const encode = (value) => stringify(clean(value));

  /** A value whose JSON text is its own, where the page has told all objects how to write themselves. @param {any} value */
  const clean = (value) => (hasOwn(objects, "toJSON") || hasOwn(arrays, "toJSON") ? plain(value) : value);

  /**
   * A copy that has nothing of the page's prototypes: a `toJSON` of all objects or arrays is not asked.
   * @param {any} value @returns {any}
   */
  const plain = (value) => {
    if (typeof value !== "object" || value === null) return value;
    const own = value.toJSON;
    if (typeof own === "function" && own !== objects.toJSON && own !== arrays.toJSON) {
      return plain(apply(own, value, [""]));
    }
    /** @type {any} */
    const copy = setPrototype(isArray(value) ? [] : {});
    const keys = ownKeys(value);
    for (let i = 0; i < keys.length; i += 1) {
      const key = keys[i];
      if (typeof key === "string" && isListed(value, key)) copy[key] = plain(value[key]);
    }
    return copy;
  };

  /** @param {any} object */
  const setPrototype = (object) => {
    setPrototypeOf(object, null);
    return object;
  };

  const isListed = parts.builtins.method(objects, "propertyIsEnumerable");

  /**
   * The JSON text of what a tool returned; undefined if it returned nothing. Throws a TypeError for people.
   * @param {any} value @returns {string | undefined}
   */
  const encodeResult = (value) => {
    if (typeof value === "object" && value !== null && typeof value[streams] === "function") {
      throw new TypeError(
        "the tool returned an async generator; return a value, and report with reportProgress",
      );
    }
    let text;
    try {
      text = encode(value);
    } catch (error) {
      throw new TypeError(
        `the tool's result cannot be written as JSON: ${firstLine(wordsOf(error, "message"))}`,
      );
    }
    const size = text === undefined || text.length * 3 <= RESULT_LIMIT ? 0 : bytesOf(text);
    if (size > RESULT_LIMIT) {
      throw new TypeError(`the tool's result has ${size} bytes as JSON; at most ${RESULT_LIMIT} are taken`);
    }
    return text;
  };

  /** @param {string} text */
  const firstLine = (text) => {
    let end = 0;
    while (end < text.length && text[end] !== "\n") end += 1;
    return slice(text, 0, end);
  };

  /** What an object says under a name, as text; "" where it says nothing, or breaks. @param {any} from @param {string} name */
  const wordsOf = (from, name) => {
    try {
      const said = from[name];
      // A number that is not its own is a DOMException's, and says no more than its name.
      const isText = typeof said === "string" || (typeof said === "number" && hasOwn(from, name));
      return isText ? cut(String(said), WORDS_LIMIT) : "";
    } catch {
      return "";
    }
  };

  /** The JSON text of a PageError for whatever was thrown. @param {any} thrown */
  const encodeError = (thrown) => {
    const isObject = (typeof thrown === "object" && thrown !== null) || typeof thrown === "function";
    if (!isObject) return object({ name: "Error", message: cut(asText(thrown), WORDS_LIMIT) });
    const fields = { name: wordsOf(thrown, "name") || "Error", message: wordsOf(thrown, "message") };
    return object({
      ...fields,
      message: fields.message || (fields.name === "Error" ? asText(thrown) : fields.name),
      code: wordsOf(thrown, "code"),
      category: wordsOf(thrown, "category"),
      retryable: flag(thrown, "retryable"),
      retryAfterMs: amount(thrown, "retryAfterMs"),
    });
  };

  /** @param {any} thrown */
  const asText = (thrown) => {
    try {
      return String(thrown);
    } catch {
      return "the tool threw something that cannot be read";
    }
  };

  /** @param {any} from @param {string} name */
  const flag = (from, name) => {
    try {
      return from[name] === true || undefined;
    } catch {
      return undefined;
    }
  };

  /** @param {any} from @param {string} name */
  const amount = (from, name) => {
    try {
      return isFinite(from[name]) ? from[name] : undefined;
    } catch {
      return undefined;
    }
  };

  /** The JSON text of plain fields; those that say nothing are left out. @param {Record<string, unknown>} fields */
  const object = (fields) => {
    let text = "";
    for (const name in fields) {
      if (!hasOwn(fields, name) || fields[name] === undefined || fields[name] === "") continue;
      text += `${text && ","}${stringify(name)}:${stringify(fields[name])}`;
    }
    return `{${text}}`;
  };

  /** The first letters of a text; half a pair at the cut goes, too. @param {string} text @param {number} limit */
  const cut = (text, limit) => {
    if (text.length <= limit) return text;
    const last = charCode(text, limit - 1);
    return slice(text, 0, last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit);
  };

  /** How many bytes a text has as UTF-8. @param {string} text */
  const bytesOf = (text) => {
    let bytes = text.length;
    for (let i = 0; i < text.length; i += 1) {
      const code = charCode(text, i);
      if (code > 0x7f) bytes += code > 0x7ff && (code < 0xd800 || code > 0xdfff) ? 2 : 1;
    }
    return bytes;
  };

  parts.encoding = { __proto__: null, bytesOf, clean, cut, encode, encodeError, encodeResult, object };
})();
