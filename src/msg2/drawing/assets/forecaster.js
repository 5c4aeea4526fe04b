// The next step, learned from the videos: the numbers of msg2.assist.learned_forecaster, from what it wrote down.
// Inside, steps are counted as they are there, N is "none yet", and a prefix is what has been done, in order; `steps`
// has their numbers on the page.

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

/** What a forecaster wrote down, and all that can be counted before anything is asked. */
function forecasterOf(written) {
  const { steps, sequences } = written;
  const size = steps.length;
  const zeros = (rows) => Array.from({ length: rows }, () => new Float64Array(size));
  const [shown, positions] = zeros(2);
  const [after, second, before] = [zeros(size + 1), zeros(size + 1), zeros(size)];
  for (const sequence of sequences) {
    sequence.forEach((step, place) => {
      shown[step] += 1;
      positions[step] += (place + 0.5) / sequence.length;
      after[sequence[place - 1] ?? size][step] += 1;
      if (place) second[sequence[place - 2] ?? size][step] += 1;
      for (let earlier = 0; earlier < place; earlier++) before[sequence[earlier]][step] += 1;
    });
  }
  const grams = new Map();
  for (const sequence of sequences) {
    sequence.forEach((step, place) => {
      for (const last of lastSteps(sequence.slice(0, place))) {
        if (!grams.has(last)) grams.set(last, new Map());
        grams.get(last).set(step, (grams.get(last).get(step) ?? 0) + 1);
      }
    });
  }
  const purity = before.map((row, one) =>
    row.map((count, other) => (one === other ? 0 : Math.log((count + 0.5) / (count + before[other][one] + 1)))),
  );
  return {
    ...written,
    places: new Map(steps.map((step, place) => [step, place])),
    after,
    second,
    purity,
    grams,
    share: shown.map((count) => (count + 0.5) / (sequences.length + 1)),
    choices: shown.map((count) => (count + 0.5) / (sum(shown) + 0.5 * size)),
    usual: shown.map((count, step) => (positions[step] + 0.5) / (count + 1)),
  };
}

/** The probability of every step that is left after some steps, the most probable first. */
function learnedNext(forecaster, rules, sequence) {
  const { steps, weights, terms } = forecaster;
  const prefix = prefixOf(forecaster, sequence);
  const left = [...steps.keys()].filter((step) => !prefix.includes(step));
  const features = [
    similarContexts(forecaster, prefix, left),
    nGrams(forecaster, prefix, left),
    () => 0, // of steps that are done already
    ...countFeatures(forecaster, prefix, left),
    ...graphFeatures(forecaster, rules, sequence),
  ];
  const own = ownTerms(terms, prefix, steps.length);
  const shared = (step) => sum(features.map((feature, place) => weights[place] * feature(step)));
  return softmax(left.map((step) => own(step) + shared(step)))
    .map((probability, place) => ({ step: steps[left[place]], probability }))
    .sort((one, other) => other.probability - one.probability);
}

/** How probably nothing more comes; before the first step nothing ends. */
function endProbability(forecaster, sequence) {
  const prefix = prefixOf(forecaster, sequence);
  if (!prefix.length) return 0;
  return softmax([0, 1].map(ownTerms(forecaster.end_terms, prefix, forecaster.steps.length)))[1];
}

/** Steps of the page as the forecaster counts them, each once. */
function prefixOf({ places }, sequence) {
  return [...new Set(sequence)].map((step) => places.get(step));
}

function softmax(utilities) {
  const most = Math.max(...utilities);
  const powers = utilities.map((utility) => Math.exp(utility - most));
  const total = sum(powers);
  return powers.map((power) => power / total);
}

/** Σ x[k] T[k, n] of a candidate n: 1, what is done, what was done last, and 2^−(steps since) of what is done. */
function ownTerms(terms, prefix, size) {
  const rows = [
    [0, 1],
    ...prefix.map((step) => [1 + step, 1]),
    [1 + size + (prefix.at(-1) ?? size), 1],
    ...prefix.map((step, place) => [2 + 2 * size + step, 0.5 ** (prefix.length - 1 - place)]),
  ];
  return (candidate) => sum(rows.map(([row, value]) => value * terms[row][candidate]));
}

/** log p of the steps left, in proportion to a weight. */
function logShares(left, weight) {
  const total = sum(left.map(weight));
  return (step) => Math.log(weight(step) / total);
}

/** What came in past contexts, each weighted by κ per step that only one has done, and κ if the last steps differ. */
function similarContexts({ sequences, choices, similarity_decay: decay }, prefix, left) {
  const size = choices.length;
  const powers = Array.from({ length: size + 2 }, (_, differences) => decay ** differences);
  const [done, last] = [new Set(prefix), prefix.at(-1) ?? size];
  const weights = choices.slice();
  for (const sequence of sequences) {
    let [differences, before] = [prefix.length, size];
    for (const step of sequence) {
      weights[step] += powers[differences + (before === last ? 0 : 1)];
      differences += done.has(step) ? -1 : 1;
      before = step;
    }
  }
  return logShares(left, (step) => weights[step]);
}

/** The last steps of a prefix, three at most, none of them first; −1 stands for the beginning. */
function lastSteps(prefix) {
  const padded = [-1, ...prefix.slice(-3)];
  return Array.from({ length: Math.min(3, prefix.length + 1) + 1 }, (_, length) => padded.slice(padded.length - length).join());
}

/** log p after the last steps, by Witten and Bell: (count + T p after one step less) / (total + T). */
function nGrams({ grams, share }, prefix, left) {
  let rows = share.map(() => 1 / share.length);
  for (const last of lastSteps(prefix)) {
    const counts = grams.get(last);
    if (!counts) break;
    const total = sum([...counts.values()]) + counts.size;
    rows = rows.map((less, step) => ((counts.get(step) ?? 0) + counts.size * less) / total);
  }
  return logShares(left, (step) => rows[step]);
}

/** After the last step, after the one before it, share, after what is done, before what is left, and position. */
function countFeatures({ after, second, purity, share, usual, back_off: backOff }, prefix, left) {
  const none = share.length;
  const shareLeft = sum(left.map((step) => share[step]));
  const smoothed = (counts) => logShares(left, (step) => counts[step] + (backOff * share[step]) / shareLeft);
  const here = (prefix.length + 0.5) / Math.max(sum(share), 0.5);
  return [
    smoothed(after[prefix.at(-1) ?? none]),
    smoothed(second[prefix.at(-2) ?? none]),
    (step) => Math.log(share[step]),
    (step) => sum(prefix.map((other) => purity[other][step])) / Math.max(prefix.length, 1),
    (step) => sum(left.map((other) => share[other] * purity[step][other])) / Math.max(shareLeft, 0.5),
    (step) => -Math.abs(here - usual[step]),
  ];
}

/** Eligible, ρ^Δ since then, and the number of unmet clauses; a graph without preconditions tells nothing. */
function graphFeatures({ steps, rho }, rules, sequence) {
  if (rules.every(({ needs }) => needs === true)) return [() => 0, () => 0, () => 0];
  const done = new Set(sequence);
  const delta = waited(rules, sequence);
  const unmet = (step) => clauses(rules[steps[step]].needs).filter((clause) => !holds(clause, done)).length;
  return [
    (step) => (unmet(step) ? 0 : 1),
    (step) => (mayBeDone(rules[steps[step]], done) ? rho ** delta.get(steps[step]) : 0),
    unmet,
  ];
}
