// The caption of the moment, its words lit up one after another; with the one before and the one after where there is no video.
import { el } from "./dom.js";

/** Index of the last caption that has begun, -1 before the first. */
export function captionAt(captions, seconds) {
  let [low, high] = [0, captions.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (captions[middle].start <= seconds) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export function captionLine() {
  const before = el("p", { className: "quiet" });
  const now = el("p", { className: "now" });
  const after = el("p", { className: "quiet" });
  const element = el("div", { className: "caption-line" }, before, now, after);
  let captions = [];
  let shown = null;
  let words = [];

  function show(seconds) {
    const place = captionAt(captions, seconds);
    if (place !== shown) {
      shown = place;
      before.textContent = captions[place - 1]?.text ?? "";
      after.textContent = captions[place + 1]?.text ?? "";
      words = place < 0 ? [] : wordTimes(captions[place]).map(([text, start]) => [el("span", {}, text), start]);
      now.replaceChildren(...words.flatMap(([span]) => [span, " "]));
    }
    const over = place < 0 || seconds > captions[place].end + 1;
    const current = over ? -1 : words.findLastIndex(([, start]) => start <= seconds);
    words.forEach(([span], index) => span.classList.toggle("spoken", index === current));
    now.classList.toggle("over", over);
  }

  return {
    element,
    show,
    load(given) {
      captions = given;
      shown = null;
      element.classList.toggle("none", given.length === 0);
      show(0);
    },
  };
}

/** [word, start] pairs: as the file has them or, where it only has the time of the whole, spread evenly by length. */
function wordTimes({ text, start, end, words }) {
  const parts = words.length ? words : [[text, start, end]];
  return parts.flatMap(([part, from, to]) => {
    const split = part.split(" ");
    const letters = part.length + 1;
    let passed = 0;
    return split.map((word) => {
      const at = from + ((to - from) * passed) / letters;
      passed += word.length + 1;
      return [word, at];
    });
  });
}
