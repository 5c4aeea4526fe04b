// Labels of one video as bars, a lane per step; bars and their ends can be dragged, or moved with the keyboard.
import { el, nameElement } from "./dom.js";

const NUDGE = 0.1;
const round = (seconds) => Math.round(100 * seconds) / 100;

/** `act` has put(place, values), drop(place), accept(place), choose(place) and seek(seconds). */
export function timeline(labels, chosen, act) {
  const length = Math.max(1, ...labels.map((label) => label.end)) * 1.05;
  const shownSteps = [...new Set(labels.map((label) => label.step))]; // by their first start, as labels are
  const lanes = shownSteps.map((step) => {
    const track = el("div", { className: "track" });
    track.addEventListener("click", (event) => {
      if (event.target === track) act.seek(length * clickedShare(event, track));
    });
    labels.forEach((label, place) => {
      if (label.step === step) track.append(bar(label, place, track));
    });
    return el("div", { className: "lane" }, el("span", { className: "lane-name" }, nameElement(step)), track);
  });

  function bar(label, place, track) {
    const segment = el("button", { type: "button", className: `segment ${label.source ?? "labelled"}`, "data-place": place,
      title: `${label.step}: ${label.start} to ${label.end} s`, "aria-label": labelText(label) },
      el("span", { className: "end left" }), el("span", { className: "end right" }));
    segment.classList.toggle("chosen", place === chosen);
    placeBar(segment, label);
    segment.addEventListener("focus", () => act.choose(place));
    segment.addEventListener("click", () => act.seek(label.start));
    segment.addEventListener("keydown", (event) => onKey(event, label, place));
    segment.addEventListener("pointerdown", (event) => drag(event, segment, label, place, track));
    return segment;
  }

  function placeBar(segment, { start, end }) {
    segment.style.left = `${(100 * start) / length}%`;
    segment.style.width = `${(100 * (end - start)) / length}%`;
  }

  function drag(event, segment, label, place, track) {
    const grip = event.target.classList;
    const which = grip.contains("left") ? "start" : grip.contains("right") ? "end" : "both";
    const begin = event.clientX;
    let values = {};
    segment.setPointerCapture(event.pointerId);
    act.choose(place);
    segment.onpointermove = (move) => {
      values = shiftLabel(label, which, (length * (move.clientX - begin)) / track.clientWidth);
      placeBar(segment, { ...label, ...values });
    };
    segment.onpointerup = segment.onpointercancel = () => {
      segment.onpointermove = segment.onpointerup = segment.onpointercancel = null;
      if (Object.keys(values).length) act.put(place, values);
    };
  }

  function onKey(event, label, place) {
    const by = { ArrowLeft: -NUDGE, ArrowRight: NUDGE }[event.key];
    if (by) act.put(place, shiftLabel(label, event.shiftKey ? "end" : event.altKey ? "start" : "both", by));
    else if (event.key === "Delete" || event.key === "Backspace") act.drop(place);
    else if (event.key === "Enter" && label.source === "predicted") act.accept(place);
    else return;
    event.preventDefault();
    document.querySelector(".segment.chosen")?.focus();
  }

  return el("div", { className: "timeline", role: "group", "aria-label": "Timeline" }, ...lanes, timeAxis(length));
}

/** New times of a label that is moved by some seconds, as a whole or at one end; it never turns around. */
export function shiftLabel({ start, end }, which, by) {
  if (which === "start") return { start: round(Math.min(Math.max(0, start + by), end)) };
  if (which === "end") return { end: round(Math.max(start, end + by)) };
  const shift = Math.max(-start, by);
  return { start: round(start + shift), end: round(end + shift) };
}

const clickedShare = (event, track) => (event.clientX - track.getBoundingClientRect().left) / track.clientWidth;

const labelText = ({ step, start, end, source }) =>
  `${step}, from ${start} to ${end} seconds${source ? `, ${source}` : ""}`;

/** Seconds, or minutes, below the lanes. */
function timeAxis(length) {
  const intervals = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];
  const interval = intervals.find((seconds) => length / seconds <= 12) ?? length / 12;
  const marks = [];
  for (let at = 0; at < length; at += interval) {
    const mark = el("span", {}, `${Math.floor(at / 60)}:${String(Math.round(at % 60)).padStart(2, "0")}`);
    mark.style.left = `${(100 * at) / length}%`;
    marks.push(mark);
  }
  const track = el("div", { className: "track" }, ...marks);
  return el("div", { className: "lane scale" }, el("span", { className: "lane-name" }), track);
}
