// The graph at work. A formula is true, the number of a step, {all: […]}, {any: […]} or {not: f}.

/** f(c): whether a formula holds where exactly the steps in the set `done` are completed. */
function holds(formula, done) {
  if (formula === true) return true;
  if (typeof formula === "number") return done.has(formula);
  if ("not" in formula) return !holds(formula.not, done);
  return formula.all
    ? formula.all.every((part) => holds(part, done))
    : formula.any.some((part) => holds(part, done));
}

/** What must hold together: the top-level conjuncts. */
function clauses(formula) {
  return formula === true ? [] : (formula.all ?? [formula]);
}

/** The steps in a formula, each once. */
function support(formula) {
  if (formula === true) return [];
  if (typeof formula === "number") return [formula];
  const parts = formula.all ?? formula.any ?? [formula.not];
  return [...new Set(parts.flatMap(support))];
}

/** The eligible steps, e = f(c). */
function eligible(needs, done) {
  return new Set([...needs.keys()].filter((step) => holds(needs[step], done)));
}

/** Per step that has ever been eligible, Δ: the number of steps done since it first was. */
function waited(needs, sequence) {
  const done = new Set();
  const since = new Map();
  const look = () =>
    needs.forEach((formula, step) => {
      if (!since.has(step) && holds(formula, done)) since.set(step, done.size);
    });
  look();
  for (const step of new Set(sequence)) {
    done.add(step);
    look();
  }
  return new Map([...since].map(([step, time]) => [step, done.size - time]));
}

/** What comes next: p[n] ∝ e[n] (1 − c[n]) ρ^Δ[n], the most probable first; all alike where nothing is possible. */
function forecast(needs, sequence, rho) {
  const done = new Set(sequence);
  const possible = eligible(needs, done);
  const delta = waited(needs, sequence);
  const left = [...needs.keys()].filter((step) => !done.has(step));
  const open = left.filter((step) => possible.has(step));
  const freshest = Math.min(...open.map((step) => delta.get(step)));
  const weight = (step) => (possible.has(step) ? rho ** (delta.get(step) - freshest) : 0);
  const total = left.reduce((sum, step) => sum + weight(step), 0);
  return left
    .map((step) => ({ step, probability: total ? weight(step) / total : 1 / left.length }))
    .sort((one, other) => other.probability - one.probability);
}
