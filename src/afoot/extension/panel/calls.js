// The running calls: a bar, what the tool says, how long it takes, and a way to stop it.

import { breakable, find, keep, make, set } from "./dom.js";
import { doing, howFar, readable, shareOf, span } from "./words.js";

/** @typedef {import("../messages.js").CallView & {tab?: string}} Call */
/** @typedef {(method: string, params?: Record<string, any>) => void} Say */

/** @type {Map<string, {elapsed_s: number, at: number, isOver: boolean}>} */
const clocks = new Map();

/**
 * Show the calls as they are.
 * @param {{calls: Call[], at: number}} state `at`: when the gateway said so
 * @param {(tab: string) => string} place what people call a tab
 * @param {Say} say
 */
export function showCalls({ calls, at }, place, say) {
  const section = find("#calls");
  clocks.clear();
  for (const { id, elapsed_s, state } of calls)
    clocks.set(id, { elapsed_s, at, isOver: state === "finished" });
  keep(find(".list", section), calls, {
    key: (call) => call.id,
    create: (call) => card(call, say),
    update: (element, call) => refresh(element, call, place),
  });
  set(find(".empty", section), { hidden: calls.length > 0 });
  tick();
}

/** Let the times go on between two words of the gateway. */
export function tick() {
  const now = Date.now();
  for (const element of document.querySelectorAll("#calls .call")) {
    const clock = clocks.get(/** @type {HTMLElement} */ (element).dataset.key ?? "");
    if (!clock) continue;
    const seconds = clock.elapsed_s + (clock.isOver ? 0 : (now - clock.at) / 1000);
    set(find("time", element), { textContent: span(seconds) });
  }
}

/**
 * @param {Call} call
 * @param {Say} say
 * @returns {HTMLElement}
 */
function card(call, say) {
  const stop = make(
    "button",
    { type: "button", className: "stop", "aria-label": `Stop ${call.tool}` },
    "Stop",
  );
  stop.addEventListener("click", () => {
    stop.disabled = true;
    say("stop", { call: call.id, reason: "stopped in the side panel" });
  });
  const head = make(
    "div",
    { className: "row" },
    make("h3", {}, ...breakable(readable(call.tool))),
    make("time"),
    stop,
  );
  const facts = make(
    "p",
    { className: "row faint" },
    make("span", { className: "far" }),
    make("span", { className: "doing" }),
  );
  const bar = make("progress", { "aria-label": `${call.tool}: progress` });
  const texts = ["message", "warning hindered"].map((className) => make("p", { className }));
  return make("article", { className: "card call" }, head, bar, facts, ...texts);
}

/**
 * @param {HTMLElement} element
 * @param {Call} call
 * @param {(tab: string) => string} place
 */
function refresh(element, call, place) {
  const share = shareOf(call);
  const bar = /** @type {HTMLProgressElement} */ (find("progress", element));
  if (share !== null) set(bar, { value: share });
  else if (call.state === "finished") set(bar, { value: call.outcome === "ok" ? 1 : 0 });
  else bar.removeAttribute("value");
  element.dataset.state = call.state === "finished" ? (call.outcome ?? "over") : call.state;
  set(find(".far", element), { textContent: howFar(call) });
  const where = call.tab ? place(call.tab) : "";
  set(find(".doing", element), { textContent: [doing(call), where].filter((part) => part).join(" · ") });
  const hint = call.state === "finished" ? "" : readable(call.hindered?.hint ?? "");
  set(find(".hindered", element), { textContent: hint, hidden: !hint });
  const message = find(".message", element);
  set(message, { textContent: readable(call.message ?? ""), hidden: !call.message });
  set(/** @type {HTMLButtonElement} */ (find(".stop", element)), { hidden: call.state === "finished" });
}
