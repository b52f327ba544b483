// fieldOf, draftOf and valueOf: a JSON schema as form fields, the draft of a value, and the value and errors of a draft.
// Pure.

import { isObject, isRedacted, joinPath, parseNumber, parse } from "./text/exact_json.js";
import { safeText } from "./format.js";

/** The input of a field: text, checkboxes, drafts of fields, or drafts of items. @typedef {any} Draft */
/** @typedef {{root: Schema, name: string, required: boolean, depth: number, left: {fields: number}}} FieldContext */
/** @typedef {(message: string) => undefined} Reject */

const MAX_DEPTH = 8;
const MAX_FIELDS = 300; // of one form; a recursive schema could have any number
/** @type {Map<string, Kind>} */
const KINDS = new Map([["string", "text"], ["number", "number"], ["integer", "number"], ["boolean", "boolean"]]); // prettier-ignore
/** @type {Map<string, [RegExp, string]>} */
const FORMATS = new Map([
  ["email", [/^[^\s@]+@[^\s@]+$/, "an email address"]],
  ["uri", [/^[a-z][a-z\d+.-]*:[^\s]+$/i, "an address with its scheme, such as https://…"]],
  ["date", [/^\d{4}-\d\d-\d\d$/, "a date"]],
  ["date-time", [/^\d{4}-\d\d-\d\dT\d\d:\d\d/, "a date and a time"]],
]);

/** The field of a schema. @param {Schema | boolean | undefined} schema @returns {Field} */
export function fieldOf(schema) {
  const root = typeof schema === "object" ? schema : {};
  return buildField(root, { root, name: "", required: true, depth: 0, left: { fields: MAX_FIELDS } });
}

/** @param {Schema} given @param {FieldContext} context @returns {Field} */
function buildField(given, context) {
  const { name, required, root } = context;
  const { schema, nullable } = resolveSchema(given, root);
  const title = cleanText(schema.title) || safeText(name, 300);
  const hint = cleanText(schema.description);
  const options = optionsOf(schema);
  const secret = schema.writeOnly === true || schema.format === "password" || schema["x-secret"] === true;
  const about = { name, required, nullable, schema, title, hint, secret };
  const field = { ...about, options: options ?? [], fields: [], item: null };
  if (options) return { ...field, kind: "choice" };
  const nested = context.depth < MAX_DEPTH && context.left.fields-- > 0 ? nestedField(schema, context) : null;
  return { ...field, kind: KINDS.get(schema.type) ?? "json", ...nested };
}

/** @param {Schema} schema @param {FieldContext} context @returns {Partial<Field> | null} */
function nestedField(schema, context) {
  const nestedContext = { ...context, depth: context.depth + 1 };
  if (schema.type === "object" && isObject(schema.properties) && !isObject(schema.additionalProperties)) {
    const requiredNames = new Set(Array.isArray(schema.required) ? schema.required : []);
    const field = (/** @type {[string, Schema]} */ [name, one]) =>
      buildField(isObject(one) ? one : {}, { ...nestedContext, name, required: requiredNames.has(name) });
    return { kind: "object", fields: Object.entries(schema.properties).map(field) };
  }
  if (schema.type !== "array" || !isObject(schema.items)) return null;
  const options = optionsOf(resolveSchema(schema.items, context.root).schema);
  if (options && schema.uniqueItems !== false) return { kind: "choices", options };
  return { kind: "array", item: buildField(schema.items, { ...nestedContext, name: "", required: true }) };
}

/**
 * Resolve references; also tells whether the value may be null.
 * @param {Schema} given
 * @param {Schema} root
 */
