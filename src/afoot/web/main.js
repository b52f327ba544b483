// The shell: navigation, heading and title, shortcuts, and whether we are connected.

import { enter, leave, loginProblem, session } from "./api.js";
import { h, put } from "./dom.js";
import { online, start } from "./feed.js";
import { bell, notify, speak } from "./notify.js";
import { follow, go, route } from "./router.js";
import { computed, effect, scope } from "./signal.js";
import { store } from "./store.js";
import { now, tick } from "./time.js";

/** @typedef {{title: string | ((route: Route) => string), view: (route: Route) => HTMLElement}} View */

const PLACES = { live: "l", inbox: "i", history: "h", tools: "t", servers: "s", tabs: "b" }; // and the keys to them
const OFFLINE = "Offline: the gateway cannot be reached. What you see may be old; this goes on by itself.";

const at = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const keys = /** @type {HTMLDialogElement} */ (at("keys"));
const waiting = computed(() => store.questions().length);
const here = computed(() => JSON.stringify([route().view, route().params, session() !== null]));
const nameOf = (/** @type {string} */ view) => view[0].toUpperCase() + view.slice(1);

function top() {
  const link = (/** @type {string} */ view) => {
    const isHere = () => view === route().view || (view === "tools" && route().view === "tool");
    const count = view === "inbox" && h("span.badge", { shown: waiting }, waiting, h("span.sr", " open"));
    return h("a", { href: `/${view}`, "aria-current": () => isHere() && "page" }, nameOf(view), count);
  };
  const nav = h("nav", { "aria-label": "Views" }, ...Object.keys(PLACES).map(link));
  put(
    at("top"),
    h("a.brand", { href: "/live" }, "afoot"),
    nav,
    h("span.line", { "data-off": () => !online() }, () => (online() ? "connected" : "offline")),
    bell(),
    h("button.quiet", { "aria-label": "Keyboard shortcuts", onclick: () => keys.showModal() }, "?"),
    h("p.banner", { shown: banner }, banner),
  );
  const show = () => {
    const [row, own] = [nav, nav.querySelector("[aria-current]") ?? nav].map((one) => one.getBoundingClientRect());
    nav.scrollLeft += Math.min(0, own.left - row.left) || Math.max(0, own.right - row.right);
  };
  effect(() => (route(), waiting(), show())); // what is counted makes the row longer
  addEventListener("resize", show);
}

function banner() {
  if (session() && !online()) return OFFLINE;
  const { degraded } = store.about();
  return degraded && `The history cannot be written: ${degraded}`;
}

/** The view of this address, under its heading; focus goes to the heading, but for the first time. */
function showViews() {
  let [isFirst, end, turn, shown] = [true, () => {}, 0, ""];
  effect(() => {
    if (here() === shown) return; // another query is the same view
    shown = here();
    const [wanted, mine] = [route.peek(), ++turn];
    void load(session.peek() ? wanted.view : "outside").then((found) => {
      if (mine !== turn) return; // somebody went on meanwhile
      end();
      end = scope(() => show(found, wanted))[1];
      if (!isFirst) toTop();
      isFirst = false;
    });
  });
}

const toTop = () => (at("heading").focus(), scrollTo(0, 0));

/** @param {View} found @param {Route} wanted */
function show({ title, view }, wanted) {
  const text = () => (typeof title === "function" ? title(route()) : title);
  put(at("main"), h("h1", { id: "heading", tabindex: "-1" }, text), view(wanted));
  let page = wanted.query.before;
  effect(() => {
    if (route().query.before !== page && !document.activeElement?.closest("form")) toTop(); // a list's other page
    page = route().query.before;
  });
  effect(() => void (document.title = `${waiting() ? `(${waiting()}) ` : ""}${text()} · afoot`));
}

/** @param {string} name @returns {Promise<View>} */
async function load(name) {
  if (name === "outside") return { title: "Sign in", view: outside };
  if (name === "lost")
    return hint("Nothing here", "No view has this address. ", h("a", { href: "/live" }, "See what is live"));
  return import(`./views/${name}.js`).catch(() =>
    hint("Not loaded", "The gateway did not send this view. Load the page again when it is back."),
  );
}

/** A view that only says something. @param {string} title @param {...Child} words */
const hint = (title, ...words) => ({ title, view: () => h("p.empty", ...words) });

const outside = () =>
  h(
    "div.empty",
    h("p.problem", { shown: loginProblem }, loginProblem),
    h("p", "This console opens with a link that works once. In a terminal, run"),
    h("pre", "afoot console"),
    h("p", "and open the link that it prints."),
  );

/** Single keys lead to views, unless somebody writes. */
function listenToKeys() {
  const row = (/** @type {string} */ key, /** @type {string} */ what) =>
    h("div", h("dt", h("kbd", key)), h("dd", what));
  const rows = Object.entries(PLACES).map(([view, key]) => row(key, `Go to ${nameOf(view)}`));
  const list = h("dl", ...rows, row("/", "Search, where there is a list"), row("?", "Show this list"));
  const out = h("button.quiet", { shown: session, onclick: leave }, "Sign out of this browser");
  put(keys, h("h2", "Keyboard shortcuts"), list, h("form.row", { method: "dialog" }, h("button", "Close"), out));
  addEventListener("keydown", (event) => {
    const { target, key } = event;
    const isWriting = target instanceof Element && target.closest("input, textarea, select, [contenteditable]");
    if (isWriting || event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
    const [place] = Object.entries(PLACES).find(([, one]) => one === key) ?? [];
    /** @type {HTMLElement | null} */ const search = at("main").querySelector("input[type=search]");
    if (key === "?") keys.showModal();
    else if (key === "/" && search) search.focus();
    else if (place) go(`/${place}`);
    else return;
    event.preventDefault();
  });
}

follow();
top();
listenToKeys();
speak(at("say"));
notify();
tick();
effect(() => (now(), store.forget()));
addEventListener("visibilitychange", () => store.draw());
await enter();
showViews();
start((event, data) => store.take(event, data));
