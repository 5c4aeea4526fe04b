// How a graph is to be learnt: the form that the screens of data and of graphs share.
import { choice, el, field } from "./dom.js";

const words = {
  delta: "δ: purity",
  alpha: "α: cost of an operation",
  recency: "λ: recency",
  max_literals: "Steps in a precondition",
};
const other = { delta: "auto", max_literals: "none" };

/** The form as `element`, and `value()`: what it says, as the API takes it. */
export function learningForm(choices, given = {}) {
  const controls = {};
  const options = el("div", { className: "fields" });
  const method = choice(Object.keys(choices.methods), given.method ?? choices.default, offer);

  function offer() {
    const taken = Object.entries(choices.methods[method.value]);
    for (const [name] of Object.entries(controls)) delete controls[name];
    options.replaceChildren(...taken.map(([name, value]) => {
      const had = given.options?.[name];
      controls[name] = el("input", { value: had ?? "", placeholder: value ?? other[name] ?? "default", size: 8 });
      return field(words[name], controls[name]);
    }));
    if (!taken.length) options.replaceChildren(el("p", { className: "quiet" }, "This method has nothing to choose."));
  }

  const number = (name, properties) =>
    el("input", { type: "number", value: given[name] ?? "", size: 6, ...properties });
  const more = {
    samples: number("samples", { min: 1, placeholder: "none" }),
    confidence: number("confidence", { min: 0, max: 1, step: "any", placeholder: "none" }),
    seed: number("seed", { min: 0, placeholder: "0" }),
  };
  const repeats = choice([["", "the first one counts"], ["keep", "all count"]], given.repeats ?? "");
  const overlap = choice([["", "say nothing about order"], ["start", "are ordered by start"]], given.overlap ?? "");
  offer();
  const element = el("div", { className: "learning" },
    field("Method", method), options,
    el("details", {}, el("summary", {}, "More"),
      el("div", { className: "fields" },
        field("Samples, for how sure it is", more.samples), field("Least confidence", more.confidence),
        field("Seed", more.seed), field("Repeated steps", repeats), field("Overlapping steps", overlap))));

  function value() {
    const chosen = Object.entries(controls).filter(([, control]) => control.value.trim() !== "");
    const result = { method: method.value };
    result.options = Object.fromEntries(chosen.map(([name, control]) => [name, numberOr(control.value.trim())]));
    for (const [name, control] of Object.entries(more)) if (control.value !== "") result[name] = Number(control.value);
    if (repeats.value) result.repeats = repeats.value;
    if (overlap.value) result.overlap = overlap.value;
    return result;
  }

  return { element, value };
}

const numberOr = (text) => (Number.isFinite(Number(text)) ? Number(text) : text);
