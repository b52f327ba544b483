// Any content as safe nodes: text, structures, images, sound, links and embedded resources; nothing in it runs.

import { each, h } from "./dom.js";
import { isDeep, isObject, isRedacted } from "./exact.js";
import { ending, signal } from "./signal.js";
import { amount, visible } from "./text.js";

const LONG = 256 * 1024; // characters that are shown; of more there is a head, and a download
const HEAD = 16 * 1024;
const HEAVY = 16 * 1024 * 1024; // bytes of an image or a sound that is shown
const MANY = 200; // rows of a table, or members of a structure, that are shown
const IMAGES = /^image\/(png|jpeg|gif|webp|avif|bmp)$/;

/** The content of a result. @param {Json} blocks */
export function content(blocks) {
  const block = (/** @type {Json} */ one) => (Object.hasOwn(KINDS, one?.type) ? KINDS[one.type] : structure)(one);
  return h("div.content", ...[blocks].flat().map(block));
}

/** @type {Record<string, (block: Json) => HTMLElement>} */
const KINDS = {
  text: ({ text }) => plain(text),
  image: ({ data, mimeType }) => media(data, mimeType),
  audio: ({ data, mimeType }) => media(data, mimeType),
  resource_link: ({ uri, title, name, description, mimeType }) =>
    h("p", link(uri, title || name), ` ${visible(mimeType)} ${visible(description)}`),
  resource({ resource }) {
    const { uri, text, blob, mimeType } = resource ?? {};
    const inside = blob === undefined ? plain(text) : media(blob, mimeType);
    return h("figure", h("figcaption", link(uri), ` ${visible(mimeType)}`), inside);
  },
};

/** A structure as JSON that can be folded, with tables; `most`: members shown, Infinity unfolds it all. @param {Json} value */
export function structure(value, most = MANY) {
  const text = JSON.stringify(value, null, 2) ?? "";
  return text.length > LONG ? head(text, "value.json") : h("div.json", tree(value, 0, most));
}

/** Text as it is. @param {unknown} text */
export function plain(text) {
  const whole = String(text ?? "");
  return whole.length > LONG ? head(whole, "text.txt") : h("pre", { tabindex: "0" }, whole);
}

/** A head, and the whole as a download. @param {string} text @param {string} name */
function head(text, name) {
  const size = `the first ${amount(HEAD)} of ${amount(text.length)} characters · `;
  return h("div", h("pre", { tabindex: "0" }, text.slice(0, HEAD)), h("p.soft", size, download([text], name)));
}

/** A link that only a person follows; its host in full. @param {Json} uri @param {Json} [name] */
export function link(uri, name) {
  const [safe, label] = [safeLink(uri), visible(name, 300)];
  if (!safe) return h("span", `${label} ${visible(uri, 2000)}`);
  const text = label ? `${label} (${safe.host})` : visible(safe.href, 2000);
  return h("a", { href: safe.href, target: "_blank", rel: "noopener noreferrer" }, text);
}

/** An address that may be a link: http and https. @param {Json} uri @returns {{href: string, host: string} | null} */
export function safeLink(uri) {
  const url = typeof uri === "string" ? URL.parse(uri) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) return null;
  return { href: url.href, host: url.host };
}

/** The columns of an array of flat objects with equal keys; else null. @param {Json} value @returns {string[] | null} */
export function columnsOf(value) {
  if (!Array.isArray(value) || value.length < 2 || !value.every(isObject)) return null;
  const keys = Object.keys(value[0]);
  const isRow = (/** @type {Json} */ row) =>
    Object.keys(row).length === keys.length && keys.every((key) => key in row && !isDeep(row[key]));
  return keys.length && value.every(isRow) ? keys : null;
}

/** @param {string[]} keys @param {Json[]} rows @param {number} most */
function table(keys, rows, most) {
  const cell = (/** @type {Json} */ one) => h("td", typeof one === "string" ? one : JSON.stringify(one));
  const body = rows.slice(0, most).map((row) => h("tr", ...keys.map((key) => cell(row[key]))));
  const names = h("tr", ...keys.map((key) => h("th", { scope: "col" }, key)));
  const all = h("table", h("thead", names), h("tbody", ...body));
  return h("div.table", { tabindex: "0" }, all, rest(rows.length, most, rows));
}

