// How far two people agree on the labels of the same videos.
import { get } from "./api.js";
import { el, nameElement, plural, reportErrors, row, select, table } from "./dom.js";

const kappa = (value) => (value === null ? "–" : value.toFixed(2));

/** In words, after Landis and Koch. */
const inWords = (value) => (value === null ? "" : value > 0.8 ? "almost perfect" : value > 0.6 ? "substantial" : value > 0.4 ? "moderate"
  : value > 0.2 ? "fair" : "slight or none");

/** A part of the page that opens; `others()` are the names of the other people. */
export function agreementPanel(id, task, person, others) {
  const body = el("div");
  const panel = el("details", { className: "agreement" }, el("summary", {}, "Agreement with somebody else"), body);

  const show = reportErrors(async (other) => {
    const query = new URLSearchParams({ task, person: person(), other });
    const found = await get(`data/${id}/workbench/agreement?${query}`);
    const lines = found.steps.map((one) => row(nameElement(one.step), `${one.first} / ${one.second} / ${one.both}`,
      kappa(one.presence_kappa), kappa(one.time_kappa)));
    const total = found.overall;
    body.replaceChildren(menu(other), found.videos
      ? el("div", {}, el("p", {}, `${plural(found.videos, "video")} labelled by both. Kappa of presence ${kappa(total.presence_kappa)}` +
        ` (${inWords(total.presence_kappa) || "nothing to compare"}), of time ${kappa(total.time_kappa)}` +
        `${total.time_kappa === null ? "" : ` (${inWords(total.time_kappa)})`}.`),
        table(["Step", "Videos", "Presence κ", "Time κ"], lines),
        el("p", { className: "quiet hint" }, `Videos: those in which ${person()}, ${other} and both have the step. ` +
          "Kappa is 1 where both always say the same and 0 where they agree no more than by chance. " +
          "Presence: is the step in the video? Time: is it going on in this second? A dash: there is nothing to tell apart."))
      : el("p", {}, "There is no video that both have labelled."));
  });

  const menu = (chosen) => select(others(), chosen, show, { "aria-label": "Agreement with" });
  panel.addEventListener("toggle", () => {
    if (!panel.open) return;
    if (others().length) show(others()[0]);
    else body.replaceChildren(el("p", { className: "quiet" }, "Nobody else has labelled here yet. Change the name at the top, and label as somebody else."));
  });
  return panel;
}
