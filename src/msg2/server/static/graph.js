// One graph: the diagram, what is known of each step, what to do with it, and how to learn it again.
import { get, patch, post } from "./api.js";
import { NARROW, checkForm, compareForm, comparisonElements, followsBox } from "./graph_tools.js";
import { button, dateText, el, link, nameElement, plural, reportErrors, row, select, showStatus, table } from "./dom.js";
import { markStep, showDiagram } from "./diagram.js";
import { formulaText } from "./formula.js";
import { learningForm } from "./learning_form.js";

export async function show(screen, id) {
  const choices = await get("choices");

  const follow = async (id, before) => showWork(await get(`work/${id}`), before);

  async function showWork(work, before) {
    const { id } = work;
    document.title = `${titleOf(work)} – msg2`;
    const heading = headingElements(work, () => follow(id));
    if (work.state === "done") {
      showStatus("");
      const figure = el("figure", { className: "diagram", tabIndex: 0, "aria-label": "The graph" });
      const form = work.job ? relearnForm(work, choices, relearn) : null;
      const panel = explanationPanel(form);
      const changes = before ? await changeElements(before, id) : [];
      screen.replaceChildren(...heading, el("div", { className: "graph-view" }, figure, panel.element),
        ...changes, ...resultElements(work, choices, form), ...historyElements(work, (await get("work")).work));
      const view = await get(`work/${id}/view?top_down=${innerWidth < NARROW}`);
      panel.showRules(view);
      showDiagram(figure, view.svg, view.steps, (step) => {
        markStep(figure, step);
        panel.show(step, view);
      });
    } else if (work.state === "failed") {
      const { error, where, hint } = work.problem;
      screen.replaceChildren(...heading, el("div", { className: "failed box", role: "alert" },
        el("strong", {}, where ? `${where}: ${error}` : error), hint ? el("p", {}, hint) : ""),
        ...(work.job ? [relearnForm(work, choices, relearn).element] : []));
    } else {
      // Without a known total, the bar only shows that something is going on.
      const amount = work.total ? { max: work.total, value: work.done } : {};
      screen.replaceChildren(...heading, el("p", {}, el("progress", { "aria-label": "learning", ...amount })));
      showStatus(`${progressText(work) ?? (work.state === "waiting" ? "waiting for its turn" : "beginning")} …`);
      setTimeout(reportErrors(() => follow(id, before)), 300);
    }
  }

  /** Learn again; whether that has begun. What is refused leaves everything as it is. */
  const relearn = async (job, before) => {
    const record = await reportErrors(post)("work", job);
    if (!record) return false;
    reportErrors(showWork)(record, before); // at once: under the new address, nothing of the old graph can be clicked
    history.pushState(null, "", `/graph/${record.id}?${new URLSearchParams({ before })}`);
    return true;
  };
  const here = () => follow(location.pathname.split("/")[2], new URLSearchParams(location.search).get("before"));
  addEventListener("popstate", reportErrors(here));
  await here();
}

export const titleOf = (work) => work.title || work.task || work.name || "(no name)";

/** What a running job is doing and, where the server knows it, how far it is; null before its first report. */
export const progressText = ({ news, done, total }) => (total ? `${news}, ${Math.floor((100 * done) / total)} %` : news);

/** What is told of a graph in a line: where it comes from, and how. */
export function originOf(work) {
  const origins = { learnt: `learnt from ${work.name}`, given: `from ${work.name}`,
    drawn: work.name ? `drawn by ${work.name}` : "drawn by hand", merged: `merged from ${work.annotators.join(", ")}` };
  return origins[work.kind];
}

export function rulesOf(work) {
  const kinds = ["require", "require_order", "forbid", "forbid_order"];
  return work.job ? kinds.flatMap((kind) => work.job[kind].map((pair) => [kind, ...pair])) : [];
}

