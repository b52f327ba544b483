// A form out of a question's schema: flat, as questions to people are; what it cannot show it does not guess.

import { make } from "./dom.js";
import { readable } from "./words.js";

/** @typedef {{element: HTMLElement, read: () => unknown}} Field `read` gives undefined for nothing */
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
export function fieldsOf(schema) {
  try {
    return madeOf(/** @type {Schema} */ (schema ?? {}));
  } catch {
    return null; // it is no schema at all
  }
}

/**
 * @param {Schema} schema
 * @returns {Map<string, Field> | null}
 */
function madeOf({ properties, required = [] }) {
  if (typeof properties !== "object" || properties === null) return null;
  const fields = new Map();
  for (const [name, one] of Object.entries(properties)) {
    const field = fieldOf(one, required.includes(name));
    if (!field) return null;
    const title = readable(String(one.title ?? name)) + (required.includes(name) ? "" : " (optional)");
    const notes = one.description
      ? [make("small", { className: "faint" }, readable(String(one.description)))]
      : [];
    fields.set(name, { element: make("label", {}, title, field.element, ...notes), read: field.read });
  }
  return fields;
}

/**
 * What was filled in.
 * @param {Map<string, Field>} fields
 * @returns {Record<string, unknown>}
 */
export function filled(fields) {
  const all = [...fields].map(([name, field]) => [name, field.read()]);
  return Object.fromEntries(all.filter(([, value]) => value !== undefined));
}

/**
 * The choices of a schema as pairs of value and text; null if it has none.
 * @param {Schema} schema
 * @returns {[string, string][] | null}
 */
export function choicesOf(schema) {
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
function fieldOf(schema, required) {
  const choices = choicesOf(schema);
  if (choices) return choice(choices, schema.default, required);
  if (schema.type === "boolean") return tick(schema);
  if (schema.type === "string") return line(schema, required);
  if (schema.type === "number" || schema.type === "integer") return amount(schema, required);
  const several = schema.type === "array" ? choicesOf(schema.items ?? {}) : null;
  return several && many(several, schema.default);
}

/**
 * @param {[string, string][]} choices
 * @param {unknown} first
 * @param {boolean} required
 * @returns {Field}
 */
function choice(choices, first, required) {
  const none = make("option", { value: "" }, "");
  const element = make("select", { required }, none, ...choices.map(([value, text]) => option(value, text)));
  element.value = first === undefined ? "" : String(first);
  return { element, read: () => element.value || undefined };
}

/**
 * @param {[string, string][]} choices
 * @param {unknown} first
 * @returns {Field}
 */
function many(choices, first) {
  const chosen = Array.isArray(first) ? first.map(String) : [];
  const options = choices.map(([value, text]) => option(value, text));
  for (const one of options) one.selected = chosen.includes(one.value);
  const element = make("select", { multiple: true, size: Math.min(6, options.length) }, ...options);
  return { element, read: () => [...element.selectedOptions].map((one) => one.value) };
}

/**
 * @param {string} value
 * @param {string} text
 * @returns {HTMLOptionElement}
 */
function option(value, text) {
  return make("option", { value }, readable(text));
}

/**
 * @param {Schema} schema
 * @returns {Field}
 */
function tick(schema) {
  const element = make("input", { type: "checkbox", checked: schema.default === true });
  return { element, read: () => element.checked };
}

/**
 * @param {Schema} schema
 * @param {boolean} required
 * @returns {Field}
 */
function line(schema, required) {
  const element = make("input", { type: FORMATS.get(schema.format) ?? "text", required });
  if (schema.default !== undefined) element.value = String(schema.default);
  if (schema.maxLength > 0) element.maxLength = schema.maxLength;
  return { element, read: () => (element.value === "" && !required ? undefined : element.value) };
}

/**
 * @param {Schema} schema
 * @param {boolean} required
 * @returns {Field}
 */
function amount(schema, required) {
  const element = make("input", { type: "number", required, step: schema.type === "integer" ? "1" : "any" });
  if (schema.default !== undefined) element.value = String(schema.default);
  if (schema.minimum !== undefined) element.min = String(schema.minimum);
  if (schema.maximum !== undefined) element.max = String(schema.maximum);
  return { element, read: () => (element.value === "" ? undefined : Number(element.value)) };
}
