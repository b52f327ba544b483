// Sites and tabs in words: why no tool can run in a tab, and the sites that a person allows.

/**
 * Explain why no tool can run in a tab.
 * @param {string} why
 * @returns {string}
 */
export function explainUnavailable(why) {
  if (why === "reload") return "it was open before its site was allowed, or has crashed: reload it";
  if (why === "closed to extensions") return "no extension may run there";
  return why;
}

/**
 * A match pattern as people read it.
 * @param {string} pattern
 * @returns {string}
 */
export function formatSite(pattern) {
  if (pattern === "<all_urls>" || pattern === "*://*/*") return "all sites";
  const [, scheme = "", host = pattern] = /^(\*|https?):\/\/(.*?)\/\*$/.exec(pattern) ?? [];
  if (host === "*") return `all ${scheme} sites`;
  const name = host.startsWith("*.") ? `${host.slice(2)} and below` : host;
  return scheme === "http" ? `http://${name}` : name;
}

/**
 * The match pattern for a site that a person typed; null if it is not valid.
 * @param {string} typed
 * @returns {string | null}
 */
export function parseSitePattern(typed) {
  const text = typed.trim();
  if (text === "*") return "*://*/*";
  const [, scheme = "*", rest = ""] = /^(?:(https?|\*):\/\/)?(.*)$/i.exec(text) ?? [];
  const host = rest
    .replace(/[/?#].*$/, "")
    .replace(/:\d+$/, "")
    .toLowerCase();
  const name = host.startsWith("*.") ? host.slice(2) : host;
  if (!/^([^:@\s*]+|\[[0-9a-f:.]+\])$/.test(name) || !URL.canParse(`https://${name}/`)) return null;
  const known = new URL(`https://${name}/`).hostname;
  if (!/^[a-z0-9.[\]:_-]+$/.test(known)) return null;
  return `${scheme.toLowerCase()}://${host.startsWith("*.") ? "*." : ""}${known}/*`;
}
