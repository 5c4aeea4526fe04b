// What following a run shows: the step to do, stops and warnings, what is missing, and the other steps.
import { button, el, nameElement } from "./dom.js";
import { clausesOf, formulaOf, formulaText } from "./formula.js";

/** What is due, the most probable first; where nothing is, what may be done at all. */
export function possibleSteps({ next }) {
  const due = next.filter((one) => one.due);
  return due.length ? due : next.filter((one) => one.eligible && !one.stated);
}

/** What somebody chose, or what has begun; null where the likeliest step is to be shown. */
export function currentStep({ next, last, progress }, chosen) {
  const step = chosen ?? (last?.kind === "began" ? Object.keys(last.seen)[0] : null);
  if (!step || progress.includes(step)) return null;
  return next.find((one) => one.step === step) ?? { step, probability: null, due: true, stated: false, unmet: [], reason: "it has begun", begun: true };
}

/** What stops: the alarms that were raised just now, stated rules that are still broken, and one that `chosen` would break. */
export function stopsOf({ last, alarms, missing }, chosen) {
  const raised = last?.report?.mistake ? last.report : null;
  // What `fry` needs `dip` for, that `dip` comes late for `fry`: the same alarm may be told from either end.
  const isRaised = ({ step, unmet }) => Boolean(raised?.findings.some((finding) => finding.step === step ||
    (unmet.includes(finding.step) && finding.unmet.includes(step))));
  const shown = alarms.filter((alarm) => !last || isRaised(alarm) || (alarm.stated && alarm.kind === "need"));
  // What is missing was stopped for already: doing it late is better than not at all.
  const early = chosen?.stated && !missing.some(({ step }) => step === chosen.step) ? [{ ...chosen, early: true }] : [];
  return [...early, ...shown];
}

/** The steps of a clause by which it can be met. */
const waysOf = (clause) => (typeof clause === "string" ? [clause] : clause.any?.filter((part) => typeof part === "string") ?? []);

/** A button that tells something; the second tap of a double one would tell it of what has come to its place. */
function tellButton(content, tell, properties = {}) {
  return el("button", { type: "button", "data-tells": "", onclick: (event) => (event.detail > 1 ? null : tell()), ...properties }, ...content);
}

/** A stop, or a warning: what comes first, and that it was done or is not done yet. */
export function stopElement(alarm, file, answer, { did, accept, back, choose }) {
  const { step, stated, early, kind, unmet, reason, probability } = alarm;
  const first = kind === "order" ? [] : unmet;
  const names = [...new Set(first.flatMap(waysOf))].filter((name) => !answer.progress.includes(name));
  const by = file.rules?.find((rule) => rule.after === step && names.includes(rule.before))?.by;
  const words = first.length ? ["First: ", el("strong", {}, nameElement(formulaText(first.length > 1 ? { all: first } : first[0]))), "."]
    : [`${early ? "It is " : ""}${reason}.`];
  const sure = probability >= 0.95 ? "Almost certainly" : probability >= 0.6 ? "Probably" : "Perhaps";
  return el("div", { className: stated ? "card stop" : "card warning" },
    el("h2", {}, el("span", {}, stated ? "Stop: " : `${sure} a mistake: `), nameElement(step)),
    el("p", {}, ...(stated ? words : [`${reason}.`])),
    stated ? el("p", {}, by ? `${by} says so: a stated rule.` : "That is a stated rule.") : whyElement(`${percent(probability)} sure that this is a mistake.`),
    el("p", { className: "buttons" },
      early || answer.last ? button("Go back", early ? () => choose(null) : back, { className: "main" }) : null,
      ...names.slice(0, 3).map((name) => tellButton(["I did “", nameElement(name), "”"], () => (early ? did(name, step) : accept(name)))),
      early || !answer.last ? null : tellButton(["It counts anyway"], () => accept(step), { className: "plain" })));
}

/** The step to do now, what it needs, and what comes after it. */
export function stepElements(one, chosen, file, answer, { did }) {
  const { step, probability, due, reason, unmet, begun } = one;
  const often = begun ? "Begun" : probability >= 0.6 ? "Usually next" : probability >= 0.3 ? "Often next" : "Next";
  const open = new Set(unmet.map((clause) => JSON.stringify(clause)));
  const needs = clausesOf(file.preconditions[step]).map((clause) => formulaOf([clause]));
  const before = unmet.filter((clause) => !needs.some((need) => JSON.stringify(need) === JSON.stringify(clause)));
  const then = afterThat(one, answer, file);
  return [
    el("div", { className: "card" },
      el("p", { className: "quiet" }, !chosen || begun ? often : due ? "You chose" : "Usually not yet", file.optional?.includes(step) ? " · may be left out" : ""),
      el("h2", {}, nameElement(step)),
      needs.length + before.length ? el("p", { className: "needs" }, "After ", ...[...needs, ...before].map((clause) => {
        const met = !open.has(JSON.stringify(clause));
        return el("span", { className: met ? "" : "unmet" }, met ? "✓ " : "○ ", nameElement(formulaText(clause)), el("span", { className: "unseen" }, met ? ", done" : ", not done"));
      })) : null,
      tellButton(["Done"], () => did(step), { className: "main done", "aria-keyshortcuts": "1", "aria-label": `Done: ${step}` }),
      whyElement(probability === null ? `${reason}.` : `It comes next with ${percent(probability)}: ${reason}.`)),
    el("p", { className: "quiet after" }, ...(then.length ? ["After that: ", ...joined(then)] : [])),
  ];
}

