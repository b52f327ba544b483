// Chrome's match patterns, for a plugin to check by itself whether it runs at a URL.

/** @type {Record<string, string>} */
const DEFAULT_PORTS = { "http:": "80", "https:": "443" };

/**
 * Whether a plugin with these patterns runs at this URL.
 * @param {string[]} matches @param {string[]} excludes @param {string} url
 */
function matchesUrl(matches, excludes, url) {
  const isMatched = matches.some((pattern) => matchesPattern(pattern, url));
  return isMatched && !excludes.some((pattern) => matchesPattern(pattern, url));
}

/**
 * Whether a URL matches a pattern, which Python has validated. The fragment does not count.
 * @param {string} pattern @param {string} url
 */
function matchesPattern(pattern, url) {
  const text = pattern === "<all_urls>" ? "*://*/*" : pattern;
  const parts = /^([^:/]+):\/\/(\[[^\]]*\]|[^/:]+)(?::([^/]*))?(\/.*)$/.exec(text);
  if (!parts || !URL.canParse(url)) return false;
  const [, scheme, host, port = "*", path] = parts;
  const at = new URL(url);
  if (!(at.protocol in DEFAULT_PORTS) || (scheme !== "*" && `${scheme}:` !== at.protocol)) return false;
  if (port !== "*" && port !== (at.port || DEFAULT_PORTS[at.protocol])) return false;
  const wanted = at.pathname + at.search;
  // In Chrome /orders/* matches /orders, too.
  return (
    matchesHost(host.toLowerCase(), at.hostname) && (path === `${wanted}/*` || matchesWildcards(path, wanted))
  );
}

/** @param {string} wanted @param {string} host */
function matchesHost(wanted, host) {
  if (wanted.startsWith("*.")) return host === wanted.slice(2) || host.endsWith(wanted.slice(1));
  return wanted === "*" || wanted === host;
}

/**
 * Whether a text matches; each star stands for any characters.
 * @param {string} wanted
 * @param {string} text
 */
function matchesWildcards(wanted, text) {
  const [first, ...rest] = wanted.split("*");
  const last = rest.pop();
  if (last === undefined) return text === wanted;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.endsWith(last) && text.length - last.length >= at;
}
