// Elements without HTML text: names are data, and become text nodes, never markup.

/** An element; properties that start with "on" are listeners, children are elements or text. */
export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key in made && key !== "list") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** A name, of its own writing direction. */
export const named = (name) => el("bdi", {}, name);

export const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

export const button = (text, onclick, properties = {}) =>
  el("button", { type: "button", onclick, ...properties }, text);

export const link = (text, href, properties = {}) => el("a", { href, ...properties }, text);

/** A labelled control. */
export const field = (text, control, properties = {}) =>
  el("label", { className: "field", ...properties }, el("span", {}, text), control);

/** A select of [value, text] pairs, or of values that are their own text. */
export function choice(options, chosen, onchange, properties = {}) {
  const items = options.map((option) => (Array.isArray(option) ? option : [option, option]));
  const made = el("select", properties, ...items.map(([value, text]) => el("option", { value }, text)));
  made.value = chosen ?? "";
  if (onchange) made.addEventListener("change", () => onchange(made.value));
  return made;
}

export function table(columns, rows) {
  const head = el("tr", {}, ...columns.map((column) => el("th", { scope: "col" }, column)));
  return el("div", { className: "scroll" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)));
}

export const row = (...cells) => el("tr", {}, ...cells.map((cell) => el("td", {}, cell)));

/** Say something in the status line, which screen readers read out. */
export function say(text, bad = false) {
  const status = document.getElementById("status");
  status.textContent = text;
  status.classList.toggle("bad", bad);
}

/** What is wrong, in one line: an error of the API, or of the script. */
export function problem(error) {
  const { error: what, where, hint } = error.problem ?? { error: String(error.message ?? error) };
  say([where ? `${where}: ${what}` : what, hint].filter(Boolean).join(" — "), true);
}

/** A listener that tells what went wrong instead of failing silently. */
export const safely = (work) => async (...given) => {
  try {
    return await work(...given);
  } catch (error) {
    problem(error);
  }
};
