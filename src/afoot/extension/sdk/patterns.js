// Chrome's match patterns, so that a plugin knows by itself whether it is at one of its addresses.

/** @type {Record<string, string>} */
const USUAL_PORTS = { "http:": "80", "https:": "443" };

/**
 * Whether a plugin with these patterns runs at this address.
 * @param {string[]} matches @param {string[]} excludes @param {string} url
 */
function coversAddress(matches, excludes, url) {
  const isMatched = matches.some((pattern) => fitsPattern(pattern, url));
  return isMatched && !excludes.some((pattern) => fitsPattern(pattern, url));
}

/**
 * Whether an address fits a pattern, which Python has checked. What stands behind # does not count.
 * @param {string} pattern @param {string} url
 */
function fitsPattern(pattern, url) {
  const text = pattern === "<all_urls>" ? "*://*/*" : pattern;
  const parts = /^([^:/]+):\/\/(\[[^\]]*\]|[^/:]+)(?::([^/]*))?(\/.*)$/.exec(text);
  if (!parts || !URL.canParse(url)) return false;
  const [, scheme, host, port = "*", path] = parts;
  const at = new URL(url);
  if (!(at.protocol in USUAL_PORTS) || (scheme !== "*" && `${scheme}:` !== at.protocol)) return false;
  if (port !== "*" && port !== (at.port || USUAL_PORTS[at.protocol])) return false;
  const wanted = at.pathname + at.search;
  // As Chrome has it, /orders/* fits /orders, too.
  return fitsHost(host.toLowerCase(), at.hostname) && (path === `${wanted}/*` || fitsStars(path, wanted));
}

/** @param {string} wanted @param {string} host */
function fitsHost(wanted, host) {
  if (wanted.startsWith("*.")) return host === wanted.slice(2) || host.endsWith(wanted.slice(1));
  return wanted === "*" || wanted === host;
}

/** Whether a text fits, each star standing for any letters. @param {string} wanted @param {string} text */
function fitsStars(wanted, text) {
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
