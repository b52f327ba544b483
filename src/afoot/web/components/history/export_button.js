// exportButton: downloads the calls of a list, as the gateway exports them.

import { getBlob } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { actionButton } from "../controls.js";
import { icon } from "../marks/icon.js";

const NAME = "afoot-calls.ndjson";

/** @param {() => string} label @param {() => string} path */
export function exportButton(label, path) {
  const save = async () => saveBlob(await getBlob(path()), NAME);
  return actionButton(h("span.with-icon", icon("download", "s"), label), save, { class: "quiet boxed" });
}

/** Save a file as the browser saves a download. @param {Blob} blob @param {string} name */
function saveBlob(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  URL.revokeObjectURL(url);
}
