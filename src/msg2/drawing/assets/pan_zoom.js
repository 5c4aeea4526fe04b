// Pan and zoom: the part of the picture that is seen, as the viewBox of the SVG.

const DRAWN = (({ x, y, width, height }) => ({ x, y, width, height }))(PICTURE.viewBox.baseVal);
const WHOLE = withoutLegend();
const LIFE = 4 / 3; // pixels per unit of a picture as large as in print
// Names are 11 units high: all is shown at once where they are 10.5 pixels high or more, else a part of it at 13.
const [LEGIBLE, READABLE] = [10.5 / 11, 13 / 11];
const view = { scale: 1, x: 0, y: 0, moved: false, paper: false };

/** The part of the picture with boxes and arrows: the page has a legend of its own. */
function withoutLegend() {
  const boxes = [...PICTURE.querySelectorAll(".node, .edge")].map((element) => element.getBBox());
  if (!boxes.length || !PICTURE.querySelector(".graph > g > a > text")) return DRAWN;
  const { e, f } = PICTURE.querySelector(".graph").transform.baseVal.consolidate().matrix;
  const [left, top] = [Math.min(...boxes.map(({ x }) => x)), Math.min(...boxes.map(({ y }) => y))];
  const right = Math.max(...boxes.map(({ x, width }) => x + width));
  const bottom = Math.max(...boxes.map(({ y, height }) => y + height));
  const room = 11;
  return { x: left + e - room, y: top + f - room, width: right - left + 2 * room, height: bottom - top + 2 * room };
}

/** Draws the view; the picture never leaves the frame altogether. On paper all of it is seen. */
function draw() {
  if (view.paper) return PICTURE.setAttribute("viewBox", `${WHOLE.x} ${WHOLE.y} ${WHOLE.width} ${WHOLE.height}`);
  const [width, height] = [FIGURE.clientWidth / view.scale, FIGURE.clientHeight / view.scale];
  view.x = Math.min(Math.max(view.x, WHOLE.x - width / 2), WHOLE.x + WHOLE.width - width / 2);
  view.y = Math.min(Math.max(view.y, WHOLE.y - height / 2), WHOLE.y + WHOLE.height - height / 2);
  PICTURE.setAttribute("viewBox", `${view.x} ${view.y} ${width} ${height}`);
}

const fitting = () =>
  Math.min(FIGURE.clientWidth / WHOLE.width, FIGURE.clientHeight / WHOLE.height, 1.25 * LIFE);

/** The whole picture in the middle; or, where it is `large`, as much of it from the left as can be read. */
function fit(large = false) {
  view.scale = large && fitting() < LEGIBLE ? READABLE : fitting();
  const [width, height] = [FIGURE.clientWidth / view.scale, FIGURE.clientHeight / view.scale];
  view.x = width < WHOLE.width ? WHOLE.x : WHOLE.x + (WHOLE.width - width) / 2;
  view.y = WHOLE.y + (WHOLE.height - height) / 2;
  view.moved = false;
  draw();
}

/** Larger or smaller by a factor; what is at the point (pixels in the frame) stays there. */
function zoom(factor, x = FIGURE.clientWidth / 2, y = FIGURE.clientHeight / 2) {
  const scale = Math.min(Math.max(view.scale * factor, fitting() / 2), 8 * LIFE);
  view.x += x / view.scale - x / scale;
  view.y += y / view.scale - y / scale;
  view.scale = scale;
  view.moved = true;
  draw();
}

function shift(x, y) {
  view.x -= x / view.scale;
  view.y -= y / view.scale;
  draw();
}

function pan(x, y) {
  view.moved = true;
  shift(x, y);
}

/** Pans until an element is inside the frame, with some room around it. */
function bringIntoView(element) {
  const [box, frame] = [element.getBoundingClientRect(), FIGURE.getBoundingClientRect()];
  const room = 24;
  const off = (low, high, first, last) => Math.max(0, first + room - low) || Math.min(0, last - room - high);
  const [x, y] = [off(box.left, box.right, frame.left, frame.right), off(box.top, box.bottom, frame.top, frame.bottom)];
  if (x || y) shift(x, y);
}

/** Where an element is drawn, in units of the picture. */
function placeOf(element) {
  const { e, f } = PICTURE.querySelector(".graph").transform.baseVal.consolidate().matrix;
  const { x, y, width, height } = element.getBBox();
  return { left: x + e, top: y + f, right: x + e + width, bottom: y + f + height };
}

