// Every view, filter and selection is an address: read here, and changed here.

import { signal } from "./signal.js";

const PLAIN = ["live", "history", "inbox", "tools", "servers", "tabs"];

/** Where we are. */
export const route = signal(read("/"));

/** The route of a path with its query; what is none is the view "lost". @param {string} address @returns {Route} */
export function read(address) {
  const { pathname: path, searchParams } = new URL(address, "http://console/");
  const query = Object.fromEntries(searchParams);
  const [, head = "", rest = ""] = /^\/([^/]*)\/?(.*)$/.exec(path) ?? [];
  const name = decoded(rest);
  if (path === "/") return { view: "live", params: {}, query, path };
  if (head === "calls" && name) return { view: "call", params: { id: name }, query, path };
  if (head === "tools" && name) return { view: "tool", params: { name }, query, path };
  return { view: PLAIN.includes(head) && !rest ? head : "lost", params: {}, query, path };
}

/** Go to an address of this console; replaced, there is nothing to go back to. @param {string} address */
export function go(address, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", address);
  route.set(read(address));
}

/** The address of where we are with another query; what is empty is left out. @param {Record<string, any>} change */
export function having(change) {
  const { path, query } = route();
  const kept = Object.entries({ ...query, ...change }).filter(([, value]) => value !== "" && value != null);
  return kept.length ? `${path}?${new URLSearchParams(kept)}` : path;
}

/** The address of a call, or of a tool. @param {string} name */
export const callAt = (name) => `/calls/${encodeURIComponent(name)}`;
/** @param {string} name */
export const toolAt = (name) => `/tools/${name.split("/").map(encodeURIComponent).join("/")}`;

/** Follow the address bar, and links of this console. */
export function follow() {
  const here = () => route.set(read(location.pathname + location.search));
  addEventListener("popstate", here);
  addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const isOurs = link?.origin === location.origin && !link.target && !link.hash && !link.hasAttribute("download");
    if (!isOurs || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
  here();
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
