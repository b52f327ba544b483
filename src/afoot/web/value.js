// Any content as safe nodes: text, structures, images, sound, links and embedded resources; nothing in it runs.

import { h } from "./dom.js";
import { isRaw } from "./exact.js";
import { amount, visible } from "./parts.js";
import { ending, signal } from "./signal.js";

export const LONG = 256 * 1024; // characters that are shown; of more there is a head, and a download
const HEAD = 16 * 1024;
const HEAVY = 16 * 1024 * 1024; // bytes of an image or a sound that is shown
const MANY = 200; // rows of a table, or members of a structure, that are shown
const IMAGES = /^image\/(png|jpeg|gif|webp|avif|bmp)$/;

/** The content of a result. @param {any} blocks @returns {HTMLElement} */
export function content(blocks) {
  const list = Array.isArray(blocks) ? blocks : [blocks];
  return h("div", { class: "content" }, ...list.map((one) => (KINDS[one?.type] ?? structure)(one)));
}

/** A structure as JSON that can be folded, with tables; `most`: members shown, Infinity unfolds it all. @param {any} value @param {number} [most] @returns {HTMLElement} */
export function structure(value, most = MANY) {
  const text = JSON.stringify(value, null, 2) ?? "";
  if (text.length > LONG) return long(text, "application/json", "value.json");
  return h("div", { class: "json" }, tree(value, 0, most));
}

/** Text as it is, with marks for what cannot be seen. @param {any} text @returns {HTMLElement} */
export function plain(text) {
  const whole = String(text ?? "");
  if (whole.length > LONG) return long(whole, "text/plain", "text.txt");
  return h("pre", { class: "said", tabindex: "0" }, visible(whole, LONG));
}

/** @type {Record<string, (block: any) => HTMLElement>} */
const KINDS = {
  text: ({ text }) => plain(text),
  image: ({ data, mimeType }) => picture(data, mimeType),
  audio: ({ data, mimeType }) => sound(data, mimeType),
  resource_link: ({ uri, title, name, description, mimeType }) =>
    h("p", { class: "link" }, link(uri, title || name), ` ${visible(mimeType)} ${visible(description)}`),
  resource: ({ resource = {} }) =>
    h("figure", null, h("figcaption", null, link(resource.uri, "")), embedded(resource)),
};

/** @param {any} resource */
function embedded({ text, blob, mimeType }) {
  if (blob === undefined) return plain(text);
  if (String(mimeType).startsWith("audio/")) return sound(blob, mimeType);
  return picture(blob, mimeType);
}

/** A link that only a person follows; its host in full. @param {any} uri @param {any} name @returns {HTMLElement} */
export function link(uri, name) {
  const safe = safeLink(uri);
  const label = visible(name, 300);
  if (!safe) return h("span", { class: "said" }, `${label} ${visible(uri, 2000)}`);
  const text = label ? `${label} (${safe.host})` : visible(safe.href, 2000);
  return h("a", { href: safe.href, target: "_blank", rel: "noopener noreferrer" }, text);
}

/** An address that may be a link: http and https. @param {any} uri @returns {{href: string, host: string} | null} */
export function safeLink(uri) {
  const url = typeof uri === "string" ? URL.parse(uri) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) return null;
  return { href: url.href, host: url.host };
}

/** Rows and columns of an array of flat objects with equal keys. @param {any} value @returns {{keys: string[], rows: any[]} | null} */
export function tableOf(value) {
  if (!Array.isArray(value) || value.length < 2 || !value.every(isObject)) return null;
  const keys = Object.keys(value[0]);
  const isRow = (/** @type {any} */ row) =>
    Object.keys(row).length === keys.length && keys.every((key) => key in row && !isDeep(row[key]));
  return keys.length && value.every(isRow) ? { keys, rows: value } : null;
}

/** @param {{keys: string[], rows: any[]}} table @param {number} most */
function tabled({ keys, rows }, most) {
  const cells = (/** @type {any} */ row) => keys.map((key) => h("td", null, visible(word(row[key]), LONG)));
  const body = rows.slice(0, most).map((row) => h("tr", null, ...cells(row)));
  const head = h("tr", null, ...keys.map((key) => h("th", { scope: "col" }, visible(key, LONG))));
  const table = h("table", null, h("thead", null, head), h("tbody", null, ...body));
  return h("div", { class: "table", tabindex: "0" }, table, rest(rows, most));
}

