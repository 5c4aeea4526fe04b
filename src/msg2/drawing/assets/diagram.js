// The picture: its boxes and arrows, how they are lit, and how keys walk from one to another.

const FIGURE = at("graph");
const PICTURE = FIGURE.querySelector("svg");
const BOXES = STEPS.map((_, step) => at(`s${step}`));
const LINES = ARROWS.map((_, arrow) => at(`e${arrow}`));
const BARS = GROUPS.map((_, group) => [...PICTURE.querySelectorAll(`[id="x${group}"], [id^="x${group}_"]`)]);
const LINKS = BOXES.map((box) => box.querySelector("a"));

const STATES = { done: "done", now: "in progress", eligible: "possible now", later: "not yet possible" };

/** Lights every step with its state: "done", "now", "eligible" or "later"; with none, as it was drawn. */
function light(states, mistakes = new Set()) {
  BOXES.forEach((box, step) => {
    if (states) box.dataset.state = states[step];
    else delete box.dataset.state;
    LINKS[step].ariaDescription = states ? STATES[states[step]] : null;
    box.toggleAttribute("data-mistake", mistakes.has(step));
  });
  document.body.toggleAttribute("data-lit", Boolean(states));
}

/** The state of every step where these are done, those in progress, and those possible. */
function states(done, now = new Set(), possible = eligible(RULES, done)) {
  return STEPS.map((_, step) =>
    now.has(step) ? "now" : done.has(step) ? "done" : possible.has(step) ? "eligible" : "later",
  );
}

/** Marks what is chosen (a step, an arrow or the bars of a group); what has nothing to do with it fades. */
function mark(chosen, isNear = () => false, isNearGroup = () => false) {
  for (const old of PICTURE.querySelectorAll(".chosen")) old.classList.remove("chosen");
  for (const element of [chosen ?? []].flat()) element.classList.add("chosen");
  LINES.forEach((line, arrow) => line.classList.toggle("near", isNear(arrow)));
  BARS.forEach((bars, group) => bars.forEach((bar) => bar.classList.toggle("near", isNearGroup(group))));
  PICTURE.classList.toggle("choosing", Boolean(chosen));
}

/** The arrows to a step, and those from it, through any operator. */
function around(step) {
  const through = new Set();
  return ARROWS.map(({ source, target, before, after }) => {
    const leaves = before === step || through.has(source);
    if (leaves && target.startsWith("o")) through.add(target);
    return leaves || after === step;
  });
}

const TOP_DOWN = DATA.direction === "TB";
const [BACK, FORTH, ASIDE] = TOP_DOWN ? ["ArrowUp", "ArrowDown", "ArrowLeft"] : ["ArrowLeft", "ArrowRight", "ArrowUp"];

/** The nearest of some steps to a step on the screen, across the direction of the picture. */
function nearest(step, others) {
  const place = (other) => middle(BOXES[other])[TOP_DOWN ? "x" : "y"];
  return [...others].sort((a, b) => Math.abs(place(a) - place(step)) - Math.abs(place(b) - place(step)))[0];
}

function middle(box) {
  const { left, right, top, bottom } = box.getBoundingClientRect();
  return { x: (left + right) / 2, y: (top + bottom) / 2 };
}

const drawnBefore = STEPS.map(() => new Set());
const drawnAfter = STEPS.map(() => new Set());
for (const { before, after, status } of ARROWS) {
  if (before === undefined || status === "missing") continue;
  drawnBefore[after].add(before);
  drawnAfter[before].add(after);
}

/** The step that an arrow key leads to; across the direction of the picture, the neighbour in the same row. */
function neighbour(step, key) {
  if (key === BACK) return nearest(step, drawnBefore[step]);
  if (key === FORTH) return nearest(step, drawnAfter[step]);
  const [along, across, side] = TOP_DOWN ? ["y", "x", "height"] : ["x", "y", "width"];
  const here = middle(BOXES[step]);
  const size = BOXES[step].getBoundingClientRect()[side];
  const towards = key === ASIDE ? -1 : 1;
  const row = [...STEPS.keys()].filter((other) => {
    const there = middle(BOXES[other]);
    return other !== step && (there[across] - here[across]) * towards > 0 && Math.abs(there[along] - here[along]) < size;
  });
  return nearest(step, row);
}

FIGURE.addEventListener("keydown", (event) => {
  const step = LINKS.indexOf(event.target.closest?.("a"));
  if (step < 0 || !event.key.startsWith("Arrow")) return;
  event.preventDefault();
  event.stopPropagation();
  const next = neighbour(step, event.key);
  if (next !== undefined) LINKS[next].focus();
});

FIGURE.addEventListener("focusin", (event) => event.target !== FIGURE && bringIntoView(event.target));

PICTURE.addEventListener("click", (event) => {
  const group = event.target.closest?.("g.node, g.edge");
  if (!group) return;
  event.preventDefault();
  const number = Number(group.id.slice(1));
  if (group.id.startsWith("e")) showArrow(number);
  else if (group.id.startsWith("x")) showGroup(parseInt(group.id.slice(1), 10));
  else if (group.id.startsWith("l")) showStep(DATA.loops[parseInt(group.id.slice(1), 10)]);
  else if (group.id.startsWith("o")) showStep(ARROWS.find((arrow) => arrow.source === group.id).after);
  else if (following()) tick(number);
  else showStep(number);
  if (!event.detail) PANEL.querySelector("h2")?.focus(); // by key: on to what is told
});

// Thin lines are hard to hit: each gets a broad one that is not seen.
for (const line of [...LINES, ...BARS.flat()]) {
  const path = line.querySelector("path");
  if (!path) continue; // the words of a group
  const broad = path.cloneNode();
  broad.setAttribute("class", "hit");
  broad.removeAttribute("stroke-dasharray");
  path.after(broad);
}
for (const link of LINKS) link.setAttribute("role", "button");
