// Elements without HTML text: names are data, and become text nodes, never markup.

/** An element; properties that start with "on" are listeners, children are elements or text. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && key !== "list") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A name, of its own writing direction. */
export const nameElement = (name) => el("bdi", {}, name);

export const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** The day and the minute, as people here write them. */
export const dateText = (seconds) => new Date(1000 * seconds).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

/** The number that was typed in a field; what is none gets a sentence, with the place of the comma. */
export function numberFrom(text, name) {
  const value = Number(text);
  if (text.trim() !== "" && Number.isFinite(value)) return value;
  const point = /^\s*-?\d+,\d+\s*$/.test(text) ? `: write ${text.trim().replace(",", ".")}, with a point` : "";
  throw new Error(`“${text}” is no number for ${name}${point}`);
}

export const button = (text, onclick, properties = {}) =>
  el("button", { type: "button", onclick, ...properties }, text);

export const link = (text, href, properties = {}) => el("a", { href, ...properties }, text);

/** A labelled control. */
export const field = (text, control, properties = {}) =>
  el("label", { className: "field", ...properties }, el("span", {}, text), control);

/** A select of [value, text] pairs, or of values that are their own text. */
export function select(options, chosen, onchange, properties = {}) {
  const items = options.map((option) => (Array.isArray(option) ? option : [option, option]));
  const control = el("select", properties, ...items.map(([value, text]) => el("option", { value }, text)));
  control.value = chosen ?? "";
  if (onchange) control.addEventListener("change", () => onchange(control.value));
  return control;
}

export function table(columns, rows) {
  const head = el("tr", {}, ...columns.map((column) => el("th", { scope: "col" }, column)));
  return el("div", { className: "scroll" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)));
}

export const row = (...cells) => el("tr", {}, ...cells.map((cell) => el("td", {}, cell)));

/** Show a text in the status line, which screen readers read out. */
export function showStatus(text, bad = false) {
  const status = document.getElementById("status");
  status.textContent = text;
  status.classList.toggle("bad", bad);
}

/** Show what is wrong, in one line: an error of the API, or of the script. */
export function showError(error) {
  const { error: what, where, hint } = error.problem ?? { error: String(error.message ?? error) };
  // Where in a request or a graph file it is says nothing to people.
  const place = where && !/^(\$|body\b|query\b|path\b)/.test(where) ? `${where}: ` : "";
  showStatus([place + what, hint].filter(Boolean).join(" — "), true);
}

/** A listener that shows what went wrong instead of failing silently. */
export const reportErrors = (listener) => async (...given) => {
  try {
    return await listener(...given);
  } catch (error) {
    showError(error);
  }
};
