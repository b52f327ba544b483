// A schema as a form: fields that keep their draft over a reload, and say what is wrong where it is wrong.

import { h } from "./dom.js";
import { visible } from "./parts.js";
import { draftOf, fieldOf, fits, isLocal, valueOf } from "./schema.js";
import { signal } from "./signal.js";

/** @typedef {import("./schema.js").Field} Field */
/** @typedef {import("./schema.js").Misfit} Misfit */
/** @typedef {{read: () => any, write: (draft: any) => void}} Spot where a draft is */
/** @typedef {{errors: import("./signal.js").Signal<Misfit[]>, paths: Set<string>, save: () => void}} Form */

const LONGEST = 200_000; // characters of a draft that is kept
const INPUTS = /** @type {Record<string, string>} */ ({
  email: "email",
  uri: "url",
  date: "date",
  "date-time": "datetime-local",
});
let count = 0;

/**
 * A form for a schema: fields, or one JSON text where fields cannot show all of it.
 * @param {import("./schema.js").Schema | undefined} schema
 * @param {{key: string, value?: any}} of `key`: whose draft it is; `value`: what stands in it at first
 */
export function form(schema, { key, value }) {
  const [field, text] = [fieldOf(schema), { ...fieldOf({ title: "As JSON" }), required: true }];
  const canShow = field.kind === "object" && fits(field, value);
  const place = `afoot:draft:${key}:${hash(JSON.stringify(schema) ?? "")}`; // another schema, another draft
  const first = {
    isJson: !canShow,
    draft: draftOf(field, value),
    text: JSON.stringify(value ?? {}, null, 2),
  };
  const kept = recall(place) ?? first;
  const isJson = signal(Boolean(kept.isJson || !canShow));
  /** @type {Form} */ const own = {
    errors: signal(/** @type {Misfit[]} */ ([])),
    paths: new Set(),
    save: () => keep(place, kept),
  };
  const read = () => {
    /** @type {Misfit[]} */ const wrong = [];
    const found = isJson.peek() ? valueOf(text, kept.text, wrong) : valueOf(field, kept.draft, wrong);
    own.errors.set(wrong);
    return wrong.length ? null : { value: found };
  };
  const turn = () => turned(kept, field, read()?.value, own) && isJson.set(kept.isJson);
  const source = at(() => kept, "text", own);
  const body = () => (isJson() ? shown(text, "", source, own) : inner(field, "", () => kept.draft, own));
  const other = canShow && button(() => (isJson() ? "Edit as a form" : "Edit as JSON"), turn);
  const node = h("div", { class: "form" }, () => general(own), body, field.fields.length > 0 && other);
  return { node, read, show: own.errors.set, forget: () => sessionStorage.removeItem(place) };
}

/** Write it the other way; only what can be read is taken over. @param {any} kept @param {Field} field @param {any} value @param {Form} form */
function turned(kept, field, value, form) {
  if (value === undefined) return false;
  if (kept.isJson && !fits(field, value))
    form.errors.set([{ field: "", message: "It holds more than the form can show" }]);
  else if (kept.isJson) Object.assign(kept, { isJson: false, draft: draftOf(field, value) });
  else Object.assign(kept, { isJson: true, text: JSON.stringify(value, null, 2) });
  form.save();
  return true;
}

/** What is wrong with no field that is shown. @param {Form} form */
function general(form) {
  const rest = form.errors().filter((one) => !form.paths.has(one.field));
  const lines = rest.map(({ field, message }) => h("li", null, visible(`${field} ${message}`)));
  return lines.length ? h("ul", { class: "wrong", role: "alert" }, ...lines) : null;
}

/** The fields of an object. @param {Field} field @param {string} path @param {() => any} holder @param {Form} form */
function inner(field, path, holder, form) {
  const pathOf = (/** @type {Field} */ one) => (path ? `${path}.${one.name}` : one.name);
  const fields = field.fields.map((one) => shown(one, pathOf(one), at(holder, one.name, form), form));
  return h("div", { class: "fields" }, ...fields);
}

/** A field with label, hint and error. @param {Field} field @param {string} path @param {Spot} spot @param {Form} form */
function shown(field, path, spot, form) {
  const id = `field-${++count}`;
  form.paths.add(path);
  const error = () => form.errors().find((one) => one.field === path)?.message ?? "";
  const described = { id, "aria-describedby": `${id}-about`, "aria-required": field.required || null };
  const about = { ...described, "aria-invalid": () => (error() ? "true" : null) };
  const isNull = signal(field.nullable && spot.read() === null);
  const control = () =>
    isNull() ? h("output", about, "null") : CONTROLS[field.kind](field, path, spot, { form, about });
  const needed = field.required && h("span", { class: "needed" }, " (required)");
  const title = [visible(field.title) || "item", needed];
  const isGroup = ["object", "array", "choices"].includes(field.kind);
  const label = isGroup ? h("legend", null, ...title) : h("label", { for: id }, ...title);
  const wrong = () => error() && h("strong", { class: "wrong" }, ` ${visible(error())}`);
  const hint = h("p", { id: `${id}-about`, class: "about" }, visible(field.hint), wrong);
  const none = field.nullable && nullBox(field, spot, isNull);
  return h(isGroup ? "fieldset" : "div", { class: "field" }, label, none, control, hint);
}

