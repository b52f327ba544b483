// VIEWS: the views that navigation, keys and palette lead to, in their order.

import { store } from "../../lib/store.js";

/** @typedef {{view: string, title: string, key: string, icon: "list" | "inbox" | "history" | "tool" | "server" | "tab" | "cluster" | "document" | "prompt", isMain?: boolean, isShown?: () => boolean}} ViewLink */

/** `isMain`: it is in the bar at the top; on a phone the first four are in the bar at the bottom. `isShown`: not always. @type {ViewLink[]} */
export const VIEWS = [
  { view: "live", title: "Live", key: "l", icon: "list", isMain: true },
  { view: "inbox", title: "Inbox", key: "i", icon: "inbox", isMain: true },
  { view: "history", title: "History", key: "h", icon: "history", isMain: true },
  { view: "tools", title: "Tools", key: "t", icon: "tool", isMain: true },
  { view: "servers", title: "Servers", key: "s", icon: "server", isMain: true },
  { view: "tabs", title: "Tabs", key: "b", icon: "tab", isMain: true },
  {
    ...{ view: "cluster", title: "Cluster", key: "c", icon: "cluster", isMain: true },
    isShown: () => store.about().isCluster,
  },
  { view: "resources", title: "Resources", key: "r", icon: "document" },
  { view: "prompts", title: "Prompts", key: "p", icon: "prompt" },
];

/** The view of the navigation that a route belongs to. @param {Route} route @param {(id: string) => unknown} isLive */
export function viewOf({ view, params }, isLive) {
  if (view === "call") return isLive(params.id ?? "") ? "live" : "history";
  return view === "tool" ? "tools" : view;
}