function resolveSchema(given, root) {
  let schema = given;
  let nullable = false;
  for (let step = 0; step < MAX_DEPTH; step++) {
    const { $ref, allOf, type } = schema;
    const some = schema.anyOf ? "anyOf" : "oneOf";
    const rest = [schema[some] ?? []].flat().filter((/** @type {Json} */ one) => one?.type !== "null");
    if (typeof $ref === "string") schema = mergeSchema(schema, "$ref", resolvePointer(root, $ref));
    else if (Array.isArray(allOf) && allOf.length === 1) schema = mergeSchema(schema, "allOf", allOf[0]);
    else if (rest.length === 1 && schema[some].length > 1) {
      schema = mergeSchema(schema, some, rest[0]);
      nullable = true;
    } else if (Array.isArray(type) && type.length === 2 && type.includes("null")) {
      schema = { ...schema, type: type.find((one) => one !== "null") };
      nullable = true;
    } else break;
  }
  return { schema, nullable };
}

/** @param {Schema} schema @param {string} key @param {Json} inner @returns {Schema} */
const mergeSchema = (schema, key, inner) => ({ ...(isObject(inner) ? inner : {}), ...schema, [key]: undefined });

/** @param {Schema} root @param {string} ref @returns {Json} */
function resolvePointer(root, ref) {
  const steps = ref.startsWith("#/") ? ref.slice(2).split("/") : [""];
  return steps.reduce((at, step) => at?.[step.replaceAll("~1", "/").replaceAll("~0", "~")], root);
}

/**
 * The options of a schema: enum with or without names, or titled constants.
 * @param {Schema} schema
 */
function optionsOf(schema) {
  const titled = "const" in schema ? [schema] : (schema.oneOf ?? schema.anyOf);
  if (Array.isArray(schema.enum)) return schema.enum.map((value, at) => option(value, schema.enumNames?.[at]));
  if (!Array.isArray(titled) || !titled.length || !titled.every((one) => isObject(one) && "const" in one)) return null;
  return titled.map((one) => option(one.const, one === schema ? "" : one.title));
}

/** @param {Json} value @param {Json} title */
const option = (value, title) => ({ value, title: cleanText(title) || safeText(toText(value), 300) });

/**
 * The draft of a value, or of the default. "" is an empty field, null is null.
 * @param {Field} field
 * @param {Json} [value]
 * @returns {Draft}
 */
export const draftOf = (field, value = field.schema.default) => toDraft(field, value);

/**
 * @param {Field} field
 * @param {Json} value
 * @returns {Draft} missing members stay empty, whatever their default
 */
const toDraft = (field, value) =>
  (value === null && field.nullable) || isRedacted(value) ? value : DRAFTS[field.kind](field, value);

/** @type {Record<Kind, (field: Field, value: Json) => Draft>} */
const DRAFTS = {
  text: (_, value) => (typeof value === "string" ? value : ""),
  number: (_, value) => JSON.stringify(value) ?? "",
  json: (_, value) => JSON.stringify(value, null, 2) ?? "",
  boolean: ({ required }, value) => (typeof value === "boolean" ? String(value) : required ? "false" : ""),
  choice: ({ options }, value) => optionIndexes(options, [value])[0] ?? "",
  choices: ({ options }, value) => optionIndexes(options, Array.isArray(value) ? value : []),
  array: ({ item }, value) => (item && Array.isArray(value) ? value.map((one) => draftOf(item, one)) : []),
  object({ fields, required }, value) {
    if (!isObject(value)) return required ? Object.fromEntries(fields.map((one) => [one.name, draftOf(one)])) : "";
    return Object.fromEntries(fields.map((one) => [one.name, toDraft(one, value[one.name])]));
  },
};

/** @param {Field["options"]} options @param {Json[]} values */
function optionIndexes(options, values) {
  const places = values.map((value) => options.findIndex((one) => isEqualJson(one.value, value)));
  return places.filter((at) => at >= 0).map(String);
}

/**
 * The value of a draft; undefined for an empty one. Errors are added to `wrong`.
 * @param {Field} field
 * @param {Draft} draft
 * @param {FieldError[]} wrong
 * @param {string} [path]
 * @returns {Json}
 */