function headingElements(work, again) {
  const rename = button("Rename", reportErrors(async () => {
    const title = prompt("Name of this graph", titleOf(work));
    if (title === null) return;
    await patch(`work/${work.id}`, { title, version: work.version });
    await again();
  }), { className: "link" });
  const facts = [originOf(work), work.job?.method, work.videos ? plural(work.videos, work.unit) : "",
    work.state === "done" ? plural(work.edges, "arrow") : "", dateText(work.made), ...work.remarks];
  return [el("h1", {}, nameElement(titleOf(work))),
    el("p", { className: "quiet facts" }, facts.filter(Boolean).join(" · "), " ", work.state === "done" ? rename : "")];
}

/** What an arrow can mean, and the rules that say so. */
const arrowKinds = {
  needs: ["is needed for", ["require"]],
  after: ["(if done) comes before", ["require_order", "forbid"]],
  free: ["has nothing to do with", ["forbid", "forbid_order"]],
};

/** What is known of the chosen step; where the graph was learnt, its arrows can be changed. */
function explanationPanel(form) {
  const element = el("aside", { className: "box", "aria-label": "The chosen step", role: "status" });
  const hint = el("p", { className: "quiet" }, "Choose a step in the graph to read what it needs, and why.");
  element.append(hint);
  const texts = Object.entries(arrowKinds).map(([kind, [text]]) => [kind, text]);
  const arrowItem = ({ before, after, kind }) => el("li", {}, nameElement(before), " ",
    form ? select(texts, kind, (changed) => form.setArrow(before, after, changed), { "aria-label": `${before} and ${after}` })
      : arrowKinds[kind][0], " ", nameElement(after));
  const showRules = ({ rules }) => rules.length && element.append(el("details", {}, el("summary", {}, plural(rules.length, "rule")),
    el("ul", { className: "pairs" }, ...rules.map((rule) => el("li", {}, nameElement(rule))))));
  const show = (step, { explanations, arrows }) => element.replaceChildren(el("h2", {}, nameElement(step)),
    el("ul", { className: "pairs" }, ...explanations[step].map((sentence) => el("li", {}, nameElement(sentence))),
      ...arrows.filter(({ before, after }) => before === step || (form && after === step)).map(arrowItem)));
  return { element, show, showRules };
}

/** After learning again: what is different now. */
async function changeElements(before, id) {
  const found = await get(`compare?${new URLSearchParams({ first: before, second: id })}`).catch(() => null);
  if (!found) return [];
  return [el("section", { className: "box", "aria-label": "What changed" }, el("h2", {}, "What changed"),
    ...comparisonElements(found, "Before", "Now"))];
}

/** The graphs that were learned before with other rules, and the one that was learned after. */
function historyElements(work, records) {
  const earlier = [];
  const before = ({ job }) => records.find(({ id }) => id === job?.replaces);
  for (let record = before(work); record; record = before(record)) earlier.push(record);
  const later = records.filter((record) => record.job?.replaces === work.id);
  const item = (record, when) => el("li", {}, `${when}: `, link(`${dateText(record.made)}, ${rulesText(record)}`, `/graph/${record.id}`));
  const items = [...later.map((record) => item(record, "later")), ...earlier.map((record) => item(record, "before"))];
  return items.length ? [el("details", { className: "box" }, el("summary", {}, "History"), el("ul", { className: "pairs" }, ...items))] : [];
}

const rulesText = (work) => plural(rulesOf(work).length, "rule");

function resultElements(work, choices, form) {
  const buttons = el("p", { className: "buttons" },
    link("Follow along", `/follow/${work.id}`, { className: "as-button main" }),
    link("Publish", `/publish/${work.id}`, { className: "as-button" }),
    link("Change by hand", `/draw/${work.id}`, { className: "as-button" }),
    link("Open as a page of its own", `/page/${work.id}`, { className: "as-button", target: "_blank", rel: "noopener" }));
  const files = el("p", { className: "downloads" }, "Download: ", ...choices.graph_formats.map((format) =>
    link(`.${format}`, `/api/work/${work.id}/as/${format}`, { download: "" })));
  return [buttons, files, work.votes.length ? disagreement(work) : null, form?.element,
    compareForm(work), checkForm(work), work.job ? followsBox(work.job.data, work.job.task) : null].filter(Boolean);
}

