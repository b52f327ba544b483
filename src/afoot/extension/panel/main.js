// The side panel: shows what the worker says, and says what the person decides.

import { showCalls, tick } from "./calls.js";
import { find, set } from "./dom.js";
import { listenForSites, showSites, showTabs } from "./places.js";
import { connect } from "./port.js";
import { guardQuestions, showQuestions, showSaid, tickQuestions } from "./questions.js";
import { readable } from "./words.js";

/** @typedef {import("../background/desk.js").Scene} Scene */
/** @typedef {import("../messages.js").CallView} Call */
/** @typedef {import("../messages.js").QuestionView} Question */
/** @typedef {import("../messages.js").PanelTab} PanelTab */
/** @typedef {Scene & {calls: Call[], questions: Question[], keys: PanelTab[], at: number}} State */

/** @type {Record<string, string>} */
const LINK = { on: "connected", off: "not connected", connecting: "connecting…", unpaired: "not set up" };
const TICK_MS = 500;
/** @type {number | undefined} */
let window_;

const say = connect(({ method, params }) => {
  if (method === "state") show(params);
  else if (method === "said") showSaid(params);
});

chrome.windows.getCurrent().then((found) => {
  window_ = found.id;
});
find("#connect").addEventListener("click", () => say("pair"));
listenForSites();
guardQuestions();
setInterval(() => {
  tick();
  tickQuestions();
}, TICK_MS);

/** @param {State} state */
function show(state) {
  showLink(state);
  showQuestions(state.questions, say);
  showCalls(state, (tab) => placeName(state, tab), say);
  showTabs(state.tabs, state.keys, say);
  const here = state.tabs.find((tab) => tab.active && (!window_ || tab.window === String(window_)));
  showSites(state.sites, here, say);
}

/** @param {State} state */
function showLink({ link, userScripts, plugins, id }) {
  const line = find("#link");
  line.dataset.state = link.state;
  const at = URL.canParse(link.url) ? new URL(link.url).host : "";
  set(line, { textContent: link.state === "on" ? `${LINK.on} to ${at}` : (LINK[link.state] ?? link.state) });
  if (link.state === "on" && document.body.dataset.state !== "on") revive();
  document.body.dataset.state = link.state;
  set(find("#why"), { textContent: readable(link.why), hidden: !link.why || link.state === "on" });
  set(find("#connect"), { hidden: link.state === "on" || link.state === "connecting" });
  set(find("#switch"), { hidden: userScripts, className: plugins ? "notice" : "hint" });
  find("#details").onclick = () => void chrome.tabs.create({ url: `chrome://extensions/?id=${id}` });
}

/** What was decided may have been lost with the link: it can be decided again. */
function revive() {
  for (const button of document.querySelectorAll(".question button, .call button"))
    /** @type {HTMLButtonElement} */ (button).disabled = false;
}

/**
 * @param {State} state
 * @param {string} tab
 * @returns {string}
 */
function placeName(state, tab) {
  const key = state.keys.find((one) => one.tab === tab)?.key ?? "";
  const title = readable(state.tabs.find((one) => one.id === tab)?.title ?? "");
  return [key, title].filter((part) => part).join(" ");
}