/** The names of what may come after a step: first what it makes possible, then what is possible anyway; two at most. */
function afterThat({ step }, { next }, { order = [], exclusive = [] }) {
  const meets = (clause) => clause === step || Boolean(clause.any?.some(meets));
  const ruledOut = (other) => exclusive.some((group) => group.includes(other) && group.includes(step)) ||
    order.some(([before, after]) => before === other && after === step);
  const others = next.filter((one) => one.step !== step && !ruledOut(one.step));
  const opened = others.filter((one) => !one.due && one.unmet.length && one.unmet.every(meets));
  return [...opened, ...others.filter((one) => one.due)].slice(0, 2).map((one) => one.step);
}

export function finishedElements({ finished }, { accept }) {
  const { left, reason } = finished;
  const items = left.map((step) => el("li", {}, el("strong", {}, nameElement(step)), tellButton(["I did it"], () => accept(step), { "aria-label": `${step}: I did it` })));
  return [el("div", { className: "card finished" },
    el("h2", {}, left.length ? "Not finished" : "✓ Finished"),
    el("p", {}, left.length ? "This was not done, and nothing else can be done now:" : "Everything that is required is done."),
    left.length ? el("ul", { className: "still" }, ...items) : null, left.length ? null : whyElement(`${reason}.`))];
}

/** What is missing, and what else was noticed, but for what a stop or a warning is about. */
export function missingElements({ missing, alarms }, stops, { accept }) {
  const told = (step) => stops.some((alarm) => alarm.step === step || alarm.unmet.includes(step));
  const open = missing.filter(({ step }) => !told(step));
  const others = alarms.filter((alarm) => !told(alarm.step) && alarm.kind !== "need" && !missing.some(({ step }) => step === alarm.step));
  const items = [...open.map((one) => [one, "I did it"]), ...others.map((one) => [one, "It counts anyway"])];
  return items.length ? [el("h2", {}, "Still open"), el("ul", { className: "still" }, ...items.map(([{ step, reason }, text]) =>
    el("li", {}, el("strong", {}, nameElement(step)), el("small", {}, reason), tellButton([text], () => accept(step), { "aria-label": `${step}: ${text}` }))))] : [];
}

/** A step that may be done instead. */
export function otherButton({ step, probability }, key, { choose }) {
  const often = probability === null ? "" : probability >= 0.6 ? "usually" : probability >= 0.3 ? "often" : probability >= 0.1 ? "sometimes" : "seldom";
  return el("button", { type: "button", className: "other", onclick: () => choose(step), "data-key": `soon ${step}`, "aria-keyshortcuts": key },
    nameElement(step), el("small", {}, often));
}

/** One of all the steps: done, probably done, or to be chosen. */
export function everyStep(step, { progress, inferred, done, next }, current, { choose }) {
  const unseen = inferred[step] >= 0.5 ? "probably done, not seen" : "";
  if (progress.includes(step)) return el("span", { className: "done" }, "✓ ", nameElement(step), el("small", {}, unseen));
  const { due, unmet } = next.find((one) => one.step === step) ?? { due: true };
  const note = unseen || (done[step] >= 0.1 ? "perhaps done" : due ? "" : unmet.length ? "not yet" : "left out");
  return el("button", { type: "button", className: due ? "other" : "other later", onclick: () => choose(step), "data-key": `every ${step}`, ariaCurrent: step === current ? "step" : null },
    nameElement(step), el("small", {}, note));
}

const whyElement = (text) => el("details", { className: "reason" }, el("summary", {}, "Why?"), el("p", {}, text));

const joined = (steps) => steps.flatMap((step, place) => [place ? " or " : "", nameElement(step)]);

const limitNames = { next: "Next step", finished: "Whether it is finished", plan: "Plans", time_left: "Time left" };

/** What it cannot tell, and why. */
export function limitsElement({ limitations }) {
  const items = Object.entries(limitations).map(([name, why]) => el("li", {}, `${limitNames[name] ?? name}: ${why}`));
  const summary = limitations.time_left && items.length === 1 ? "Why times are not shown" : "What it cannot tell";
  return items.length ? el("details", { className: "limits" }, el("summary", {}, summary), el("ul", { className: "quiet" }, ...items)) : null;
}

/** With spaces that do not break. */
function percent(share) {
  if (share > 0.995 && share < 1) return ">\u00a099\u00a0%";
  return share < 0.005 ? "<\u00a01\u00a0%" : `${Math.round(100 * share)}\u00a0%`;
}

export function spokenText(answer) {
  const { last, finished } = answer;
  const step = last?.report ? last.report.step : Object.keys(last?.seen ?? {})[0];
  const told = step ? `${step} ${last.report?.mistake ? "looks like a mistake" : last.kind === "began" ? "begun" : "done"}. ` : "";
  const [next] = possibleSteps(answer);
  if (finished.finished) return `${told}Finished.`;
  return told + (next ? `Next: ${next.step}` : `Not done: ${finished.left.join(", ")}.`);
}
