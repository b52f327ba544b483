// variablesOf and fillTemplate: the variables of a URI template (RFC 6570), and its URI once they have values. Pure.

const EXPRESSION = /\{([+#./;?&]?)([^{}]+)\}/g;
/** How an expression begins, joins its values, and whether it names them. @type {Record<string, [string, string, boolean]>} */
const OPERATORS = {
  "": ["", ",", false],
  "+": ["", ",", false],
  "#": ["#", ",", false],
  ".": [".", ".", false],
  "/": ["/", "/", false],
  ";": [";", ";", true],
  "?": ["?", "&", true],
  "&": ["&", "&", true],
};

/** The names of the variables, each once. @param {string} template */
export function variablesOf(template) {
  const lists = [...template.matchAll(EXPRESSION)].map(([, , names]) => names.split(",").map(nameOf));
  return [...new Set(lists.flat())];
}

/** The URI of a template; variables without a value are left out. @param {string} template @param {Record<string, string>} values */
export function fillTemplate(template, values) {
  return template.replace(EXPRESSION, (_, operator, names) => {
    const [first, between, isNamed] = OPERATORS[operator];
    const isReserved = operator === "+" || operator === "#";
    const encode = (/** @type {string} */ value) => (isReserved ? encodeURI(value) : encodeAll(value));
    const parts = names
      .split(",")
      .map(nameOf)
      .filter((/** @type {string} */ name) => values[name])
      .map((/** @type {string} */ name) => (isNamed ? `${name}=${encode(values[name])}` : encode(values[name])));
    return parts.length ? first + parts.join(between) : "";
  });
}

/** The name of a variable, without its modifiers. @param {string} spec */
const nameOf = (spec) => spec.replace(/\*$|:\d+$/, "").trim();

/** @param {string} value */
const encodeAll = (value) =>
  encodeURIComponent(value).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
