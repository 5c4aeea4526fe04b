// How a graph is to be learned: the form that the screens of datasets and of graphs share.
// The options of methods are not written here: the server describes every option of every method.
import { el, field, select } from "./dom.js";

/** The form as `element`, and `value()`: what it says, as the API takes it. */
export function learningForm(choices, given = {}) {
  let controls = [];
  const summary = el("p", { className: "quiet" });
  const options = el("div", { className: "fields options" });
  const method = select(Object.keys(choices.method_options), given.method ?? choices.default, showOptions);

  function showOptions() {
    const description = choices.method_options[method.value];
    controls = (description?.options ?? []).map((option) => [option, optionControl(option, given.options?.[option.name])]);
    summary.textContent = description?.summary ?? "";
    options.replaceChildren(...controls.map(([option, control]) => optionField(option, control)));
    if (!controls.length) options.replaceChildren(el("p", { className: "quiet" }, "This method has nothing to choose."));
  }

  const number = (name, properties) =>
    el("input", { type: "number", value: given[name] ?? "", size: 6, ...properties });
  const more = {
    samples: number("samples", { min: 1, placeholder: "none" }),
    confidence: number("confidence", { min: 0, max: 1, step: "any", placeholder: "none" }),
    seed: number("seed", { min: 0, placeholder: "0" }),
  };
  const repeats = select([["", "the first one counts"], ["keep", "all count"]], given.repeats ?? "");
  const overlap = select([["", "say nothing about order"], ["start", "are ordered by start"]], given.overlap ?? "");
  showOptions();
  const element = el("div", { className: "learning" },
    field("Method", method), summary, options,
    el("details", {}, el("summary", {}, "More"),
      el("div", { className: "fields" },
        field("Samples, for how sure it is", more.samples), field("Least confidence", more.confidence),
        field("Seed", more.seed), field("Repeated steps", repeats), field("Overlapping steps", overlap))));

  function value() {
    const chosen = controls.filter(([, control]) => control.value.trim() !== "");
    const result = { method: method.value };
    result.options = Object.fromEntries(chosen.map(([option, control]) =>
      [option.name, optionValue(option, control.value.trim())]));
    for (const [name, control] of Object.entries(more)) if (control.value !== "") result[name] = Number(control.value);
    if (repeats.value) result.repeats = repeats.value;
    if (overlap.value) result.overlap = overlap.value;
    return result;
  }

  return { element, value };
}

// -- options of a method -----------------------------------------------------------------------------------------

const readableName = (option) => option.name.replaceAll("_", " ");

function optionControl(option, given) {
  const values = option.kind === "boolean" ? ["false", "true"] : option.kind === "choice" ? option.choices : null;
  const id = `option-${option.name}`;
  const described = { id, "aria-describedby": `${id}-help` };
  const items = values && [["", `default: ${option.default}`], ...values];
  if (items) return select(items, String(given ?? ""), null, described);
  return el("input", { value: given ?? "", placeholder: option.default, size: option.kind === "numbers" ? 20 : 8, ...described });
}

function optionField(option, control) {
  const words = option.kind !== "choice" && option.choices.length ? ` (or ${option.choices.join(", ")})` : "";
  return el("div", { className: "option" }, field(readableName(option) + words, control),
    el("p", { className: "quiet", id: `${control.id}-help` }, option.help));
}

/** The value that was typed, as JSON; what is no number is sent as it is, and the server says what is wrong with it. */
function optionValue({ kind }, text) {
  if (kind === "boolean") return text === "true";
  if (kind === "numbers" && text.split(",").every(isNumber)) return text.split(",").map(Number);
  return (kind === "number" || kind === "integer") && isNumber(text) ? Number(text) : text;
}

const isNumber = (text) => text.trim() !== "" && Number.isFinite(Number(text));
