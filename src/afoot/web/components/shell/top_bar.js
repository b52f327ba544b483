// topBar: brand, views, palette, address, theme and keys. On a phone the views are a bar at the bottom.

import { session } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { route } from "../../lib/router.js";
import { computed } from "../../lib/signal.js";
import { store } from "../../lib/store.js";
import { VIEWS, viewOf } from "./views.js";
import { brandMark } from "../marks/brand_mark.js";
import { icon } from "../marks/icon.js";
import { addressButton } from "./address.js";
import { themeButton } from "./theme_switch.js";

/** What its buttons open. @typedef {{palette: () => void, keys: () => void, more: (anchor: HTMLElement) => void}} Opens */

const PHONE_VIEWS = 4; // beside "More"

const questionCount = computed(() => store.questions().length);
const isOver = (/** @type {string} */ id) => store.get(id)?.call().state === "finished";
const here = computed(() => {
  store.about(); // a snapshot brings the call
  return viewOf(route(), (id) => store.get(id) && !isOver(id));
});

/** @param {Opens} opens */
export function topBar({ palette, keys }) {
  const links = VIEWS.filter(({ isMain }) => isMain).map((one) => viewLink(one));
  const nav = h("nav", { "aria-label": "Views", shown: session }, ...links);
  const search = h(
    "button.quiet.boxed.go",
    { type: "button", "aria-keyshortcuts": "Control+K", onclick: palette },
    icon("find", "s"),
    h("span.go-words", "Go to or run…"),
    h("kbd", { "aria-hidden": "true" }, "Ctrl K"),
  );
  return [
    h("a.brand", { href: "/live", "aria-label": "afoot" }, brandMark(), h("span", "afoot")),
    nav,
    h(
      "div.right",
      { shown: session },
      search,
      addressButton(),
      themeButton(),
      h(
        "button.quiet.square.help",
        { type: "button", "aria-label": "Keys", "aria-keyshortcuts": "?", onclick: keys },
        "?",
      ),
    ),
  ];
}

/** The bar at the bottom of a phone. @param {Opens} opens */
export function bottomBar({ more }) {
  const links = VIEWS.slice(0, PHONE_VIEWS).map((one) => viewLink(one, true));
  const isElsewhere = () => !VIEWS.slice(0, PHONE_VIEWS).some(({ view }) => view === here());
  const onclick = (/** @type {MouseEvent} */ { currentTarget }) => more(/** @type {HTMLElement} */ (currentTarget));
  const about = { type: "button", "aria-haspopup": "dialog", "data-here": isElsewhere, onclick };
  return h(
    "nav.bottom",
    { "aria-label": "Main views", shown: session },
    ...links,
    h("button.quiet", about, icon("more"), "More"),
  );
}

/** @param {import("./views.js").ViewLink} link @param {boolean} [hasIcon] */
function viewLink({ view, title, icon: mark, isShown = () => true }, hasIcon = false) {
  const count = view === "inbox" && h("span.badge", { shown: questionCount }, questionCount, h("span.sr", " open"));
  const about = { href: `/${view}`, shown: isShown, "aria-current": () => here() === view && "page" };
  return h("a", about, hasIcon && icon(mark), title, count);
}
