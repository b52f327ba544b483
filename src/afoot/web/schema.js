// A JSON schema as fields, what was typed into them as a value, and what is wrong with it. Pure.

import { isRaw, number, parse } from "./exact.js";

/** @typedef {Record<string, any>} Schema */
/** @typedef {"text" | "number" | "boolean" | "choice" | "choices" | "object" | "array" | "json"} Kind */
/**
 * @typedef {object} Field
 * @property {string} name
 * @property {Kind} kind
 * @property {string} title
 * @property {string} hint
 * @property {boolean} required
 * @property {boolean} nullable
 * @property {Schema} schema
 * @property {{value: any, title: string}[]} options
 * @property {Field[]} fields of an object
 * @property {Field | null} item of an array
 */
/** What was typed: text, ticks, drafts of fields, or drafts of items. @typedef {any} Draft */
/** @typedef {{field: string, message: string}} Misfit */

const DEEPEST = 8;
const MOST = 300; // fields of one form: a schema that refers to itself could make any number
const EMPTY = { options: [], fields: [], item: null };
const FORMATS = /** @type {Record<string, [RegExp, string]>} */ ({
  email: [/^[^\s@]+@[^\s@]+$/, "an email address"],
  uri: [/^[a-z][a-z\d+.-]*:[^\s]+$/i, "an address with its scheme, such as https://…"],
  date: [/^\d{4}-\d\d-\d\d$/, "a date"],
  "date-time": [/^\d{4}-\d\d-\d\dT\d\d:\d\d/, "a date and a time"],
});

/**
 * The field of a schema.
 * @param {Schema | boolean | undefined} schema
 * @param {string} [name]
 * @param {boolean} [required]
 * @returns {Field}
 */
export function fieldOf(schema, name = "", required = true) {
  const root = typeof schema === "object" ? schema : {};
  return made(root, { root, name, required, depth: 0, left: { fields: MOST } });
}

/** @typedef {{root: Schema, name: string, required: boolean, depth: number, left: {fields: number}}} Place */

/** @param {Schema} given @param {Place} place @returns {Field} */
function made(given, place) {
  const { schema, nullable } = plain(given, place.root);
  const { name, required } = place;
  const field = {
    name,
    required,
    nullable,
    schema,
    title: text(schema.title) || name,
    hint: text(schema.description),
  };
  const options = choices(schema);
  if (options) return { ...field, ...EMPTY, kind: "choice", options };
  const inside = place.depth < DEEPEST && place.left.fields-- > 0 ? structure(schema, place) : null;
  if (inside) return { ...field, ...EMPTY, ...inside };
  const kinds = /** @type {Record<string, Kind>} */ ({
    string: "text",
    number: "number",
    integer: "number",
    boolean: "boolean",
  });
  return { ...field, ...EMPTY, kind: kinds[schema.type] ?? "json" };
}

/** @param {Schema} schema @param {Place} place @returns {{kind: Kind} & Partial<Field> | null} */
function structure(schema, place) {
  const deeper = { ...place, depth: place.depth + 1 };
  const named = isObject(schema.properties) ? Object.entries(schema.properties) : null;
  if (schema.type === "object" && named && !isObject(schema.additionalProperties)) {
    const must = new Set(Array.isArray(schema.required) ? schema.required : []);
    const fields = named.map(([name, one]) =>
      made(isObject(one) ? one : {}, { ...deeper, name, required: must.has(name) }),
    );
    return { kind: "object", fields };
  }
  if (schema.type !== "array" || !isObject(schema.items)) return null;
  const options = choices(plain(schema.items, place.root).schema);
  if (options && schema.uniqueItems !== false) return { kind: "choices", options };
  return { kind: "array", item: made(schema.items, { ...deeper, name: "", required: true }) };
}

/**
 * The schema behind references, and whether it may be null.
 * @param {Schema} given
 * @param {Schema} root
 * @returns {{schema: Schema, nullable: boolean}}
 */
function plain(given, root) {
  let [schema, nullable] = [given, false];
  for (let step = 0; step < DEEPEST; step++) {
    const some = schema.anyOf ?? schema.oneOf;
    const rest = Array.isArray(some) ? some.filter((one) => one?.type !== "null") : [];
    if (typeof schema.$ref === "string") schema = over(schema, "$ref", pointed(root, schema.$ref));
    else if (Array.isArray(schema.allOf) && schema.allOf.length === 1)
      schema = over(schema, "allOf", schema.allOf[0]);
    else if (rest.length === 1 && rest.length < some.length) {
      nullable = true;
      schema = over(schema, schema.anyOf ? "anyOf" : "oneOf", rest[0]);
    } else if (Array.isArray(schema.type) && schema.type.length === 2 && schema.type.includes("null")) {
      nullable = true;
      schema = { ...schema, type: schema.type.find((/** @type {string} */ one) => one !== "null") };
    } else break;
  }
  return { schema, nullable };
}

/** @param {Schema} schema @param {string} key @param {any} inner @returns {Schema} */
const over = (schema, key, inner) => ({ ...(isObject(inner) ? inner : {}), ...schema, [key]: undefined });

