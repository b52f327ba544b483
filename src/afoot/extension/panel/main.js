// The side panel: renders the worker's state, and sends the person's decisions to the worker.

import { showCalls, tickCalls } from "./calls.js";
import { find, setProperties } from "./dom.js";
import { startSiteForm, renderSites, renderTabs } from "./tabs_and_sites.js";
import { connect } from "./port.js";
import { guardClicks, renderQuestions, showResult, tickQuestions } from "./questions.js";
import { safeText } from "./format.js";

/** @typedef {import("../background/side_panel.js").PanelScene} Scene */
/** @typedef {import("../background/messages.js").CallView} Call */
/** @typedef {import("../background/messages.js").QuestionView} Question */
/** @typedef {import("../background/messages.js").PanelTab} PanelTab */
/** @typedef {Scene & {calls: Call[], questions: Question[], keys: PanelTab[], at: number}} State */

/** @type {Record<string, string>} */
const LINK_LABELS = {
  on: "connected",
  off: "not connected",
  connecting: "connecting…",
  unpaired: "not set up",
};
const TICK_MS = 500;
/** @type {number | undefined} */
let panelWindow;
let disconnectedAt = 0; // clocks stand still while the gateway cannot be reached

const clock = () => disconnectedAt || Date.now();

const sendToWorker = connect(({ method, params }) => {
  if (method === "state") render(params);
  else if (method === "said") showResult(params);
});

chrome.windows.getCurrent().then((found) => {
  panelWindow = found.id;
});
find("#connect").addEventListener("click", () => sendToWorker("pair"));
startSiteForm();
guardClicks();
setInterval(() => {
  tickCalls(clock());
  tickQuestions(clock());
}, TICK_MS);

/** @param {State} state */
function render(state) {
  renderLink(state);
  disconnectedAt = state.link.state === "on" ? 0 : clock();
  renderQuestions(state.questions, sendToWorker, clock());
  showCalls(state, (tab) => tabName(state, tab), sendToWorker);
  tickCalls(clock());
  renderTabs(state.tabs, state.keys, sendToWorker);
  const activeTab = state.tabs.find(
    (tab) => tab.active && (!panelWindow || tab.window === String(panelWindow)),
  );
  renderSites(state.sites, activeTab, sendToWorker);
}

/** @param {State} state */
function renderLink({ link, userScripts, plugins, id }) {
  const status = find("#link");
  status.dataset.state = link.state;
  const at = URL.canParse(link.url) ? new URL(link.url).host : "";
  setProperties(status, {
    textContent: link.state === "on" ? `${LINK_LABELS.on} to ${at}` : (LINK_LABELS[link.state] ?? link.state),
  });
  if (link.state === "on" && document.body.dataset.state !== "on") enableButtons();
  document.body.dataset.state = link.state;
  setProperties(find("#why"), { textContent: safeText(link.why), hidden: !link.why || link.state === "on" });
  setProperties(find("#connect"), { hidden: link.state === "on" || link.state === "connecting" });
  setProperties(find("#switch"), { hidden: userScripts, className: plugins ? "notice" : "hint" });
  find("#details").onclick = () => void chrome.tabs.create({ url: `chrome://extensions/?id=${id}` });
}

/** Enable all buttons again after a reconnect: a decision may have been lost with the old link. */
function enableButtons() {
  for (const button of document.querySelectorAll(".question button, .call button"))
    /** @type {HTMLButtonElement} */ (button).disabled = false;
}

/**
 * @param {State} state
 * @param {string} tab
 * @returns {string}
 */
function tabName(state, tab) {
  const key = state.keys.find((one) => one.tab === tab)?.key ?? "";
  const title = safeText(state.tabs.find((one) => one.id === tab)?.title ?? "");
  return [key, title].filter((part) => part).join(" ");
}
