// Labels of one video as bars, a lane per step, with a time axis, captions, a playhead and zoom.
import { el, nameElement } from "./dom.js";
import { isDraft, shiftLabel } from "./label_state.js";

const MAX_ZOOM = 60;
const TICK_PIXELS = 80;
const TEXT_PIXELS = 26;

export const clockText = (seconds, tenths = false) => {
  if (!(seconds < 360000)) return seconds.toExponential(1);
  const whole = tenths ? Math.floor(seconds * 10 + 1e-6) / 10 : Math.floor(seconds + 1e-6);
  const rest = (whole % 60).toFixed(tenths ? 1 : 0).padStart(tenths ? 4 : 2, "0");
  return `${Math.floor(whole / 60)}:${rest}`;
};

const percentText = (row) => (row.confidence === undefined ? "?" : `${Math.round(100 * row.confidence)} %`);

/** `act` has change(row, values), choose(row), chooseStep(step) and seek(seconds). */
export function createTimeline(act) {
  const inner = el("div", { className: "timeline-inner" });
  const head = el("div", { className: "playhead" });
  const element = el("div", { className: "timeline", role: "group", "aria-label": "Timeline" }, inner);
  let model = { steps: [], rows: [], captions: [], length: 1 };
  let zoom = 1;
  let time = 0;

  const nameWidth = () => inner.querySelector(".lane-name")?.offsetWidth ?? 0;
  const trackWidth = () => Math.max(200, (element.clientWidth - nameWidth() - 24) * zoom);
  const timeAt = (event) => {
    const track = inner.querySelector(".track").getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - track.left) / track.width)) * model.length;
  };

  function render(given) {
    model = given;
    const hadFocus = element.contains(document.activeElement);
    const lanes = model.steps.map((step, place) => lane(step, place));
    const captions = model.captions.length ? [captionLane()] : [];
    inner.replaceChildren(el("div", { className: "lane scale" }, el("span", { className: "lane-name" }), axis()),
      ...captions, ...lanes, head);
    layout();
    if (hadFocus) inner.querySelector(".segment.chosen")?.focus({ preventScroll: true });
    inner.querySelector(".segment.chosen")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function layout() {
    inner.style.setProperty("--track", `${trackWidth()}px`);
    inner.querySelector(".scale .track")?.replaceChildren(...ticks());
    for (const mark of inner.querySelectorAll(".lane.spoken .track span")) {
      mark.classList.toggle("tiny", (parseFloat(mark.style.width) / 100) * trackWidth() < TEXT_PIXELS);
    }
    placeHead();
  }

  // -- lanes -----------------------------------------------------------------------------------------------------

  function lane(step, place) {
    const track = el("div", { className: "track" }, ...model.rows.filter((row) => row.step === step).map(bar));
    const number = el("kbd", {}, place < 9 ? String(place + 1) : "");
    const name = el("button", { type: "button", className: "lane-name", title: step, tabIndex: -1,
      onclick: () => act.chooseStep(step) }, number, nameElement(step));
    return el("div", { className: `lane${step === model.step ? " current" : ""}` }, name, track);
  }

  function captionLane() {
    const marks = model.captions.map(({ text, start, end }, place) => {
      const mark = el("span", { title: text }, text);
      placeBar(mark, { start, end: Math.min(end, model.captions[place + 1]?.start ?? end) }); // they may overlap
      return mark;
    });
    return el("div", { className: "lane spoken" }, el("span", { className: "lane-name quiet" }, "said"),
      el("div", { className: "track" }, ...marks));
  }

  function bar(row) {
    const draft = isDraft(row);
    const segment = el("button", { type: "button", className: `segment ${draft ? "draft" : "own"}`,
      title: `${row.step}: ${clockText(row.start, true)} to ${clockText(row.end, true)}${draft ? `, draft, ${percentText(row)} sure` : ""}`,
      "aria-label": labelText(row), tabIndex: row === model.chosen ? 0 : -1 },
      el("span", { className: "end left" }), el("span", { className: "end right" }),
      draft ? el("span", { className: "percent" }, percentText(row)) : null);
    if (draft) segment.style.setProperty("--sure", row.confidence ?? 0.5);
    segment.classList.toggle("chosen", row === model.chosen);
    placeBar(segment, row);
    segment.addEventListener("pointerdown", (event) => drag(event, segment, row));
    segment.addEventListener("click", (event) => { if (event.detail === 0) act.choose(row); });
    return segment;
  }

  function placeBar(segment, { start, end }) {
    segment.style.left = `${(100 * start) / model.length}%`;
    segment.style.width = `${(100 * (end - start)) / model.length}%`;
  }

  function drag(event, segment, row) {
    event.stopPropagation();
    const grip = event.target.classList;
    const which = grip.contains("left") ? "start" : grip.contains("right") ? "end" : "both";
    const begin = event.clientX;
    let values = null;
    segment.setPointerCapture(event.pointerId);
    segment.onpointermove = (move) => {
      if (!values && Math.abs(move.clientX - begin) < 3) return;
      values = shiftLabel(row, which, (model.length * (move.clientX - begin)) / trackWidth());
      placeBar(segment, { ...row, ...values });
    };
    segment.onpointerup = segment.onpointercancel = () => {
      segment.onpointermove = segment.onpointerup = segment.onpointercancel = null;
      if (values) act.change(row, values);
      else act.choose(row);
    };
  }

  // -- time ------------------------------------------------------------------------------------------------------

  function axis() {
    return el("div", { className: "track" });
  }

  function ticks() {
    const intervals = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];
    const most = Math.max(2, trackWidth() / TICK_PIXELS);
    const interval = intervals.find((seconds) => model.length / seconds <= most) ?? model.length / Math.min(12, most);
    const marks = [];
    for (let number = 0; number * interval < model.length; number++) {
      const at = number * interval;
      const mark = el("span", {}, clockText(at, interval < 1));
      mark.style.left = `${(100 * at) / model.length}%`;
      marks.push(mark);
    }
    return marks;
  }

  function placeHead() {
    head.style.transform = `translateX(${nameWidth() + 8 + (time / model.length) * trackWidth()}px)`;
  }

  function setTime(seconds, follow) {
    time = seconds;
    placeHead();
    if (!follow || zoom === 1) return;
    const at = (time / model.length) * trackWidth();
    const [left, width] = [element.scrollLeft, element.clientWidth - nameWidth() - 24];
    if (at < left || at > left + width) element.scrollLeft = Math.max(0, at - width / 10);
  }

  /** Zoom in or out around a moment, which stays where it is. */
  function zoomBy(factor, around = time) {
    const share = around / model.length;
    const offset = share * trackWidth() - element.scrollLeft;
    zoom = Math.max(1, Math.min(MAX_ZOOM, zoom * factor));
    layout();
    element.scrollLeft = share * trackWidth() - offset;
  }

  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.target.closest(".track")) return;
    const step = event.target.closest(".lane");
    act.seek(timeAt(event));
    step.setPointerCapture(event.pointerId);
    step.onpointermove = (move) => act.seek(timeAt(move));
    step.onpointerup = step.onpointercancel = () => { step.onpointermove = step.onpointerup = step.onpointercancel = null; };
  });
  element.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.target.closest(".scale, .spoken")) return;
    event.preventDefault();
    zoomBy(event.deltaY < 0 ? 1.25 : 0.8, timeAt(event));
  }, { passive: false });
  new ResizeObserver(layout).observe(element);

  return { element, render, setTime, zoomBy };
}

const labelText = (row) => `${row.step}, from ${row.start} to ${row.end} seconds` +
  (isDraft(row) ? `, a draft, ${percentText(row)} sure` : "");
