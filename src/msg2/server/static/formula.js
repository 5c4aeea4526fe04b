// Preconditions as people edit them: all of several clauses, each of which is any of several steps.
// A clause that is more than that (a NOT, something nested) is kept as it is and can only be removed.

/** The clauses of a formula of a graph file: lists of steps, or formulas that are left alone. */
export function clausesOf(formula) {
  if (formula === true || formula === undefined) return [];
  const parts = formula.all ?? [formula];
  return parts.map((part) => {
    if (typeof part === "string") return [part];
    return part.any?.every((name) => typeof name === "string") ? part.any : part;
  });
}

/** The formula of clauses, as it stands in a graph file. */
export function formulaOf(clauses) {
  const join = (kind, parts) => (parts.length > 1 ? { [kind]: parts } : parts[0]);
  return join("all", clauses.map((clause) => (Array.isArray(clause) ? join("any", clause) : clause)));
}

/** A formula as a text. */
export function formulaText(formula) {
  if (formula === true) return "nothing";
  if (typeof formula === "string") return formula;
  if (formula.not !== undefined) return `not ${inParentheses(formula.not)}`;
  return (formula.all ?? formula.any).map(inParentheses).join(formula.all ? " and " : " or ");
}

const inParentheses = (formula) => (formula.all || formula.any ? `(${formulaText(formula)})` : formulaText(formula));
