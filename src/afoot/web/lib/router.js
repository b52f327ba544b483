// The router: every view, filter and selection has a URL, which is read and changed here.

import { signal } from "./signal.js";

const PLAIN = ["live", "history", "inbox", "tools", "servers", "tabs", "cluster", "resources", "prompts"];

/** The current route. */
export const route = signal(parseRoute("/"));

/**
 * The route of a path with its query; an unknown path is the view "lost".
 * @param {string} address
 * @returns {Route}
 */
export function parseRoute(address) {
  const { pathname: path, searchParams } = new URL(address, "http://console/");
  const query = Object.fromEntries(searchParams);
  const [, head = "", rest = ""] = /^\/([^/]*)\/?(.*)$/.exec(path) ?? [];
  const name = decodePath(rest);
  if (path === "/") return { view: "live", params: {}, query, path };
  if (head === "calls" && name) return { view: "call", params: { id: name }, query, path };
  if (head === "tools" && name) return { view: "tool", params: { name }, query, path };
  return { view: PLAIN.includes(head) && !rest ? head : "lost", params: {}, query, path };
}

/**
 * Go to a URL of this console; with `replace`, without a new history entry.
 * @param {string} address
 */
export function navigate(address, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", address);
  route.set(parseRoute(address));
}

/**
 * The current URL with a changed query; empty values are left out.
 * @param {Record<string, any>} change
 */
export function withQuery(change) {
  const { path, query } = route();
  const entries = Object.entries({ ...query, ...change }).filter(([, value]) => value !== "" && value != null);
  return entries.length ? `${path}?${new URLSearchParams(entries)}` : path;
}

/** The path of a call, or of a tool. @param {string} name */
export const callPath = (name) => `/calls/${encodeURIComponent(name)}`;
/** @param {string} name */
export const toolPath = (name) => `/tools/${name.split("/").map(encodeURIComponent).join("/")}`;

/** Follow the browser's history, and clicks on links of this console. */
export function startRouter() {
  const update = () => route.set(parseRoute(location.pathname + location.search));
  addEventListener("popstate", update);
  addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const isOurs = link?.origin === location.origin && !link.target && !link.hash && !link.hasAttribute("download");
    if (
      !isOurs ||
      event.defaultPrevented ||
      event.button ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    event.preventDefault();
    navigate(link.pathname + link.search);
  });
  update();
}

/** @param {string} text */
function decodePath(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
