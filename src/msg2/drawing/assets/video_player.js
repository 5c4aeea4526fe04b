// The video strip: choose a video, see its steps on a timeline, and play it on the graph.

const FILM = at("film");
const LISTED = 60;
const watching = { number: -1, segments: [], length: 0, time: 0, playing: false, seen: "", file: null };
const current = () => VIDEOS[watching.number];
const filmed = () => !FILM.hidden;

/** Opens a video at its beginning. */
function openVideo(number, scroll = false) {
  const video = VIDEOS[number];
  stop();
  Object.assign(watching, { number, segments: spans(video), time: 0, seen: "" });
  watching.length = Math.max(1e-3, ...watching.segments.map((one) => one.end));
  at("video-name").replaceChildren(named(video.id));
  at("videos").open = false;
  at("seek").max = watching.length;
  const rates = video.times ? [1, 2, 4, 8, 16, 64] : [0.5, 1, 2, 4];
  at("speed").replaceChildren(...rates.map((rate) => make("option", { value: rate }, `${rate}×`)));
  at("speed").value = video.times && !video.file ? 8 : 1;
  remark(video);
  drawLanes();
  load(video.file);
  seek(0);
  if (scroll) at("strip").scrollIntoView({ block: "nearest", behavior: "smooth" });
  say(`Video ${video.id}: ${plural(video.steps.length, "label")}. ${at("remarks").textContent}`);
}

const WRONG = {
  need: (unmet) => `without ${unmet}`,
  order: (unmet) => `too late: after ${unmet}`,
  exclusive: (unmet) => `as well as ${unmet}`,
  repeated: () => "done again, which is unusual",
};

/** What went wrong, in words, and how sure that is. */
function wrong({ kind, unmet = [], probability }) {
  return WRONG[kind](unmet.map(asText).join(" and ")) + (probability === undefined ? "" : ` (${percent(probability)})`);
}

function remark({ mistakes = [], leftOut = [], notSeen = [] }) {
  at("remarks").replaceChildren(mistakes.length ? `${plural(mistakes.length, "mistake")} when a step was done.` : "");
  if (leftOut.length) at("remarks").append(" Left out: ", ...joined(leftOut, inWords), ".");
  if (notSeen.length) at("remarks").append(" Not seen: ", ...joined(notSeen, inWords), ".");
  if (!at("remarks").textContent) at("remarks").append("Nothing went wrong.");
}

const joined = (items, shown) => items.flatMap((item, number) => [...(number ? [", "] : []), ...[shown(item)].flat()]);

// -- the timeline ------------------------------------------------------------------------------------------------

function drawLanes() {
  const lanes = rows(watching.segments);
  const height = lanes.length ? Math.max(...lanes) + 1 : 1;
  at("lanes").style.height = `${Math.min(height, 40) * 26 + 2}px`;
  at("lanes").replaceChildren(
    ...watching.segments.map((one, number) => lane(one, lanes[number])),
    make("span", { id: "head", ariaHidden: "true" }),
  );
}

function lane(one, row) {
  const timed = Boolean(current().times);
  const when = timed ? `${clock(one.start, true)} to ${clock(one.end, true)}` : clock(one.start, false);
  const how = one.added ? `, predicted${one.sure === undefined ? "" : ` (${one.sure} %)`}` : "";
  const flaws = one.mistakes.map((mistake) => `, ${wrong(mistake)}`).join("");
  const words = `${STEPS[one.step].name}, ${when}${how}${flaws}`;
  const button = make("button", { type: "button", className: "segment", title: words, ariaLabel: words });
  button.append(named(STEPS[one.step].name));
  button.classList.toggle("predicted", one.added);
  button.classList.toggle("mistake", one.mistakes.length > 0);
  button.style.left = `${(100 * one.start) / watching.length}%`;
  button.style.width = `${(100 * (one.end - one.start)) / watching.length}%`;
  button.style.top = `${row * 26}px`;
  button.onclick = () => {
    seek(one.start);
    showStep(one.step);
  };
  return button;
}

// -- time --------------------------------------------------------------------------------------------------------

/** Goes to a time; with a film, this goes there too. */
function seek(time) {
  if (filmed()) FILM.currentTime = time;
  arrive(time);
}

/** Shows the graph, the clock and the forecast as they are at a time. */
function arrive(time) {
  const timed = Boolean(current().times);
  watching.time = Math.min(Math.max(time, 0), watching.length);
  at("seek").value = watching.time;
  at("seek").ariaValueText = clock(watching.time, timed);
  at("head").style.left = `${(100 * watching.time) / watching.length}%`;
  const here = timed || watching.time < watching.length ? clock(watching.time, timed) : "done";
  const end = timed ? clock(watching.length, true) : plural(watching.segments.length, "step");
  at("clock").textContent = `${here} · ${end}`;
  const { done, now, begun, mistakes } = moment(watching.segments, watching.time);
  const seen = [watching.time > 0, [...done], [...now], begun].join("|");
  if (seen === watching.seen) return;
  watching.seen = seen;
  if (watching.time) light(states(done, now), mistakes);
  else light(null);
  predict(begun);
}

