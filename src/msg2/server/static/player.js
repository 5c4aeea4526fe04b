// A video with its clock; without a file that the browser can play, the clock alone, over the captions.
import { el, showStatus } from "./dom.js";

/** `onTime(seconds)` is called whenever the time changes, `onLength()` when the length is known, `onPlay(playing)`. */
export function createPlayer({ onTime, onLength, onPlay }) {
  const video = el("video", { className: "video-player", preload: "metadata", hidden: true, playsInline: true });
  let length = 0;
  let clock = 0;
  let ticking = false;
  let last = 0;

  const hasVideo = () => !video.hidden;
  const time = () => (hasVideo() ? video.currentTime : clock);
  const playing = () => (hasVideo() ? !video.paused : ticking);

  function tick(now) {
    if (!playing()) return;
    if (!hasVideo()) {
      clock = Math.min(length, clock + (now - last) / 1000);
      last = now;
      if (clock >= length) setTicking(false);
    }
    onTime(time());
    requestAnimationFrame(tick);
  }

  function setTicking(on) {
    ticking = on;
    last = performance.now();
    onPlay(on);
    if (on) requestAnimationFrame(tick);
  }

  video.addEventListener("play", () => { onPlay(true); requestAnimationFrame(tick); });
  video.addEventListener("pause", () => onPlay(false));
  video.addEventListener("seeked", () => onTime(video.currentTime));
  video.addEventListener("loadedmetadata", () => {
    if (!Number.isFinite(video.duration)) return;
    length = Math.max(length, video.duration);
    onLength();
  });
  video.addEventListener("error", () => {
    if (!video.getAttribute("src")) return;
    clear();
    showStatus("This browser cannot play the file of this video; the clock runs without it.", true);
    onLength();
  });

  function clear() {
    video.hidden = true;
    video.removeAttribute("src");
    video.load();
  }

  return {
    element: video,
    get time() { return time(); },
    get length() { return length; },
    get playing() { return playing(); },
    get hasVideo() { return hasVideo(); },
    /** Another video: the address of its file or null, and a length in seconds that it has at least. */
    load(source, seconds) {
      setTicking(false);
      length = seconds;
      clock = 0;
      if (source) {
        video.hidden = false;
        video.src = source;
      } else if (hasVideo()) clear();
      onTime(0);
    },
    extend(seconds) { length = Math.max(length, seconds); },
    toggle() {
      if (hasVideo()) return video.paused ? video.play().catch(() => {}) : video.pause();
      if (!ticking && clock >= length) clock = 0;
      setTicking(!ticking);
    },
    seek(seconds) {
      const at = Math.max(0, Math.min(length, seconds));
      if (hasVideo()) video.currentTime = at;
      else clock = at;
      onTime(at);
    },
  };
}
