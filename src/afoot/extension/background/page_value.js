// readValue: reads a value in the page's own world. It is injected as source, so it may use nothing from outside.

/**
 * The value at a path like "app.user.name", as far as it is JSON; the page may lie. It is copied by hand, because a
 * page may have replaced JSON.stringify; the browser serializes the copy.
 * @param {string} path
 * @returns {{ok: boolean, value?: any, why?: string}}
 */
export function readValue(path) {
  let budget = 1_000_000; // characters and entries that may still follow
  /** @param {any} value @param {number} depth @returns {any} */
  const copy = (value, depth) => {
    budget -= typeof value === "string" ? value.length + 1 : 1;
    if (budget < 0) throw new RangeError("it is over 1 MB");
    if (depth > 50) throw new RangeError("it is nested too deeply, or holds itself");
    if (typeof value === "number") return value - value === 0 ? value : null;
    if (value === null || typeof value === "string" || typeof value === "boolean") return value;
    if (typeof value !== "object") return undefined;
    if (typeof value.toJSON === "function") return copy(value.toJSON(), depth + 1);
    const isList = value instanceof Array;
    /** @type {any} */
    const copied = isList ? [] : {};
    for (const key of Object.keys(value)) {
      budget -= key.length;
      const one = copy(value[key], depth + 1);
      if (one !== undefined || isList) copied[key] = one ?? null;
    }
    return copied;
  };
  try {
    /** @type {any} */
    let value = globalThis;
    for (const name of path.split(".")) value = value?.[name];
    const copied = copy(value, 0);
    return copied === undefined ? { ok: true } : { ok: true, value: copied };
  } catch (error) {
    return { ok: false, why: `${path} cannot be read: ${String(error).slice(0, 200)}` };
  }
}
