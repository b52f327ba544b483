// The page of the MCP App: calls inside the conversation of a host. It holds no token and reaches nothing but the host,
// which calls the gateway's tools for it as the client that the calls are of.

import { formatTime } from "./lib/format.js";
import { openHost } from "./lib/hosted/host.js";
import { hostedCalls } from "./lib/hosted/hosted.js";
import { signal } from "./lib/signal.js";
import { preciseNow, setTimer, startClock, syncClock } from "./lib/time.js";
import { hostedView, textOf } from "./views/hosted.js";

const POLL_MS = 1000;
const RETRY_MS = 2000;

const calls = hostedCalls();
const offline = signal("");
let cancelPoll = () => {};
let isLooking = false;
let hasInput = false; // until then nobody knows which calls are to be shown
let tool = "";
/** @type {string | number | undefined} */ let request;

const host = openHost({
  "tool-input": ({ arguments: given }) => {
    calls.showTool(tool, given, request);
    hasInput = true;
    look();
  },
  "tool-result": (result) => {
    calls.showResult(result);
    look();
  },
  "tool-cancelled": look,
  "host-context-changed": takeContext,
  "resource-teardown": () => view.end(),
});
const view = hostedView({ ...calls, offline, callTool: host.callTool, refresh: look });

document.body.append(view.node);
document.addEventListener("visibilitychange", look);
new ResizeObserver(() => host.tellSize(Math.ceil(view.node.getBoundingClientRect().height))).observe(view.node);
startClock(() => offline.peek() === "" && !calls.isOver());
const { hostContext } = await host.start();
takeContext(hostContext);

/** @param {Json} context */
function takeContext(context) {
  const { theme, toolInfo } = context ?? {};
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  if (toolInfo) [tool, request] = [String(toolInfo.tool?.name ?? ""), toolInfo.id];
}

/** Look at the calls now, and again while something may change and somebody may see it. */
function look() {
  cancelPoll();
  if (!hasInput || isLooking || document.visibilityState === "hidden") return;
  isLooking = true;
  void ask().then((isWell) => {
    isLooking = false;
    if (!isWell) cancelPoll = setTimer(RETRY_MS, look);
    else if (!calls.isOver()) cancelPoll = setTimer(POLL_MS, look);
  });
}

/** Ask the gateway how the calls stand; false if it did not say. */
async function ask() {
  const asked = calls.subject();
  try {
    const result = await host.callTool("afoot_view", asked);
    if (result.isError) throw new Error(textOf(result));
    syncClock(result.structuredContent.now);
    calls.take(asked, result.structuredContent);
    setOffline("");
    return true;
  } catch (error) {
    const why = /** @type {Error} */ (error).message;
    if (!offline.peek()) setOffline(`Not connected since ${formatTime(preciseNow())}, trying again. ${why}`);
    return false;
  }
}

/** @param {string} why */
function setOffline(why) {
  offline.set(why);
  document.documentElement.toggleAttribute("data-offline", why !== "");
}
