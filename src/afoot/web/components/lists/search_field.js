// searchField: a search whose text is in the address; the key / goes to it.

import { h } from "../../lib/dom.js";
import { navigate, route, withQuery } from "../../lib/router.js";
import { icon } from "../marks/icon.js";

/** @param {string} hint what is searched */
export function searchField(hint) {
  const oninput = (/** @type {any} */ { target }) => navigate(withQuery({ q: target.value }), { replace: true });
  const about = { type: "search", "aria-label": hint, placeholder: hint, "aria-keyshortcuts": "/" };
  const field = h("input", { ...about, ".value": () => route().query.q ?? "", oninput });
  return h("label.search-field", icon("find", "s"), field, h("kbd", { "aria-hidden": "true" }, "/"));
}