/** One value and what is in it; what is folded is made when it is opened. @param {Json} value @param {number} depth @param {number} most @param {string} [key] @returns {HTMLElement} */
function tree(value, depth, most, key) {
  const name = key !== undefined && h("b", `${key}: `);
  const keys = columnsOf(value);
  if (isRedacted(value)) return h("div", name, h("i.soft", "not shown: it is secret"));
  if (!isDeep(value) || !Object.keys(value).length) return h("div", name, leaf(value));
  if (keys) return h("div", name, table(keys, value, most));
  const entries = Object.entries(value);
  const shown = () => entries.slice(0, most).map(([key, one]) => h("li", tree(one, depth + 1, most, key)));
  const members = () => h("ul", ...shown(), rest(entries.length, most, value));
  if (!depth) return h("div", members());
  const kind = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  return folded([name, kind], members, most === Infinity || depth < 3 || entries.length < 3);
}

/** What is made when it is opened. @param {Child[]} summary @param {() => HTMLElement} make */
export function folded(summary, make, isOpen = false) {
  const open = signal(isOpen);
  const about = { open: isOpen, ontoggle: (/** @type {any} */ { target }) => open.set(target.open) };
  const inside = each(() => (open() ? ["it"] : []), String, make);
  return h("details", about, h("summary", ...summary), inside);
}

/** @param {number} count @param {number} most @param {Json} value */
function rest(count, most, value) {
  if (count <= most) return null;
  const all = download([JSON.stringify(value, null, 2)], "value.json");
  return h("p.soft", `… and ${amount(count - most)} more · `, all);
}

/** @param {Json} value */
const leaf = (value) =>
  typeof value === "string" && value.includes("\n") ? h("pre", value) : h("code", JSON.stringify(value));

/** @param {BlobPart[]} parts @param {string} name */
function download(parts, name) {
  const blob = new Blob(parts); // of no type: whoever opens it instead sees no page
  return h("a", { href: urlOf(blob), download: name }, `Download (${amount(blob.size / 1024)} KB)`);
}

/** An address for a blob, while the view lasts. @param {Blob} blob */
function urlOf(blob) {
  const url = URL.createObjectURL(blob);
  ending(() => URL.revokeObjectURL(url));
  return url;
}

/** A picture, a sound, or what can only be taken along. @param {Json} data @param {Json} type */
function media(data, type) {
  const bytes = bytesOf(data);
  if (!bytes) return h("p.problem", `${visible(type)}: it is not base64`);
  const kind = bytes.length > HEAVY ? "" : String(type);
  const alt = "an image that the tool returned";
  if (IMAGES.test(kind)) return h("img", { src: urlOf(new Blob([bytes], { type })), alt });
  return h("p", kind.startsWith("audio/") && player(bytes), ` ${visible(type)} `, download([bytes], "data.bin"));
}

/** Sound that is played by a button: an element for it would need a wider policy. @param {Uint8Array<ArrayBuffer>} bytes */
function player(bytes) {
  const label = signal("Play");
  /** @type {AudioContext | null} */ let playing = null;
  const stop = () => (void playing?.close(), (playing = null), label.set("Play"));
  const play = async () => {
    const own = (playing = new AudioContext());
    label.set("Stop");
    const buffer = await own.decodeAudioData(bytes.slice().buffer).catch(() => null);
    if (own !== playing) return; // it was stopped meanwhile
    if (!buffer) return (stop(), label.set("This browser cannot play it"));
    const source = new AudioBufferSourceNode(own, { buffer });
    source.onended = stop;
    source.connect(own.destination);
    source.start();
  };
  ending(stop);
  return h("button", { type: "button", onclick: () => (playing ? stop() : play()) }, label);
}

/** @param {Json} data base64 @returns {Uint8Array<ArrayBuffer> | null} */
export function bytesOf(data) {
  try {
    return Uint8Array.from(atob(String(data)), (char) => char.charCodeAt(0));
  } catch {
    return null;
  }
}