/** The next step as bars; what really came is marked. */
function predict(begun) {
  const came = watching.segments.find((one) => !begun.includes(one.step))?.step;
  const ranked = nextSteps(begun).slice(0, 6);
  at("forecast").replaceChildren(...ranked.map(({ step, probability }) => chance(step, probability, step === came)));
  if (!ranked.length) at("forecast").replaceChildren(make("li", { className: "quiet" }, "Nothing is left."));
}

function chance(step, probability, came) {
  const words = [...(probability === undefined ? [] : [percent(probability)]), ...(came ? ["✓"] : [])];
  const item = make("li", { className: came ? "came" : "" }, stepButton(step),
    make("span", { className: "number" }, words.join(" ")));
  item.style.setProperty("--share", `${100 * (probability ?? 0)}%`);
  if (came) item.title = "It is what came next in this video.";
  return item;
}

// -- playing -----------------------------------------------------------------------------------------------------

function start() {
  if (watching.time >= watching.length) seek(0);
  watching.playing = true;
  at("play").textContent = "Pause";
  if (filmed()) {
    FILM.playbackRate = Math.min(Number(at("speed").value), 16);
    FILM.play().catch(stop);
  }
  let last = performance.now();
  const tick = (now) => {
    if (!watching.playing) return;
    if (filmed()) arrive(FILM.currentTime);
    else arrive(watching.time + ((now - last) / 1000) * Number(at("speed").value));
    last = now;
    if (watching.time >= watching.length || (filmed() && FILM.ended)) stop();
    else requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}

function stop() {
  watching.playing = false;
  at("play").textContent = "Play";
  if (filmed()) FILM.pause();
}

/** Shows the film of a video where its file is at hand. */
function load(address) {
  if (watching.file) URL.revokeObjectURL(watching.file);
  watching.file = address?.startsWith("blob:") ? address : null;
  FILM.hidden = !address;
  if (address) FILM.src = address;
  else FILM.removeAttribute("src");
}

FILM.onerror = () => {
  if (!FILM.hasAttribute("src")) return;
  stop();
  load(null);
  at("remarks").append(" The video file cannot be played here.");
};
FILM.onloadedmetadata = () => {
  if (!(FILM.duration > watching.length && FILM.duration < Infinity)) return;
  watching.length = at("seek").max = FILM.duration;
  drawLanes();
  arrive(watching.time);
};
FILM.onplay = () => watching.playing || start();
FILM.onpause = () => watching.playing && !FILM.ended && stop();
FILM.onseeked = () => watching.playing || arrive(FILM.currentTime);
at("play").onclick = () => (watching.playing ? stop() : start());
at("seek").oninput = () => seek(Number(at("seek").value));
at("speed").onchange = () => filmed() && (FILM.playbackRate = Math.min(Number(at("speed").value), 16));
at("file").onchange = () => at("file").files.length && load(URL.createObjectURL(at("file").files[0]));

// -- choosing ----------------------------------------------------------------------------------------------------

const flawed = (video) => (video.mistakes?.length ?? 0) + (video.leftOut?.length ?? 0);

/** The videos that are searched for, the first ones of them. */
function listVideos() {
  const wanted = plain(at("find-video").value.trim());
  const fits = [...VIDEOS.keys()].filter(
    (number) => plain(VIDEOS[number].id).includes(wanted) && (!at("only-mistakes").checked || flawed(VIDEOS[number])),
  );
  const item = (number) => {
    const count = flawed(VIDEOS[number]);
    const note = count ? make("span", { className: "flaws", title: plural(count, "mistake") }, `${count} !`) : null;
    const button = make("button", { type: "button", onclick: () => openVideo(number) }, named(VIDEOS[number].id), note);
    if (number === watching.number) button.ariaCurrent = "true";
    return make("li", {}, button);
  };
  const more = fits.length - LISTED;
  at("video-list").replaceChildren(...fits.slice(0, LISTED).map(item));
  if (more > 0) at("video-list").append(make("li", { className: "quiet" }, `and ${more} more: search for one`));
  if (!fits.length) at("video-list").append(make("li", { className: "quiet" }, "There is no such video."));
}

at("videos").ontoggle = () => at("videos").open && (listVideos(), at("find-video").focus());
at("videos").onkeydown = (event) => {
  if (event.key !== "Escape") return;
  at("videos").open = false;
  at("videos").querySelector("summary").focus();
  event.stopPropagation();
};
addEventListener("pointerdown", (event) => at("videos").contains(event.target) || (at("videos").open = false));
at("find-video").oninput = listVideos;
at("only-mistakes").onchange = listVideos;
at("previous").onclick = () => openVideo((watching.number + VIDEOS.length - 1) % VIDEOS.length);
at("next").onclick = () => openVideo((watching.number + 1) % VIDEOS.length);
