// A JSON schema as fields, what was typed into them as a value, and what is wrong with it. Pure.

import { isObject, isRedacted, joined, number, parse } from "./exact.js";
import { visible } from "./text.js";

/** What was typed: text, ticks, drafts of fields, or drafts of items. @typedef {any} Draft */
/** @typedef {{root: Schema, name: string, required: boolean, depth: number, left: {fields: number}}} Place */
/** @typedef {(message: string) => undefined} Bad */

const DEEPEST = 8;
const MOST = 300; // fields of one form: a schema that refers to itself could make any number
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
  return made(root, { root, name: "", required: true, depth: 0, left: { fields: MOST } });
}

/** @param {Schema} given @param {Place} place @returns {Field} */
function made(given, place) {
  const { name, required, root } = place;
  const { schema, nullable } = plain(given, root);
  const [title, hint, options] = [text(schema.title) || visible(name, 300), text(schema.description), choices(schema)];
  const secret = schema.writeOnly === true || schema.format === "password" || schema["x-secret"] === true;
  const about = { name, required, nullable, schema, title, hint, secret };
  const field = { ...about, options: options ?? [], fields: [], item: null };
  if (options) return { ...field, kind: "choice" };
  const inside = place.depth < DEEPEST && place.left.fields-- > 0 ? structure(schema, place) : null;
  return { ...field, kind: KINDS.get(schema.type) ?? "json", ...inside };
}

/** @param {Schema} schema @param {Place} place @returns {Partial<Field> | null} */
function structure(schema, place) {
  const deeper = { ...place, depth: place.depth + 1 };
  if (schema.type === "object" && isObject(schema.properties) && !isObject(schema.additionalProperties)) {
    const must = new Set(Array.isArray(schema.required) ? schema.required : []);
    const field = (/** @type {[string, Schema]} */ [name, one]) =>
      made(isObject(one) ? one : {}, { ...deeper, name, required: must.has(name) });
    return { kind: "object", fields: Object.entries(schema.properties).map(field) };
  }
  if (schema.type !== "array" || !isObject(schema.items)) return null;
  const options = choices(plain(schema.items, place.root).schema);
  if (options && schema.uniqueItems !== false) return { kind: "choices", options };
  return { kind: "array", item: made(schema.items, { ...deeper, name: "", required: true }) };
}

/** The schema behind references, and whether it may be null. @param {Schema} given @param {Schema} root */
function plain(given, root) {
  let [schema, nullable] = [given, false];
  for (let step = 0; step < DEEPEST; step++) {
    const { $ref, allOf, type } = schema;
    const some = schema.anyOf ? "anyOf" : "oneOf";
    const rest = [schema[some] ?? []].flat().filter((/** @type {Json} */ one) => one?.type !== "null");
    if (typeof $ref === "string") schema = over(schema, "$ref", pointed(root, $ref));
    else if (Array.isArray(allOf) && allOf.length === 1) schema = over(schema, "allOf", allOf[0]);
    else if (rest.length === 1 && schema[some].length > 1) [schema, nullable] = [over(schema, some, rest[0]), true];
    else if (Array.isArray(type) && type.length === 2 && type.includes("null"))
      [schema, nullable] = [{ ...schema, type: type.find((one) => one !== "null") }, true];
    else break;
  }
  return { schema, nullable };
}

/** @param {Schema} schema @param {string} key @param {Json} inner @returns {Schema} */
const over = (schema, key, inner) => ({ ...(isObject(inner) ? inner : {}), ...schema, [key]: undefined });

/** @param {Schema} root @param {string} ref @returns {Json} */
function pointed(root, ref) {
  const steps = ref.startsWith("#/") ? ref.slice(2).split("/") : [""];
  return steps.reduce((at, step) => at?.[step.replaceAll("~1", "/").replaceAll("~0", "~")], root);
}

/** Values to choose from: enum with or without names, or titled constants. @param {Schema} schema */
function choices(schema) {
  const titled = "const" in schema ? [schema] : (schema.oneOf ?? schema.anyOf);
  if (Array.isArray(schema.enum)) return schema.enum.map((value, at) => option(value, schema.enumNames?.[at]));
  if (!Array.isArray(titled) || !titled.length || !titled.every((one) => isObject(one) && "const" in one)) return null;
  return titled.map((one) => option(one.const, one === schema ? "" : one.title));
}

/** @param {Json} value @param {Json} title */
const option = (value, title) => ({ value, title: text(title) || visible(spelt(value), 300) });

/** What stands in a field that has this value; without one, its default. "" is nothing, null is null. @param {Field} field @param {Json} [value] @returns {Draft} */
export const draftOf = (field, value = field.schema.default) => drafted(field, value);

