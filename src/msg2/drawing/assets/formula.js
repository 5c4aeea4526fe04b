// The graph at work. A formula is true, the number of a step, {all: […]}, {any: […]} or {not: f}. Of a step, `needs` is
// its precondition, `after` the steps that come before it if both are done, `never` those that are not done as well,
// and `mayOmit` whether it may be left out; all but the first may be absent.

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

/** The rules of all steps: as above, and `then`, the steps that come after it if both are done. */
function rulesOf(steps) {
  const rules = steps.map(({ needs, after = [], never = [], mayOmit = false }) => (
    { needs, after, never, mayOmit, then: [] }
  ));
  rules.forEach(({ after }, step) => after.forEach((before) => rules[before].then.push(step)));
  return rules;
}

/** Whether a step may be done: what it needs is done, but nothing that excludes it or comes after it. */
function mayBeDone({ needs, never, then }, done) {
  return holds(needs, done) && !never.some((other) => done.has(other)) && !then.some((other) => done.has(other));
}

/** The eligible steps, e = f(c). */
function eligible(rules, done) {
  return new Set([...rules.keys()].filter((step) => mayBeDone(rules[step], done)));
}

/** The steps before `step`, if done, that are still to come: not done, not to be left out, and not excluded. */
function toCome(rules, step, done) {
  const excluded = (other) => rules[other].never.some((partner) => done.has(partner));
  return rules[step].after.filter((other) => !done.has(other) && !rules[other].mayOmit && !excluded(other));
}

/** The steps that are due: eligible, not done, and with nothing still to come before them. */
function due(rules, done) {
  const open = [...eligible(rules, done)].filter((step) => !done.has(step) && !toCome(rules, step, done).length);
  return new Set(open);
}

/** The steps by which a formula can be met: those outside of any NOT. */
function ways(formula) {
  if (formula === true) return [];
  if (typeof formula === "number") return [formula];
  return (formula.all ?? formula.any ?? []).flatMap(ways);
}

/** Steps that are left, in an order that respects every arrow and, where that leaves a choice, the order they have. */
function inOrder(rules, left, done) {
  const [ordered, open] = [[], new Set(left)];
  const comesFirst = (step) =>
    rules[step].after.some((other) => open.has(other)) ||
    (!holds(rules[step].needs, done) && ways(rules[step].needs).some((other) => open.has(other)));
  while (open.size) {
    const first = [...open].find((step) => !comesFirst(step));
    ordered.push(first);
    open.delete(first);
  }
  return ordered;
}

/**
 * What is left, the likeliest first in `ranked`, as a checklist: what is due, what has to wait, and what is ruled out. Read
 * from top to bottom, also on paper, the first two respect every arrow: what comes after something that waits, if that is
 * done at all, waits as well.
 */
function asChecklist(rules, ranked, done) {
  const [ready, out] = [due(rules, done), ruledOut(rules, done)];
  const open = ranked.filter((step) => !out.has(step));
  const [next, later] = [new Set(), []];
  for (const step of inOrder(rules, [...open.filter((one) => ready.has(one)), ...open], done)) {
    const waits = rules[step].after.some((other) => open.includes(other) && !next.has(other));
    if (ready.has(step) && !waits) next.add(step);
    else later.push(step);
  }
  return { next: [...next], later, out: ranked.filter((step) => out.has(step)) };
}

/** Whether a formula could hold some day if the steps in the set `out` are never done. */
function couldHold(formula, out) {
  if (formula === true) return true;
  if (typeof formula === "number") return !out.has(formula);
  if ("not" in formula) return true;
  return formula.all
    ? formula.all.every((part) => couldHold(part, out))
    : formula.any.some((part) => couldHold(part, out));
}

/** The steps that are no longer possible: what excludes them or comes after them is done, or what they need is out. */
function ruledOut(rules, done) {
  const out = new Set();
  const isOut = ({ needs, never, then }) =>
    [...never, ...then].some((other) => done.has(other)) || !couldHold(needs, out);
  let size = -1;
  while (size < out.size) {
    size = out.size;
    rules.forEach((rule, step) => !done.has(step) && isOut(rule) && out.add(step));
  }
  return out;
}

/** Per step that has ever been eligible, Δ: the number of steps done since it first was. */
function waited(rules, sequence) {
  const done = new Set();
  const since = new Map();
  const look = () =>
    rules.forEach((rule, step) => {
      if (!since.has(step) && mayBeDone(rule, done)) since.set(step, done.size);
    });
  look();
  for (const step of new Set(sequence)) {
    done.add(step);
    look();
  }
  return new Map([...since].map(([step, time]) => [step, done.size - time]));
}

/** What is left, ranked by e[n] (1 − c[n]) ρ^Δ[n], which is no probability; all alike where nothing is possible. */
function recency(rules, sequence, rho) {
  const done = new Set(sequence);
  const possible = eligible(rules, done);
  const delta = waited(rules, sequence);
  const left = [...rules.keys()].filter((step) => !done.has(step));
  const open = left.filter((step) => possible.has(step));
  const freshest = Math.min(...open.map((step) => delta.get(step)));
  const weight = (step) => (possible.has(step) ? rho ** (delta.get(step) - freshest) : 0);
  const total = left.reduce((sum, step) => sum + weight(step), 0);
  return left
    .map((step) => ({ step, weight: total ? weight(step) / total : 1 / left.length }))
    .sort((one, other) => other.weight - one.weight);
}
