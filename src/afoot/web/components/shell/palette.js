// palette: one field to go to a view, a call or a server, or to run a tool; Ctrl K opens it.

import { get } from "../../lib/api.js";
import { each, h } from "../../lib/dom.js";
import { joinNonEmpty, safeText } from "../../lib/format.js";
import { rankMatches } from "./fuzzy.js";
import { registerKeys } from "../../lib/keys.js";
import { attempt } from "../../lib/resource.js";
import { callPath, navigate, toolPath } from "../../lib/router.js";
import { computed, signal } from "../../lib/signal.js";
import { stateOf, STATE_WORDS, OUTCOME_WORDS } from "../../lib/state.js";
import { store } from "../../lib/store.js";
import { chooseTheme } from "./theme.js";
import { VIEWS } from "./views.js";
import { icon } from "../marks/icon.js";
import { stateIcon } from "../marks/state_icon.js";

/** @typedef {import("../../lib/state.js").CallState} CallState */
/** `words` are searched besides the name. @typedef {{key: string, group: string, name: string, words: string, mark: () => Element, act: () => void}} Item */

const MAX_SHOWN = 40;
const MAX_LIVE_CALLS = 500;
const RECENT_CALLS = 50;

/**
 * The dialog, and the function that opens it.
 * @param {{name: string, act: () => void}[]} actions further things to do
 */
export function palette(actions) {
  const offered = signal(/** @type {Item[]} */ ([]));
  const query = signal("");
  const at = signal(0);
  const found = computed(() =>
    rankMatches(query(), offered(), ({ name, words }) => `${name} ${words}`).slice(0, MAX_SHOWN),
  );
  const choose = (/** @type {Item | undefined} */ item) => {
    dialog.close();
    item?.act();
  };
  const onkeydown = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const last = found().length - 1;
    if (step) at.set(Math.min(last, Math.max(0, at.peek() + step)));
    else if (event.key === "Enter") choose(found()[at.peek()]);
    else return;
    event.preventDefault();
    dialog.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  };
  const field = h("input", {
    type: "text",
    role: "combobox",
    "aria-label": "Go to or run",
    "aria-expanded": "true",
    "aria-controls": "palette-list",
    "aria-activedescendant": () => (found().length ? `palette-${Math.min(at(), found().length - 1)}` : null),
    placeholder: "Go to a view, a call or a server, or run a tool",
    autocomplete: "off",
    spellcheck: "false",
    oninput: (/** @type {any} */ { target }) => {
      query.set(target.value);
      at.set(0);
    },
    onkeydown,
  });
  const options = () => found().map((item, number) => ({ item, number }));
  const list = h(
    "ul",
    { id: "palette-list", role: "listbox", "aria-label": "Found" },
    each(
      options,
      ({ item, number }) => `${item.key} ${number}`,
      (one) => option(one, at, choose),
    ),
  );
  const none = h("p.faint", { shown: () => !found().length }, "Nothing here has this name.");
  const dialog = h(
    "dialog.palette",
    { "aria-label": "Go to or run" },
    h("div.search-field", icon("find", "s"), field),
    list,
    none,
  );
  const open = () => {
    if (dialog.open) return dialog.close();
    field.value = "";
    query.set("");
    at.set(0);
    offered.set([...viewItems(), ...liveCallItems(), ...actionItems(actions)]);
    dialog.showModal();
    field.focus();
    void fetchedItems().then((more) => dialog.open && offered.set([...offered.peek(), ...more]));
  };
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close()); // outside of its content
  registerKeys({ keys: "Ctrl K", words: "Go to or run", act: open });
  return { dialog, open };
}

/**
 * @param {{item: Item, number: number}} shown
 * @param {Signal<number>} at
 * @param {(item: Item) => void} choose
 */
function option({ item, number }, at, choose) {
  const about = {
    role: "option",
    id: `palette-${number}`,
    "aria-selected": () => String(at() === number),
    onpointermove: () => at.set(number),
    onclick: () => choose(item),
  };
  return h(
    "li",
    about,
    item.mark(),
    h("span.name.cut", safeText(item.name, 120)),
    h("span.faint.cut.grow", safeText(item.words, 160)),
    h("span.faint.group", item.group),
  );
}

/** @returns {Item[]} */
const viewItems = () =>
  VIEWS.filter(({ isShown }) => isShown?.() ?? true).map(({ view, title, icon: mark, key }) => ({
    key: `view ${view}`,
    group: "Go to",
    name: title,
    words: `g ${key}`,
    mark: () => icon(mark),
    act: () => navigate(`/${view}`),
  }));

/** Live calls and those that have just ended, the newest first. @returns {Item[]} */
function liveCallItems() {
  /** @type {Call[]} */ const calls = [];
  const add = (/** @type {Entry} */ { call, below }) => {
    if (calls.length < MAX_LIVE_CALLS) calls.push(call.peek());
    below.peek().forEach(add);
  };
  store.roots.peek().toReversed().forEach(add);
  return calls.map((call) => callItem("Calls", call, stateOf(call)));
}

/** @param {string} group @param {Pick<Call, "id" | "tool" | "server" | "message" | "caller">} call @param {CallState} state @param {string} [word] @returns {Item} */
const callItem = (group, { id, tool, server, caller }, state, word = STATE_WORDS[state]) => ({
  key: `call ${id}`,
  group,
  name: tool,
  words: joinNonEmpty(word, server, `by ${caller}`, id),
  mark: () => stateIcon(state, null),
  act: () => navigate(callPath(id)),
});

/** @param {{name: string, act: () => void}[]} actions @returns {Item[]} */
const actionItems = (actions) => [
  ...actions.map(({ name, act }) => ({ key: name, group: "Do", name, words: "", mark: () => icon("right"), act })),
  .../** @type {const} */ (["light", "dark", "system"]).map((theme) => ({
    key: `theme ${theme}`,
    group: "Do",
    name: `Theme: ${theme === "system" ? "as the system" : theme}`,
    words: "",
    mark: () => icon(theme),
    act: () => chooseTheme(theme),
  })),
];

/** Tools, servers, and calls of the history. @returns {Promise<Item[]>} */
async function fetchedItems() {
  const [[tools], [servers], [calls]] = await Promise.all([
    attempt(get("/api/tools")),
    attempt(get("/api/servers")),
    attempt(get(`/api/calls?state=finished&limit=${RECENT_CALLS}`)),
  ]);
  const known = new Set(liveCallItems().map(({ key }) => key));
  const past = /** @type {CallView[]} */ (calls?.calls ?? []).map((call) => {
    const state = call.outcome === "ok" ? "done" : call.outcome === "cancelled" ? "cancelled" : "failed";
    return callItem("Earlier calls", call, state, OUTCOME_WORDS[call.outcome ?? "lost"]);
  });
  return [
    ...(tools?.tools ?? []).map(toolItem),
    ...(servers?.servers ?? []).map(serverItem),
    ...past.filter(({ key }) => !known.has(key)),
  ];
}

/** @param {ToolView} tool @returns {Item} */
const toolItem = ({ name, server, title, description }) => ({
  key: `tool ${name}`,
  group: "Run",
  name,
  words: joinNonEmpty(server, (title || description || "").split("\n")[0]),
  mark: () => icon("play"),
  act: () => navigate(toolPath(name)),
});

/** @param {ServerView} server @returns {Item} */
const serverItem = ({ name, state }) => ({
  key: `server ${name}`,
  group: "Servers",
  name,
  words: state,
  mark: () => icon("server"),
  act: () => navigate(`/servers?server=${encodeURIComponent(name)}`),
});
