// The side panel: why a step or an arrow is there, and which videos say so.

const PANEL = at("panel");
const FEW = 30;
const SMALL = 12; // steps that are taken in at one glance
let opener = null;

/** Fills the panel; on narrow screens it comes up from below. A checklist has no room for it. */
function show(title, ...content) {
  if (following()) return;
  if (!PANEL.contains(document.activeElement)) opener = document.activeElement;
  const close = make("button", { type: "button", className: "close", ariaLabel: "Close", onclick: closePanel }, "×");
  PANEL.replaceChildren(make("h2", { tabIndex: -1 }, ...title), close, ...content.filter(Boolean));
  PANEL.classList.add("open");
  PANEL.scrollTop = 0;
  settle();
  if (getComputedStyle(PANEL).position === "fixed") FIGURE.scrollIntoView({ block: "start" });
}

function closePanel() {
  if (PANEL.contains(document.activeElement)) opener?.focus();
  PANEL.classList.remove("open");
  settle();
  mark(null);
}

const quiet = (...words) => make("p", { className: "quiet" }, ...words);
const fact = (term, ...content) => make("div", { className: "fact" }, make("h3", {}, term), ...content);

function bar(share, words) {
  const line = make("span", { className: "share" });
  line.style.setProperty("--share", `${100 * share}%`);
  return make("p", {}, `${words} (${percent(share)})`, line);
}

// -- a step ------------------------------------------------------------------------------------------------------

/** What a step needs, as a list where it is more than one thing, each with what the videos say. */
function needed(formula, step) {
  if (formula === true && RULES[step].after.length) return quiet("Nothing.");
  if (formula === true) return quiet("Nothing before it: it can be done at once.");
  const parts = formula.all ?? formula.any;
  if (!parts) return make("p", {}, ...withCounts(formula, step));
  const items = parts.map((part) => (part.all || part.any ? [needed(part, step)] : withCounts(part, step)));
  const list = make("ul", {}, ...items.map((item) => make("li", {}, ...item)));
  return make("div", { className: "needed" }, make("p", {}, formula.all ? "all of" : "any of"), list);
}

/** A step, or its absence, and in how many videos it came first: a button that tells more. */
function withCounts(formula, step) {
  const [before] = support(formula);
  const { told } = evidence(before, step);
  if (told === undefined) return inWords(formula);
  const why = make("button", { type: "button", className: "why" }, told);
  why.title = "in so many of the videos that tell, it came first";
  why.onclick = () => showPair(before, step);
  return [...inWords(formula), " ", why];
}

function nextBest({ second, score }) {
  if (!second) return null;
  const scores = second.score === undefined ? [] : [second.score, score].filter((value) => value !== undefined);
  const words = scores.map((value) => value.toFixed(3)).join(" against ");
  return fact("Next best", make("p", {}, ...inWords(second.needs)), words ? quiet(`score ${words}`) : null);
}

/** What a step comes after, if that is done at all, each with what the videos say. */
function comesAfter(step) {
  return list("After, if done", RULES[step].after.map((before) => withCounts(before, step)));
}

/** What else is known of a step: sentences in which every other part is the number of a step. */
function alsoKnown({ also = [] }) {
  return list("Also", also.map((parts) => parts.map((part, place) => (place % 2 ? stepButton(Number(part)) : part))));
}

function list(title, items) {
  const lines = items.map((item) => make("li", {}, ...item));
  return lines.length && fact(title, make("div", { className: "needed" }, make("ul", {}, ...lines)));
}

/** Whether a formula cannot hold without a step. */
const isNecessary = (step, formula) => formula === step || Boolean(formula.all?.some((part) => isNecessary(step, part)));

/** Buttons for the surroundings of a step. */
function reaches(step) {
  const button = (reach, words) =>
    make("button", { type: "button", onclick: () => showAround(step, reach) }, words);
  return make("p", { className: "group" }, button(1, "1 step"), button(2, "2 steps"), button(3, "3"), button(0, "All"));
}

/** Why a step stands where it stands. */
function showStep(step) {
  const { name, needs, videos, holds: held, confidence, violations = [] } = STEPS[step];
  const shows = VIDEOS.filter((video) => video.steps.includes(step));
  const against = shows.filter((video) => isAgainst(video, step));
  const rest = shows.filter((video) => !against.includes(video));
  const neededBy = [...STEPS.keys()].filter((after) => support(RULES[after].needs).includes(step));
  const buttons = (title, steps) =>
    steps.length && fact(title, make("p", { className: "chips" }, ...steps.map(stepButton)));
  const [seen, free] = [plural(videos ?? 0, "video"), needs === true];
  show(
    [named(name)],
    fact("Needs", needed(needs, step)),
    comesAfter(step),
    alsoKnown(STEPS[step]),
    free && videos !== undefined && fact("Seen", make("p", {}, `in ${seen}`)),
    !free && videos > 0 && held !== undefined && fact("Support", bar(held / videos, `held in ${held} of ${seen}`)),
    !free && confidence !== undefined && fact("Confidence", bar(confidence, "so say samples of the videos")),
    nextBest(STEPS[step]),
    buttons("Needed by", neededBy.filter((after) => isNecessary(step, RULES[after].needs))),
    buttons("One of the ways to", neededBy.filter((after) => !isNecessary(step, RULES[after].needs))),
    buttons("Comes before, if done", RULES[step].then),
    STEPS.length > SMALL && fact("Show only what is near", reaches(step)),
    chips("Videos against it", against),
    chips("Videos against it", violations, held === undefined ? undefined : videos - held),
    chips(free ? "Videos with it" : "Videos for it", rest),
    make("p", {}, make("a", { href: `#step-${step}` }, "Its row in the table")),
  );
  if (BOXES[step].classList.contains("hidden")) showAround(step, nearby.reach);
  const near = around(step);
  mark(BOXES[step], (arrow) => near[arrow], (group) => GROUPS[group].steps.includes(step));
  bringIntoView(BOXES[step]);
  say(LINKS[step].getAttribute("aria-label"));
}

