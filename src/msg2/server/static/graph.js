// One graph: how its job goes, its page, what must hold in it, and its files.
import { get, post } from "./api.js";
import { button, el, link, nameElement, reportErrors, row, select, showStatus, table } from "./dom.js";
import { formulaText } from "./formula.js";
import { learningForm } from "./learning_form.js";

export async function show(screen, id) {
  const choices = await get("choices");

  async function follow(id) {
    const work = await get(`work/${id}`);
    document.title = `${work.task} – msg2`;
    const heading = [el("h1", {}, nameElement(work.task || work.name)), el("p", { className: "quiet" }, describeOrigin(work))];
    if (work.state === "done") {
      showStatus("");
      screen.replaceChildren(...heading, ...resultElements(work, choices, relearn));
    } else if (work.state === "failed") {
      const { error, where, hint } = work.problem;
      screen.replaceChildren(...heading, el("div", { className: "failed box", role: "alert" },
        el("strong", {}, where ? `${where}: ${error}` : error), hint ? el("p", {}, hint) : ""),
        ...(work.job ? [relearnForm(work, choices, relearn)] : []));
    } else {
      // Without a known total, the bar only shows that something is going on.
      const amount = work.total ? { max: work.total, value: work.done } : {};
      screen.replaceChildren(...heading, el("p", {}, el("progress", { "aria-label": "learning", ...amount })));
      showStatus(`${progressText(work) ?? (work.state === "waiting" ? "waiting for its turn" : "beginning")} …`);
      setTimeout(reportErrors(() => follow(id)), 300);
    }
  }

  const relearn = reportErrors(async (job) => {
    const record = await post("work", job);
    history.pushState(null, "", `/graph/${record.id}`);
    await follow(record.id);
  });
  addEventListener("popstate", reportErrors(() => follow(location.pathname.split("/")[2])));
  await follow(id);
}

/** What a running job is doing and, where the server knows it, how far it is; null before its first report. */
export const progressText = ({ news, done, total }) => (total ? `${news}, ${Math.floor((100 * done) / total)} %` : news);

function describeOrigin(work) {
  const origins = { learnt: `learnt with ${work.job?.method} from ${work.name}`, given: `from ${work.name}`,
    drawn: work.name ? `drawn by ${work.name}` : "drawn by hand", merged: `merged from ${work.annotators.join(", ")}` };
  return [origins[work.kind], work.videos ? `${work.videos} videos` : "", ...work.remarks].filter(Boolean).join(" · ");
}

function resultElements(work, choices, relearn) {
  const frame = el("iframe", { src: `/page/${work.id}`, title: `The graph of ${work.task}`, className: "page" });
  frame.setAttribute("sandbox", "allow-scripts allow-downloads allow-modals");
  const buttons = el("p", { className: "buttons" },
    link("Follow along", `/follow/${work.id}`, { className: "as-button main" }),
    link("Open the page by itself", `/page/${work.id}`, { className: "as-button", target: "_blank", rel: "noopener" }),
    link("Edit by hand", `/draw/${work.id}`, { className: "as-button" }));
  const files = el("p", { className: "downloads" }, "Download: ", ...choices.graph_formats.map((format) =>
    link(`.${format}`, `/api/work/${work.id}/as/${format}`, { download: "" })));
  const side = work.job ? relearnForm(work, choices, relearn) : work.votes.length ? disagreement(work) : null;
  return [buttons, files, side, frame].filter(Boolean);
}

// -- what must hold ----------------------------------------------------------------------------------------------

const relations = {
  require: "is needed for",
  require_order: "(if done) comes before",
  forbid: "is not needed for",
  forbid_order: "need not come before",
};
const relationHelp = "“Is needed for”: the second step cannot be done without the first. “(If done) comes before”: the " +
  "first step may be left out; only where both are done, it comes first.";

function relearnForm(work, choices, relearn) {
  const kinds = Object.keys(relations);
  const pairs = kinds.flatMap((kind) => work.job[kind].map((pair) => [kind, ...pair]));
  const ofKind = (wanted) => pairs.filter(([kind]) => kind === wanted).map(([, before, after]) => [before, after]);
  const list = el("ul", { className: "pairs" });
  const form = learningForm(choices, work.job);
  const steps = work.steps.length ? [...work.steps].sort() : null;
  const stepControl = (label) =>
    steps ? select(steps, steps[0], null, { "aria-label": label }) : el("input", { "aria-label": label });
  const [before, after] = [stepControl("One step"), stepControl("Another step")];
  const kind = select(Object.entries(relations), "require", null, { "aria-label": "Relation" });
  if (steps?.length > 1) after.value = steps[1];

  const again = () => {
    const { data, task } = work.job;
    return relearn({ data, task, ...form.value(), ...Object.fromEntries(kinds.map((kind) => [kind, ofKind(kind)])) });
  };

  function listPairs() {
    list.replaceChildren(...pairs.map(([kind, a, b], place) => el("li", {}, nameElement(a),
      ` ${relations[kind]} `, nameElement(b), " ",
      button("Remove", () => { pairs.splice(place, 1); again(); }, { className: "link" }))));
  }

  listPairs();
  const add = () => { pairs.push([kind.value, before.value, after.value]); again(); };
  return el("details", { className: "box", open: pairs.length > 0 || work.state === "failed" },
    el("summary", {}, "What must hold, and learning again"), list,
    el("div", { className: "fields" }, before, kind, after,
      button("Add and learn again", add, { className: "main" })),
    el("p", { className: "quiet meaning" }, relationHelp),
    form.element, button("Learn again", again));
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
