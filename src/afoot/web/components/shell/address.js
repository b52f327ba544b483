// addressButton: the address of the gateway for MCP clients, with a dot that says whether it can be reached. A press
// copies it.

import { h } from "../../lib/dom.js";
import { online } from "../../lib/event_feed.js";
import { attempt, busyAction } from "../../lib/resource.js";
import { signal } from "../../lib/signal.js";
import { setTimer } from "../../lib/time.js";
import { icon } from "../marks/icon.js";
import { tell } from "./notice.js";

const COPIED_MS = 2_000;

/** The address that MCP clients need, as this browser reaches it. */
export const mcpAddress = () => `${location.origin}/mcp`;

export function addressButton() {
  const isCopied = signal(false);
  const copy = async () => {
    const [, error] = await attempt(navigator.clipboard.writeText(mcpAddress()));
    if (error) return tell(`It could not be copied: ${mcpAddress()}`);
    isCopied.set(true);
    setTimer(COPIED_MS, () => isCopied.set(false));
  };
  const { act } = busyAction(copy);
  const state = () => (online() ? "connected" : "offline");
  return h(
    "button.quiet.address",
    { type: "button", title: "Copy the MCP address", "data-off": () => !online(), onclick: () => void act() },
    h("span.connection", { "aria-hidden": "true" }),
    h("span.sr", state),
    h("span.mono", () => (isCopied() ? "copied" : `${location.host}/mcp`)),
    icon("copy", "s"),
  );
}
