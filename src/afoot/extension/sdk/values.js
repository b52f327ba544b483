// Values of the page, whose own variables a plugin's world cannot see: the carrier reads them.

const VALUE_MS = 5000;

/** @typedef {{path: string, settle: (answer: ReturnType<typeof readValue>) => void}} Lookup */
/** @type {Map<string, Lookup>} */
const lookups = new Map();
let lookupsMade = 0;

/**
 * The value at a path like "app.user.name" in the page, if it is JSON; it is the page's word, and may be a lie.
 * @param {string} path @param {Waiting} [waiting]
 * @returns {Promise<any>}
 */
async function pageValue(path, waiting = {}) {
  if (!/^[\w$-]+(\.[\w$-]+)*$/.test(path))
    throw ToolError.validation(`${path} is no path like app.user.name`);
  const found = await bounded({ timeoutMs: VALUE_MS, ...waiting }, `the page's ${path}`, (signal) => {
    return surroundings.send ? lookedUp(path, signal) : Promise.resolve(readValue(path));
  });
  if (!found.ok) throw ToolError.internal(found.why ?? `${path} cannot be read`, "page_value");
  return found.value;
}

/** @param {string} path @param {AbortSignal} signal @returns {Promise<ReturnType<typeof readValue>>} */
function lookedUp(path, signal) {
  const id = `v${++lookupsMade}`;
  signal.addEventListener("abort", () => lookups.delete(id), { once: true });
  return new Promise((settle) => {
    lookups.set(id, { path, settle });
    surroundings.send?.("value", { id, path });
  });
}

/** Ask again for what the carrier that is gone was asked for. */
function renewLookups() {
  for (const [id, { path }] of lookups) surroundings.send?.("value", { id, path });
}

/** @param {{id: string} & ReturnType<typeof readValue>} answer */
function answerLookup({ id, ...answer }) {
  lookups.get(id)?.settle(answer);
}
