// The running calls: progress bar, message, elapsed time, and a stop button.

import { breakable, find, reconcile, createElement, setProperties } from "./dom.js";
import { statusText, formatProgress, safeText, progressFraction, formatElapsed } from "./format.js";

/** @typedef {import("../background/messages.js").CallView & {tab?: string}} Call */
/** @typedef {(method: string, params?: Record<string, any>) => void} SendToWorker */

/** @type {Map<string, {elapsed_s: number, at: number, isOver: boolean}>} */
const elapsedTimes = new Map();

/**
 * Render the calls.
 * @param {{calls: Call[], at: number}} state `at`: when the gateway sent it
 * @param {(tab: string) => string} tabName the title of a tab
 * @param {SendToWorker} send
 */
export function showCalls({ calls, at }, tabName, send) {
  const section = find("#calls");
  elapsedTimes.clear();
  for (const { id, elapsed_s, state } of calls)
    elapsedTimes.set(id, { elapsed_s, at, isOver: state === "finished" });
  reconcile(find(".list", section), calls, {
    key: (call) => call.id,
    create: (call) => callCard(call, send),
    update: (element, call) => updateCard(element, call, tabName),
  });
  setProperties(find(".empty", section), { hidden: calls.length > 0 });
}

/** Update the elapsed times between two messages of the gateway. @param {number} now */
export function tickCalls(now) {
  for (const element of document.querySelectorAll("#calls .call")) {
    const times = elapsedTimes.get(/** @type {HTMLElement} */ (element).dataset.key ?? "");
    if (!times) continue;
    const seconds = times.elapsed_s + (times.isOver ? 0 : (now - times.at) / 1000);
    setProperties(find("time", element), { textContent: formatElapsed(seconds) });
  }
}

/**
 * @param {Call} call
 * @param {SendToWorker} send
 * @returns {HTMLElement}
 */
function callCard(call, send) {
  const stop = createElement(
    "button",
    { type: "button", className: "stop", "aria-label": `Stop ${call.tool}` },
    "Stop",
  );
  stop.addEventListener("click", () => {
    stop.disabled = true;
    send("stop", { call: call.id, reason: "stopped in the side panel" });
  });
  const head = createElement(
    "div",
    { className: "row" },
    createElement("h3", {}, ...breakable(safeText(call.tool))),
    createElement("time"),
    stop,
  );
  const facts = createElement(
    "p",
    { className: "row faint" },
    createElement("span", { className: "far" }),
    createElement("span", { className: "doing" }),
  );
  const bar = createElement("progress", { "aria-label": `${call.tool}: progress` });
  const texts = ["message", "warning hindered"].map((className) => createElement("p", { className }));
  return createElement("article", { className: "card call" }, head, bar, facts, ...texts);
}

/**
 * @param {HTMLElement} element
 * @param {Call} call
 * @param {(tab: string) => string} place
 */
function updateCard(element, call, place) {
  const share = progressFraction(call);
  const bar = /** @type {HTMLProgressElement} */ (find("progress", element));
  if (share !== null) setProperties(bar, { value: share });
  else if (call.state === "finished") setProperties(bar, { value: call.outcome === "ok" ? 1 : 0 });
  else bar.removeAttribute("value");
  element.dataset.state = call.state === "finished" ? (call.outcome ?? "over") : call.state;
  setProperties(find(".far", element), { textContent: formatProgress(call) });
  const tab = call.tab ? place(call.tab) : "";
  setProperties(find(".doing", element), {
    textContent: [statusText(call), tab].filter((part) => part).join(" · "),
  });
  const hint = call.state === "finished" ? "" : safeText(call.hindered?.hint ?? "");
  setProperties(find(".hindered", element), { textContent: hint, hidden: !hint });
  const message = find(".message", element);
  setProperties(message, { textContent: safeText(call.message ?? ""), hidden: !call.message });
  setProperties(/** @type {HTMLButtonElement} */ (find(".stop", element)), {
    hidden: call.state === "finished",
  });
}