// -- rules ---------------------------------------------------------------------------------------------------------

const relationHelp = "“Is needed for”: the second step cannot be done without the first. “(If done) comes before”: the " +
  "first step may be left out; only where both are done, it comes first.";

function relearnForm(work, choices, relearn) {
  const { relations } = choices;
  const rules = rulesOf(work);
  const ofKind = (wanted) => rules.filter(([kind]) => kind === wanted).map(([, before, after]) => [before, after]);
  const list = el("ul", { className: "pairs" });
  const form = learningForm(choices, work.job);
  const steps = work.steps.length ? [...work.steps].sort() : null;
  const stepControl = (label) =>
    steps ? select(steps, steps[0], null, { "aria-label": label }) : el("input", { "aria-label": label });
  const [before, after] = [stepControl("One step"), stepControl("Another step")];
  const kind = select(Object.entries(relations), "require", null, { "aria-label": "Relation" });
  if (steps?.length > 1) after.value = steps[1];

  const again = reportErrors(() => {
    const { data, task } = work.job;
    const told = Object.fromEntries(Object.keys(relations).map((kind) => [kind, ofKind(kind)]));
    return relearn({ data, task, replaces: work.id, ...form.value(), ...told }, work.id);
  });

  /** Try other rules; where they are refused, those from before stay. */
  const change = async (edit) => {
    const kept = [...rules];
    edit();
    if (!(await again())) rules.splice(0, rules.length, ...kept);
    listRules();
  };

  function listRules() {
    list.replaceChildren(...rules.map(([kind, a, b], place) => el("li", {}, nameElement(a),
      ` ${relations[kind]} `, nameElement(b), " ",
      button("Remove", () => change(() => rules.splice(place, 1)), { className: "link", "aria-label": `Remove the rule that ${a} ${relations[kind]} ${b}` }))));
  }

  listRules();
  const add = () => change(() => rules.push([kind.value, before.value, after.value]));
  const setArrow = (before, after, kind) => change(() => {
    const others = rules.filter(([, a, b]) => ![a, b].every((step) => [before, after].includes(step)));
    rules.splice(0, rules.length, ...others, ...arrowKinds[kind][1].map((rule) => [rule, before, after]));
  });
  const element = el("details", { className: "box", open: rules.length > 0 || work.state === "failed" },
    el("summary", {}, "Rules you know, and learning again"), list,
    el("div", { className: "fields" }, before, kind, after,
      button("Add and learn again", add, { className: "main" })),
    el("p", { className: "quiet meaning" }, relationHelp),
    form.element, button("Learn again", again));
  return { element, setArrow };
}

// -- what people disagree on -------------------------------------------------------------------------------------

const outcomes = {
  kept: "kept",
  dropped: "dropped",
  tie: "a tie: dropped",
  contradiction: "contradicts clearer majorities: dropped",
};

/** What is said of the step of a vote. */
function statementText({ kind, clause }) {
  if (kind === "optional") return "is optional";
  return `${{ needs: "needs", after: "comes after", exclusive: "is never done with" }[kind]} ${formulaText(clause)}`;
}

function disagreement(work) {
  const disputed = work.votes.filter((vote) => vote.voters.length < vote.of);
  const rows = disputed.map((vote) => row(nameElement(vote.step), nameElement(statementText(vote)),
    `${vote.voters.length} of ${vote.of}`, el("span", { className: vote.outcome }, outcomes[vote.outcome]),
    nameElement(vote.voters.map((place) => work.annotators[place]).join(", "))));
  const agreed = `${work.votes.length - disputed.length} of ${work.votes.length} statements are in all of the graphs.`;
  return el("section", { "aria-label": "Disagreement" }, el("h2", {}, "What they disagree on"),
    el("p", { className: "quiet" }, agreed),
    rows.length ? table(["Step", "What is said of it", "Agreed", "Outcome", "Who says so"], rows) : "");
}
