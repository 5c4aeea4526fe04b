// How a graph is to be learned: the form that the screens of datasets and of graphs share.
// Methods and their options are not written here: the server describes every option of every method.
import { el, field, numberFrom, select } from "./dom.js";

/** The form as `element`, and `value()`: what it says, as the API takes it. */
export function learningForm(choices, given = {}) {
  let controls = [];
  let method = given.method ?? choices.default;
  const options = el("div", { className: "fields options" });
  const names = Object.keys(choices.method_options).sort((a, b) => (b === choices.default) - (a === choices.default));
  const radios = names.map((name) => el("label", { className: "choice" },
    el("input", { type: "radio", name: "method", value: name, checked: name === method,
      onchange: () => { method = name; showOptions(); } }),
    el("span", {}, el("strong", {}, name), name === choices.default ? " (recommended)" : "",
      el("small", { className: "quiet" }, choices.method_options[name].summary))));

  function showOptions() {
    const described = choices.method_options[method]?.options ?? [];
    controls = described.map((option) => [option, optionControl(option, given.options?.[option.name])]);
    options.replaceChildren(...controls.map(([option, control]) => optionField(option, control)));
    if (!controls.length) options.replaceChildren(el("p", { className: "quiet" }, "This method has nothing to choose."));
  }

  const number = (name, placeholder) =>
    el("input", { inputMode: "decimal", value: given[name] ?? "", size: 8, placeholder });
  const more = {
    samples: ["Samples, for how sure it is", number("samples", "none")],
    confidence: ["Least confidence", number("confidence", "none")],
    draft_confidence: ["Drafts count from this confidence on", number("draft_confidence", "0")],
    seed: ["Seed", number("seed", "0")],
  };
  const repeats = select([["", "the first one counts"], ["keep", "all count"]], given.repeats ?? "");
  const overlap = select([["", "say nothing about order"], ["start", "are ordered by start"]], given.overlap ?? "");
  const ties = select([["", "say nothing about order"], ["file", "are in the order of the file"]], given.ties ?? "");
  showOptions();
  const isChanged = given.options && Object.keys(given.options).length > 0;
  const element = el("div", { className: "learning" },
    el("fieldset", { className: "choices" }, el("legend", {}, "Method"), ...radios),
    el("details", { open: isChanged }, el("summary", {}, "Options for experts"), options,
      el("div", { className: "fields" }, ...Object.values(more).map(([text, control]) => field(text, control)),
        field("Repeated steps", repeats), field("Overlapping steps", overlap),
        field("Steps at the same instant", ties))));

  function value() {
    const chosen = controls.filter(([, control]) => control.value.trim() !== "");
    const result = { method };
    result.options = Object.fromEntries(chosen.map(([option, control]) =>
      [option.name, optionValue(option, control.value.trim())]));
    for (const [name, [text, control]] of Object.entries(more)) {
      if (control.value.trim() !== "") result[name] = numberFrom(control.value, `“${text}”`);
    }
    if (repeats.value) result.repeats = repeats.value;
    if (overlap.value) result.overlap = overlap.value;
    if (ties.value) result.ties = ties.value;
    return result;
  }

  return { element, value };
}

// -- options of a method -----------------------------------------------------------------------------------------

const readableName = (option) => option.name.replaceAll("_", " ");

function optionControl(option, given) {
  const values = option.kind === "boolean" ? [["false", "no"], ["true", "yes"]] : option.kind === "choice" ? option.choices : null;
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

/** The value that was typed, as JSON; a word is sent as it is, and the server says what is wrong with it. */
function optionValue(option, text) {
  const { kind } = option;
  if (kind === "boolean") return text === "true";
  if (kind === "numbers" && text.split(",").every(isNumber)) return text.split(",").map(Number);
  const looksLikeNumber = (kind === "number" || kind === "integer") && /^[-\d]/.test(text);
  return looksLikeNumber ? numberFrom(text, readableName(option)) : text;
}

const isNumber = (text) => text.trim() !== "" && Number.isFinite(Number(text));
