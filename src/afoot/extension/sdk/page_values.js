// pageValue: reads variables of the page, which a plugin's world cannot see, through the carrier.

const VALUE_TIMEOUT_MS = 5000;

/** @typedef {{path: string, resolve: (answer: ReturnType<typeof readValue>) => void}} PendingLookup */
/** @type {Map<string, PendingLookup>} */
const pendingLookups = new Map();
let lookupCount = 0;

/**
 * The value at a path like "app.user.name" in the page, if it is JSON. The page may lie.
 * @param {string} path @param {WaitOptions} [waiting]
 * @returns {Promise<any>}
 */
async function pageValue(path, waiting = {}) {
  if (!/^[\w$-]+(\.[\w$-]+)*$/.test(path))
    throw ToolError.validation(`${path} is no path like app.user.name`);
  const found = await withTimeout(
    { timeoutMs: VALUE_TIMEOUT_MS, ...waiting },
    `the page's ${path}`,
    (signal) => {
      return runtime.send ? requestValue(path, signal) : Promise.resolve(readValue(path));
    },
  );
  if (!found.ok) throw ToolError.internal(found.why ?? `${path} cannot be read`, "page_value");
  return found.value;
}

/**
 * @param {string} path
 * @param {AbortSignal} signal
 * @returns {Promise<ReturnType<typeof readValue>>}
 */
function requestValue(path, signal) {
  const id = `v${++lookupCount}`;
  signal.addEventListener("abort", () => pendingLookups.delete(id), { once: true });
  return new Promise((resolve) => {
    pendingLookups.set(id, { path, resolve });
    runtime.send?.("value", { id, path });
  });
}

/** Send the pending lookups again: the carrier that had them is gone. */
function resendLookups() {
  for (const [id, { path }] of pendingLookups) runtime.send?.("value", { id, path });
}

/** @param {{id: string} & ReturnType<typeof readValue>} answer */
function resolveLookup({ id, ...answer }) {
  pendingLookups.get(id)?.resolve(answer);
}