// -- an arrow, a group -------------------------------------------------------------------------------------------

const STATUS = {
  missing: "Missing: only in the true graph.",
  redundant: "Redundant: not in the true graph.",
  common: "In both graphs.",
};
const KINDS = { needs: "needs", after: "after, if done" };

/** What the graph says about one step before another: that the second needs the first, or comes after it if done. */
const kindOf = (before, after) => (support(RULES[after].needs).includes(before) ? "needs" : "after");

/** Whether the true graph has it too, and of the same kind. */
function status({ status: found, trueKind }) {
  const words = trueKind ? `In both graphs. In the true one: ${KINDS[trueKind]}.` : STATUS[found];
  return DATA.compared && make("p", { className: `status ${found}` }, words);
}

/** Steps of which a run does at most one. */
function showGroup(group) {
  const { steps } = GROUPS[group];
  show(
    ["Only one of these"],
    status(GROUPS[group]),
    quiet("A run does at most one of these steps."),
    make("p", { className: "chips" }, ...steps.map(stepButton)),
  );
  mark(BARS[group], () => false, (other) => other === group);
  say(`Only one of these: ${steps.map((step) => STEPS[step].name).join(", ")}`);
}

/** Why an arrow is there; one that leaves an operator speaks of all that its step needs. */
function showArrow(arrow) {
  const { before, after } = ARROWS[arrow];
  if (before === undefined) showStep(after);
  else showPair(before, after, arrow);
}

/** Why one step comes before another, drawn as an arrow or not. */
function showPair(before, after, arrow = ARROWS.findIndex((one) => one.before === before && one.after === after)) {
  const kind = arrow < 0 ? kindOf(before, after) : (ARROWS[arrow].kind ?? "needs");
  const { before: first, together, probability, direct, doubt } = evidence(before, after);
  const order = VIDEOS.map((video) => orderIn(video, before, after));
  const inOrder = (way) => VIDEOS.filter((_, number) => order[number] === way);
  const agreed = `in this order in ${first} of ${plural(together, "video")} with both`;
  show(
    [named(STEPS[before].name), " → ", named(STEPS[after].name)],
    arrow >= 0 && status(ARROWS[arrow]),
    arrow < 0 && quiet("It follows from other arrows, so it is not drawn."),
    kind === "after" && fact("After, if done", make("p", {}, "Where both are done, ", stepButton(before),
      " comes first. ", stepButton(after), " does not need it.")),
    together > 0 && fact("Support", bar(first / together, agreed), doubt ? quiet(`Weak: ${doubt}.`) : null),
    probability !== undefined && fact("Confidence", bar(probability, "comes first, say samples of the videos"),
      direct === undefined ? null : quiet(`directly before it in ${percent(direct)}`)),
    fact("All that it needs", make("p", {}, stepButton(after), " needs"), needed(RULES[after].needs, after)),
    chips("Videos the other way round", inOrder(-1)),
    chips("Videos in this order", inOrder(1)),
    chips("Both at the same time", inOrder(0)),
  );
  mark(LINES[arrow] ?? BOXES[after], (other) => other === arrow);
  bringIntoView(LINES[arrow] ?? BOXES[after]);
  say(`${STEPS[before].name} → ${STEPS[after].name}${together > 0 ? `: ${agreed}` : ""}`);
}

// -- videos ------------------------------------------------------------------------------------------------------

/** Videos, the first ones: names, or where their labels are at hand buttons that open them in the strip. */
function chips(title, videos, count = videos.length) {
  if (!videos.length) return null;
  const chip = (video) => {
    if (typeof video === "string") return named(video);
    const open = () => openVideo(VIDEOS.indexOf(video), true);
    return make("button", { type: "button", className: "chip", onclick: open }, named(video.id));
  };
  return fact(`${title} (${count})`, make("p", { className: "chips" }, ...listed(videos, chip)));
}

/** The first of many, and a button for the rest. */
function listed(items, shown) {
  if (items.length <= FEW) return items.map(shown);
  const rest = items.slice(FEW);
  const more = make("button", { type: "button", className: "link" }, `and ${rest.length} more`);
  more.onclick = () => more.replaceWith(...rest.map(shown));
  return [...items.slice(0, FEW).map(shown), more];
}
