// What a person makes of a video: labels of their own, and decisions on drafts. Pure functions of { labels, settled }.

export const isDraft = (row) => row.source === "draft" || row.source === "predicted";

export const round = (seconds) => Math.round(100 * seconds) / 100;

const timed = (row) => row.start !== undefined && row.start !== null;

/** Whether a draft has been decided on: the same step at a time that overlaps, so that it stays decided if made again. */
function isSettled(draft, one) {
  if (draft.step !== one.step) return false;
  if (!timed(draft) || !timed(one)) return true;
  return (draft.start === one.start && draft.end === one.end) || (draft.start < one.end && one.start < draft.end);
}

export const openDrafts = (drafts, settled) => drafts.filter((draft) => !settled.some((one) => isSettled(draft, one)));

const inTime = (rows) => (rows.every(timed) ? rows.toSorted((a, b) => a.start - b.start || a.end - b.end) : rows);

/** Labels and open drafts together, by time. */
export const allRows = (state, drafts) => inTime([...state.labels, ...openDrafts(drafts, state.settled)]);

const settle = ({ step, start, end }, outcome) => ({ step, ...(start === undefined ? {} : { start, end }), outcome });

/** The row with other values, as the person's own label; [state, row]. */
export function change(state, row, values, person) {
  const label = { ...row, ...values, source: person };
  delete label.confidence;
  if (isDraft(row)) {
    const settled = [...state.settled, settle(row, "accepted")];
    return [{ labels: inTime([...state.labels, label]), settled }, label];
  }
  return [{ ...state, labels: inTime(state.labels.map((one) => (one === row ? label : one))) }, label];
}

/** Without a label; a draft is rejected, and stays so. */
export function remove(state, row) {
  if (isDraft(row)) return { ...state, settled: [...state.settled, settle(row, "rejected")] };
  return { ...state, labels: state.labels.filter((one) => one !== row) };
}

export const add = (state, label) => [{ ...state, labels: inTime([...state.labels, label]) }, label];

/** A label without times, so many places later. */
export function reorder(state, row, by) {
  const labels = state.labels.filter((one) => one !== row);
  labels.splice(Math.max(0, Math.min(labels.length, state.labels.indexOf(row) + by)), 0, row);
  return { ...state, labels };
}

/** New times of a label that is moved by some seconds, as a whole or at one end; it never turns around. */
export function shiftLabel({ start, end }, which, by) {
  if (which === "start") return { start: round(Math.min(Math.max(0, start + by), end)) };
  if (which === "end") return { end: round(Math.max(start, end + by)) };
  const shift = Math.max(-start, by);
  return { start: round(start + shift), end: round(end + shift) };
}

/** By what a row says, and the how many-eth of those that say the same. */
function byContent(rows) {
  const counts = new Map();
  return new Map(rows.map((row) => {
    const text = JSON.stringify(Object.entries(row).filter(([, value]) => value !== null && value !== undefined).toSorted());
    counts.set(text, (counts.get(text) ?? 0) + 1);
    return [`${text} ${counts.get(text)}`, row];
  }));
}

function mergeRows(...versions) {
  const [before, ours, theirs] = versions.map(byContent);
  const kept = [...theirs].filter(([key]) => ours.has(key) || !before.has(key));
  const added = [...ours].filter(([key]) => !before.has(key) && !theirs.has(key));
  return [...kept, ...added].map(([, row]) => row);
}

/** Two states that rest on the same one, in one: where both changed a label, both of it are there. */
export const merge = (before, ours, theirs) => ({
  labels: inTime(mergeRows(before.labels, ours.labels, theirs.labels)),
  settled: mergeRows(before.settled, ours.settled, theirs.settled),
});
