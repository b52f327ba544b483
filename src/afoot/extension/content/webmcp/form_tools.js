// FormTools: forms with `toolname` and `tooldescription` as tools, where the browser has no WebMCP (B3). A run fills in
// the form. It is sent at once with `toolautosubmit`, and else by a person. `SubmitEvent.respondWith` gives the result.
"use strict";
(() => {
  /** @type {Modules} */
  const modules = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.modules")];
  const { abort, AbortController, apply, attribute, defineProperty, dispatch, DOMException, Event } =
    modules.builtins;
  const { getOwnPropertyDescriptor, hasOwn, isAborted, isArray, listen, method, reason } = modules.builtins;
  const { setTimeout, signal, slice, String } = modules.builtins;
  const { encode } = modules.encoding;
  const { accessorDescriptor, hiddenProperty } = modules.events;
  const world = /** @type {any} */ (globalThis);
  const { MutationObserver, Promise, WeakMap } = world;
  // A frame without a page has no forms, and Node has none of these.
  if (!world.HTMLFormElement || !world.SubmitEvent) return;

  const UPDATE_DELAY_MS = 200; // a page may change all the time, and each look costs a search
  const WATCHED_ATTRIBUTES = [
    ...["toolname", "tooldescription", "tooltitle", "toolautosubmit", "toolparamdescription"],
    ...["name", "type", "value", "required", "disabled", "min", "max", "maxlength", "multiple"],
  ];
  const MAX_CHOICES = 200;
  const MAX_TEXT = 1000;
  /** Types of inputs that an agent does not fill in. @type {Record<string, boolean>} */
  const LEFT_OUT = /** @type {any} */ ({
    __proto__: null,
    ...{ submit: true, button: true, reset: true, image: true, hidden: true, file: true },
  });
  /** Formats of JSON Schema, by type of input. @type {Record<string, string>} */
  const FORMATS = /** @type {any} */ ({ __proto__: null, email: "email", url: "uri", date: "date" });

  const trim = method(String.prototype, "trim");
  const mapGet = method(WeakMap.prototype, "get");
  const mapSet = method(WeakMap.prototype, "set");
  const mapDelete = method(WeakMap.prototype, "delete");
  const findAll = method(world.Document.prototype, "querySelectorAll");
  const getAttribute = method(world.Element.prototype, "getAttribute");
  const hasAttribute = method(world.Element.prototype, "hasAttribute");
  const localName = attribute(world.Element.prototype, "localName");
  const textContent = attribute(world.Node.prototype, "textContent");
  const controlsOf = attribute(world.HTMLFormElement.prototype, "elements");
  const checkValidity = method(world.HTMLFormElement.prototype, "checkValidity");
  const requestSubmit = method(world.HTMLFormElement.prototype, "requestSubmit");
  const inputType = attribute(world.HTMLInputElement.prototype, "type");
  const optionsOf = attribute(world.HTMLSelectElement.prototype, "options");
  const optionValue = attribute(world.HTMLOptionElement.prototype, "value");
  const eventTarget = attribute(Event.prototype, "target");
  const observe = method(MutationObserver.prototype, "observe");

  /** Sets an attribute by the browser's own setter: frameworks put others on single elements. */
  const setter = (/** @type {any} */ kind, /** @type {string} */ name) => {
    const own = /** @type {any} */ (getOwnPropertyDescriptor(kind.prototype, name)).set;
    return (/** @type {any} */ self, /** @type {any} */ value) => apply(own, self, [value]);
  };
  const setChecked = setter(world.HTMLInputElement, "checked");
  const setSelected = setter(world.HTMLOptionElement, "selected");
  /** @type {Record<string, (self: any, value: any) => void>} */
  const setValue = /** @type {any} */ ({
    __proto__: null,
    input: setter(world.HTMLInputElement, "value"),
    textarea: setter(world.HTMLTextAreaElement, "value"),
  });

  /** A control of a form: its element, its tag (input, select, textarea) and its type. */
  /** @typedef {{element: any, name: string, tag: string, type: string}} Control */

  /** The controls that can be filled in, each under an index. @param {any} form */
  const readControls = (form) => {
    const elements = controlsOf(form);
    const found = /** @type {any} */ ({ __proto__: null });
    let count = 0;
    for (let i = 0; elements[i] !== undefined; i += 1) {
      const element = elements[i];
      const tag = localName(element);
      const name = getAttribute(element, "name");
      if (!name || hasAttribute(element, "disabled")) continue;
      if (tag !== "input" && tag !== "select" && tag !== "textarea") continue;
      const type = tag === "input" ? inputType(element) : tag;
      if (LEFT_OUT[type]) continue;
      found[count] = { element, name, tag, type };
      count += 1;
    }
    return found;
  };

  /** The JSON Schema of a form's input. @param {any} form */
  const readSchema = (form) => {
    const properties = /** @type {any} */ ({ __proto__: null });
    const required = /** @type {any[]} */ ([]);
    const controls = readControls(form);
    for (const i in controls) {
      /** @type {Control} */
      const control = controls[i];
      properties[control.name] = fieldSchema(control, properties[control.name]);
      if (hasAttribute(control.element, "required") && !properties[control.name].isRequired) {
        properties[control.name].isRequired = true;
        append(required, control.name);
      }
    }
    for (const name in properties) {
      delete properties[name].isRequired;
      delete properties[name].first;
    }
    return { __proto__: null, type: "object", properties, required };
  };

  /** @param {any[]} list @param {any} value */
  const append = (list, value) => defineProperty(list, list.length, hiddenProperty(value, true, true));

  /**
   * The schema of a field. Radio buttons, and check boxes, of one name are one field.
   * @param {Control} control @param {any} before the schema by the controls of the same name before
   */
  const fieldSchema = (control, before) => {
    const { element, tag, type } = control;
    const schema = /** @type {any} */ ({ __proto__: null });
    const description =
      before?.description || getAttribute(element, "toolparamdescription") || labelOf(element);
    if (description) schema.description = description;
    if (before?.isRequired) schema.isRequired = true;
    const describe = DESCRIBED_BY_TYPE[type] ?? (tag === "select" ? describeSelect : describeText);
    describe(schema, control, before);
    return schema;
  };

  /** @param {any} schema @param {Control} control @param {any} before */
  const describeRadio = (schema, { element }, before) => {
    schema.type = "string";
    schema.enum = withChoice(before?.enum, buttonValue(element));
  };

  /** @param {any} schema @param {Control} control @param {any} before */
  const describeCheckbox = (schema, { element }, before) => {
    schema.type = before === undefined ? "boolean" : "array";
    if (before === undefined) {
      schema.first = buttonValue(element);
      return;
    }
    const values = before.items?.enum ?? withChoice(undefined, before.first);
    schema.items = { __proto__: null, type: "string", enum: withChoice(values, buttonValue(element)) };
  };

  /** @param {any} schema @param {Control} control */
  const describeSelect = (schema, { element }) => {
    const isMultiple = hasAttribute(element, "multiple");
    const choices = isMultiple ? (schema.items = /** @type {any} */ ({ __proto__: null })) : schema;
    if (isMultiple) schema.type = "array";
    choices.type = "string";
    choices.enum = optionValues(element);
  };

  /** @param {any} schema @param {Control} control */
  const describeNumber = (schema, { element }) => {
    schema.type = "number";
    addNumber(schema, "minimum", getAttribute(element, "min"));
    addNumber(schema, "maximum", getAttribute(element, "max"));
  };

  /** @param {any} schema @param {Control} control */
  const describeText = (schema, { element, type }) => {
    schema.type = "string";
    if (FORMATS[type]) schema.format = FORMATS[type];
    addNumber(schema, "maxLength", getAttribute(element, "maxlength"));
  };

  /** @type {Record<string, (schema: any, control: Control, before: any) => void>} */
  const DESCRIBED_BY_TYPE = /** @type {any} */ ({
    __proto__: null,
    ...{ radio: describeRadio, checkbox: describeCheckbox, number: describeNumber, range: describeNumber },
  });

  /** The value of a radio button or a check box. @param {any} element */
  const buttonValue = (element) => getAttribute(element, "value") ?? "on";

  /** @param {any} schema @param {string} name @param {string | null} text */
  const addNumber = (schema, name, text) => {
    const value = text === null || text === "" ? NaN : +text;
    if (modules.builtins.isFinite(value)) schema[name] = value;
  };

  /** @param {any[] | undefined} choices @param {string} value */
  const withChoice = (choices, value) => {
    const list = /** @type {any[]} */ ([]);
    for (let i = 0; i < (choices?.length ?? 0); i += 1) append(list, /** @type {any[]} */ (choices)[i]);
    if (list.length < MAX_CHOICES) append(list, value);
    return list;
  };

  /** @param {any} select */
  const optionValues = (select) => {
    const options = optionsOf(select);
    const values = /** @type {any[]} */ ([]);
    for (let i = 0; options[i] !== undefined && i < MAX_CHOICES; i += 1)
      append(values, optionValue(options[i]));
    return values;
  };

  /** The text beside a control: its label, or what stands in it. @param {any} element */
  const labelOf = (element) => {
    const label = element.labels?.[0];
    const text = label ? textContent(label) : null;
    const found = getAttribute(element, "aria-label") || text || getAttribute(element, "placeholder") || "";
    return slice(trim(String(found)), 0, MAX_TEXT);
  };

  /** Fills in the controls of a form. @param {any} form @param {any} input */
  const fillIn = (form, input) => {
    const controls = readControls(form);
    for (const i in controls) {
      /** @type {Control} */
      const { element, name, tag, type } = controls[i];
      if (!hasOwn(input, name)) continue;
      const value = input[name];
      if (type === "radio") setChecked(element, buttonValue(element) === String(value));
      else if (type === "checkbox")
        setChecked(element, isArray(value) ? has(value, buttonValue(element)) : value === true);
      else if (tag === "select") selectOptions(element, value);
      else setValue[tag](element, value === null || value === undefined ? "" : String(value));
      for (const kind in { __proto__: null, input: 0, change: 0 })
        dispatch(element, new Event(kind, { __proto__: null, bubbles: true }));
    }
  };

  /** @param {any[]} list @param {string} value */
  const has = (list, value) => {
    for (let i = 0; i < list.length; i += 1) if (String(list[i]) === value) return true;
    return false;
  };

  /** @param {any} select @param {any} value */
  const selectOptions = (select, value) => {
    const options = optionsOf(select);
    for (let i = 0; options[i] !== undefined; i += 1) {
      const own = optionValue(options[i]);
      setSelected(options[i], isArray(value) ? has(value, own) : own === String(value));
    }
  };

  const waiting = new WeakMap(); // by form: the run that filled it in
  const answers = new WeakMap(); // by event of such a form: what was given to `respondWith`

  /** Runs the tool of a form: fills it in, and waits until it is sent. @param {any} form @param {any} input @param {any} stop */
  const run = (form, input, stop) =>
    new Promise((/** @type {any} */ resolve, /** @type {any} */ reject) => {
      if (mapGet(waiting, form))
        throw new DOMException("The form is being filled in already", "InvalidStateError");
      const one = { resolve, reject };
      const giveUp = (/** @type {any} */ error) => {
        if (mapGet(waiting, form) === one) mapDelete(waiting, form);
        reject(error);
      };
      mapSet(waiting, form, one);
      if (isAborted(stop)) return giveUp(reason(stop));
      listen(stop, "abort", () => giveUp(reason(stop)));
      fillIn(form, input);
      if (!hasAttribute(form, "toolautosubmit")) return;
      if (checkValidity(form)) return requestSubmit(form);
      giveUp(new DOMException("The form does not accept these values", "DataError"));
    });

  /** A form is sent: its page's listeners come next. @param {any} event */
  const onSubmit = (event) => {
    const one = mapGet(waiting, eventTarget(event));
    if (!one) return;
    mapDelete(waiting, eventTarget(event));
    const answer = { isGiven: false, value: /** @type {any} */ (undefined) };
    mapSet(answers, event, answer);
    setTimeout(async () => {
      try {
        one.resolve(answer.isGiven ? await answer.value : undefined);
      } catch (error) {
        one.reject(error);
      }
    }, 0);
  };

  /** A person has cleared a form. @param {any} event */
  const onReset = (event) => {
    const one = mapGet(waiting, eventTarget(event));
    mapDelete(waiting, eventTarget(event));
    one?.reject(new DOMException("The form was reset", "AbortError"));
  };

  /** Adds `agentInvoked` and `respondWith`, as in Chromium 156. */
  const extendSubmitEvent = () => {
    const { prototype } = world.SubmitEvent;
    if ("agentInvoked" in prototype) return;
    const isOurs = { get agentInvoked() { return mapGet(answers, this) !== undefined; } }; // prettier-ignore
    const { get } = /** @type {any} */ (getOwnPropertyDescriptor(isOurs, "agentInvoked"));
    defineProperty(prototype, "agentInvoked", accessorDescriptor(get));
    const { respondWith } = {
      /** @param {any} value */
      respondWith(value) {
        const answer = mapGet(answers, this);
        if (!answer) throw new DOMException("No agent has sent this form", "InvalidStateError");
        answer.isGiven = true;
        answer.value = value;
      },
    };
    defineProperty(prototype, "respondWith", hiddenProperty(respondWith, true, true));
  };

  class FormTools {
    /** By name: the form, its description, and what unregisters it. @type {Record<string, any>} */
    #known = /** @type {any} */ ({ __proto__: null });
    #register;
    /** @type {any} */
    #document = null; // the one that is observed; a window may get another
    #isScheduled = false;

    /** @param {(tool: any, options: any) => Promise<any>} register */
    constructor(register) {
      this.#register = register;
    }

    /** Offers the forms of this document, now and as they change. */
    watch() {
      extendSubmitEvent();
      listen(world, "submit", onSubmit, true);
      listen(world, "reset", onReset, true);
      listen(world, "DOMContentLoaded", () => this.#observe(), true);
      this.#observe();
    }

    #observe() {
      if (this.#document === world.document) return;
      this.#document = world.document;
      const observer = new MutationObserver(() => this.#scheduleUpdate());
      observe(observer, world.document, {
        __proto__: null,
        ...{ subtree: true, childList: true, attributes: true, attributeFilter: WATCHED_ATTRIBUTES },
      });
      this.#scheduleUpdate();
    }

    #scheduleUpdate() {
      if (this.#isScheduled) return;
      this.#isScheduled = true;
      setTimeout(() => {
        this.#isScheduled = false;
        this.#update();
      }, UPDATE_DELAY_MS);
    }

    #update() {
      const found = /** @type {any} */ ({ __proto__: null });
      const forms = findAll(world.document, "form[toolname][tooldescription]");
      for (let i = 0; forms[i] !== undefined; i += 1) {
        const tool = describeForm(forms[i]);
        if (found[tool.name] === undefined) found[tool.name] = { form: forms[i], tool, text: encode(tool) };
      }
      for (const name in this.#known) {
        if (found[name]?.form === this.#known[name].form && found[name].text === this.#known[name].text)
          continue;
        abort(this.#known[name].controller);
        delete this.#known[name];
      }
      for (const name in found) if (this.#known[name] === undefined) void this.#add(name, found[name]);
    }

    /** @param {string} name @param {any} entry */
    async #add(name, entry) {
      const { form, tool } = entry;
      entry.controller = new AbortController();
      this.#known[name] = entry;
      const execute = (/** @type {any} */ input, /** @type {any} */ context) =>
        run(form, input, context.signal);
      try {
        await this.#register(
          { __proto__: null, ...tool, execute },
          { __proto__: null, signal: signal(entry.controller) },
        );
      } catch {
        // The page has a tool of this name, or the browser would refuse this one too.
      }
    }
  }

  /** The tool that a form is. @param {any} form */
  const describeForm = (form) => ({
    __proto__: null,
    name: getAttribute(form, "toolname"),
    title: getAttribute(form, "tooltitle") ?? "",
    description: getAttribute(form, "tooldescription"),
    inputSchema: readSchema(form),
    progress: false,
    form: hasAttribute(form, "toolautosubmit") ? undefined : true,
  });

  modules.FormTools = FormTools;
})();
