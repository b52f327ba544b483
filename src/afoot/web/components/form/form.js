// schemaForm: a form for a JSON schema. Drafts outlive a reload. A wrong entry is told at its field; all of them are named
// at the top, and the first one gets the focus.

import { h } from "../../lib/dom.js";
import { joinPath, redactedPaths } from "../../lib/text/exact_json.js";
import { draftOf, fieldOf, isFullyShown, valueOf } from "../../lib/form_schema.js";
import { safeText } from "../../lib/format.js";
import { signal } from "../../lib/signal.js";
import { button, fieldElement, focusField, objectFields } from "./form_fields.js";
import { icon } from "../marks/icon.js";

/** @typedef {import("./form_fields.js").Form} Form */
/** @typedef {import("./form_fields.js").Binding} Binding */
/** @typedef {{key: string, value?: Json}} DraftOptions the storage key of the draft, and its first value */

const JSON_FIELD = fieldOf({ title: "As JSON" });

/**
 * A form for a schema: fields, or one JSON text if fields cannot show everything. `jsonButton` changes between the two.
 * @param {Schema | undefined} schema
 * @param {DraftOptions} options
 */
export function schemaForm(schema, options) {
  const rootField = fieldOf(schema);
  const { kept: state, canShow, save, forget } = storedDraft(rootField, options, hash(JSON.stringify(schema) ?? ""));
  const isJson = signal(state.isJson);
  const errors = signal(/** @type {FieldError[]} */ ([]));
  const isReported = signal(false); // whether the errors are those of an attempt to send
  const currentValue = () => {
    /** @type {FieldError[]} */ const wrong = [];
    return { wrong, value: valueOf(isJson.peek() ? JSON_FIELD : rootField, state.draft, wrong) };
  };
  const report = (/** @type {FieldError[]} */ wrong) => {
    errors.set(wrong);
    isReported.set(wrong.length > 0);
    if (wrong.length) focusField(node, node.querySelector("[data-wrong]"));
  };
  const read = () => {
    const { wrong, value } = currentValue();
    for (const path of redactedPaths(value)) wrong.push({ field: path, message: "is not shown here: give it anew" });
    report(wrong);
    return wrong.length ? null : { value };
  };
  const turn = () => {
    const { wrong, value } = currentValue();
    if (!wrong.length && !isFullyShown(rootField, value))
      wrong.push({ field: "", message: "A form cannot show all of it" });
    report(wrong);
    if (wrong.length) return;
    state.isJson = !isJson.peek();
    state.draft = draftOf(state.isJson ? JSON_FIELD : rootField, value);
    save();
    isJson.set(state.isJson);
  };
  const binding = bindingAt({ errors, shown: new Map(), save }, "", () => state, "draft");
  const body = () => {
    binding.form.shown.clear();
    return isJson() ? fieldElement(JSON_FIELD, binding) : objectFields(rootField, binding);
  };
  const hasOther = canShow && rootField.fields.length > 0;
  const jsonButton = hasOther && button(() => (isJson() ? "Edit as a form" : "Edit as JSON"), turn);
  const node = h("div.form", () => (isReported() && errors().length ? errorSummary(binding.form) : null), body);
  return {
    node,
    jsonButton,
    read,
    forget,
    show: (/** @type {Json[]} */ found) => report(found.flatMap(gatewayErrors)),
  };
}

/**
 * The names of all fields that need a look, each a button that leads there, and the errors that belong to no field.
 * @param {Form} form
 */
function errorSummary({ errors, shown }) {
  const known = errors().filter(({ field }) => shown.has(field));
  const others = errors().filter(({ field }) => !shown.has(field));
  const names = known.flatMap(({ field }, at) => [at > 0 && ", ", fieldLink(field, shown.get(field) ?? "")]);
  const words = known.length === 1 ? "1 field needs a look: " : `${known.length} fields need a look: `;
  const lines = others.map(({ field, message }) => h("li", safeText(`${field} ${message}`.trim(), 1000)));
  return h(
    "div.form-errors",
    { role: "alert", tabindex: "-1" },
    icon("warning"),
    h("div", known.length > 0 && h("p", h("b.mid", words), ...names), lines.length > 0 && h("ul", ...lines)),
  );
}

/** @param {string} path @param {string} title */
function fieldLink(path, title) {
  const go = (/** @type {Event} */ { currentTarget }) => {
    const form = /** @type {Element} */ (currentTarget).closest(".form");
    if (form) focusField(form, form.querySelector(`[data-path="${CSS.escape(path)}"]`));
  };
  return h("button.link", { type: "button", onclick: go }, safeText(title, 100));
}

/**
 * The gateway's errors of a field, which it names by a path or a pointer.
 * @param {Json} found
 * @returns {FieldError[]}
 */
const gatewayErrors = ({ field, message }) =>
  field ? [{ field: field.replace(/^\//, "").replaceAll("/", "."), message: safeText(message, 1000) }] : [];

/**
 * The draft of a form, in session storage unless it has a secret.
 * @param {Field} whole
 * @param {DraftOptions} of
 * @param {number} mark hash of its schema
 */
function storedDraft(whole, { key, value }, mark) {
  const place = `afoot:draft:${key}:${mark}`;
  const canShow = whole.kind === "object" && isFullyShown(whole, value);
  const first = { isJson: !canShow, draft: canShow ? draftOf(whole, value) : draftOf(JSON_FIELD, value ?? {}) };
  /** @type {typeof first} */ const kept = JSON.parse(sessionStorage.getItem(place) ?? "null") ?? first;
  const isSecret = hasSecret(whole) || redactedPaths(value).length > 0;
  const save = () => {
    try {
      if (!isSecret) sessionStorage.setItem(place, JSON.stringify(kept));
    } catch {
      // The storage is full: then the draft lives as long as the page.
    }
  };
  return { kept, canShow, save, forget: () => sessionStorage.removeItem(place) };
}

/**
 * @param {Form} form
 * @param {string} path
 * @param {() => any} holder
 * @param {string | number} key
 * @returns {Binding}
 */
function bindingAt(form, path, holder, key) {
  const read = () => holder()[key];
  const write = (/** @type {any} */ draft) => {
    holder()[key] = draft;
    form.save();
  };
  return { form, path, read, write, at: (name) => bindingAt(form, joinPath(path, name), read, name) };
}

/** @param {Field} field @returns {boolean} */
const hasSecret = ({ secret, fields, item }) => secret || fields.some(hasSecret) || (item !== null && hasSecret(item));

/** @param {string} text */
const hash = (text) => [...text].reduce((sum, char) => (sum * 31 + (char.codePointAt(0) ?? 0)) | 0, 0);
