// flatForm: the fields of a flat schema, for surfaces that are narrow. A schema that they cannot show gives null.

import { h } from "../../lib/dom.js";
import { safeText } from "../../lib/format.js";

/** @typedef {{element: HTMLElement, read: () => unknown}} FlatField `read` returns undefined for an empty field */

const INPUT_TYPES = new Map(Object.entries({ email: "email", uri: "url", date: "date" }));
const MOST_SHOWN = 6; // lines of a list of which several may be chosen

/**
 * The fields of a schema; null if one of them cannot be shown here. Before it is read, its `<form>` checks it.
 * @param {unknown} schema
 * @returns {{nodes: HTMLElement[], read: () => Record<string, unknown>} | null}
 */
export function flatForm(schema) {
  const fields = buildFields(schema);
  if (!fields) return null;
  const read = () => {
    const values = [...fields].map(([name, field]) => [name, field.read()]);
    return Object.fromEntries(values.filter(([, value]) => value !== undefined));
  };
  return { nodes: [...fields.values()].map((field) => field.element), read };
}

/** @param {any} schema @returns {Map<string, FlatField> | null} */
function buildFields(schema) {
  const { properties, required } = schema ?? {};
  if (typeof properties !== "object" || properties === null) return null;
  const needed = new Set(Array.isArray(required) ? required : []);
  const fields = new Map();
  for (const [name, one] of Object.entries(properties)) {
    const isNeeded = needed.has(name);
    const field = one && typeof one === "object" ? schemaField(one, isNeeded) : null;
    if (!field) return null;
    const note = isNeeded ? "needed" : "";
    const element = h(
      "label.flat-field",
      h("span", safeText(one.title ?? name, 300), h("span.faint", note)),
      field.element,
      one.description ? h("small.faint", safeText(one.description, 1000)) : null,
    );
    fields.set(name, { element, read: field.read });
  }
  return fields;
}

/** @param {Schema} schema @param {boolean} required @returns {FlatField | null} */
function schemaField(schema, required) {
  const choices = schemaChoices(schema);
  if (choices) return selectField(choices, schema.default, required);
  if (schema.type === "boolean") return checkboxField(schema);
  if (schema.type === "string") return textField(schema, required);
  if (schema.type === "number" || schema.type === "integer") return numberField(schema, required);
  const several = schema.type === "array" ? schemaChoices(schema.items ?? {}) : null;
  return several && multiSelectField(several, schema.default);
}

/** The choices of a schema as pairs of value and text. @param {Schema} schema @returns {[string, string][] | null} */
function schemaChoices(schema) {
  const titled = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(titled)) return titled.map((one) => [String(one?.const), String(one?.title ?? one?.const)]);
  if (!Array.isArray(schema.enum)) return null;
  return schema.enum.map((value, at) => [String(value), String(schema.enumNames?.[at] ?? value)]);
}

/** @param {[string, string][]} choices @param {unknown} first @param {boolean} required @returns {FlatField} */
function selectField(choices, first, required) {
  const options = choices.map(([value, text]) => h("option", { value }, safeText(text, 300)));
  const element = h("select", { required }, h("option", { value: "" }), ...options);
  element.value = first === undefined ? "" : String(first);
  return { element, read: () => element.value || undefined };
}

/** @param {[string, string][]} choices @param {unknown} first @returns {FlatField} */
function multiSelectField(choices, first) {
  const chosen = Array.isArray(first) ? first.map(String) : [];
  const options = choices.map(([value, text]) =>
    h("option", { value, selected: chosen.includes(value) }, safeText(text, 300)),
  );
  const element = h("select", { multiple: true, size: Math.min(MOST_SHOWN, options.length) }, ...options);
  return { element, read: () => [...element.selectedOptions].map((one) => one.value) };
}

/** @param {Schema} schema @returns {FlatField} */
function checkboxField(schema) {
  const element = h("input", { type: "checkbox", ".checked": schema.default === true });
  return { element, read: () => element.checked };
}

/** @param {Schema} schema @param {boolean} required @returns {FlatField} */
function textField(schema, required) {
  const element = h("input", { type: INPUT_TYPES.get(schema.format) ?? "text", required });
  if (schema.default !== undefined) element.value = String(schema.default);
  if (schema.maxLength > 0) element.maxLength = schema.maxLength;
  return { element, read: () => (element.value === "" && !required ? undefined : element.value) };
}

/** @param {Schema} schema @param {boolean} required @returns {FlatField} */
function numberField(schema, required) {
  const step = schema.type === "integer" ? "1" : "any";
  const element = h("input", { type: "number", required, step, min: schema.minimum, max: schema.maximum });
  if (schema.default !== undefined) element.value = String(schema.default);
  return { element, read: () => (element.value === "" ? undefined : Number(element.value)) };
}
