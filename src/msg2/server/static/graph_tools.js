// What a graph is asked on its screen: how it differs from another one, and what went wrong in some runs.
import { get, post } from "./api.js";
import { button, el, field, nameElement, plural, reportErrors, row, select, table } from "./dom.js";
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
  const sentence = rows.length ? `${same} % of the pairs of steps are the same in both.` : "Nothing: both graphs say the same.";
  return [el("p", {}, sentence), rows.length ? table(["", first, second], rows) : ""];
}

export function compareForm(work) {
  return toolBox("Compare with another graph", async () => {
    const others = (await get("work")).work.filter((other) => other.id !== work.id && other.state === "done" &&
      other.steps.length === work.steps.length);
    if (!others.length) return [el("p", { className: "quiet" }, "There is no other graph with as many steps.")];
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
