// A schema as a form: fields that keep their draft over a reload, and say what is wrong where it is wrong.

import { h } from "./dom.js";
import { isRedacted, joined, redactedIn } from "./exact.js";
import { draftOf, fieldOf, fits, isLocal, valueOf } from "./schema.js";
import { signal } from "./signal.js";
import { visible } from "./text.js";

/** @typedef {{errors: Signal<Misfit[]>, paths: Set<string>, save: () => void}} Form */
/** Where a draft is. @typedef {{form: Form, path: string, read: () => any, write: (draft: any) => void, at: (name: string | number) => Spot}} Spot */
/** @typedef {{key: string, value?: Json}} Of whose draft it is, and what stands in it at first */

const INPUTS = new Map(Object.entries({ email: "email", uri: "url", date: "date", "date-time": "datetime-local" }));
const DEEP = new Set(["object", "array", "choices"]);
const TEXT = fieldOf({ title: "As JSON" });
let count = 0;

/** A form for a schema: fields, or one JSON text where fields cannot show all of it. @param {Schema | undefined} schema @param {Of} of */
export function form(schema, of) {
  const whole = fieldOf(schema);
  const { kept, canShow, save, forget } = stored(whole, of, hash(JSON.stringify(schema) ?? ""));
  const [isJson, errors] = [signal(kept.isJson), signal(/** @type {Misfit[]} */ ([]))];
  const taken = () => {
    /** @type {Misfit[]} */ const wrong = [];
    return { wrong, value: valueOf(isJson.peek() ? TEXT : whole, kept.draft, wrong) };
  };
  const read = () => {
    const { wrong, value } = taken();
    for (const path of redactedIn(value)) wrong.push({ field: path, message: "is not shown here: give it anew" });
    errors.set(wrong);
    return wrong.length ? null : { value };
  };
  const turn = () => {
    const { wrong, value } = taken();
    if (!wrong.length && !fits(whole, value)) wrong.push({ field: "", message: "A form cannot show all of it" });
    errors.set(wrong);
    if (wrong.length) return;
    kept.isJson = !isJson.peek();
    kept.draft = draftOf(kept.isJson ? TEXT : whole, value);
    save();
    isJson.set(kept.isJson);
  };
  const spot = spotOf({ errors, paths: new Set(), save }, "", () => kept, "draft");
  const body = () => (spot.form.paths.clear(), isJson() ? shown(TEXT, spot) : inner(whole, spot));
  const other = canShow && button(() => (isJson() ? "Edit as a form" : "Edit as JSON"), turn);
  const node = h("div.form", () => general(spot.form), body, whole.fields.length > 0 && other);
  return { node, read, forget, show: (/** @type {Json[]} */ found) => errors.set(found.flatMap(told)) };
}

