// fieldElement: one field of a form with its label, hint, control and error. A field that holds others draws them, too.

import { h } from "../../lib/dom.js";
import { isRedacted } from "../../lib/text/exact_json.js";
import { draftOf, isLocalTime, valueOf } from "../../lib/form_schema.js";
import { signal } from "../../lib/signal.js";
import { icon } from "../marks/icon.js";

/** `shown`: the paths of the visible fields, with their titles. */
/** @typedef {{errors: Signal<FieldError[]>, shown: Map<string, string>, save: () => void}} Form */
/** The draft of one field, and how to read and write it. @typedef {{form: Form, path: string, read: () => any, write: (draft: any) => void, at: (name: string | number) => Binding}} Binding */

const INPUT_TYPES = new Map(
  Object.entries({ email: "email", uri: "url", date: "date", "date-time": "datetime-local" }),
);
const GROUP_KINDS = new Set(["object", "array", "choices"]);
const MOST_SEGMENTS = 3; // options that stand side by side instead of in a menu
const MOST_SEGMENT_CHARS = 14;
let fieldCount = 0;

/** The fields of an object. @param {Field} field @param {Binding} binding */
export const objectFields = ({ fields }, binding) =>
  h("div.fields", ...fields.map((one) => fieldElement(one, binding.at(one.name))));

/** A field with label, hint and error. @param {Field} given @param {Binding} binding */
export function fieldElement(given, binding) {
  const { form, path, read } = binding;
  const field = isRedacted(read()) ? redactedField(given) : given;
  form.shown.set(path, field.title || "item");
  const id = `field-${++fieldCount}`;
  const error = () => form.errors().find((one) => one.field === path)?.message;
  const described = { id, "aria-describedby": `${id}-about`, "aria-required": field.required ? "true" : null };
  const about = { ...described, "aria-invalid": () => (error() ? "true" : null) };
  const own = { ...binding, read: () => (isRedacted(read()) ? "" : read()) };
  const isNull = signal(field.nullable && read() === null);
  const isSegmented = canSegment(field);
  const control = () =>
    isNull() ? null : isSegmented ? segments(field, own, about) : CONTROLS[field.kind](field, own, about);
  const title = [field.title || "item", field.required && field.name && h("span.needed", " needed")];
  const isGroup = isSegmented || GROUP_KINDS.has(field.kind);
  const label = isGroup ? h("legend", ...title) : h("label", { for: id }, ...title);
  const nullCheckbox = field.nullable && nullBox(field, binding, isNull);
  const wrong = () => error() && h("strong.wrong", icon("warning", "s"), sentence(error() ?? ""));
  const hint = h("p.about", { id: `${id}-about` }, field.hint && h("span", field.hint), wrong);
  const place = { "data-path": path, "data-wrong": () => error() !== undefined, "data-kind": field.kind };
  return h(isGroup ? "fieldset.field" : "div.field", place, label, nullCheckbox, control, hint);
}

/** Focus a field, or the first field inside it. @param {Element} form @param {Element | null} field */
export function focusField(form, field) {
  const target = field?.querySelector("input, select, textarea, button") ?? form.querySelector(".form-errors");
  /** @type {HTMLElement | null} */ (target)?.focus();
}

/** @param {string} message as a sentence begins */
const sentence = (message) => message.charAt(0).toUpperCase() + message.slice(1);

/** Whether the options of a field stand side by side. @param {Field} field */
const canSegment = ({ kind, options, required, secret, nullable, schema }) =>
  kind === "choice" &&
  (required || schema.default !== undefined) && // one of them is always chosen
  !secret &&
  !nullable &&
  options.length > 1 &&
  options.length <= MOST_SEGMENTS &&
  options.every(({ title }) => title.length <= MOST_SEGMENT_CHARS);

/** Options side by side. @param {Field} field @param {Binding} binding @param {Props} about */
function segments({ options }, binding, { id, ...about }) {
  const option = (/** @type {{title: string}} */ { title }, /** @type {number} */ at) => {
    const onchange = () => binding.write(String(at));
    const radio = h("input", { type: "radio", name: id, ".checked": binding.read() === String(at), onchange });
    return h("label", radio, h("span", title));
  };
  return h("div.segments", { ...about, role: "radiogroup" }, ...options.map(option));
}

/**
 * A field whose value is redacted: it begins empty, and as JSON instead of nested fields.
 * @param {Field} field
 */
function redactedField(field) {
  const kind = GROUP_KINDS.has(field.kind) ? "json" : field.kind;
  return { ...field, kind, required: true, secret: true };
}

/**
 * The checkbox that sets a field to null.
 * @param {Field} field
 * @param {Binding} binding
 * @param {Signal<boolean>} isNull
 */