/** @param {Field} field @param {Json} value @returns {Draft} what was left out stays empty, whatever its default */
const drafted = (field, value) =>
  (value === null && field.nullable) || isRedacted(value) ? value : DRAFTS[field.kind](field, value);

/** @type {Record<Kind, (field: Field, value: Json) => Draft>} */
const DRAFTS = {
  text: (_, value) => (typeof value === "string" ? value : ""),
  number: (_, value) => JSON.stringify(value) ?? "",
  json: (_, value) => JSON.stringify(value, null, 2) ?? "",
  boolean: ({ required }, value) => (typeof value === "boolean" ? String(value) : required ? "false" : ""),
  choice: ({ options }, value) => placesOf(options, [value])[0] ?? "",
  choices: ({ options }, value) => placesOf(options, Array.isArray(value) ? value : []),
  array: ({ item }, value) => (item && Array.isArray(value) ? value.map((one) => draftOf(item, one)) : []),
  object({ fields, required }, value) {
    if (!isObject(value)) return required ? Object.fromEntries(fields.map((one) => [one.name, draftOf(one)])) : "";
    return Object.fromEntries(fields.map((one) => [one.name, drafted(one, value[one.name])]));
  },
};

/** @param {Field["options"]} options @param {Json[]} values */
function placesOf(options, values) {
  const places = values.map((value) => options.findIndex((one) => isSame(one.value, value)));
  return places.filter((at) => at >= 0).map(String);
}

/** The value of a draft; undefined where nothing was given. What does not fit is added to `wrong`. @param {Field} field @param {Draft} draft @param {Misfit[]} wrong @param {string} [path] @returns {Json} */
export function valueOf(field, draft, wrong, path = "") {
  const bad = (/** @type {string} */ message) => void wrong.push({ field: path, message });
  if ((draft === null && field.nullable) || isRedacted(draft)) return draft;
  if (Array.isArray(draft))
    return several(field, draft, bad, (one, at) => valueOf(one, draft[at], wrong, joined(path, at)));
  if (draft === "" || draft == null) return field.required ? bad("is required") : undefined;
  if (typeof draft === "string") return (SINGLE[field.kind] ?? SINGLE.json)(field, draft, bad);
  const pairs = field.fields.map((one) => [one.name, valueOf(one, draft[one.name], wrong, joined(path, one.name))]);
  return Object.fromEntries(pairs.filter(([, value]) => value !== undefined));
}

/** Whether a form shows this value whole; else it must be edited as JSON, or something is lost. @param {Field} field @param {Json} value */
export function fits(field, value) {
  /** @type {Misfit[]} */ const wrong = [];
  return value === undefined || (isSame(valueOf(field, draftOf(field, value), wrong), value) && !wrong.length);
}

/** @param {Field} field @param {Draft[]} draft @param {Bad} bad @param {(item: Field, at: number) => Json} itemOf */
function several({ kind, item, options, required, schema }, draft, bad, itemOf) {
  const { minItems = 0, maxItems = Infinity } = schema;
  if (!draft.length && !required) return undefined;
  if (draft.length < minItems) return bad(`needs at least ${minItems}`);
  if (draft.length > maxItems) return bad(`takes at most ${maxItems}`);
  if (kind === "choices" || !item) return options.filter((_, at) => draft.includes(String(at))).map((one) => one.value);
  return draft.map((_, at) => itemOf(item, at));
}

/** @type {Record<string, (field: Field, draft: string, bad: Bad) => Json>} */
const SINGLE = {
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
    return number(draft.trim());
  },
  text({ schema }, draft, bad) {
    const [pattern, what] = FORMATS.get(schema.format) ?? [/^/, ""];
    const size = [...draft].length;
    if (!pattern.test(draft)) return bad(`must be ${what}`);
    if (size < schema.minLength) return bad(`needs at least ${schema.minLength} characters`);
    if (size > schema.maxLength) return bad(`takes at most ${schema.maxLength} characters`);
    // A field of a page for date and time knows no zone: it means the zone of whoever sits before it.
    return schema.format === "date-time" && isLocal(draft) ? new Date(draft).toISOString() : draft;
  },
};

/** A time as a page's own field has it, without a zone. @param {string} text */
export const isLocal = (text) => /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(text);

/** @param {Json} value @returns {string} */
const spelt = (value) => (typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? ""));

/** @param {Json} a @param {Json} b */
const isSame = (a, b) => JSON.stringify(a, inOrder) === JSON.stringify(b, inOrder);

/** @param {string} _ @param {Json} value the same with its keys in order */
const inOrder = (_, value) =>
  isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value;

/** @param {Json} value @returns {string} */
const text = (value) => (typeof value === "string" ? visible(value, 2000) : "");
