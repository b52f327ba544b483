// The shell: navigation, heading and title, what is said aloud, shortcuts, and whether we are connected.

import { enter, leave, loginProblem, session } from "./api.js";
import { h, put } from "./dom.js";
import { online, start } from "./feed.js";
import { bell, notify } from "./notify.js";
import { visible } from "./parts.js";
import { follow, go, route } from "./router.js";
import { computed, effect, scope } from "./signal.js";
import { store } from "./store.js";
import { after, exactly, now, tick } from "./time.js";

/** @typedef {import("./router.js").Route} Route */
/** @typedef {{title: string | ((route: Route) => string), view: (route: Route) => HTMLElement}} View */

/** @type {Record<string, () => Promise<View>>} */
const VIEWS = {
  live: () => import("./views/live.js"),
  call: () => import("./views/call.js"),
  history: () => import("./views/history.js"),
  inbox: () => import("./views/inbox.js"),
  tools: () => import("./views/tools.js"),
  tool: () => import("./views/tool.js"),
  servers: () => import("./views/servers.js"),
  tabs: () => import("./views/tabs.js"),
};
const PLACES = [
  ["live", "Live", "l"],
  ["inbox", "Inbox", "i"],
  ["history", "History", "h"],
  ["tools", "Tools", "t"],
  ["servers", "Servers", "s"],
  ["tabs", "Tabs", "b"],
];
const PAUSE_S = 5; // between two things that are said aloud

const at = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const waiting = computed(() => store.questions().length);
const here = computed(() => {
  const { view, params } = route();
  return JSON.stringify([view, params, session() !== null]);
});
const keys = /** @type {HTMLDialogElement} */ (at("keys"));

function top() {
  const link = (/** @type {string[]} */ [view, name]) => {
    const isHere = () => view === route().view || (view === "tools" && route().view === "tool");
    const badge = () =>
      view === "inbox" && waiting()
        ? h("span", { class: "badge" }, String(waiting()), h("span", { class: "sr" }, " open"))
        : null;
    const node = h("a", { href: `/${view}`, "aria-current": () => (isHere() ? "page" : null) }, name, badge);
    effect(() => void (isHere() && node.scrollIntoView({ inline: "nearest", block: "nearest" })));
    return node;
  };
  put(
    at("top"),
    h("a", { class: "brand", href: "/live" }, "afoot"),
    h("nav", { "aria-label": "Views" }, ...PLACES.map(link)),
    h("span", { class: "line", "data-off": () => !online() }, () => (online() ? "connected" : "offline")),
    bell(),
    h("button", { class: "quiet", "aria-label": "Keyboard shortcuts", onclick: () => keys.showModal() }, "?"),
    h("p", { class: "banner", hidden: () => !banner() }, banner),
  );
}

function banner() {
  if (session() && !online())
    return "Offline: the gateway cannot be reached. What you see may be old; this goes on by itself.";
  const { degraded } = store.about();
  return degraded ? `The history cannot be written: ${visible(degraded)}` : "";
}

/** The view of this address, under its heading; focus goes to the heading, but for the first time. */
function showViews() {
  let [isFirst, end, turn, shown] = [true, () => {}, 0, ""];
  effect(() => {
    if (here() === shown) return; // another query is the same view
    shown = here();
    const wanted = route.peek();
    const mine = ++turn;
    const load = session() ? VIEWS[wanted.view] : null;
    const found = load ? load().catch(() => BROKEN) : Promise.resolve(session() ? LOST : OUTSIDE);
    void found.then(({ title, view }) => {
      if (mine !== turn) return; // somebody went on meanwhile
      end();
      const heading = h("h1", { id: "heading", tabindex: "-1" });
      end = scope(() => {
        const text = () => (typeof title === "function" ? title(route()) : title);
        effect(() => put(heading, text()));
        effect(() => void (document.title = `${waiting() ? `(${waiting()}) ` : ""}${text()} · afoot`));
        put(at("main"), heading, view(wanted));
      })[1];
      if (!isFirst) (heading.focus(), scrollTo(0, 0));
      isFirst = false;
    });
  });
}

/** @type {View} */
const LOST = {
  title: "Nothing here",
  view: () =>
    h("p", { class: "empty" }, "No view has this address. ", h("a", { href: "/live" }, "See what is live")),
};

/** @type {View} */
const BROKEN = {
  title: "Not loaded",
  view: () =>
    h("p", { class: "empty" }, "The gateway did not send this view. Load the page again when it is back."),
};

/** @type {View} */
const OUTSIDE = {
  title: "Sign in",
  view: () =>
    h(
      "div",
      { class: "empty" },
      h("p", { class: "problem", hidden: () => !loginProblem() }, loginProblem),
      h("p", null, "This console opens with a link that works once. In a terminal, run"),
      h("pre", null, "afoot console"),
      h("p", null, "and open the link that it prints."),
    ),
};

/** Say what matters, politely and not too often: a person who listens is at work on something else. */
function speak() {
  /** @type {Set<string>} */ const opened = new Set();
  /** @type {string[]} */ let said = [];
  let last = 0;
  effect(() => void (route().view === "call" && opened.add(route().params.id ?? "")));
  const next = () => {
    at("say").textContent = said.length > 1 ? `${said.at(-1)}, and ${said.length - 1} more` : (said[0] ?? "");
    [said, last] = [[], exactly()];
  };
  store.listen((kind, { call }) => {
    const { id, tool, outcome } = call.peek();
    if (kind === "finished" && !opened.has(id)) return;
    said.push(
      `${visible(tool, 80)} ${kind === "asked" ? "waits for you" : outcome === "ok" ? "finished" : "failed"}`,
    );
    if (said.length === 1) after(Math.max(0, last + PAUSE_S - exactly()) * 1000, next);
  });
}

/** Single keys lead to views, unless somebody writes. */
function listenToKeys() {
  const rows = [
    ...PLACES.map(([, name, key]) => [key, `Go to ${name}`]),
    ["/", "Search, where there is a list"],
    ["?", "Show this list"],
  ];
  const list = rows.map(([key, what]) =>
    h("div", null, h("dt", null, h("kbd", null, key)), h("dd", null, what)),
  );
  const out = h(
    "button",
    { class: "quiet", hidden: () => !session(), onclick: leave },
    "Sign out of this browser",
  );
  const close = h("form", { method: "dialog", class: "row" }, h("button", null, "Close"), out);
  put(keys, h("h2", null, "Keyboard shortcuts"), h("dl", null, ...list), close);
  addEventListener("keydown", (event) => {
    const { target, key } = event;
    const isWriting =
      target instanceof Element && target.closest("input, textarea, select, [contenteditable]");
    if (isWriting || event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
    const place = PLACES.find((one) => one[2] === key);
    /** @type {HTMLElement | null} */ const search = at("main").querySelector("input[type=search]");
    if (key === "?") keys.showModal();
    else if (key === "/" && search) search.focus();
    else if (place) go(`/${place[0]}`);
    else return;
    event.preventDefault();
  });
}

follow();
top();
listenToKeys();
speak();
notify();
tick();
effect(() => (now(), store.forget()));
addEventListener("visibilitychange", () => store.draw());
await enter();
showViews();
start((event, data) => store.take(event, data));