function nullBox(field, binding, isNull) {
  const turn = (/** @type {boolean} */ is) => {
    binding.write(is ? null : draftOf({ ...field, nullable: false }, field.schema.default ?? undefined));
    isNull.set(is);
  };
  return h("label", checkbox(isNull.peek(), turn), "no value (null)");
}

/** @type {Record<Kind, (field: Field, binding: Binding, about: Props) => HTMLElement>} */
const CONTROLS = {
  text({ schema, secret }, binding, about) {
    const isZoned = schema.format === "date-time" && binding.read() && !isLocalTime(binding.read());
    const type = secret ? "password" : isZoned ? "text" : INPUT_TYPES.get(schema.format);
    if (type || schema.maxLength <= 200) return inputElement(binding, { ...about, type: type ?? "text", step: 1 });
    return h("textarea", { ...about, rows: 1, ".value": binding.read(), oninput: onInput(binding) });
  },
  number({ schema, secret }, binding, about) {
    const inputmode = schema.type === "integer" ? "numeric" : "decimal";
    return inputElement(binding, { ...about, type: secret ? "password" : "text", inputmode });
  },
  boolean({ required, secret }, binding, about) {
    if (!required || secret) return selectElement(["true", "false"], ["yes", "no"], binding, about);
    return checkbox(binding.read() === "true", (is) => binding.write(String(is)), about);
  },
  choice({ options }, binding, about) {
    const titles = options.map((one) => one.title);
    return selectElement(Object.keys(titles), titles, binding, about);
  },
  choices({ options }, binding, about) {
    const others = (/** @type {string} */ one) => binding.read().filter((/** @type {string} */ other) => other !== one);
    const box = (/** @type {[string, {title: string}]} */ [one, { title }]) => {
      const turn = (/** @type {boolean} */ is) => binding.write(is ? [...others(one), one] : others(one));
      return h("label", checkbox(binding.read().includes(one), turn), title);
    };
    return h("div", { ...about, role: "group" }, ...Object.entries(options).map(box));
  },
  object(field, binding) {
    const has = signal(binding.read() !== "");
    const turn = () => {
      binding.write(has.peek() ? "" : draftOf({ ...field, required: true }));
      has.set(!has.peek());
    };
    const fields = () => (has() ? objectFields(field, binding) : null);
    return h("div", fields, !field.required && button(() => (has() ? "Leave out" : "Add"), turn));
  },
  array(field, binding) {
    const item = /** @type {Field} */ (field.item);
    const changed = signal(0);
    const set = (/** @type {any[]} */ drafts) => {
      binding.write(drafts);
      binding.form.errors.set([]); // paths of other items may have changed
      changed.touch();
    };
    const add = button("Add", () => set([...binding.read(), draftOf(item)]), `Add ${field.title}`);
    const row = (/** @type {unknown} */ _, /** @type {number} */ number) => {
      const title = `${field.title} ${number + 1}`;
      const drop = () => {
        set(binding.read().toSpliced(number, 1));
        add.focus();
      };
      return h("li", fieldElement({ ...item, title }, binding.at(number)), button("Remove", drop, `Remove ${title}`));
    };
    const rows = () => {
      changed();
      return h("ol", ...binding.read().map(row));
    };
    return h("div", rows, add);
  },
  json(field, { form, path, read, write }, about) {
    const oninput = (/** @type {any} */ { target }) => {
      write(target.value);
      const wrong = form.errors.peek().filter((one) => one.field !== path);
      valueOf(field, target.value, wrong, path);
      form.errors.set(wrong);
    };
    return h("textarea.code", { ...about, rows: 4, spellcheck: "false", ".value": read(), oninput });
  },
};

/** @param {string | (() => string)} text @param {() => void} onclick @param {string} [label] */
export const button = (text, onclick, label) =>
  h("button.quiet", { type: "button", onclick, "aria-label": label }, text);

/** @param {boolean} is @param {(is: boolean) => void} turn @param {Props} [about] */
const checkbox = (is, turn, about) =>
  h("input", { ...about, type: "checkbox", ".checked": is, onchange: ({ target }) => turn(target.checked) });

/** @param {Binding} binding */
const onInput = ({ write }) => (/** @type {any} */ { target }) => write(target.value); // prettier-ignore

/** @param {Binding} binding @param {Props} props */
const inputElement = (binding, props) =>
  h("input", { ...props, autocomplete: "off", ".value": binding.read(), oninput: onInput(binding) });

/**
 * @param {string[]} values
 * @param {string[]} titles
 * @param {Binding} binding
 * @param {Props} about
 */
function selectElement(values, titles, binding, about) {
  const option = (/** @type {string} */ value, /** @type {string} */ title) =>
    h("option", { value, ".selected": value === binding.read() }, title);
  const options = values.map((value, at) => option(value, titles[at]));
  return h("select", { ...about, onchange: onInput(binding) }, option("", "—"), ...options);
}
