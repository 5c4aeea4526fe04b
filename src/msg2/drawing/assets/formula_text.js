// Formulas in words, with every step a button that leads to it.

/** A button that shows a step. */
function stepButton(step) {
  return make("button", { type: "button", className: "link", onclick: () => showStep(step) }, named(STEPS[step].name));
}

/** A formula as nodes: "a and (b or not c)". */
function inWords(formula, name = stepButton) {
  if (formula === true) return ["nothing before it"];
  if (typeof formula === "number") return [name(formula)];
  if ("not" in formula) return [make("b", {}, "not "), ...inParentheses(formula.not, name)];
  const [parts, word] = formula.all ? [formula.all, "and"] : [formula.any, "or"];
  return parts.flatMap((part, number) => [
    ...(number ? [" ", make("b", {}, word), " "] : []),
    ...inParentheses(part, name),
  ]);
}

function inParentheses(formula, name) {
  const inner = inWords(formula, name);
  return formula.all || formula.any ? ["(", ...inner, ")"] : inner;
}

/** A formula as plain text. */
function asText(formula) {
  return inWords(formula, (step) => STEPS[step].name)
    .map((part) => (typeof part === "string" ? part : part.textContent))
    .join("");
}
