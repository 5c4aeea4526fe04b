// Fewer arrows without learning again, and steps found by name.

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

/** Which arrows are left where those below `least` go; one out of an operator stays while one into it does. */
function left(values, least) {
  const reached = new Set();
  return ARROWS.map(({ source, target, before }, arrow) => {
    const stays = before === undefined ? reached.has(source) : values[arrow] === undefined || values[arrow] >= least;
    if (stays) reached.add(target);
    return stays;
  });
}

function hideWeak() {
  const [name, least] = [at("measure").value, Number(at("least").value)];
  const stays = left(measured(name), least);
  const targets = new Set(ARROWS.filter((_, arrow) => stays[arrow]).map(({ target }) => target));
  LINES.forEach((line, arrow) => line.classList.toggle("hidden", !stays[arrow]));
  for (const box of PICTURE.querySelectorAll('.node[id^="o"]')) box.classList.toggle("hidden", !targets.has(box.id));
  const pairs = stays.filter((_, arrow) => ARROWS[arrow].before !== undefined);
  const shown = pairs.filter(Boolean).length;
  at("least-words").textContent = `${least}${MEASURES[name].unit}`;
  at("shown").textContent = `${shown < pairs.length ? `${shown} of ` : ""}${plural(pairs.length, "arrow")}`;
}

function chooseMeasure() {
  const known = measured(at("measure").value).filter((value) => value !== undefined);
  at("least").max = at("measure").value === "videos" ? Math.max(...known) : 100;
  at("least").value = 0;
  hideWeak();
}

const measurable = Object.keys(MEASURES).filter((name) => measured(name).some((value) => value !== undefined));
at("measure").append(...measurable.map((name) => make("option", { value: name }, MEASURES[name].words)));
at("measure").onchange = chooseMeasure;
at("least").oninput = hideWeak;
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
  if (search.found.length) bringIntoView(BOXES[search.found[0]]);
};
at("search").onkeydown = (event) => {
  const { found, turn } = search;
  if (event.key === "Enter" && found.length) {
    search.turn = (turn + (event.shiftKey ? found.length - 1 : 1)) % found.length;
    showStep(found[search.turn]);
  } else if (event.key === "Escape") {
    at("search").value = "";
    at("search").oninput();
  }
};