export function valueOf(field, draft, wrong, path = "") {
  const bad = (/** @type {string} */ message) => void wrong.push({ field: path, message });
  if ((draft === null && field.nullable) || isRedacted(draft)) return draft;
  if (Array.isArray(draft))
    return arrayValue(field, draft, bad, (one, at) => valueOf(one, draft[at], wrong, joinPath(path, at)));
  if (draft === "" || draft == null) return field.required ? bad("nothing entered yet") : undefined;
  if (typeof draft === "string") return (SCALARS[field.kind] ?? SCALARS.json)(field, draft, bad);
  const pairs = field.fields.map((one) => [one.name, valueOf(one, draft[one.name], wrong, joinPath(path, one.name))]);
  return Object.fromEntries(pairs.filter(([, value]) => value !== undefined));
}

/**
 * Whether a form can show the whole value; otherwise it must be edited as JSON.
 * @param {Field} field
 * @param {Json} value
 */
export function isFullyShown(field, value) {
  /** @type {FieldError[]} */ const wrong = [];
  return value === undefined || (isEqualJson(valueOf(field, draftOf(field, value), wrong), value) && !wrong.length);
}

/**
 * @param {Field} field
 * @param {Draft[]} draft
 * @param {Reject} bad
 * @param {(item: Field, at: number) => Json} itemOf
 */
function arrayValue({ kind, item, options, required, schema }, draft, bad, itemOf) {
  const { minItems = 0, maxItems = Infinity } = schema;
  if (!draft.length && !required) return undefined;
  if (draft.length < minItems) return bad(`needs at least ${minItems}`);
  if (draft.length > maxItems) return bad(`takes at most ${maxItems}`);
  if (kind === "choices" || !item) return options.filter((_, at) => draft.includes(String(at))).map((one) => one.value);
  return draft.map((_, at) => itemOf(item, at));
}

/** @type {Record<string, (field: Field, draft: string, bad: Reject) => Json>} */
const SCALARS = {
  choice: (field, draft) => field.options[Number(draft)]?.value,
  boolean: (_, draft) => draft === "true",
  json(_, draft, bad) {
    try {
      return parse(draft);
    } catch (error) {
      return bad(`is not JSON: ${/** @type {Error} */ (error).message}`);
    }
  },
  number({ schema }, draft, bad) {
    const found = Number(draft);
    if (!/^\s*-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(draft)) return bad("must be a number");
    if (schema.type === "integer" && !/^\s*-?\d+\s*$/.test(draft)) return bad("must be a whole number");
    if (found < schema.minimum) return bad(`must be at least ${schema.minimum}`);
    if (found > schema.maximum) return bad(`must be at most ${schema.maximum}`);
    if (found <= schema.exclusiveMinimum) return bad(`must be over ${schema.exclusiveMinimum}`);
    if (found >= schema.exclusiveMaximum) return bad(`must be under ${schema.exclusiveMaximum}`);
    return parseNumber(draft.trim());
  },
  text({ schema }, draft, bad) {
    const [pattern, what] = FORMATS.get(schema.format) ?? [/^/, ""];
    const size = [...draft].length;
    if (!pattern.test(draft)) return bad(`must be ${what}`);
    if (size < schema.minLength) return bad(`needs at least ${schema.minLength} characters`);
    if (size > schema.maxLength) return bad(`takes at most ${schema.maxLength} characters`);
    // An input for date and time has no time zone: it means the zone of the person.
    return schema.format === "date-time" && isLocalTime(draft) ? new Date(draft).toISOString() : draft;
  },
};

/** Whether a time has no zone, as in an input of a page. @param {string} text */
export const isLocalTime = (text) => /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(text);

/** @param {Json} value @returns {string} */
const toText = (value) => (typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? ""));

/** @param {Json} a @param {Json} b */
const isEqualJson = (a, b) => JSON.stringify(a, sortKeys) === JSON.stringify(b, sortKeys);

/** @param {string} _ @param {Json} value the same with sorted keys */
const sortKeys = (_, value) =>
  isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value;

/** @param {Json} value @returns {string} */
const cleanText = (value) => (typeof value === "string" ? safeText(value, 2000) : "");
