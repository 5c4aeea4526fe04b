// Fewer arrows without learning again, the surroundings of a step, and steps found by name.

const MEASURES = {
  share: {
    words: "of the videos agree",
    unit: "\u00a0%",
    of: ({ before, together }) => (together ? (100 * before) / together : undefined),
  },
  videos: { words: "videos say so", unit: "", of: ({ before }) => before },
  confidence: {
    words: "of the samples agree",
    unit: "\u00a0%",
    of: ({ probability }) => (probability === undefined ? undefined : 100 * probability),
  },
};

/** Every arrow by one of the measures; undefined where the graph does not know. */
const measured = (name) => ARROWS.map(({ before, after }) => MEASURES[name].of(evidence(before, after)));

/** The steps at most so many arrows away from a step. */
function surroundings(step, reach) {
  const found = new Set([step]);
  for (let turn = 0; turn < reach; turn += 1) {
    for (const one of [...found]) for (const other of [...drawnBefore[one], ...drawnAfter[one]]) found.add(other);
  }
  return found;
}

const nearby = { step: null, reach: 0 };

/** Shows only what is at most so many arrows away from a step; with a reach of 0, everything. */
function showAround(step, reach) {
  Object.assign(nearby, { step, reach });
  const shown = hide();
  at("around").hidden = !reach;
  at("around-words").textContent = reach ? `${plural(shown.size, "step")} around ${STEPS[step].name}` : "";
  if (reach) zoomTo([...shown].map((one) => BOXES[one]), BOXES[step], LEGIBLE);
  else fit(true);
  say(reach ? at("around-words").textContent : "All steps");
}

at("all-steps").onclick = () => {
  const { step } = nearby;
  showAround(step, 0);
  zoomTo([BOXES[step]]);
};

/** Which arrows are left where those below `least` go; one out of an operator stays while one into it does. */
function left(values, least, shown) {
  const reached = new Set();
  return ARROWS.map(({ source, target, before, after }, arrow) => {
    const strong = values[arrow] === undefined || values[arrow] >= least;
    const stays = before === undefined ? reached.has(source) : strong && shown.has(before) && shown.has(after);
    if (stays) reached.add(target);
    return stays;
  });
}

/** Hides weak arrows, and what is not around a step; returns the steps that are left. */
function hide() {
  const [name, least] = [at("measure").value, Number(at("least").value)];
  const shown = nearby.reach ? surroundings(nearby.step, nearby.reach) : new Set(STEPS.keys());
  const stays = left(name ? measured(name) : [], least, shown);
  BOXES.forEach((box, step) => box.classList.toggle("hidden", !shown.has(step)));
  BARS.forEach((bars, group) => {
    const apart = GROUPS[group].steps.filter((step) => shown.has(step)).length < 2;
    for (const bar of bars) bar.classList.toggle("hidden", apart);
  });
  for (const loop of PICTURE.querySelectorAll(".loop")) loop.classList.toggle("hidden", nearby.reach > 0);
  const targets = new Set(ARROWS.filter((_, arrow) => stays[arrow]).map(({ target }) => target));
  LINES.forEach((line, arrow) => line.classList.toggle("hidden", !stays[arrow]));
  for (const box of PICTURE.querySelectorAll('.node[id^="o"]')) box.classList.toggle("hidden", !targets.has(box.id));
  const pairs = stays.filter((_, arrow) => ARROWS[arrow].before !== undefined);
  const count = pairs.filter(Boolean).length;
  if (name) at("least-words").textContent = `${least}${MEASURES[name].unit}`;
  at("shown").textContent = `${count < pairs.length ? `${count} of ` : ""}${plural(pairs.length, "arrow")}`;
  return shown;
}

function chooseMeasure() {
  const known = measured(at("measure").value).filter((value) => value !== undefined);
  at("least").max = at("measure").value === "videos" ? Math.max(...known) : 100;
  at("least").value = 0;
  hide();
}

const measurable = Object.keys(MEASURES).filter((name) => measured(name).some((value) => value !== undefined));
at("measure").append(...measurable.map((name) => make("option", { value: name }, MEASURES[name].words)));
at("measure").onchange = chooseMeasure;
at("least").oninput = hide;
at("least").onchange = () => say(`${at("shown").textContent} shown`);
at("strength").hidden = !measurable.length;
if (measurable.length) chooseMeasure();

at("differing").hidden = !DATA.compared;
at("differences").onchange = () => PICTURE.classList.toggle("plain", !at("differences").checked);

const SEARCHED = STEPS.map((step) => plain(step.name));
const search = { found: [], turn: -1 };

at("search").oninput = () => {
  const wanted = plain(at("search").value.trim());
  search.found = wanted ? [...STEPS.keys()].filter((step) => SEARCHED[step].includes(wanted)) : [];
  search.turn = -1;
  BOXES.forEach((box, step) => box.classList.toggle("found", search.found.includes(step)));
  PICTURE.classList.toggle("searching", Boolean(wanted));
  at("matches").textContent = wanted ? plural(search.found.length, "step") : "";
  if (!search.found.length) return;
  if (search.found.some((step) => BOXES[step].classList.contains("hidden"))) showAround(nearby.step, 0);
  zoomTo(search.found.map((step) => BOXES[step]));
};
at("search").onkeydown = (event) => {
  const { found, turn } = search;
  if (event.key === "Enter" && found.length) {
    search.turn = (turn + (event.shiftKey ? found.length - 1 : 1)) % found.length;
    PICTURE.classList.remove("searching"); // what is around it matters now
    showStep(found[search.turn]);
    zoomTo([BOXES[found[search.turn]]]);
  } else if (event.key === "Escape") {
    at("search").value = "";
    at("search").oninput();
  }
};
