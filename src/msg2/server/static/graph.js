// One graph: how its job goes, its page, what must hold in it, and its files.
import { get, post } from "./api.js";
import { button, choice, el, field, link, named, row, safely, say, table } from "./dom.js";
import { words } from "./formula.js";
import { learningForm } from "./learning.js";

export async function show(screen, id) {
  const choices = await get("choices");

  async function follow(id) {
    const work = await get(`work/${id}`);
    document.title = `${work.task} – msg2`;
    const heading = [el("h1", {}, named(work.task || work.name)), el("p", { className: "quiet" }, origin(work))];
    if (work.state === "done") {
      say("");
      screen.replaceChildren(...heading, ...finished(work, choices, refit));
    } else if (work.state === "failed") {
      const { error, where, hint } = work.problem;
      screen.replaceChildren(...heading, el("div", { className: "failed box", role: "alert" },
        el("strong", {}, where ? `${where}: ${error}` : error), hint ? el("p", {}, hint) : ""),
        ...(work.job ? [refitting(work, choices, refit)] : []));
    } else {
      const news = work.news ?? (work.state === "waiting" ? "waiting for its turn" : "beginning");
      screen.replaceChildren(...heading, el("p", {}, el("progress", { "aria-label": "learning" })));
      say(`${news} …`);
      setTimeout(safely(() => follow(id)), 300);
    }
  }

  const refit = safely(async (job) => {
    const made = await post("work", job);
    history.pushState(null, "", `/graph/${made.id}`);
    await follow(made.id);
  });
  addEventListener("popstate", safely(() => follow(location.pathname.split("/")[2])));
  await follow(id);
}

function origin(work) {
  const how = { learnt: `learnt with ${work.job?.method} from ${work.name}`, given: `from ${work.name}`,
    drawn: work.name ? `drawn by ${work.name}` : "drawn by hand", merged: `merged from ${work.annotators.join(", ")}` };
  return [how[work.kind], work.videos ? `${work.videos} videos` : "", ...work.remarks].filter(Boolean).join(" · ");
}

function finished(work, choices, refit) {
  const frame = el("iframe", { src: `/page/${work.id}`, title: `The graph of ${work.task}`, className: "page" });
  frame.setAttribute("sandbox", "allow-scripts allow-downloads allow-modals");
  const buttons = el("p", { className: "buttons" },
    link("Open the page by itself", `/page/${work.id}`, { className: "as-button", target: "_blank", rel: "noopener" }),
    link("Edit by hand", `/draw/${work.id}`, { className: "as-button" }));
  const files = el("p", { className: "downloads" }, "Download: ", ...choices.graph_formats.map((format) =>
    link(`.${format}`, `/api/work/${work.id}/as/${format}`, { download: "" })));
  const side = work.job ? refitting(work, choices, refit) : work.votes.length ? votes(work) : null;
  return [buttons, files, side, frame].filter(Boolean);
}

// -- what must hold ----------------------------------------------------------------------------------------------

const relations = { require: "must come before", forbid: "is not needed for" };

function refitting(work, choices, refit) {
  const pairs = ["require", "forbid"].flatMap((kind) => work.job[kind].map((pair) => [kind, ...pair]));
  const ofKind = (wanted) => pairs.filter(([kind]) => kind === wanted).map(([, before, after]) => [before, after]);
  const list = el("ul", { className: "pairs" });
  const form = learningForm(choices, work.job);
  const steps = work.steps.length ? [...work.steps].sort() : null;
  const name = (words) =>
    steps ? choice(steps, steps[0], null, { "aria-label": words }) : el("input", { "aria-label": words });
  const [before, after] = [name("One step"), name("Another step")];
  const kind = choice(Object.entries(relations), "require", null, { "aria-label": "Relation" });
  if (steps?.length > 1) after.value = steps[1];

  const again = () => {
    const { data, task } = work.job;
    return refit({ data, task, ...form.value(), require: ofKind("require"), forbid: ofKind("forbid") });
  };

  function fill() {
    list.replaceChildren(...pairs.map(([kind, a, b], place) => el("li", {}, named(a),
      ` ${relations[kind]} `, named(b), " ",
      button("Remove", () => { pairs.splice(place, 1); again(); }, { className: "link" }))));
  }

  fill();
  const add = () => { pairs.push([kind.value, before.value, after.value]); again(); };
  return el("details", { className: "box", open: pairs.length > 0 || work.state === "failed" },
    el("summary", {}, "What must hold, and learning again"), list,
    el("div", { className: "fields" }, before, kind, after,
      button("Add and learn again", add, { className: "main" })),
    form.element, button("Learn again", again));
}

// -- what people disagree on -------------------------------------------------------------------------------------

const outcomes = {
  kept: "kept",
  dropped: "dropped",
  tie: "a tie: dropped",
  contradiction: "contradicts clearer majorities: dropped",
};

function votes(work) {
  const disputed = work.votes.filter((vote) => vote.voters.length < vote.of);
  const rows = disputed.map((vote) => row(named(vote.step), named(words(vote.clause)),
    `${vote.voters.length} of ${vote.of}`, el("span", { className: vote.outcome }, outcomes[vote.outcome]),
    named(vote.voters.map((place) => work.annotators[place]).join(", "))));
  const agreed = `${work.votes.length - disputed.length} of ${work.votes.length} clauses are in all of the graphs.`;
  return el("section", { "aria-label": "Disagreement" }, el("h2", {}, "What they disagree on"),
    el("p", { className: "quiet" }, agreed),
    rows.length ? table(["Step", "Needs", "Agreed", "Outcome", "Who says so"], rows) : "");
}
