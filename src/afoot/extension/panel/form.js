// schemaFields: a form for the flat schema of a question. A schema that it cannot show gives null.

import { createElement } from "./dom.js";
import { safeText } from "./format.js";

/** @typedef {{element: HTMLElement, read: () => unknown}} Field `read` returns undefined for an empty field */
/** @typedef {Record<string, any>} Schema */

const FORMATS = new Map([
  ["email", "email"],
  ["uri", "url"],
  ["date", "date"],
]);

/**
 * The fields of a schema, by name; null if one of them cannot be shown here.
 * @param {unknown} schema
 * @returns {Map<string, Field> | null}
 */
export function schemaFields(schema) {
  try {
    return buildFields(/** @type {Schema} */ (schema ?? {}));
  } catch {
    return null; // it is not a schema
  }
}

/**
 * @param {Schema} schema
 * @returns {Map<string, Field> | null}
 */
function buildFields({ properties, required = [] }) {
  if (typeof properties !== "object" || properties === null) return null;
  const fields = new Map();
  for (const [name, one] of Object.entries(properties)) {
    const field = schemaField(one, required.includes(name));
    if (!field) return null;
    const title = safeText(String(one.title ?? name)) + (required.includes(name) ? "" : " (optional)");
    const notes = one.description
      ? [createElement("small", { className: "faint" }, safeText(String(one.description)))]
      : [];
    fields.set(name, {
      element: createElement("label", {}, title, field.element, ...notes),
      read: field.read,
    });
  }
  return fields;
}

/**
 * The values that were filled in.
 * @param {Map<string, Field>} fields
 * @returns {Record<string, unknown>}
 */
export function formValues(fields) {
  const values = [...fields].map(([name, field]) => [name, field.read()]);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

/**
 * The choices of a schema as pairs of value and text; null if it has none.
 * @param {Schema} schema
 * @returns {[string, string][] | null}
 */
export function schemaChoices(schema) {
  const titled = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(titled)) return titled.map((one) => [String(one.const), String(one.title ?? one.const)]);
  if (!Array.isArray(schema.enum)) return null;
  return schema.enum.map((value, at) => [String(value), String(schema.enumNames?.[at] ?? value)]);
}

/**
 * @param {Schema} schema
 * @param {boolean} required
 * @returns {Field | null}
 */
function schemaField(schema, required) {
  const choices = schemaChoices(schema);
  if (choices) return selectField(choices, schema.default, required);
  if (schema.type === "boolean") return checkboxField(schema);
  if (schema.type === "string") return textField(schema, required);
  if (schema.type === "number" || schema.type === "integer") return numberField(schema, required);
  const several = schema.type === "array" ? schemaChoices(schema.items ?? {}) : null;
  return several && multiSelectField(several, schema.default);
}

/**
 * @param {[string, string][]} choices
 * @param {unknown} first
 * @param {boolean} required
 * @returns {Field}
 */
function selectField(choices, first, required) {
  const emptyOption = createElement("option", { value: "" }, "");
  const element = createElement(
    "select",
    { required },
    emptyOption,
    ...choices.map(([value, text]) => option(value, text)),
  );
  element.value = first === undefined ? "" : String(first);
  return { element, read: () => element.value || undefined };
}

/**
 * @param {[string, string][]} choices
 * @param {unknown} first
 * @returns {Field}
 */
function multiSelectField(choices, first) {
  const chosen = Array.isArray(first) ? first.map(String) : [];
  const options = choices.map(([value, text]) => option(value, text));
  for (const one of options) one.selected = chosen.includes(one.value);
  const element = createElement("select", { multiple: true, size: Math.min(6, options.length) }, ...options);
  return { element, read: () => [...element.selectedOptions].map((one) => one.value) };
}

/**
 * @param {string} value
 * @param {string} text
 * @returns {HTMLOptionElement}
 */
function option(value, text) {
  return createElement("option", { value }, safeText(text));
}

/**
 * @param {Schema} schema
 * @returns {Field}
 */
function checkboxField(schema) {
  const element = createElement("input", { type: "checkbox", checked: schema.default === true });
  return { element, read: () => element.checked };
}

/**
 * @param {Schema} schema
 * @param {boolean} required
 * @returns {Field}
 */
function textField(schema, required) {
  const element = createElement("input", { type: FORMATS.get(schema.format) ?? "text", required });
  if (schema.default !== undefined) element.value = String(schema.default);
  if (schema.maxLength > 0) element.maxLength = schema.maxLength;
  return { element, read: () => (element.value === "" && !required ? undefined : element.value) };
}

/**
 * @param {Schema} schema
 * @param {boolean} required
 * @returns {Field}
 */
function numberField(schema, required) {
  const element = createElement("input", {
    type: "number",
    required,
    step: schema.type === "integer" ? "1" : "any",
  });
  if (schema.default !== undefined) element.value = String(schema.default);
  if (schema.minimum !== undefined) element.min = String(schema.minimum);
  if (schema.maximum !== undefined) element.max = String(schema.maximum);
  return { element, read: () => (element.value === "" ? undefined : Number(element.value)) };
}
