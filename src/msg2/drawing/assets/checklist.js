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
  const [best] = forecast(NEEDS, ticked, DATA.rho);
  const next = best ? `Next: ${STEPS[best.step].name}` : "All steps are done.";
  say(`${STEPS[step].name} ${undone ? "not done" : "done"}. ${next}`);
}

function entry(step, ...note) {
  const box = make("input", { type: "checkbox", checked: ticked.includes(step), onchange: () => tick(step) });
  const words = make("span", {}, named(STEPS[step].name), note.length ? make("small", {}, ...note) : null);
  return make("li", {}, make("label", {}, box, words));
}

/** What a step still waits for, in words. */
function waits(step, done) {
  const unmet = clauses(NEEDS[step]).filter((clause) => !holds(clause, done));
  const words = inWords(unmet.length > 1 ? { all: unmet } : unmet[0], (other) => named(STEPS[other].name));
  return ["after ", ...words];
}

function group(title, items) {
  return items.length ? [make("h3", {}, title), make("ul", { className: title.toLowerCase() }, ...items)] : [];
}

function drawList() {
  const done = new Set(ticked);
  const possible = eligible(NEEDS, done);
  const ranked = forecast(NEEDS, ticked, DATA.rho);
  const next = ranked.filter(({ step }) => possible.has(step));
  const later = ranked.filter(({ step }) => !possible.has(step));
  const again = make("button", { type: "button", disabled: !ticked.length, onclick: () => keep([]) }, "Start again");
  const shown = make("progress", { max: STEPS.length || 1, value: ticked.length, ariaLabel: "Steps done" });
  LIST.replaceChildren(
    make("div", { className: "head" }, make("h2", {}, "Checklist"), again),
    make("p", { className: "measured" }, shown, ` ${ticked.length} of ${STEPS.length} done`),
    ...group("Next", next.map(({ step, probability }) => entry(step, percent(probability)))),
    ...group("Later", later.map(({ step }) => entry(step, ...waits(step, done)))),
    ...group("Done", ticked.map((step) => entry(step)).reverse()),
  );
  light(states(done));
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