/** @param {Schema} root @param {string} ref */
function pointed(root, ref) {
  const steps = ref.startsWith("#/") ? ref.slice(2).split("/") : [""];
  return steps.reduce(
    (/** @type {any} */ at, step) => at?.[step.replaceAll("~1", "/").replaceAll("~0", "~")],
    root,
  );
}

/** Values to choose from: enum with or without names, or titled constants. @param {Schema} schema */
function choices(schema) {
  const names = Array.isArray(schema.enumNames) ? schema.enumNames : [];
  if (Array.isArray(schema.enum))
    return schema.enum.map((value, at) => ({ value, title: text(names[at]) || spelt(value) }));
  const titled = schema.oneOf ?? schema.anyOf;
  if (!Array.isArray(titled) || !titled.length || !titled.every((one) => isObject(one) && "const" in one))
    return null;
  return titled.map((one) => ({ value: one.const, title: text(one.title) || spelt(one.const) }));
}

/**
 * What stands in a field that has this value; without one, its default. "" is nothing, null is null.
 * @param {Field} field
 * @param {any} [value]
 * @returns {Draft}
 */
export function draftOf(field, value = field.schema.default) {
  if (value === null && field.nullable) return null;
  const at = (/** @type {any} */ one) => field.options.findIndex((option) => isSame(option.value, one));
  switch (field.kind) {
    case "object":
      if (!isObject(value) && !field.required) return "";
      return Object.fromEntries(
        field.fields.map((one) => [one.name, isObject(value) ? member(one, value) : draftOf(one)]),
      );
    case "array":
      return Array.isArray(value) ? value.map((one) => draftOf(/** @type {Field} */ (field.item), one)) : [];
    case "choice":
      return at(value) < 0 ? "" : String(at(value));
    case "choices":
      return Array.isArray(value)
        ? value
            .map(at)
            .filter((one) => one >= 0)
            .map(String)
        : [];
    case "boolean":
      return typeof value === "boolean" ? String(value) : field.required ? "false" : "";
    case "text":
      return typeof value === "string" ? value : "";
    default:
      return value === undefined ? "" : JSON.stringify(value, null, 2);
  }
}

/** What was left out of a value stays empty, whatever its default. @param {Field} field @param {Schema} whole */
const member = (field, whole) =>
  draftOf({ ...field, schema: { ...field.schema, default: undefined } }, whole[field.name]);

/**
 * The value of a draft; undefined where nothing was given. What does not fit is added to `wrong`.
 * @param {Field} field
 * @param {Draft} draft
 * @param {Misfit[]} wrong
 * @param {string} [path]
 * @returns {any}
 */
export function valueOf(field, draft, wrong, path = "") {
  const bad = (/** @type {string} */ message) => void wrong.push({ field: path, message });
  const inner = (/** @type {Field} */ one, /** @type {Draft} */ its, /** @type {string | number} */ name) =>
    valueOf(one, its, wrong, path ? `${path}.${name}` : String(name));
  if (draft === null && field.nullable) return null;
  if (Array.isArray(draft)) return several(field, draft, bad, inner);
  if (draft === "" || draft == null) return field.required ? bad("is required") : undefined;
  if (field.kind !== "object") return SINGLE[field.kind](field, String(draft), bad);
  const pairs = field.fields.map((one) => [one.name, inner(one, draft[one.name], one.name)]);
  return Object.fromEntries(pairs.filter(([, value]) => value !== undefined));
}

/**
 * Whether a form of this field shows this value whole; else it must be edited as JSON, or something is lost.
 * @param {Field} field
 * @param {any} value
 */
export function fits(field, value) {
  /** @type {Misfit[]} */ const wrong = [];
  return (
    value === undefined || (isSame(valueOf(field, draftOf(field, value), wrong), value) && !wrong.length)
  );
}

/** @typedef {(message: string) => undefined} Bad */

/** @param {Field} field @param {Draft[]} draft @param {Bad} bad @param {(one: Field, its: Draft, name: number) => any} inner */
function several(field, draft, bad, inner) {
  const { minItems = 0, maxItems = Infinity } = field.schema;
  if (!draft.length && !field.required) return undefined;
  if (draft.length < minItems) return bad(`needs at least ${minItems}`);
  if (draft.length > maxItems) return bad(`takes at most ${maxItems}`);
  if (field.kind === "choices")
    return field.options.filter((_, at) => draft.includes(String(at))).map((one) => one.value);
  return draft.map((one, at) => inner(/** @type {Field} */ (field.item), one, at));
}

/** @type {Record<string, (field: Field, draft: string, bad: Bad) => any>} */
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
    const [pattern, what] = FORMATS[schema.format] ?? [/^/, ""];
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

/** A value as JSON. @param {any} value */
export const spelt = (value) => (typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? ""));

/** @param {any} a @param {any} b */
const isSame = (a, b) => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));

/** @param {any} value @returns {any} the same with its keys in order */
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  );
}

/** @param {any} value */
const isObject = (value) =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !isRaw(value);

/** @param {any} value @returns {string} */
const text = (value) => (typeof value === "string" ? value : "");
