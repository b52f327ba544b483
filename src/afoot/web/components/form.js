// schemaForm: a form for a JSON schema. Drafts outlive a reload, and errors are shown at their fields.

import { h } from "../lib/dom.js";
import { isRedacted, joinPath, redactedPaths } from "../lib/exact_json.js";
import { draftOf, fieldOf, isFullyShown, isLocalTime, valueOf } from "../lib/form_schema.js";
import { signal } from "../lib/signal.js";
import { safeText } from "../lib/format.js";

/** @typedef {{errors: Signal<FieldError[]>, paths: Set<string>, save: () => void}} Form */
/** The draft of one field, and how to read and write it. @typedef {{form: Form, path: string, read: () => any, write: (draft: any) => void, at: (name: string | number) => Binding}} Binding */
/** @typedef {{key: string, value?: Json}} DraftOptions the storage key of the draft, and its first value */

const INPUT_TYPES = new Map(
  Object.entries({ email: "email", uri: "url", date: "date", "date-time": "datetime-local" }),
);
const GROUP_KINDS = new Set(["object", "array", "choices"]);
const JSON_FIELD = fieldOf({ title: "As JSON" });
let fieldCount = 0;

/**
 * A form for a schema: fields, or one JSON text if fields cannot show everything.
 * @param {Schema | undefined} schema
 * @param {DraftOptions} options
 */
export function schemaForm(schema, options) {
  const rootField = fieldOf(schema);
  const { kept: state, canShow, save, forget } = storedDraft(rootField, options, hash(JSON.stringify(schema) ?? ""));
  const isJson = signal(state.isJson);
  const errors = signal(/** @type {FieldError[]} */ ([]));
  const currentValue = () => {
    /** @type {FieldError[]} */ const wrong = [];
    return { wrong, value: valueOf(isJson.peek() ? JSON_FIELD : rootField, state.draft, wrong) };
  };
  const read = () => {
    const { wrong, value } = currentValue();
    for (const path of redactedPaths(value)) wrong.push({ field: path, message: "is not shown here: give it anew" });
    errors.set(wrong);
    return wrong.length ? null : { value };
  };
  const turn = () => {
    const { wrong, value } = currentValue();
    if (!wrong.length && !isFullyShown(rootField, value))
      wrong.push({ field: "", message: "A form cannot show all of it" });
    errors.set(wrong);
    if (wrong.length) return;
    state.isJson = !isJson.peek();
    state.draft = draftOf(state.isJson ? JSON_FIELD : rootField, value);
    save();
    isJson.set(state.isJson);
  };
  const binding = bindingAt({ errors, paths: new Set(), save }, "", () => state, "draft");
  const body = () => {
    binding.form.paths.clear();
    return isJson() ? fieldElement(JSON_FIELD, binding) : objectFields(rootField, binding);
  };
  const other = canShow && button(() => (isJson() ? "Edit as a form" : "Edit as JSON"), turn);
  const node = h("div.form", () => generalErrors(binding.form), body, rootField.fields.length > 0 && other);
  return { node, read, forget, show: (/** @type {Json[]} */ found) => errors.set(found.flatMap(gatewayErrors)) };
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

/** The errors that belong to no visible field. @param {Form} form */
function generalErrors({ errors, paths }) {
  const rest = errors().filter((one) => !paths.has(one.field));
  const lines = rest.map(({ field, message }) => h("li", `${field} ${message}`));
  return lines.length ? h("ul.wrong", { role: "alert" }, ...lines) : null;
}

/** The fields of an object. @param {Field} field @param {Binding} binding */
const objectFields = ({ fields }, binding) =>
  h("div.fields", ...fields.map((one) => fieldElement(one, binding.at(one.name))));

/** A field with label, hint and error. @param {Field} given @param {Binding} binding */
function fieldElement(given, binding) {
  const { form, path, read } = binding;
  form.paths.add(path);
  const field = isRedacted(read()) ? redactedField(given) : given;
  const id = `field-${++fieldCount}`;
  const isGroup = GROUP_KINDS.has(field.kind);
  const error = () => form.errors().find((one) => one.field === path)?.message;
  const described = { id, "aria-describedby": `${id}-about`, "aria-required": field.required ? "true" : null };
  const about = { ...described, "aria-invalid": () => (error() ? "true" : null) };
  const own = { ...binding, read: () => (isRedacted(read()) ? "" : read()) };
  const isNull = signal(field.nullable && read() === null);
  const control = () => (isNull() ? null : CONTROLS[field.kind](field, own, about));
  const title = [field.title || "item", field.required && field.name && h("span.needed", " (required)")];
  const label = isGroup ? h("legend", ...title) : h("label", { for: id }, ...title);
  const nullCheckbox = field.nullable && nullBox(field, binding, isNull);
  const hint = h("p.about", { id: `${id}-about` }, field.hint, () => error() && h("strong.wrong", ` ${error()}`));
  return h(isGroup ? "fieldset.field" : "div.field", label, nullCheckbox, control, hint);
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
const button = (text, onclick, label) => h("button.quiet", { type: "button", onclick, "aria-label": label }, text);

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
