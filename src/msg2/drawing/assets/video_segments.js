// What a video shows at a time. Without times, the n-th step lasts from n to n + 1.

/** The segments of a video in order, with what is known about each. */
function spans(video) {
  const added = new Map(video.added?.map(([place, sure]) => [place, sure]));
  return video.steps.map((step, place) => ({
    step,
    place,
    start: video.times ? video.times[2 * place] : place,
    end: video.times ? video.times[2 * place + 1] : place + 1,
    added: added.has(place),
    sure: added.get(place),
    mistakes: video.mistakes?.filter((mistake) => mistake.at === place) ?? [],
  }));
}

/** Steps completed and in progress at a time, and all that have begun, in the order of their first start. */
function moment(segments, time) {
  const begun = segments.filter((one) => one.start <= time);
  const running = begun.filter((one) => time < one.end);
  return {
    done: new Set(begun.filter((one) => one.end <= time).map((one) => one.step)),
    now: new Set(running.map((one) => one.step)),
    begun: [...new Set(begun.map((one) => one.step))],
    mistakes: new Set(begun.filter((one) => one.mistakes.length).map((one) => one.step)),
  };
}

/** Whether a step is done somewhere in a video before what it needs is done. */
function isAgainst(video, step) {
  const { times, steps } = video;
  const isDone = (place, now) => (times ? times[2 * place + 1] <= times[2 * now] : place < now);
  const doneAt = (now) => new Set(steps.filter((_, place) => place !== now && isDone(place, now)));
  return steps.some((other, now) => other === step && !holds(RULES[step].needs, doneAt(now)));
}

/** 1 where the first segment of one step ends before that of another starts, −1 the other way round, 0 in between. */
function orderIn(video, before, after) {
  const [one, other] = [before, after].map((step) => video.steps.indexOf(step));
  if (one < 0 || other < 0) return undefined;
  if (!video.times) return Math.sign(other - one);
  const [start, end] = [(place) => video.times[2 * place], (place) => video.times[2 * place + 1]];
  const [first, second] = [end(one) <= start(other), end(other) <= start(one)];
  return first === second ? 0 : first ? 1 : -1;
}

/** Every segment with the row it is drawn in: the first where nothing else is at the same time. */
function rows(segments) {
  const free = [];
  return segments.map((one) => {
    const fits = free.findIndex((end) => end <= one.start);
    const row = fits < 0 ? free.length : fits;
    free[row] = Math.max(one.end, one.start);
    return row;
  });
}

/** A time as people read it: 1:05, or the number of the step. */
function clock(seconds, timed) {
  if (!timed) return `step ${Math.floor(seconds) + 1}`;
  const whole = Math.floor(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}
