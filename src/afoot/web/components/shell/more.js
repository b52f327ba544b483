// moreViews: what the bar at the bottom of a phone has no room for: the other views, the address, the keys, signing out.

import { logOut } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { VIEWS } from "./views.js";
import { actionButton, copyButton } from "../controls.js";
import { floatingPanel } from "../floating_panel.js";
import { icon } from "../marks/icon.js";
import { mcpAddress } from "./address.js";

const IN_THE_BAR = 4;

/** A function that opens the list at an element. @param {() => void} openKeys */
export function moreViews(openKeys) {
  return floatingPanel("More", (close) => {
    const link = (/** @type {import("./views.js").ViewLink} */ { view, title, icon: mark, isShown }) =>
      h("li", { shown: isShown ?? true }, h("a", { href: `/${view}`, onclick: close }, icon(mark), title));
    const keys = () => {
      close();
      openKeys();
    };
    return h(
      "div.more",
      h("ul", ...VIEWS.slice(IN_THE_BAR).map(link)),
      h("div.copy-line", h("code", mcpAddress()), copyButton(mcpAddress(), { class: "small" })),
      h("div.buttons", h("button.quiet", { type: "button", onclick: keys }, "Keys"), actionButton("Sign out", logOut)),
    );
  });
}