/** Some elements in the middle of the frame; where all of them would be smaller than `least`, the main one. */
function zoomTo(elements, main = elements[0], least = READABLE) {
  const places = elements.map(placeOf);
  const [left, top] = ["left", "top"].map((side) => Math.min(...places.map((place) => place[side])));
  const [right, bottom] = ["right", "bottom"].map((side) => Math.max(...places.map((place) => place[side])));
  const room = 40;
  const all = Math.min(FIGURE.clientWidth / (right - left + room), FIGURE.clientHeight / (bottom - top + room));
  view.scale = Math.min(all < least ? READABLE : all, 1.25 * LIFE);
  const { left: x, right: toX, top: y, bottom: toY } = all < least ? placeOf(main) : { left, right, top, bottom };
  view.x = (x + toX - FIGURE.clientWidth / view.scale) / 2;
  view.y = (y + toY - FIGURE.clientHeight / view.scale) / 2;
  view.moved = true;
  draw();
}

/** After the frame has changed: what the user chose to see stays, else all is fitted again. */
function settle() {
  if (view.moved) draw();
  else fit(true);
}

/** The frame is as high as its picture needs, within limits; it fills a full screen. */
function resize() {
  if (document.fullscreenElement) {
    FIGURE.style.height = "100%";
    return settle();
  }
  const natural = WHOLE.height * Math.max(LEGIBLE, Math.min(FIGURE.clientWidth / WHOLE.width, 1.25 * LIFE));
  FIGURE.style.height = `${Math.round(Math.min(Math.max(natural + 40, 260), 0.62 * innerHeight))}px`;
  settle();
}

const touching = new Map();
let dragged = false;

FIGURE.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  if (!touching.size) dragged = false;
  touching.set(event.pointerId, event);
});

FIGURE.addEventListener("pointermove", (event) => {
  const last = touching.get(event.pointerId);
  if (!last) return;
  if (!event.buttons) return touching.delete(event.pointerId); // it was let go outside
  const [x, y] = [event.clientX - last.clientX, event.clientY - last.clientY];
  if (!dragged && Math.hypot(x, y) < 5) return;
  if (!dragged) FIGURE.setPointerCapture(event.pointerId);
  dragged = true;
  const other = [...touching.values()].find((touch) => touch.pointerId !== event.pointerId);
  if (other) {
    const apart = (touch) => Math.hypot(touch.clientX - other.clientX, touch.clientY - other.clientY) || 1;
    const frame = FIGURE.getBoundingClientRect();
    zoom(apart(event) / apart(last), (event.clientX + other.clientX) / 2 - frame.left,
      (event.clientY + other.clientY) / 2 - frame.top);
    pan(x / 2, y / 2);
  } else pan(x, y);
  touching.set(event.pointerId, event);
});

for (const end of ["pointerup", "pointercancel"]) {
  FIGURE.addEventListener(end, (event) => touching.delete(event.pointerId));
}
// A drag is no click.
FIGURE.addEventListener("click", (event) => dragged && (event.stopPropagation(), event.preventDefault()), true);
FIGURE.addEventListener("dragstart", (event) => event.preventDefault());
FIGURE.addEventListener("wheel", (event) => {
  event.preventDefault();
  const frame = FIGURE.getBoundingClientRect();
  const lines = event.deltaMode ? 24 : 1;
  if (event.shiftKey) pan(-(event.deltaX || event.deltaY) * lines, 0);
  else zoom(Math.exp(-0.002 * event.deltaY * lines), event.clientX - frame.left, event.clientY - frame.top);
}, { passive: false });
FIGURE.addEventListener("keydown", (event) => {
  const way = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
  if (event.target !== FIGURE || !way) return;
  event.preventDefault();
  pan(...way);
});
function toggleFullScreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else FIGURE.closest(".stage").requestFullscreen?.();
}

at("full-screen").hidden = !document.fullscreenEnabled;
at("full-screen").onclick = toggleFullScreen;
addEventListener("fullscreenchange", () => {
  at("full-screen").ariaPressed = String(Boolean(document.fullscreenElement));
  resize();
});
at("zoom-in").onclick = () => zoom(1.3);
at("zoom-out").onclick = () => zoom(1 / 1.3);
at("zoom-fit").onclick = () => fit();
