// contentBlocks: MCP content as safe elements: text, JSON, images, audio, links and embedded resources. Nothing in it
// runs.

import { each, h } from "../lib/dom.js";
import { isContainer, isObject, isRedacted } from "../lib/text/exact_json.js";
import { onCleanup, signal } from "../lib/signal.js";
import { formatNumber, safeText } from "../lib/format.js";

const MAX_TEXT = 256 * 1024; // characters; a longer text is shown as a preview and a download
const PREVIEW_TEXT = 16 * 1024;
const MAX_MEDIA_BYTES = 16 * 1024 * 1024; // of an image or audio that is shown
const MAX_ROWS = 200; // of a table, or members of an object, that are shown
const IMAGE_TYPES = /^image\/(png|jpeg|gif|webp|avif|bmp)$/;

/** The content blocks of a result. @param {Json} blocks */
export function contentBlocks(blocks) {
  const block = (/** @type {Json} */ one) =>
    (Object.hasOwn(BLOCK_RENDERERS, one?.type) ? BLOCK_RENDERERS[one.type] : jsonTree)(one);
  return h("div.content", ...[blocks].flat().map(block));
}

/** @type {Record<string, (block: Json) => HTMLElement>} */
const BLOCK_RENDERERS = {
  text: ({ text }) => textBlock(text),
  image: ({ data, mimeType }) => media(data, mimeType),
  audio: ({ data, mimeType }) => media(data, mimeType),
  resource_link: ({ uri, title, name, description, mimeType }) =>
    h("p", externalLink(uri, title || name), ` ${safeText(mimeType)} ${safeText(description)}`),
  resource({ resource }) {
    const { uri, text, blob, mimeType } = resource ?? {};
    const inside = blob === undefined ? textBlock(text) : media(blob, mimeType);
    return h("figure", h("figcaption", externalLink(uri), ` ${safeText(mimeType)}`), inside);
  },
};

/**
 * JSON as a collapsible tree, with tables; shows at most `most` members, and everything open for Infinity.
 * @param {Json} value
 */
export function jsonTree(value, most = MAX_ROWS) {
  const text = JSON.stringify(value, null, 2) ?? "";
  return text.length > MAX_TEXT ? truncatedText(text, "value.json") : h("div.json", jsonNode(value, 0, most));
}

/** Preformatted text. @param {unknown} text */
export function textBlock(text) {
  const whole = String(text ?? "");
  return whole.length > MAX_TEXT ? truncatedText(whole, "text.txt") : h("pre", { tabindex: "0" }, whole);
}

/**
 * The beginning of a text, and a download of all of it.
 * @param {string} text
 * @param {string} name
 */
function truncatedText(text, name) {
  const size = `the first ${formatNumber(PREVIEW_TEXT)} of ${formatNumber(text.length)} characters · `;
  return h("div", h("pre", { tabindex: "0" }, text.slice(0, PREVIEW_TEXT)), h("p.soft", size, download([text], name)));
}

/**
 * A link to another site, with its full host; only a click follows it.
 * @param {Json} uri
 * @param {Json} [name]
 */
export function externalLink(uri, name) {
  const safe = parseSafeUrl(uri);
  const label = safeText(name, 300);
  if (!safe) return h("span", `${label} ${safeText(uri, 2000)}`);
  const text = label ? `${label} (${safe.host})` : safeText(safe.href, 2000);
  return h("a", { href: safe.href, target: "_blank", rel: "noopener noreferrer" }, text);
}

/**
 * A URL that may be a link: http or https.
 * @param {Json} uri
 * @returns {{href: string, host: string} | null}
 */
export function parseSafeUrl(uri) {
  const url = typeof uri === "string" ? URL.parse(uri) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) return null;
  return { href: url.href, host: url.host };
}

/**
 * The columns of an array of flat objects with equal keys; else null.
 * @param {Json} value
 * @returns {string[] | null}
 */
export function columnsOf(value) {
  if (!Array.isArray(value) || value.length < 2 || !value.every(isObject)) return null;
  const keys = Object.keys(value[0]);
  const isRow = (/** @type {Json} */ row) =>
    Object.keys(row).length === keys.length && keys.every((key) => key in row && !isContainer(row[key]));
  return keys.length && value.every(isRow) ? keys : null;
}

/** @param {string[]} keys @param {Json[]} rows @param {number} most */
function table(keys, rows, most) {
  const cell = (/** @type {Json} */ one) => h("td", typeof one === "string" ? one : JSON.stringify(one));
  const body = rows.slice(0, most).map((row) => h("tr", ...keys.map((key) => cell(row[key]))));
  const names = h("tr", ...keys.map((key) => h("th", { scope: "col" }, key)));
  const all = h("table.data", h("thead", names), h("tbody", ...body));
  return h(
    "div.data-scroll",
    { tabindex: "0", role: "region", "aria-label": "Table" },
    all,
    moreItems(rows.length, most, rows),
  );
}