/** Whether it is null. @param {Field} field @param {Spot} spot @param {import("./signal.js").Signal<boolean>} isNull */
function nullBox(field, spot, isNull) {
  const onchange = () => {
    const first = draftOf({ ...field, nullable: false }, field.schema.default ?? undefined);
    spot.write(isNull.peek() ? first : null);
    isNull.set(!isNull.peek());
  };
  return h("label", null, h("input", { type: "checkbox", ".checked": isNull.peek(), onchange }), "null");
}

/** @typedef {{form: Form, about: Record<string, any>}} Around */
/** @type {Record<import("./schema.js").Kind, (field: Field, path: string, spot: Spot, around: Around) => HTMLElement>} */
const CONTROLS = {
  text({ schema }, _, spot, { about }) {
    const type =
      schema.format === "date-time" && spot.read() && !isLocal(spot.read()) ? "text" : INPUTS[schema.format];
    const given = { ...about, ".value": spot.read(), oninput: typing(spot) };
    if (type || schema.maxLength <= 200) return h("input", { ...given, type: type ?? "text", step: 1 });
    return h("textarea", { ...given, rows: 1 });
  },
  number({ schema }, _, spot, { about }) {
    const inputmode = schema.type === "integer" ? "numeric" : "decimal";
    return h("input", { ...about, type: "text", inputmode, ".value": spot.read(), oninput: typing(spot) });
  },
  boolean({ required }, _, spot, { about }) {
    if (!required) return select(["—", "yes", "no"], ["", "true", "false"], spot, about);
    const onchange = (/** @type {any} */ { target }) => spot.write(String(target.checked));
    return h("input", { ...about, type: "checkbox", ".checked": spot.read() === "true", onchange });
  },
  choice({ options }, _, spot, { about }) {
    const titles = options.map((one) => one.title);
    return select(["—", ...titles], ["", ...titles.map((_, at) => String(at))], spot, about);
  },
  choices({ options }, _, spot, { about }) {
    const boxes = options.map(({ title }, number) => {
      const one = String(number);
      const others = () => spot.read().filter((/** @type {string} */ other) => other !== one);
      const onchange = (/** @type {any} */ { target }) =>
        spot.write(target.checked ? [...others(), one] : others());
      return h(
        "label",
        null,
        h("input", { type: "checkbox", ".checked": spot.read().includes(one), onchange }),
        visible(title),
      );
    });
    return h("div", { ...about, role: "group" }, ...boxes);
  },
  object(field, path, spot, { form }) {
    const has = signal(spot.read() !== "");
    const turn = () => {
      spot.write(has.peek() ? "" : draftOf({ ...field, required: true }));
      has.set(!has.peek());
    };
    const fields = () => (has() ? inner(field, path, spot.read, form) : null);
    return h("div", null, fields, !field.required && button(() => (has() ? "Leave out" : "Add"), turn));
  },
  array(field, path, spot, { form }) {
    const [item, changed] = [/** @type {Field} */ (field.item), signal(0)];
    const set = (/** @type {any[]} */ drafts) => {
      spot.write(drafts);
      form.errors.set([]); // their paths may be those of others now
      changed.touch();
    };
    const row = (/** @type {unknown} */ _, /** @type {number} */ number) => {
      const title = `${field.title} ${number + 1}`;
      const drop = () =>
        set(spot.read().filter((/** @type {any} */ _, /** @type {number} */ other) => other !== number));
      const one = shown({ ...item, title }, `${path}.${number}`, at(spot.read, number, form), form);
      return h("li", null, one, button("Remove", drop, `Remove ${visible(title)}`));
    };
    const rows = () => (changed(), h("ol", null, ...spot.read().map(row)));
    return h(
      "div",
      null,
      rows,
      button("Add", () => set([...spot.read(), draftOf(item)]), `Add ${visible(field.title)}`),
    );
  },
  json(field, path, spot, { form, about }) {
    const oninput = (/** @type {any} */ { target }) => {
      spot.write(target.value);
      const wrong = form.errors.peek().filter((one) => one.field !== path);
      valueOf(field, target.value, wrong, path);
      form.errors.set(wrong);
    };
    return h("textarea", {
      ...about,
      class: "code",
      rows: 4,
      spellcheck: "false",
      ".value": spot.read(),
      oninput,
    });
  },
};

/** @param {string | (() => string)} text @param {() => void} onclick @param {string} [label] */
const button = (text, onclick, label) =>
  h("button", { type: "button", class: "quiet", onclick, "aria-label": label }, text);

/** @param {Spot} spot */
const typing =
  (spot) =>
  (/** @type {any} */ { target }) =>
    spot.write(target.value);

/** @param {string[]} titles @param {string[]} values @param {Spot} spot @param {Record<string, any>} about */
function select(titles, values, spot, about) {
  const options = values.map((value, number) =>
    h("option", { value, ".selected": value === spot.read() }, visible(titles[number])),
  );
  return h("select", { ...about, onchange: typing(spot) }, ...options);
}

/** @param {() => any} holder @param {string | number} key @param {Form} form @returns {Spot} */
const at = (holder, key, form) => ({
  read: () => holder()[key],
  write: (draft) => void ((holder()[key] = draft), form.save()),
});

/** @param {string} text */
const hash = (text) => [...text].reduce((sum, char) => (sum * 31 + (char.codePointAt(0) ?? 0)) | 0, 0);

/** @param {string} key @returns {any} */
function recall(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

/** @param {string} key @param {any} draft */
function keep(key, draft) {
  const text = JSON.stringify(draft);
  try {
    if (text.length <= LONGEST) sessionStorage.setItem(key, text);
  } catch {
    // The browser has no room: then the draft lives as long as the page.
  }
}