/** What the gateway found wrong at a field, which it names by a path or a pointer. @param {Json} found @returns {Misfit[]} */
const told = ({ field, message }) =>
  field ? [{ field: field.replace(/^\//, "").replaceAll("/", "."), message: visible(message, 1000) }] : [];

/** What stands in a form: kept over a reload, unless there is a secret in it. @param {Field} whole @param {Of} of @param {number} mark of its schema */
function stored(whole, { key, value }, mark) {
  const place = `afoot:draft:${key}:${mark}`;
  const canShow = whole.kind === "object" && fits(whole, value);
  const first = { isJson: !canShow, draft: canShow ? draftOf(whole, value) : draftOf(TEXT, value ?? {}) };
  /** @type {typeof first} */ const kept = JSON.parse(sessionStorage.getItem(place) ?? "null") ?? first;
  const isSecret = hasSecret(whole) || redactedIn(value).length > 0;
  const save = () => {
    try {
      if (!isSecret) sessionStorage.setItem(place, JSON.stringify(kept));
    } catch {
      // The browser has no room: then the draft lives as long as the page.
    }
  };
  return { kept, canShow, save, forget: () => sessionStorage.removeItem(place) };
}

/** What is wrong with no field that is shown. @param {Form} form */
function general({ errors, paths }) {
  const rest = errors().filter((one) => !paths.has(one.field));
  const lines = rest.map(({ field, message }) => h("li", `${field} ${message}`));
  return lines.length ? h("ul.wrong", { role: "alert" }, ...lines) : null;
}

/** The fields of an object. @param {Field} field @param {Spot} spot */
const inner = ({ fields }, spot) => h("div.fields", ...fields.map((one) => shown(one, spot.at(one.name))));

/** A field with label, hint and error. @param {Field} given @param {Spot} spot */
function shown(given, spot) {
  const { form, path, read } = spot;
  form.paths.add(path);
  const field = isRedacted(read()) ? hidden(given) : given;
  const [id, isGroup] = [`field-${++count}`, DEEP.has(field.kind)];
  const error = () => form.errors().find((one) => one.field === path)?.message;
  const described = { id, "aria-describedby": `${id}-about`, "aria-required": field.required ? "true" : null };
  const about = { ...described, "aria-invalid": () => (error() ? "true" : null) };
  const own = { ...spot, read: () => (isRedacted(read()) ? "" : read()) };
  const isNull = signal(field.nullable && read() === null);
  const control = () => (isNull() ? null : CONTROLS[field.kind](field, own, about));
  const title = [field.title || "item", field.required && field.name && h("span.needed", " (required)")];
  const label = isGroup ? h("legend", ...title) : h("label", { for: id }, ...title);
  const none = field.nullable && nullBox(field, spot, isNull);
  const hint = h("p.about", { id: `${id}-about` }, field.hint, () => error() && h("strong.wrong", ` ${error()}`));
  return h(isGroup ? "fieldset.field" : "div.field", label, none, control, hint);
}

/** A field whose value is not shown: it begins empty, as JSON where there would be more fields. @param {Field} field */
function hidden(field) {
  const kind = DEEP.has(field.kind) ? "json" : field.kind;
  return { ...field, kind, required: true, secret: true };
}

/** Whether it is null. @param {Field} field @param {Spot} spot @param {Signal<boolean>} isNull */
function nullBox(field, spot, isNull) {
  const turn = (/** @type {boolean} */ is) => {
    spot.write(is ? null : draftOf({ ...field, nullable: false }, field.schema.default ?? undefined));
    isNull.set(is);
  };
  return h("label", tick(isNull.peek(), turn), "no value (null)");
}

/** @type {Record<Kind, (field: Field, spot: Spot, about: Props) => HTMLElement>} */
const CONTROLS = {
  text({ schema, secret }, spot, about) {
    const isZoned = schema.format === "date-time" && spot.read() && !isLocal(spot.read());
    const type = secret ? "password" : isZoned ? "text" : INPUTS.get(schema.format);
    if (type || schema.maxLength <= 200) return input(spot, { ...about, type: type ?? "text", step: 1 });
    return h("textarea", { ...about, rows: 1, ".value": spot.read(), oninput: typing(spot) });
  },
  number({ schema, secret }, spot, about) {
    const inputmode = schema.type === "integer" ? "numeric" : "decimal";
    return input(spot, { ...about, type: secret ? "password" : "text", inputmode });
  },
  boolean({ required, secret }, spot, about) {
    if (!required || secret) return select(["true", "false"], ["yes", "no"], spot, about);
    return tick(spot.read() === "true", (is) => spot.write(String(is)), about);
  },
  choice({ options }, spot, about) {
    const titles = options.map((one) => one.title);
    return select(Object.keys(titles), titles, spot, about);
  },
  choices({ options }, spot, about) {
    const others = (/** @type {string} */ one) => spot.read().filter((/** @type {string} */ other) => other !== one);
    const box = (/** @type {[string, {title: string}]} */ [one, { title }]) => {
      const turn = (/** @type {boolean} */ is) => spot.write(is ? [...others(one), one] : others(one));
      return h("label", tick(spot.read().includes(one), turn), title);
    };
    return h("div", { ...about, role: "group" }, ...Object.entries(options).map(box));
  },
  object(field, spot) {
    const has = signal(spot.read() !== "");
    const turn = () => {
      spot.write(has.peek() ? "" : draftOf({ ...field, required: true }));
      has.set(!has.peek());
    };
    const fields = () => (has() ? inner(field, spot) : null);
    return h("div", fields, !field.required && button(() => (has() ? "Leave out" : "Add"), turn));
  },
  array(field, spot) {
    const item = /** @type {Field} */ (field.item);
    const changed = signal(0);
    const set = (/** @type {any[]} */ drafts) => {
      spot.write(drafts);
      spot.form.errors.set([]); // their paths may be those of others now
      changed.touch();
    };
    const add = button("Add", () => set([...spot.read(), draftOf(item)]), `Add ${field.title}`);
    const row = (/** @type {unknown} */ _, /** @type {number} */ number) => {
      const title = `${field.title} ${number + 1}`;
      const drop = () => (set(spot.read().toSpliced(number, 1)), add.focus());
      return h("li", shown({ ...item, title }, spot.at(number)), button("Remove", drop, `Remove ${title}`));
    };
    return h("div", () => (changed(), h("ol", ...spot.read().map(row))), add);
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
const tick = (is, turn, about) =>
  h("input", { ...about, type: "checkbox", ".checked": is, onchange: ({ target }) => turn(target.checked) });

/** @param {Spot} spot */
const typing = ({ write }) => (/** @type {any} */ { target }) => write(target.value); // prettier-ignore

/** @param {Spot} spot @param {Props} props */
const input = (spot, props) =>
  h("input", { ...props, autocomplete: "off", ".value": spot.read(), oninput: typing(spot) });

/** @param {string[]} values @param {string[]} titles @param {Spot} spot @param {Props} about */
function select(values, titles, spot, about) {
  const option = (/** @type {string} */ value, /** @type {string} */ title) =>
    h("option", { value, ".selected": value === spot.read() }, title);
  const options = values.map((value, at) => option(value, titles[at]));
  return h("select", { ...about, onchange: typing(spot) }, option("", "—"), ...options);
}

/** @param {Form} form @param {string} path @param {() => any} holder @param {string | number} key @returns {Spot} */
function spotOf(form, path, holder, key) {
  const read = () => holder()[key];
  const write = (/** @type {any} */ draft) => void ((holder()[key] = draft), form.save());
  return { form, path, read, write, at: (name) => spotOf(form, joined(path, name), read, name) };
}

/** @param {Field} field @returns {boolean} */
const hasSecret = ({ secret, fields, item }) => secret || fields.some(hasSecret) || (item !== null && hasSecret(item));

/** @param {string} text */
const hash = (text) => [...text].reduce((sum, char) => (sum * 31 + (char.codePointAt(0) ?? 0)) | 0, 0);
