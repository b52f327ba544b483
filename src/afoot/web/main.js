// The shell of the console: navigation, heading and title, keyboard shortcuts, and the state of the connection.

import { startSession, logOut, loginProblem, session } from "./lib/api.js";
import { h, replaceContent } from "./lib/dom.js";
import { online, startFeed } from "./lib/event_feed.js";
import { permissionButton, notifyQuestions, announceEvents } from "./components/notifications.js";
import { startRouter, navigate, route } from "./lib/router.js";
import { computed, effect, scope } from "./lib/signal.js";
import { store } from "./lib/store.js";
import { now, startClock } from "./lib/time.js";

/** @typedef {{title: string | ((route: Route) => string), view: (route: Route) => HTMLElement}} View */

const VIEW_KEYS = { live: "l", inbox: "i", history: "h", tools: "t", servers: "s", tabs: "b" }; // each view, and its shortcut key
const OFFLINE = "Offline: the gateway cannot be reached. What you see may be old; this goes on by itself.";

const byId = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const shortcutDialog = /** @type {HTMLDialogElement} */ (byId("keys"));
const questionCount = computed(() => store.questions().length);
const viewKey = computed(() => JSON.stringify([route().view, route().params, session() !== null]));
const viewTitle = (/** @type {string} */ view) => view[0].toUpperCase() + view.slice(1);

function renderHeader() {
  const link = (/** @type {string} */ view) => {
    const isHere = () => view === route().view || (view === "tools" && route().view === "tool");
    const count = view === "inbox" && h("span.badge", { shown: questionCount }, questionCount, h("span.sr", " open"));
    return h("a", { href: `/${view}`, "aria-current": () => isHere() && "page" }, viewTitle(view), count);
  };
  const nav = h("nav", { "aria-label": "Views" }, ...Object.keys(VIEW_KEYS).map(link));
  replaceContent(
    byId("top"),
    h("a.brand", { href: "/live" }, "afoot"),
    nav,
    h("span.line", { "data-off": () => !online() }, () => (online() ? "connected" : "offline")),
    permissionButton(),
    h("button.quiet", { "aria-label": "Keyboard shortcuts", onclick: () => shortcutDialog.showModal() }, "?"),
    h("p.banner", { shown: banner }, banner),
  );
  const scrollToCurrentLink = () => {
    const [row, own] = [nav, nav.querySelector("[aria-current]") ?? nav].map((one) => one.getBoundingClientRect());
    nav.scrollLeft += Math.min(0, own.left - row.left) || Math.max(0, own.right - row.right);
  };
  effect(() => {
    route();
    questionCount(); // the badge makes the row longer
    scrollToCurrentLink();
  });
  addEventListener("resize", scrollToCurrentLink);
}

function banner() {
  if (session() && !online()) return OFFLINE;
  const { degraded } = store.about();
  return degraded && `The history cannot be written: ${degraded}`;
}

/** Show the view of the current route under its heading. The heading gets focus, except on the first load. */
function startViews() {
  let isFirst = true;
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
      if (!isFirst) focusHeading();
      isFirst = false;
    });
  });
}

function focusHeading() {
  byId("heading").focus();
  scrollTo(0, 0);
}

/** @param {View} found @param {Route} wanted */
function renderView({ title, view }, wanted) {
  const text = () => (typeof title === "function" ? title(route()) : title);
  replaceContent(byId("main"), h("h1", { id: "heading", tabindex: "-1" }, text), view(wanted));
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

const loginView = () =>
  h(
    "div.empty",
    h("p.problem", { shown: loginProblem }, loginProblem),
    h("p", "This console opens with a link that works once. In a terminal, run"),
    h("pre", "afoot console"),
    h("p", "and open the link that it prints."),
  );

/** Single keys open views, except while the person types. */
function startShortcuts() {
  const row = (/** @type {string} */ key, /** @type {string} */ what) =>
    h("div", h("dt", h("kbd", key)), h("dd", what));
  const rows = Object.entries(VIEW_KEYS).map(([view, key]) => row(key, `Go to ${viewTitle(view)}`));
  const list = h("dl", ...rows, row("/", "Search, where there is a list"), row("?", "Show this list"));
  const out = h("button.quiet", { shown: session, onclick: logOut }, "Sign out of this browser");
  replaceContent(
    shortcutDialog,
    h("h2", "Keyboard shortcuts"),
    list,
    h("form.row", { method: "dialog" }, h("button", "Close"), out),
  );
  addEventListener("keydown", (event) => {
    const { target, key } = event;
    const isWriting = target instanceof Element && target.closest("input, textarea, select, [contenteditable]");
    if (isWriting || event.ctrlKey || event.metaKey || event.altKey || shortcutDialog.open) return;
    const [place] = Object.entries(VIEW_KEYS).find(([, one]) => one === key) ?? [];
    /** @type {HTMLElement | null} */ const search = byId("main").querySelector("input[type=search]");
    if (key === "?") shortcutDialog.showModal();
    else if (key === "/" && search) search.focus();
    else if (place) navigate(`/${place}`);
    else return;
    event.preventDefault();
  });
}

startRouter();
renderHeader();
startShortcuts();
announceEvents(byId("say"));
notifyQuestions();
startClock(() => online.peek());
effect(() => {
  now();
  store.prune();
});
addEventListener("visibilitychange", () => store.draw());
await startSession();
startViews();
startFeed((event, data) => store.receive(event, data));
