// The checklist: steps that are done, what can be done next, and what has to wait. It is kept on the device.

const LIST = at("checklist");
const KEPT = `msg2 ${DATA.key}`;
let ticked = remembered();

const following = () => document.body.classList.contains("following");

/** What was ticked the last time; a browser may forbid to keep anything, and anything may be kept there. */
function remembered() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEPT) ?? "[]");
    return [...new Set(kept)].filter((step) => step in STEPS);
  } catch {
    return [];
  }
}

/** Takes these steps for done, in this order. */
function keep(steps) {
  ticked = steps;
  try {
    localStorage.setItem(KEPT, JSON.stringify(ticked));
  } catch {
    // Then it lasts as long as the page is open.
  }
  drawList();
}

/** A step is done, or it is not after all. */
function tick(step) {
  const undone = ticked.includes(step);
  keep(undone ? ticked.filter((other) => other !== step) : [...ticked, step]);
  LIST.querySelector("input")?.focus({ preventScroll: true });
  const [best] = sorted(ticked).next;
  const then = best ? [...ended(ticked), `Next: ${STEPS[best.step].name}`] : ["All steps are done."];
  say([`${STEPS[step].name} ${undone ? "not done" : "done"}`, ...then].join(". "));
}

function entry(step, ...note) {
  const box = make("input", { type: "checkbox", checked: ticked.includes(step), onchange: () => tick(step) });
  const words = make("span", {}, named(STEPS[step].name), note.length ? make("small", {}, ...note) : null);
  return make("li", {}, make("label", {}, box, words));
}

/** What is left after some steps, in the order of the checklist, with probabilities where they are known. */
function sorted(steps) {
  const left = new Map(nextSteps(steps).map((entry) => [entry.step, entry]));
  const groups = Object.entries(asChecklist(RULES, [...left.keys()], new Set(steps)));
  return Object.fromEntries(groups.map(([name, group]) => [name, group.map((step) => left.get(step))]));
}

/** Steps as clauses: of those that exclude each other, any one is enough. */
function asClauses(steps) {
  const groups = [];
  for (const step of steps) {
    const partners = groups.find((group) => group.every((other) => RULES[step].never.includes(other)));
    if (partners) partners.push(step);
    else groups.push([step]);
  }
  return groups.map((group) => (group.length > 1 ? { any: group } : group[0]));
}

/** What a step still waits for, in words. */
function waits(step, done) {
  const unmet = clauses(RULES[step].needs).filter((clause) => !holds(clause, done));
  const first = toCome(RULES, step, done).filter((other) => !unmet.includes(other));
  const waiting = [...unmet, ...asClauses(first)];
  if (!waiting.length) return [];
  const words = inWords(waiting.length > 1 ? { all: waiting } : waiting[0], (other) => named(STEPS[other].name));
  return ["after ", ...words];
}

/** Whether a step may be left out, and what comes before it if it is done at all. */
function notes(step, done, out) {
  const told = (other) => done.has(other) || out.has(other) || support(RULES[step].needs).includes(other);
  const first = RULES[step].after.filter((other) => RULES[other].mayOmit && !told(other));
  return [
    ...(RULES[step].mayOmit ? [["may be left out"]] : []),
    ...(first.length ? [["first, if at all: ", ...names(first)]] : []),
  ];
}

/** How often a step comes next where that is known, with the number behind the word, and other notes on it. */
function withWord(probability, ...others) {
  const [word] = OFTEN.find(([, least]) => probability >= least) ?? [];
  const all = word ? [[make("span", { title: `next with ${percent(probability)}` }, word)], ...others] : others;
  return all.filter((note) => note.length).flatMap((note, number) => [...(number ? [" · "] : []), ...note]);
}

const OFTEN = [["usually", 0.6], ["often", 0.3], ["sometimes", 0.1], ["seldom", 0]];

/** That most videos end here, in words; nothing where more is to come or must be done, or no video tells. */
function ended(steps) {
  const { next, later } = sorted(steps);
  if ([...next, ...later].some(({ step }) => !RULES[step].mayOmit)) return [];
  return FORECASTER && endProbability(FORECASTER, steps) >= 0.5 ? ["Probably finished"] : [];
}

/** Why a step is no longer possible. */
function obstacle(step, done) {
  const [partner] = RULES[step].never.filter((other) => done.has(other));
  const [later] = RULES[step].then.filter((other) => done.has(other));
  if (partner !== undefined) return ["not together with ", ...names([partner])];
  return later === undefined ? ["it needs a step that is left out"] : ["it would come before ", ...names([later])];
}

const names = (steps) => joined(steps, (step) => named(STEPS[step].name));

function group(title, items, className = title.toLowerCase()) {
  return items.length ? [make("h3", {}, title), make("ul", { className }, ...items)] : [];
}

function drawList() {
  const done = new Set(ticked);
  const { next, later, out } = sorted(ticked);
  const all = STEPS.length - out.length;
  const end = ticked.length < all ? ended(ticked) : [];
  const excluded = new Set(out.map(({ step }) => step));
  const nextEntry = ({ step, probability }) => entry(step, ...withWord(probability, ...notes(step, done, excluded)));
  const laterEntry = ({ step }) => entry(step, ...withWord(undefined, waits(step, done), ...notes(step, done, excluded)));
  const again = make("button", { type: "button", disabled: !ticked.length, onclick: () => keep([]) }, "Start again");
  const shown = make("progress", { max: all || 1, value: ticked.length, ariaLabel: "Steps done" });
  LIST.replaceChildren(
    make("div", { className: "head" }, make("h2", {}, "Checklist"), again),
    make("p", { className: "measured" }, shown, ` ${ticked.length} of ${all} done`),
    ...end.map((words) => make("p", { className: "end" }, `${words}. If not:`)),
    ...group("Next", next.map(nextEntry)),
    ...group("Later", later.map(laterEntry)),
    ...group("Left out", out.map(({ step }) => entry(step, ...obstacle(step, done))), "out"),
    ...group("Done", ticked.map((step) => entry(step)).reverse()),
  );
  light(states(done, new Set(), due(RULES, done)));
}

/** Goes to the checklist, or back to the graph and the videos. */
function follow(yes) {
  closePanel();
  stop();
  document.body.classList.toggle("following", yes);
  at("follow").ariaPressed = String(yes);
  LIST.hidden = !yes;
  at("strip").hidden = yes || !VIDEOS.length;
  if (yes) drawList();
  else light(null);
  resize();
}

at("follow").onclick = () => follow(!following());