/** One value and what is in it; what is folded is made when it is opened. @param {any} value @param {number} depth @param {number} most @param {string} [key] @returns {HTMLElement} */
function tree(value, depth, most, key) {
  const name = key !== undefined && h("b", { class: "said" }, `${visible(key, LONG)}: `);
  if (!isDeep(value) || !Object.keys(value).length) return h("div", null, name, leaf(value));
  const table = tableOf(value);
  if (table) return h("div", null, name, tabled(table, most));
  const entries = Object.entries(value);
  const isOpen = signal(most === Infinity || depth < 3 || entries.length < 3);
  const member = (/** @type {[string, any]} */ [key, one]) => h("li", null, tree(one, depth + 1, most, key));
  const shown = () => entries.slice(0, most).map(member);
  const members = () => (isOpen() ? h("ul", null, ...shown(), rest(entries, most)) : null);
  if (!depth) return h("div", null, members);
  const ontoggle = (/** @type {any} */ event) => isOpen.set(event.target.open);
  const kind = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  return h("details", { open: isOpen.peek(), ontoggle }, h("summary", null, name, kind), members);
}

/** @param {any[]} all @param {number} most */
const rest = (all, most) =>
  all.length > most && h("p", { class: "soft" }, `… and ${amount(all.length - most)} more · `, saved(all));

/** @param {any} value */
const saved = (value) => download(new Blob([JSON.stringify(value, null, 2)]), "value.json");

/** @param {any} value */
function leaf(value) {
  if (typeof value === "string" && value.includes("\n"))
    return h("pre", { class: "said" }, visible(value, LONG));
  return h("code", { class: "said" }, visible(JSON.stringify(value), LONG));
}

/** A head, and the whole as a download. @param {string} text @param {string} type @param {string} name */
function long(text, type, name) {
  const head = h("pre", { class: "said", tabindex: "0" }, visible(text.slice(0, HEAD), LONG));
  const size = `the first ${amount(Math.min(HEAD, text.length))} of ${amount(text.length)} characters`;
  return h(
    "div",
    null,
    head,
    h("p", { class: "soft" }, `${size} · `, download(new Blob([text], { type }), name)),
  );
}

/** @param {Blob} blob @param {string} name */
function download(blob, name) {
  return h("a", { href: urlOf(blob), download: name }, `Download (${amount(blob.size / 1024)} KB)`);
}

/** An address for a blob, while the view lasts. @param {Blob} blob */
function urlOf(blob) {
  const url = URL.createObjectURL(blob);
  ending(() => URL.revokeObjectURL(url));
  return url;
}

/** @param {any} data @param {any} type */
function picture(data, type) {
  const bytes = bytesOf(data);
  if (!bytes) return h("p", { class: "problem" }, `${visible(type)}: it is not base64`);
  if (!IMAGES.test(type) || bytes.length > HEAVY) return download(new Blob([bytes]), "data.bin");
  return h("img", { src: urlOf(new Blob([bytes], { type })), alt: "an image that the tool returned" });
}

/** Sound that is played by a button: an element for it would need a wider policy. @param {any} data @param {any} type */
function sound(data, type) {
  const bytes = bytesOf(data);
  if (!bytes || bytes.length > HEAVY)
    return h("p", { class: "problem" }, `${visible(type)}: it cannot be played`);
  const label = signal("Play");
  /** @type {AudioContext | null} */ let player = null;
  const stop = () => (void player?.close(), (player = null), label.set("Play"));
  const turn = () => (player ? stop() : void play((player = new AudioContext())));
  const play = async (/** @type {AudioContext} */ by) => {
    label.set("Stop");
    const buffer = await by.decodeAudioData(bytes.slice().buffer).catch(() => null);
    const source = new AudioBufferSourceNode(by, { buffer });
    source.connect(by.destination);
    source.onended = stop;
    if (buffer) source.start();
    else (stop(), label.set("This browser cannot play it"));
  };
  ending(stop);
  const button = h("button", { type: "button", onclick: turn }, label);
  return h("p", null, button, ` ${visible(type)} `, download(new Blob([bytes]), "sound.bin"));
}

/** @param {any} data base64 @returns {Uint8Array<ArrayBuffer> | null} */
export function bytesOf(data) {
  try {
    return Uint8Array.from(atob(String(data)), (char) => char.charCodeAt(0));
  } catch {
    return null;
  }
}

/** @param {any} value */
const isDeep = (value) => typeof value === "object" && value !== null && !isRaw(value);
/** @param {any} value */
const isObject = (value) => isDeep(value) && !Array.isArray(value);
/** @param {any} value */
const word = (value) => (typeof value === "string" ? value : JSON.stringify(value));
