// What a graph and its data are asked: how it differs from another one, what went wrong in some runs, what follows what.
import { get, getText, post } from "./api.js";
import { showDiagram } from "./diagram.js";
import { button, el, field, link, nameElement, plural, reportErrors, row, select, table } from "./dom.js";
import { formulaText } from "./formula.js";
import { originOf, titleOf } from "./graph.js";

/** A box that is filled when it is opened first. */
function toolBox(title, fill) {
  const box = el("details", { className: "box" }, el("summary", {}, title));
  box.addEventListener("toggle", reportErrors(async () => box.append(...(await fill()))), { once: true });
  return box;
}

// -- comparing -----------------------------------------------------------------------------------------------------

const kindText = { needs: "is needed", after: "comes first, if done", exclusive: "never both", free: "no order" };

/** What two graphs differ in, each thing in one line. */
export function comparisonElements(found, first, second) {
  const pairs = found.pairs.map(({ before, after, first: one, second: two }) =>
    row(el("span", {}, nameElement(before), " → ", nameElement(after)), kindText[one], kindText[two]));
  const needs = found.preconditions.map(({ step, first: one, second: two }) =>
    row(el("span", {}, nameElement(step), " needs"), nameElement(formulaText(one)), nameElement(formulaText(two))));
  const optional = [...found.optional_in_first.map((step) => [step, "may be left out", ""]),
    ...found.optional_in_second.map((step) => [step, "", "may be left out"])].map(([step, ...cells]) => row(nameElement(step), ...cells));
  const rows = [...pairs, ...needs, ...optional];
  const same = Math.floor(100 * found.agreement);
  const alone = [[first, found.steps_in_first], [second, found.steps_in_second]].filter(([, names]) => names.length)
    .map(([where, names]) => el("p", {}, `${plural(names.length, "step")} only in “${where}”: `,
      ...names.flatMap((name) => [", ", nameElement(name)]).slice(1), "."));
  const both = alone.length ? " Only steps that are in both are compared." : "";
  const sentence = rows.length ? `${same} % of the pairs of steps are the same in both.`
    : alone.length ? "On the steps that are in both, they say the same." : "Nothing: both graphs say the same.";
  return [el("p", {}, sentence + both), ...alone, rows.length ? table(["", first, second], rows) : ""];
}

const plainNames = (work) => new Set(work.steps.map((step) => step.trim().toLowerCase()));

export function compareForm(work) {
  return toolBox("Compare with another graph", async () => {
    const own = plainNames(work);
    const shared = (other) => [...plainNames(other)].filter((step) => own.has(step)).length;
    const others = (await get("work")).work.filter((other) => other.id !== work.id && other.state === "done" && shared(other) > 1);
    if (!others.length) {
      return [el("p", { className: "quiet" }, "There is no other graph with two of these steps. Learn one by another method, or from " +
        "other data; tell a rule; or draw one by hand.")];
    }
    const result = el("div", { role: "status" });
    const items = others.map((other) => [other.id, `${titleOf(other)} (${[originOf(other), other.job?.method].filter(Boolean).join(", ")})`]);
    const other = select(items, others[0].id);
    const compare = reportErrors(async () => {
      const found = await get(`compare?${new URLSearchParams({ first: work.id, second: other.value })}`);
      result.replaceChildren(...comparisonElements(found, "This graph", "The other one"));
    });
    return [el("div", { className: "fields" }, field("Graph", other), button("Compare", compare)), result];
  });
}

// -- the data themselves -------------------------------------------------------------------------------------------

const PICTURES = ["svg", "png", "pdf", "dot"];
export const NARROW = 700;

/** How often one step came right after another in the data: nothing that is learnt. */
export function followsBox(data, task) {
  return toolBox("What directly follows what in the data", async () => {
    const figure = el("figure", { className: "diagram", tabIndex: 0, "aria-label": "What directly follows what" });
    const address = (format, more = {}) => `data/${data}/directly-follows/as/${format}?${new URLSearchParams({ ...(task ? { task } : {}), ...more })}`;
    const svg = await getText(address("svg", { top_down: innerWidth < NARROW }));
    requestAnimationFrame(() => showDiagram(figure, svg, [], () => {})); // once there is room for it
    return [el("p", { className: "quiet" }, "The number at an arrow is how often the one step came right after the other; arrows of fewer " +
      "than 5 % of the runs are left out, but for the most frequent one from and to each step. Nothing here is learnt."), figure,
    el("p", { className: "downloads" }, "Download: ", ...PICTURES.map((format) => link(`.${format}`, `/api/${address(format)}`, { download: "" })))];
  });
}

// -- checking ------------------------------------------------------------------------------------------------------

const SHOWN = 200;

function mistakeText({ kind, unmet }) {
  if (kind === "left out") return "was left out";
  const names = unmet.map(formulaText).join(", ");
  return { order: `came after ${names}, it should come before`, exclusive: `was done as well as ${names}` }[kind] ?? `was done without ${names}`;
}

export function checkForm(work) {
  return toolBox("Check a recording", async () => {
    const datasets = (await get("data")).data.filter((data) => data.tasks.some((task) => task.steps.length));
    if (!datasets.length) return [el("p", { className: "quiet" }, "Add its labels under “Data and graphs” first.")];
    const result = el("div", { role: "status" });
    const items = datasets.flatMap((data) => data.tasks.map((task) =>
      [JSON.stringify({ data: data.id, task: task.name }), data.tasks.length > 1 ? `${data.name}: ${task.name}` : data.name]));
    const chosen = select(items, items[0][0]);
    const check = reportErrors(async () => {
      const { videos, mistakes } = await post(`work/${work.id}/check`, JSON.parse(chosen.value));
      const likely = mistakes.filter(({ probability }) => probability === null || probability >= 0.5);
      const rows = likely.slice(0, SHOWN).map((mistake) => row(nameElement(mistake.video), nameElement(mistake.step),
        nameElement(mistakeText(mistake)), mistake.probability === null ? "" : `${Math.round(100 * mistake.probability)} %`));
      const runs = new Set(likely.map(({ video }) => video)).size;
      const more = likely.length > SHOWN ? ` The first ${SHOWN} are shown.` : "";
      const sentence = likely.length ? `${plural(likely.length, "probable mistake")} in ${runs} of ${videos} runs.${more}` : "No probable mistake was found.";
      result.replaceChildren(el("p", {}, sentence), rows.length ? table(["Run", "Step", "What went wrong", "How probable"], rows) : "");
    });
    return [el("div", { className: "fields" }, field("Data", chosen), button("Check", check)), result];
  });
}
