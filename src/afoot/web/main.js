// The shell of the console: bars, palette, keys, heading and title, and the view of the current address.

import { session, startSession } from "./lib/api.js";
import { h, replaceContent } from "./lib/dom.js";
import { online, startFeed } from "./lib/event_feed.js";
import { registerKeys, startKeys } from "./lib/keys.js";
import { navigate, route, startRouter } from "./lib/router.js";
import { computed, effect, scope } from "./lib/signal.js";
import { store } from "./lib/store.js";
import { startTheme } from "./components/shell/theme.js";
import { now, startClock, tick } from "./lib/time.js";
import { VIEWS } from "./components/shell/views.js";
import { noticePlace } from "./components/shell/notice.js";
import { announceEvents, notifyQuestions } from "./components/shell/notifications.js";
import { keyList } from "./components/shell/key_list.js";
import { loginView } from "./components/shell/login.js";
import { moreViews } from "./components/shell/more.js";
import { offlineLine } from "./components/shell/offline.js";
import { palette } from "./components/shell/palette.js";
import { bottomBar, topBar } from "./components/shell/top_bar.js";

/** `isWide`: the view fills the window, and its heading is for screen readers alone. */
/** @typedef {{title: string | ((route: Route) => string), view: (route: Route) => HTMLElement, isWide?: boolean}} View */

const byId = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const questionCount = computed(() => store.questions().length);
const viewKey = computed(() => JSON.stringify([route().view, route().params, session() !== null]));
let visits = 0; // views shown since the page was loaded

function startBars() {
  const keys = keyList();
  const search = palette([{ name: "All keys", act: keys.open }]);
  const opens = { palette: search.open, keys: keys.open, more: moreViews(keys.open) };
  replaceContent(byId("top"), ...topBar(opens), offlineLine(document.documentElement));
  replaceContent(byId("bottom"), bottomBar(opens));
  document.body.append(keys.dialog, search.dialog, noticePlace());
}

/** Show the view of the current route under its heading. The heading gets focus, except on the first load. */
function startViews() {
  let endView = () => {};
  let loads = 0;
  let shownKey = "";
  effect(() => {
    if (viewKey() === shownKey) return; // a change of the query alone keeps the view
    shownKey = viewKey();
    const wanted = route.peek();
    loads += 1;
    const thisLoad = loads;
    void loadView(session.peek() ? wanted.view : "outside").then((found) => {
      if (thisLoad !== loads) return; // the route has changed meanwhile
      endView();
      endView = scope(() => renderView(found, wanted))[1];
      visits += 1;
      if (visits > 1) focusHeading();
    });
  });
}

function focusHeading() {
  byId("heading").focus();
  scrollTo(0, 0);
}

/** @param {View} found @param {Route} wanted */
function renderView({ title, view, isWide = false }, wanted) {
  const text = () => (typeof title === "function" ? title(route()) : title);
  const main = byId("main");
  main.dataset.view = wanted.view;
  main.toggleAttribute("data-wide", isWide);
  replaceContent(main, h("h1", { id: "heading", tabindex: "-1", class: isWide ? "sr" : null }, text), view(wanted));
  let page = wanted.query.before;
  effect(() => {
    if (route().query.before !== page && !document.activeElement?.closest("form")) focusHeading(); // another page of a list
    page = route().query.before;
  });
  effect(() => void (document.title = `${questionCount() ? `(${questionCount()}) ` : ""}${text()} · afoot`));
}

/** @param {string} name @returns {Promise<View>} */
async function loadView(name) {
  if (name === "outside") return { title: "Sign in", view: loginView };
  if (name === "lost")
    return messageView("Nothing here", "No view has this address. ", h("a", { href: "/live" }, "See what is live"));
  return import(`./views/${name}.js`).catch(() =>
    messageView("Not loaded", "The gateway did not send this view. Load the page again when it is back."),
  );
}

/** A view with nothing but a message. @param {string} title @param {...Child} words */
const messageView = (title, ...words) => ({ title, view: () => h("p.empty", ...words) });

/** The keys that act in every view. Views register theirs while they are shown. */
function startGlobalKeys() {
  const isInside = () => session() !== null;
  /** @returns {HTMLElement | null} */
  const searchField = () => byId("main").querySelector("input[type=search]");
  const parent = () => ({ call: "/live", tool: "/tools" })[route().view] ?? "";
  registerKeys(
    ...VIEWS.map(({ view, title, key, isShown = () => true }) => ({
      keys: `g ${key}`,
      words: title,
      when: () => isInside() && isShown(),
      act: () => navigate(`/${view}`),
    })),
    { keys: "/", words: "Search", when: () => route() && searchField(), act: () => searchField()?.focus() },
    { keys: "Escape", words: "Back", when: parent, act: () => (visits > 1 ? history.back() : navigate(parent())) },
  );
  startKeys();
}

startTheme(document.documentElement);
startRouter();
startBars();
startGlobalKeys();
announceEvents(byId("say"));
notifyQuestions();
startClock(() => online.peek());
effect(() => {
  now();
  store.prune();
});
effect(() => {
  tick();
  store.moveClocks();
});
addEventListener("visibilitychange", () => store.draw());
await startSession();
startViews();
startFeed((event, data) => store.receive(event, data));