/**
 * A value and its members; a collapsed part is created when it is opened.
 * @param {Json} value
 * @param {number} depth
 * @param {number} most
 * @param {string} [key]
 * @returns {HTMLElement}
 */
function jsonNode(value, depth, most, key) {
  const name = key !== undefined && h("b", `${key}: `);
  const keys = columnsOf(value);
  if (isRedacted(value)) return h("div", name, h("i.soft", "not shown: it is secret"));
  if (!isContainer(value) || !Object.keys(value).length) return h("div", name, jsonLeaf(value));
  if (keys) return h("div", name, table(keys, value, most));
  const entries = Object.entries(value);
  const shown = () => entries.slice(0, most).map(([key, one]) => h("li", jsonNode(one, depth + 1, most, key)));
  const members = () => h("ul", ...shown(), moreItems(entries.length, most, value));
  if (!depth) return h("div", members());
  const kind = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  return collapsible([name, kind], members, most === Infinity || depth < 3 || entries.length < 3);
}

/**
 * A part that is created when it is opened.
 * @param {Child[]} summary
 * @param {() => HTMLElement} make
 */
export function collapsible(summary, make, isOpen = false) {
  const open = signal(isOpen);
  const about = { open: isOpen, ontoggle: (/** @type {any} */ { target }) => open.set(target.open) };
  const inside = each(() => (open() ? ["it"] : []), String, make);
  return h("details", about, h("summary", ...summary), inside);
}

/** @param {number} count @param {number} most @param {Json} value */
function moreItems(count, most, value) {
  if (count <= most) return null;
  const all = download([JSON.stringify(value, null, 2)], "value.json");
  return h("p.soft", `… and ${formatNumber(count - most)} more · `, all);
}

/** @param {Json} value */
const jsonLeaf = (value) =>
  typeof value === "string" && value.includes("\n") ? h("pre", value) : h("code", JSON.stringify(value));

/** @param {BlobPart[]} parts @param {string} name */
const download = (parts, name) => downloadLink(parts, name, (size) => `Download (${formatNumber(size / 1024)} KB)`);

/**
 * A link that saves a file; with `look` in the look of a button.
 * @param {BlobPart[]} parts
 * @param {string} name
 * @param {Child | ((bytes: number) => string)} label
 * @param {string} [look] class names
 */
export function downloadLink(parts, name, label, look = "") {
  const blob = new Blob(parts); // without a type: opened in a tab, it is not shown as a page
  const text = typeof label === "function" ? label(blob.size) : label;
  return h("a", { href: blobUrl(blob), download: name, class: look ? `button ${look}` : null }, text);
}

/** An object URL for a blob, while the view lasts. @param {Blob} blob */
function blobUrl(blob) {
  const url = URL.createObjectURL(blob);
  onCleanup(() => URL.revokeObjectURL(url));
  return url;
}

/** An image, audio, or a download. @param {Json} data @param {Json} type */
function media(data, type) {
  const bytes = decodeBase64(data);
  if (!bytes) return h("p.problem", `${safeText(type)}: it is not base64`);
  const kind = bytes.length > MAX_MEDIA_BYTES ? "" : String(type);
  const alt = "an image that the tool returned";
  if (IMAGE_TYPES.test(kind)) return h("img", { src: blobUrl(new Blob([bytes], { type })), alt });
  return h("p", kind.startsWith("audio/") && audioPlayer(bytes), ` ${safeText(type)} `, download([bytes], "data.bin"));
}

/**
 * A button that plays audio: an <audio> element would need a wider Content-Security-Policy.
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
function audioPlayer(bytes) {
  const label = signal("Play");
  /** @type {AudioContext | null} */ let playing = null;
  const stop = () => {
    void playing?.close();
    playing = null;
    label.set("Play");
  };
  const play = async () => {
    const own = new AudioContext();
    playing = own;
    label.set("Stop");
    const buffer = await own.decodeAudioData(bytes.slice().buffer).catch(() => null);
    if (own !== playing) return; // stopped meanwhile
    if (!buffer) {
      stop();
      label.set("This browser cannot play it");
      return;
    }
    const source = new AudioBufferSourceNode(own, { buffer });
    source.onended = stop;
    source.connect(own.destination);
    source.start();
  };
  onCleanup(stop);
  return h("button", { type: "button", onclick: () => (playing ? stop() : play()) }, label);
}

/** @param {Json} data base64 @returns {Uint8Array<ArrayBuffer> | null} */
export function decodeBase64(data) {
  try {
    return Uint8Array.from(atob(String(data)), (char) => char.charCodeAt(0));
  } catch {
    return null;
  }
}
