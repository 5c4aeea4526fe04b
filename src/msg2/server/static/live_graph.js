// Beside the labels: their graph as it is now, what the last change did to it, whether that is enough, and which video next.
import { post } from "./api.js";
import { button, el, nameElement, plural } from "./dom.js";

const PAUSE = 700;
const SVG = "http://www.w3.org/2000/svg";

/** `request()` is the body of the question, `open(video)` goes to a video, `keep()` opens the page of the graph. */
export function liveGraph(id, request, { open, keep }) {
  const changes = el("p", { className: "changes", role: "status" });
  const picture = el("figure", { className: "live-graph", role: "img", "aria-label": "The graph of the labels so far" });
  const enough = el("div", { className: "enough" });
  const next = el("div", { className: "next-video" });
  const element = el("section", { "aria-label": "Graph so far" },
    el("h2", {}, "Graph so far ", button("Open its page", keep, { className: "link" })), changes, picture,
    el("h2", {}, "Enough?"), enough, el("h2", {}, "Which video next?"), next);
  let timer = null;
  let asking = false;
  let again = false;
  let ranked = [];
  let marked = null;

  function refresh(delay = PAUSE) {
    clearTimeout(timer);
    timer = setTimeout(ask, delay);
  }

  /** One question at a time: what changes meanwhile is asked for afterwards. */
  async function ask() {
    if (asking) return void (again = true);
    asking = true;
    element.classList.add("waiting");
    try {
      show(await post(`data/${id}/workbench/graph`, request()));
    } catch (error) {
      changes.textContent = error.problem ? `No graph: ${error.problem.error}` : "No graph: the server is not there.";
    }
    asking = false;
    element.classList.toggle("waiting", again);
    if (again) refresh();
    again = false;
  }

  function show(answer) {
    changes.textContent = answer.changes;
    if (answer.svg) {
      const svg = document.adoptNode(new DOMParser().parseFromString(answer.svg, "image/svg+xml").documentElement);
      picture.replaceChildren(svg);
      mark(marked);
    } else picture.replaceChildren();
    const counted = `${plural(answer.labels, "label")} in ${plural(answer.videos, "video")}.`;
    enough.replaceChildren(
      el("p", {}, el("strong", { className: answer.enough ? "yes" : "" },
        answer.movement === null ? "–" : `${Math.round(100 * answer.movement)} %`), ` ${answer.sentence}`),
      answer.trend.length > 1 ? sparkline(answer.trend) : "", el("p", { className: "quiet" }, counted));
    ranked = answer.next.map(({ video }) => video);
    const [best] = ranked;
    next.replaceChildren(...(answer.next.length
      ? [el("p", {}, button(nameElement(best), () => open(best), { className: "link" }), ` (Shift n): ${answer.next[0].reason}.`),
        answer.next.length > 1 ? el("p", { className: "quiet" }, "Then ", ...answer.next.slice(1, 4).flatMap(({ video, reason }) =>
          [", ", button(nameElement(video), () => open(video), { className: "link", title: reason })]).slice(1), ".") : ""]
      : [el("p", {}, "Every video has labels.")]));
  }

  /** Show where a step is in the graph. */
  function mark(step) {
    marked = step;
    for (const node of picture.querySelectorAll(".node.step")) {
      node.classList.toggle("chosen", node.querySelector("title")?.textContent === step);
    }
  }

  return { element, refresh, mark, get ranked() { return ranked; } };
}

/** How much the graph moved, over the number of labelled videos. */
function sparkline(trend) {
  const [width, height] = [280, 40];
  const [first, last] = [trend[0].videos, trend.at(-1).videos];
  const top = Math.max(0.1, ...trend.map(({ movement }) => movement));
  const x = (videos) => 2 + ((width - 4) * (videos - first)) / Math.max(1, last - first);
  const y = (movement) => height - 2 - ((height - 4) * movement) / top;
  const svg = document.createElementNS(SVG, "svg");
  const title = `With ${first} to ${last} videos: ${Math.round(100 * trend[0].movement)} % to ${Math.round(100 * trend.at(-1).movement)} %`;
  const part = (tag, attributes) => {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    svg.append(node);
  };
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("class", "sparkline");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", title);
  part("line", { x1: 0, x2: width, y1: y(0.05), y2: y(0.05), class: "limit" });
  part("polyline", { points: trend.map(({ videos, movement }) => `${x(videos)},${y(movement)}`).join(" ") });
  part("circle", { cx: x(last), cy: y(trend.at(-1).movement), r: 2.5 });
  const tip = document.createElementNS(SVG, "title");
  tip.textContent = title;
  svg.append(tip);
  return svg;
}
