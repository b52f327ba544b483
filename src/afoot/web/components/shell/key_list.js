// keyList: the dialog with all keys. Those that would act where the person is now are in ink, the others are pale.

import { h } from "../../lib/dom.js";
import { knownKeys, registerKeys } from "../../lib/keys.js";
import { session, logOut } from "../../lib/api.js";
import { actionButton } from "../controls.js";

/** All keys of the console, with those of views that are not shown now. @type {[group: string, keys: [keys: string, words: string][]][]} */
const GROUPS = [
  [
    "Lists",
    [
      ["j", "Next"],
      ["k", "Previous"],
      ["Enter", "Open"],
      ["Escape", "Back"],
      ["h", "Fold"],
      ["l", "Unfold"],
      ["/", "Search"],
    ],
  ],
  [
    "The selected call",
    [
      ["y", "Run"],
      ["n", "Reject or decline"],
      ["e", "Fill in"],
      ["x", "Cancel"],
      ["u", "Undo the cancel"],
      ["r", "Run again"],
      ["[", "Earlier run"],
      ["]", "Later run"],
    ],
  ],
];

/** The dialog, and the function that opens it. */
export function keyList() {
  const dialog = h("dialog.keys", { "aria-labelledby": "keys-title" });
  const isActive = (/** @type {string} */ keys) => () => knownKeys().some((one) => one.keys === keys && one.acts);
  const row = (/** @type {[string, string]} */ [keys, words]) =>
    h("div", { "data-acts": isActive(keys) }, h("dt", ...keys.split(" ").map(keyCap)), h("dd", words));
  const group = (/** @type {string} */ title, /** @type {[string, string][]} */ rows) =>
    h("section", h("h3", title), h("dl", ...rows.map(row)));
  const known = new Set(GROUPS.flatMap(([, rows]) => rows.map(([keys]) => keys)));
  const others = () => knownKeys().filter(({ keys }) => !known.has(keys));
  const out = actionButton("Sign out of this browser", logOut, { class: "quiet", shown: session });
  const content = () =>
    h(
      "div.columns",
      ...GROUPS.map(([title, rows]) => group(title, rows)),
      group(
        "Everywhere",
        others().map(({ keys, words }) => [keys, words]),
      ),
    );
  dialog.append(
    h("h2", { id: "keys-title" }, "Keys"),
    h("div", content),
    h("p.faint", "y and n answer the selected question only, half a second after it appeared."),
    h("form.buttons", { method: "dialog" }, out, h("span.grow"), h("button", { autofocus: true }, "Close")),
  );
  const open = () => !dialog.open && dialog.showModal();
  registerKeys({ keys: "?", words: "All keys", act: open });
  return { dialog, open };
}

/** @param {string} key */
const keyCap = (key) => h("kbd", { Escape: "Esc", Ctrl: "Ctrl" }[key] ?? key);
