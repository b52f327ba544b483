// Encodes values and errors of a page as JSON text, whatever the page has done to its prototypes.
"use strict";
(() => {
  /** @type {Modules} */
  const modules = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.modules")];
  const { apply, arrays, charCode, hasOwn, isArray, isFinite, objects, ownKeys } = modules.builtins;
  const { setPrototypeOf, slice, streams, String, stringify, TypeError } = modules.builtins;

  const MAX_RESULT_BYTES = 32 * 1024 * 1024; // the gateway's default for max_result_bytes
  const MAX_TEXT = 4000;

  /**
   * The JSON text of a value; undefined for a value that JSON does not have. Throws for a cycle.
   * @param {unknown} value @returns {string | undefined}
   */
  const encode = (value) => stringify(withoutPageToJSON(value));

  /**
   * A value that JSON.stringify writes as it is, even where the page added a `toJSON` to all objects.
   * @param {any} value
   */
  const withoutPageToJSON = (value) =>
    hasOwn(objects, "toJSON") || hasOwn(arrays, "toJSON") ? plainCopy(value) : value;

  /**
   * A copy without the page's prototypes, so that a `toJSON` of all objects or arrays is not called.
   * @param {any} value @returns {any}
   */
  const plainCopy = (value) => {
    if (typeof value !== "object" || value === null) return value;
    const own = value.toJSON;
    if (typeof own === "function" && own !== objects.toJSON && own !== arrays.toJSON) {
      return plainCopy(apply(own, value, [""]));
    }
    /** @type {any} */
    const copy = withoutPrototype(isArray(value) ? [] : {});
    const keys = ownKeys(value);
    for (let i = 0; i < keys.length; i += 1) {
      const key = keys[i];
      if (typeof key === "string" && isEnumerable(value, key)) copy[key] = plainCopy(value[key]);
    }
    return copy;
  };

  /** @param {any} object */
  const withoutPrototype = (object) => {
    setPrototypeOf(object, null);
    return object;
  };

  const isEnumerable = modules.builtins.method(objects, "propertyIsEnumerable");

  /**
   * The JSON text of a tool's result; undefined if it returned nothing. Throws a TypeError with a message for people.
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
        `the tool's result cannot be written as JSON: ${firstLine(textProperty(error, "message"))}`,
      );
    }
    const size = text === undefined || text.length * 3 <= MAX_RESULT_BYTES ? 0 : utf8Length(text);
    if (size > MAX_RESULT_BYTES) {
      throw new TypeError(
        `the tool's result has ${size} bytes as JSON; at most ${MAX_RESULT_BYTES} are taken`,
      );
    }
    return text;
  };

  /** @param {string} text */
  const firstLine = (text) => {
    let end = 0;
    while (end < text.length && text[end] !== "\n") end += 1;
    return slice(text, 0, end);
  };

  /**
   * A property of an object as text; "" if there is none, or if reading it throws.
   * @param {any} from
   * @param {string} name
   */
  const textProperty = (from, name) => {
    try {
      const value = from[name];
      // An inherited number is the code of a DOMException, which says no more than its name.
      const isText = typeof value === "string" || (typeof value === "number" && hasOwn(from, name));
      return isText ? truncate(String(value), MAX_TEXT) : "";
    } catch {
      return "";
    }
  };

  /** The JSON text of a PageError for a thrown value. @param {any} thrown */
  const encodeError = (thrown) => {
    const isObject = (typeof thrown === "object" && thrown !== null) || typeof thrown === "function";
    if (!isObject) return encodeFields({ name: "Error", message: truncate(thrownText(thrown), MAX_TEXT) });
    const fields = {
      name: textProperty(thrown, "name") || "Error",
      message: textProperty(thrown, "message"),
    };
    return encodeFields({
      ...fields,
      message: fields.message || (fields.name === "Error" ? thrownText(thrown) : fields.name),
      code: textProperty(thrown, "code"),
      category: textProperty(thrown, "category"),
      retryable: booleanProperty(thrown, "retryable"),
      retryAfterMs: numberProperty(thrown, "retryAfterMs"),
    });
  };

  /** @param {any} thrown */
  const thrownText = (thrown) => {
    try {
      return String(thrown);
    } catch {
      return "the tool threw something that cannot be read";
    }
  };

  /** @param {any} from @param {string} name */
  const booleanProperty = (from, name) => {
    try {
      return from[name] === true || undefined;
    } catch {
      return undefined;
    }
  };

  /** @param {any} from @param {string} name */
  const numberProperty = (from, name) => {
    try {
      return isFinite(from[name]) ? from[name] : undefined;
    } catch {
      return undefined;
    }
  };

  /**
   * The JSON text of plain fields; undefined and empty ones are left out.
   * @param {Record<string, unknown>} fields
   */
  const encodeFields = (fields) => {
    let text = "";
    for (const name in fields) {
      if (!hasOwn(fields, name) || fields[name] === undefined || fields[name] === "") continue;
      text += `${text && ","}${stringify(name)}:${stringify(fields[name])}`;
    }
    return `{${text}}`;
  };

  /**
   * The first characters of a text, without half of a surrogate pair at the end.
   * @param {string} text
   * @param {number} limit
   */
  const truncate = (text, limit) => {
    if (text.length <= limit) return text;
    const last = charCode(text, limit - 1);
    return slice(text, 0, last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit);
  };

  /** The number of bytes of a text as UTF-8. @param {string} text */
  const utf8Length = (text) => {
    let bytes = text.length;
    for (let i = 0; i < text.length; i += 1) {
      const code = charCode(text, i);
      if (code > 0x7f) bytes += code > 0x7ff && (code < 0xd800 || code > 0xdfff) ? 2 : 1;
    }
    return bytes;
  };

  modules.encoding = {
    __proto__: null,
    utf8Length,
    withoutPageToJSON,
    truncate,
    encode,
    encodeError,
    encodeResult,
    encodeFields,
  };
})();
