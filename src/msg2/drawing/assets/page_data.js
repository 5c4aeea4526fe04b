// What the page holds, and how elements are made of it. Names are data: they become text, never HTML.

const DATA = JSON.parse(document.getElementById("data").textContent);
const { steps: STEPS, arrows: ARROWS, groups: GROUPS = [], videos: VIDEOS } = DATA;
const RULES = rulesOf(STEPS);
const FORECASTER = DATA.forecast ? forecasterOf(DATA.forecast) : null;

/** What is left after some steps, the likeliest first; only videos tell with which probability. */
function nextSteps(sequence) {
  return FORECASTER ? learnedNext(FORECASTER, RULES, sequence) : recency(RULES, sequence, DATA.rho);
}

/** What the graph knows about one step before another. */
const evidence = (before, after) => STEPS[after].edges?.[before] ?? {};

/** The element with this id. */
const at = (id) => document.getElementById(id);

/** A new element with properties as the DOM calls them; children are elements or text, nothing is left out. */
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

/** A name in its own writing direction, cut where it is endless. */
function named(text) {
  const short = text.length > 300 ? `${text.slice(0, 299)}…` : text;
  return make("bdi", short === text ? {} : { title: text }, short);
}

/** Tells those who listen to the page. */
function say(text) {
  at("said").textContent = text.length > 300 ? `${text.slice(0, 299)}…` : text;
}

const percent = (share) => `${Math.round(100 * share)}\u00a0%`;
const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Text as it is compared in a search: without case and accents. */
const plain = (text) => text.normalize("NFKD").replace(/\p{Mn}/gu, "").toLowerCase();
