"""One run of a task, live: what was done, what comes next, what is missing, how long it takes, and how to reach a goal.

An `Assistant` puts the parts of this package together. What it has learned is shared by all its runs; a run itself is a
list of events, and after each of them a belief about what has been done (`msg2.assist.belief`). Events that come late,
are corrected or taken back are put where they belong, and the belief is worked out again from there.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeAlias, TypeVar

import numpy as np

from msg2.assist.belief import AssistantModel, Belief, Confusion
from msg2.assist.events import Alarm, MissingStep, NextStep, RunEnd, StepReport, explain_mistake, explain_next
from msg2.assist.following import task_of_graph, unknown_step_error, videos_learned_from
from msg2.assist.frames import FrameFilter
from msg2.assist.mistakes import ACCUSED, ALARM, Mistake
from msg2.assist.planning import Plan, plan_steps
from msg2.assist.rankers import rank_steps
from msg2.assist.recognisers import ConfusionSource, load_confusion
from msg2.assist.time_left import TimeLeft
from msg2.errors import InputError, errors_at, is_finite, require, require_count, require_probability
from msg2.graph import SubtaskGraph
from msg2.task import Absent, Step, Task
from msg2.text import short_repr

if TYPE_CHECKING:
    from msg2.formats.conversion import Demonstrations

GraphSource: TypeAlias = SubtaskGraph | str | PathLike[str] | Mapping[str, object]
"""A graph, its file, or the content of one."""

FORMAT = "msg2.run/2"
"""Of a saved run."""
EventKind: TypeAlias = Literal["did", "saw", "began", "accept", "pause", "resume"]
_ROUNDING = 0.01
"""By which the sum of probabilities may exceed 1."""
_SNAPSHOTS = 64
"""Beliefs that are kept: the last so many events can be corrected without working out the whole run again."""
ALARM_SECONDS = 10.0
"""Seconds for which a mistake must be probable in a stream of frames before there is an alarm."""
SEEN_ALARM = 0.35
"""The probability from which on there is an alarm about what a recogniser saw: waiting for more would miss half of the
mistakes, since what nobody saw may always have been missed."""
_REPORTS = 1_000
"""Reports that are kept; of older events only what was told."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Observation:
    """One event of a run, and what became of it."""

    kind: EventKind
    seen: Mapping[Step, float]
    """How well it fits each step; what is missing to 1, nothing was done. Empty for a moment without a step."""
    at: float | None
    """Seconds."""
    id: str | None = None
    """Under which it can be corrected or taken back; an event whose id is known already changes nothing."""
    actor: str | None = None
    """Who did it."""
    report: StepReport | None = None
    """None for what is not assessed, and for events long ago."""


def _locked(
    method: Callable[Concatenate[Assistant, Parameters], Result],
) -> Callable[Concatenate[Assistant, Parameters], Result]:
    """Let one thread after the other use a run."""

    @wraps(method)
    def call(self: Assistant, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with self._lock:
            return method(self, *args, **kwargs)

    return call


class Assistant:
    """Watches one run of a task and answers questions about it.

    One run may be used by several threads. All its events are kept, and each can be corrected.

    Parameters
    ----------
    graph : SubtaskGraph, path or mapping
        What the steps need: a graph, its file, or the content of one.
    data : Task, path, DataFrame, sequences or mapping, optional
        Videos of the task, as in `msg2.infer`. Without any the graph alone answers, and `limitations` says what it
        cannot answer.
    threshold : float, optional
        The probability of a mistake from which on there is an alarm; by default 0.4 for what is told, and a little
        less, 0.35, for what a recogniser saw.
    alarm_cost : float, optional
        What a false alarm costs, where a mistake without an alarm costs 1: sets the threshold to c / (1 + c).
    absent : "skipped" or "unknown"
        What nobody told was not done; or it may have been, since the one who watches may miss steps: then a step that
        comes without what it needs is no mistake until that comes late. `saw` and `observe` expect missed steps anyway.
    missed : float, optional
        How often the recogniser behind `saw` misses a step; by default estimated from how unsure it is.
    confusion : array, path or data frame, optional
        How often the recogniser reports each step (column) where another one is done (row), with a last column for
        "nothing reported" and, if you like, a last row for "nothing done".
    window : float
        Seconds by which an event may come late and is still put where it belongs.

    >>> graph = SubtaskGraph.from_json({"format": "msg2.graph/2", "task": "toast", "steps": ["whisk", "dip", "fry"],
    ...                                 "preconditions": {"dip": "whisk", "fry": "dip"}})
    >>> assistant = Assistant(graph, [["whisk", "dip", "fry"]] * 9)
    >>> assistant.did("whisk").mistake
    False
    >>> report = assistant.did("fry")
    >>> report.mistake, report.reason
    (True, "'fry' needs 'dip', which is not done")
    >>> assistant.undo()
    >>> assistant.next(1)[0].step
    'dip'
    """

    def __init__(
        self,
        graph: GraphSource,
        data: Demonstrations | None = None,
        *,
        threshold: float | None = None,
        alarm_cost: float | None = None,
        absent: Absent = "skipped",
        missed: float | None = None,
        confusion: ConfusionSource | None = None,
        window: float = 30.0,
    ) -> None:
        if threshold is not None:
            require_probability("threshold", threshold)
        require(absent in ("skipped", "unknown"), f"absent is {absent!r}, it must be 'skipped' or 'unknown'")
        if alarm_cost is not None:
            require(is_finite(alarm_cost) and alarm_cost > 0, f"alarm_cost is {alarm_cost}, it must be above 0")
            threshold = alarm_cost / (1 + alarm_cost)
        if missed is not None:
            require(0 <= missed < 1, f"missed is {missed}, it must be 0 or more and below 1")
        loaded = _load_graph(graph)
        errs: Confusion | None = None if confusion is None else load_confusion(confusion, loaded)
        self._model = AssistantModel(loaded, _load_videos(loaded, data), absent, missed, errs)
        self._threshold, self._window = threshold, window
        self._start()

    def _start(self) -> None:
        self._lock = threading.RLock()
        self._events: list[Observation] = []
        self._ids: dict[str, int] = {}
        """The place of each event that has an id."""
        self._timed: list[int] = []
        """The places of events that have a time."""
        self._pauses: list[int] = []
        """The places of pauses, and of what ends them."""
        self._beliefs: list[Belief] = [Belief()]
        """After the last events, the newest last."""
        self._raised: list[tuple[int, object]] = []
        """The alarms: after which event, and what about."""
        self._accepted: list[tuple[int, object]] = []
        """What somebody accepted: by which event, and what about."""
        self._frames: FrameFilter | None = None
        self._last_frame_report = _SILENT
        self._probable: dict[object, float] = {}
        """Mistakes that are probable enough for an alarm, and since when."""
        self._told_before = 0

    def new_run(self) -> Assistant:
        """Return an assistant of another run of the same task, which has learned what this one has."""
        other = Assistant.__new__(Assistant)
        other._model, other._threshold, other._window = self._model, self._threshold, self._window
        other._start()
        return other

    @property
    def graph(self) -> SubtaskGraph:
        """The graph."""
        return self._model.graph

    # -- what happens ---------------------------------------------------------------------------------------------

    def did(
        self,
        step: Step,
        at: float | None = None,
        confidence: float | None = None,
        *,
        id: str | None = None,
        actor: str | None = None,
    ) -> StepReport:
        """Tell that a step was done.

        Parameters
        ----------
        step : str
            A step of the graph.
        at : float, optional
            Seconds, from whenever the run's clock began: when the step ended.
        confidence : float, optional
            How sure that is; by default certain. With the rest, nothing was done.
        id : str, optional
            A name for the event: telling it again changes nothing, and `undo` and `correct` can name it.
        actor : str, optional
            Who did it; kept in the log.

        Returns
        -------
        StepReport
            Whether there is an alarm now, of which kind, how probable a mistake is, and why.

        Raises
        ------
        InputError
            For a step that the graph does not have, a time long before the last one, or a confidence that is none.
        """
        self._require_step(step)
        if confidence is not None:
            return self.saw({step: confidence}, at, id=id, actor=actor)
        return self._tell("did", {step: 1.0}, at, id, actor)

    def began(
        self, step: Step, at: float | None = None, *, id: str | None = None, actor: str | None = None
    ) -> StepReport:
        """Tell that a step begins: a warning comes before it is done. `did` tells its end.

        Takes and returns what `did` does. Steps that overlap are in no order.
        """
        self._require_step(step)
        return self._tell("began", {step: 1.0}, at, id, actor)

    def saw(
        self, steps: Mapping[Step, float], at: float | None = None, *, id: str | None = None, actor: str | None = None
    ) -> StepReport:
        """Tell what a recogniser saw at the end of a step: how probably it was each step.

        What is missing to a sum of 1 is the probability that nothing was done; nothing at all, `{}`, is a moment
        without a step. One call is one thing that happened; for frames of a video, see `observe`. Which of several
        steps it was also depends on what was done before: see `msg2.assist.belief`.

        Parameters
        ----------
        steps : mapping of str to float
            Probabilities of steps, with a sum of at most 1 (but for rounding).
        at, id, actor
            As in `did`.

        Returns
        -------
        StepReport
            About the most probable step.

        Raises
        ------
        InputError
            As in `did`, and for numbers that are no probabilities.
        """
        return self._tell("saw", self._shares(steps), at, id, actor)

    @_locked
    def observe(self, steps: Mapping[Step, float], at: float | None) -> StepReport:
        """Tell what one frame of a stream shows, 5 to 30 times a second: how probably each step is going on.

        What is missing to 1 is background. Steps begin and end by themselves; the stream may have gaps. Frames are
        not kept in the log, and cannot be mixed with other events of the same run.

        Parameters
        ----------
        steps : mapping of str to float
            Probabilities of steps, with a sum of at most 1.
        at : float
            Seconds; later than the frame before.

        Returns
        -------
        StepReport
            About the step that is probably going on, or was done last.

        Raises
        ------
        InputError
            As in `saw`, for a time that is not later, and in a run that was told events.
        """
        require(
            not self._events, "this run was told events, frames cannot be added", hint="observe frames in a new run"
        )
        moment = self._time(at)
        require(moment is not None, "a frame needs its time, at")
        if self._frames is None:
            self._frames = FrameFilter(self._model)
        shares = {self._model.index[name]: share for name, share in self._shares(steps).items()}
        if not self._frames.observe(shares, moment or 0.0):
            return self._last_frame_report
        self._beliefs = [self._frames.belief()]
        running = self._frames.running()
        found = self._belief.mistakes(self._model, () if running is None else (running,))
        # A look at a few frames may err: what lasts is no slip of the recogniser.
        probable = {cause for cause, (probability, _) in found.items() if probability >= self._alarm_from(0)}
        self._probable = {cause: self._probable.get(cause, moment or 0.0) for cause in probable}
        lasting = {cause for cause, since in self._probable.items() if (moment or 0.0) - since >= ALARM_SECONDS}
        found = {cause: judged for cause, judged in found.items() if cause in lasting or cause not in probable}
        name = self._frames.latest()
        shown = None if name is None else self.graph.steps[name]
        report = self._report(shown, moment, found, self._frames.confidence(), 0)
        self._last_frame_report = replace(report, mistake=False)
        return report

    @_locked
    def accept(self, step: Step, *, id: str | None = None) -> None:
        """Say that a step is done after all: nobody saw it, or what seemed a mistake counts. Its alarms are gone."""
        self._require_step(step)
        self._tell("accept", {step: 1.0}, None, id, None)

    @_locked
    def pause(self, at: float | None = None) -> None:
        """Stop the clock: the time until `resume` does not count."""
        self._tell("pause", {}, at, None, None)

    @_locked
    def resume(self, at: float | None = None) -> None:
        """Let the clock go on."""
        self._tell("resume", {}, at, None, None)

    @_locked
    def undo(self, id: str | None = None) -> None:
        """Take back what was told last, or the event with this id; an error where there is none."""
        place = self._place(id)
        self._ids.pop(self._events.pop(place).id or "", None)
        self._work_out_again(place)

    @_locked
    def correct(self, id: str, steps: Step | Mapping[Step, float]) -> StepReport | None:
        """Replace what an event told: by a step that was done, or what was seen. Returns its new report."""
        place = self._place(id)
        seen = {steps: 1.0} if isinstance(steps, str) else self._shares(steps)
        for name in seen:
            self._require_step(name)
        old = self._events[place]
        kind: EventKind = "did" if isinstance(steps, str) and old.kind != "began" else old.kind
        self._events[place] = replace(old, kind="saw" if not isinstance(steps, str) else kind, seen=seen, report=None)
        self._work_out_again(place)
        return self._events[place].report

    @_locked
    def log(self) -> tuple[Observation, ...]:
        """Everything that was told, in the order of time, with the reports; what was taken back is not in it."""
        return tuple(self._events)

    # -- questions ------------------------------------------------------------------------------------------------

    @_locked
    def alarms(self) -> list[Alarm]:
        """The alarms that were raised and still stand, the newest last."""
        found = self._belief.mistakes(self._model, self._running())
        alarms: dict[Mistake, Alarm] = {}
        accepted = {cause for _, cause in self._accepted}
        for place, cause in self._raised:
            if cause in accepted:
                continue
            probability, mistake = found.get(cause, (0.0, None))
            if mistake is not None and probability >= self._alarm_from(place):
                at = self._events[place].at if place < len(self._events) else None
                alarms.setdefault(
                    mistake,
                    Alarm(mistake.step, mistake.kind, min(probability, 1.0), at, explain_mistake(self.graph, mistake)),
                )
        return list(alarms.values())

    @_locked
    def mistakes(self, ended: bool = True) -> list[Mistake]:
        """The mistakes of the most probable run, as `msg2.check` finds them; while it goes on, those so far."""
        best = self._belief.best
        return self._model.judge.judge(self._model.segments(best.done, best.starts), ended=ended) if best.done else []

    @_locked
    def done(self) -> dict[Step, float]:
        """How probably each step has been done, mistakes included, whether it was seen or not."""
        return {self.graph.steps[place]: share for place, share in self._belief.shares().items()}

    @_locked
    def inferred(self) -> dict[Step, float]:
        """How probably each step was done although nobody saw it: "probably done, not seen"."""
        return {self.graph.steps[place]: share for place, share in self._belief.shares(inferred=True).items()}

    @_locked
    def progress(self) -> tuple[Step, ...]:
        """What is done, in order, by the most probable of what was seen."""
        return tuple(self.graph.steps[place] for place in self._belief.best.done)

    @_locked
    def next(self, k: int | None = None) -> list[NextStep]:
        """The steps that may come next, the most probable first.

        Without data they are in the order of the paper's rule (what became possible last comes first), and have no
        probability. At most `k` are returned.
        """
        require_count("k", k)
        model = self._model
        progress = (*self.progress(), *(self.graph.steps[place] for place in self._running()))
        ranking = rank_steps(model.tracker, progress, None if model.forecaster is None else self._expected, k)
        last, precedents = progress[-1] if progress else None, model.precedents(progress)
        return [
            NextStep(
                ranked.step,
                ranked.rank,
                ranked.probability,
                ranked.eligible,
                None if model.waiting_times is None else model.waiting_times(last, ranked.step),
                explain_next(self.graph, ranked, last, precedents),
            )
            for ranked in ranking
        ]

    @_locked
    def missing(self, ended: bool = False) -> list[MissingStep]:
        """The steps that were left out so far, the surest first: something needs them, or they were done wrongly.

        Where the run has ended, everything required that was not done is missing.
        """
        missing: dict[Step, MissingStep] = {}
        belief = self._belief
        for (late, early), (probability, _) in self._awaited(belief).items():
            if late not in missing or missing[late].probability < probability:
                missing[late] = MissingStep(late, probability, f"'{early}' needs it, and is done")
        shares = self.done()
        for mistake in self.mistakes() if ended else ():
            if mistake.kind == "left out" and not mistake.unmet:
                probability = mistake.probability * (1 - shares.get(mistake.step, 0.0))
                missing[mistake.step] = MissingStep(mistake.step, probability, self._left_out_reason(mistake.step))
        return sorted(missing.values(), key=lambda step: (-step.probability, step.step))

    def _awaited(self, belief: Belief) -> dict[tuple[Step, Step], tuple[float, Mistake]]:
        """What a step that is done needs, and is not: the pairs (missing, done). Of several ways none is missing."""
        done = belief.shares()
        return {
            cause: found
            for cause, found in belief.mistakes(self._model).items()
            if isinstance(cause, tuple) and len(cause) == 2 and done.get(self._model.index[cause[0]], 0.0) < ACCUSED
            if all(clause.kind == "step" for clause in found[1].unmet)
        }

    @_locked
    def time_left(self, now: float | None = None) -> TimeLeft | None:
        """How many seconds the run still takes; None without data that have times, see `limitations`.

        `now` is a time on the clock of `did`, by default that of the last step.
        """
        require(now is None or is_finite(now), f"now is {short_repr(str(now))}, it must be a number of seconds")
        if self._model.time_left is None:
            return None
        progress, expected = self.progress(), self._model.forecast(self.progress())
        rest = (*progress, max(expected, key=lambda name: (expected[name], name))) if expected else progress
        if not self._timed:
            return replace(self._model.time_left(progress), least=self._model.time_left(rest).low)
        latest = self._events[self._timed[-1]].at or 0.0
        require(now is None or now >= latest, f"now is {now}, before the last step at {latest:g}")
        began = self._events[self._timed[0]].at or 0.0
        counted = self._belief.best.last
        since = began if counted is None else counted
        left = self._model.time_left(progress, since - began)
        passed = self._clock(len(self._events), latest if now is None else now) - since
        least = min(self._model.time_left(rest, since - began).low, left.median)
        return replace(left, least=least).after(passed)

    @_locked
    def plan(self, goal: Step, length: int | None = None, k: int = 1) -> list[Plan]:
        """The most probable ways from here to a goal that respect the graph.

        Parameters
        ----------
        goal : str
            The step that the plan ends with.
        length : int, optional
            How many steps the plan has; by default any number.
        k : int
            How many plans.

        Returns
        -------
        list of Plan
            The best first. Without data, the shortest, and without a probability.

        Raises
        ------
        InputError
            For a goal that is unknown, done, or cannot be reached.
        """
        require_count("length", length)
        require_count("k", k)
        self._require_step(goal)
        ranker = self._model.forecaster
        return plan_steps(self.graph, self.progress(), goal, ranker=ranker, length=length, k=k)

    @_locked
    def finished(self) -> RunEnd:
        """Whether the run is over: by what videos did after they had come as far."""
        progress = self.progress()
        left = tuple(name for name in self.graph.steps if name in self.graph.required and name not in progress)
        open_steps = f"{len(left)} required step{'s' * (len(left) != 1)} left" if left else "nothing required is left"
        if self._model.end_probability is None:
            return RunEnd(not left, None, left, open_steps)
        everything = len(progress) == len(self.graph.steps)
        probability = 1.0 if everything else sum(
            each.probability * self._model.end_probability([self.graph.steps[place] for place in each.done])
            for each in self._belief.hypotheses
        )  # fmt: skip
        reason = f"judged by videos at a similar point, nothing more comes with {100 * probability:.0f} %; {open_steps}"
        return RunEnd(probability >= ACCUSED and not left, probability, left, reason)

    def limitations(self) -> dict[str, str]:
        """What it cannot answer, by the name of the question, and why."""
        if self._model.videos is None:
            why = "it was given no data, only a graph"
            return {"next": f"ranks but no probabilities: {why}", "finished": f"no probability: {why}",
                    "plan": f"no probabilities: {why}", "time_left": why}  # fmt: skip
        return {} if self._model.time_left else {"time_left": "fewer than two videos of the data have times"}

    @_locked
    def to_json(self) -> dict[str, object]:
        """The run as plain values: what was told, in order. What was learned is not in it."""
        events = [
            {"kind": event.kind, "seen": dict(event.seen), "at": event.at}
            | {key: value for key in ("id", "actor") if (value := getattr(event, key)) is not None}
            for event in self._events
        ]
        return {"format": FORMAT, "task": self.graph.task, "graph": self._model.fingerprint, "events": events}

    def save(self, path: str | PathLike[str]) -> None:
        """Save the run as JSON."""
        from msg2.files import write_whole

        write_whole(Path(path), json.dumps(self.to_json(), ensure_ascii=False, indent=1) + "\n")

    @staticmethod
    def load(
        path: str | PathLike[str],
        graph: GraphSource,
        data: Demonstrations | None = None,
        **options: Any,
    ) -> Assistant:
        """Go on with a run that was saved.

        Parameters
        ----------
        path : path
            The saved run.
        graph, data, **options
            As the assistant was made with.

        Returns
        -------
        Assistant
            It stands where the saved one stood.

        Raises
        ------
        InputError
            For a file that is none, or a run with another graph.
        """
        assistant, file = Assistant(graph, data, **options), Path(path)
        try:
            saved = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"cannot be read as a saved run ({type(error).__name__})", where=file) from None
        if not isinstance(saved, dict) or saved.get("format") != FORMAT:
            raise InputError(f"is no saved run: its format is not {FORMAT}", where=file)
        if saved.get("graph") != assistant._model.fingerprint:
            raise InputError("was saved with another graph", where=file, hint="load it with the graph it was made with")
        try:
            with errors_at(file):
                assistant.replay(saved["events"])
        except (KeyError, TypeError, AttributeError):
            raise InputError("is damaged: its events cannot be read", where=file) from None
        return assistant

    @_locked
    def replay(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Tell all events of a saved run, as `to_json` writes them."""
        for event in events:
            self._tell(event["kind"], event["seen"], event["at"], event.get("id"), event.get("actor"))

    @_locked
    def take_over(self, other: Assistant) -> None:
        """Go on with the run of another assistant, whose graph was edited since; steps that are gone are dropped."""
        for event in other.log():
            seen = {name: share for name, share in event.seen.items() if name in self._model.index}
            if seen or not event.seen:
                self._tell(event.kind, seen, event.at, event.id, event.actor)

    # -- inside ---------------------------------------------------------------------------------------------------

    @property
    def _belief(self) -> Belief:
        return self._beliefs[-1]

    @_locked
    def _tell(
        self, kind: EventKind, seen: Mapping[Step, float], at: float | None, id: str | None, actor: str | None
    ) -> StepReport:
        for name in seen:
            self._require_step(name)
        require(
            self._frames is None, "this run observes frames, events cannot be added", hint="tell events in a new run"
        )
        moment = self._time(at)
        if id is not None and id in self._ids:
            return self._events[self._ids[id]].report or _SILENT
        place = len(self._events)
        times = [
            (event.at, number)
            for number, event in enumerate(self._events[-_SNAPSHOTS:], max(0, place - _SNAPSHOTS))
            if event.at is not None
        ]
        if moment is not None and times and moment < times[-1][0]:
            latest = times[-1][0]
            if moment < latest - self._window:
                what = f"at is {moment:g}, {latest - moment:g} seconds before the last event at {latest:g}"
                raise InputError(what, hint=f"events may come {self._window:g} seconds late: see `window`")
            place = times[bisect_right([time for time, _ in times], moment)][1]
        raised = {cause for _, cause in self._raised}
        self._events.insert(place, Observation(kind, dict(seen), moment, id, actor))
        self._work_out_again(place)
        # A late event may raise an alarm about one that came after it, or find its own alarm raised already.
        new = [number for number, cause in self._raised if cause not in raised]
        return replace(self._events[min(new, default=place)].report or _SILENT, mistake=bool(new))

    def _work_out_again(self, place: int) -> None:
        """Work out the belief from an event on."""
        kept = len(self._beliefs) - 1 - (self._told_before - place)
        if place > self._told_before or kept < 0:
            kept, place = 0, 0
            self._beliefs = [Belief()]
        else:
            del self._beliefs[kept + 1 :]
        self._raised = [alarm for alarm in self._raised if alarm[0] < place]
        self._accepted = [entry for entry in self._accepted if entry[0] < place]
        for places in (self._timed, self._pauses):
            del places[bisect_left(places, place) :]
        for number in range(place, len(self._events)):
            self._take_in(number)
        self._told_before = len(self._events)

    def _take_in(self, number: int) -> None:
        """Take in an event, and write its report into the log."""
        event, belief, model = self._events[number], self._belief, self._model
        if event.id is not None:
            self._ids[event.id] = number
        if event.at is not None:
            self._timed.append(number)
        if event.kind in ("pause", "resume"):
            self._pauses.append(number)
        at = None if event.at is None else self._clock(number, event.at)
        indices = {model.index[name]: share for name, share in event.seen.items()}
        running: tuple[int, ...] = ()
        match event.kind:
            case "did" | "accept":
                (step,) = indices
                started = self._started(number, next(iter(event.seen)))
                belief = belief.told(step, at if event.kind == "did" else belief.best.last, model, started)
            case "saw" if indices:
                belief = belief.after(indices, at, model)
            case "began":
                running = tuple(indices)
        self._beliefs = [*self._beliefs[-_SNAPSHOTS:], belief]
        if event.kind in ("pause", "resume", "accept"):
            if event.kind == "accept":
                (counts,) = event.seen
                causes = [cause for cause in belief.mistakes(model) if isinstance(cause, tuple) and counts in cause]
                self._accepted += [(number, cause) for cause in causes]
            return
        shares = belief.shares()
        before = self._beliefs[-2].shares() if len(self._beliefs) > 1 else {}
        gained = {step: shares.get(step, 0.0) - before.get(step, 0.0) for step in indices}
        name_of = max(indices, key=lambda step: (round(gained[step], 6), indices[step]), default=None)
        name = None if name_of is None else self.graph.steps[name_of]
        confidence = (
            1.0 if event.kind in ("did", "began") else 0.0 if name_of is None else min(shares.get(name_of, 0.0), 1.0)
        )
        found = belief.mistakes(model, running) if indices else {}  # a moment without a step says nothing new
        report = self._report(name, event.at, found, confidence, number)
        self._events[number] = replace(event, report=report)
        if number >= _REPORTS:
            self._events[number - _REPORTS] = replace(self._events[number - _REPORTS], report=None)

    def _report(
        self,
        name: Step | None,
        at: float | None,
        found: Mapping[object, tuple[float, Mistake]],
        confidence: float,
        number: int,
    ) -> StepReport:
        """What is made of an event; alarms that are new are raised."""
        told = {cause for _, cause in (*self._raised, *self._accepted)}
        new = {
            cause: judged
            for cause, judged in found.items()
            if judged[0] >= self._alarm_from(number) and cause not in told
        }
        self._raised += [(number, cause) for cause in new]
        if name is None:
            return StepReport("", at, 0.0, bool(new), None, 0.0, (), "probably nothing was done")
        about = new or {cause: judged for cause, judged in found.items() if judged[1].step == name}
        findings = tuple(dict.fromkeys(m for _, m in sorted(about.values(), key=lambda judged: -judged[0])))
        probability = min(max((chance for chance, _ in about.values()), default=0.0), 1.0)
        reasons = [explain_mistake(self.graph, mistake) for mistake in findings]
        kind = findings[0].kind if findings else None
        reason = "; ".join(reasons) or "nothing speaks against it"
        return StepReport(name, at, confidence, bool(new), kind, probability, findings, reason)

    def _alarm_from(self, number: int) -> float:
        """The probability from which on the event with this number raises an alarm."""
        if self._threshold is not None:
            return self._threshold
        seen = self._frames is not None or (number < len(self._events) and self._events[number].kind == "saw")
        return SEEN_ALARM if seen else ALARM

    def _running(self) -> tuple[int, ...]:
        """The steps that have begun and have not ended."""
        if self._frames is not None:
            running = self._frames.running()
            return () if running is None else (running,)
        begun: dict[int, None] = {}
        for event in self._events[-_SNAPSHOTS:]:
            for name in event.seen:
                if event.kind == "began":
                    begun[self._model.index[name]] = None
                elif event.kind == "did":
                    begun.pop(self._model.index[name], None)
        return tuple(begun)

    def _started(self, number: int, name: Step) -> int | None:
        """How many steps had ended when this one began, if somebody said so."""
        for place in range(number - 1, max(-1, number - _SNAPSHOTS), -1):
            event = self._events[place]
            if event.kind == "began" and name in event.seen:
                ended = {n for later in self._events[place:number] if later.kind == "did" for n in later.seen}
                return max(len(self._belief.best.done) - len(ended), 0)
            if event.kind == "did" and name in event.seen:
                return None
        return None

    def _clock(self, number: int, at: float) -> float:
        """The time of an event on a clock that stops during pauses."""
        paused, since = 0.0, None
        for event in (self._events[place] for place in self._pauses if place < number):
            if event.kind == "pause":
                since = event.at if since is None else since
            elif since is not None and event.at is not None:
                paused, since = paused + event.at - since, None
        return at - paused if since is None else min(at, since) - paused

    def _place(self, id: str | None) -> int:
        require(bool(self._events), "there is nothing to undo")
        if id is None:
            return len(self._events) - 1
        require(id in self._ids, f"there is no event with the id {short_repr(id)}")
        return self._ids[id]

    def _shares(self, steps: Mapping[Step, float]) -> dict[Step, float]:
        """What was seen, checked, with a sum of at most 1."""
        require(isinstance(steps, Mapping), "what was seen must be a mapping from steps to probabilities")
        for name in steps:
            self._require_step(name)
        seen = {name: share for name, fit in steps.items() if (share := _probability(name, fit)) > 0}
        total = sum(seen.values())
        require(total <= 1 + _ROUNDING, f"the probabilities have the sum {total:g}, above 1")
        return {name: share / max(total, 1.0) for name, share in seen.items()}

    def _expected(self, done: Sequence[Step]) -> Mapping[Step, float]:
        """The probability of each step over all hypotheses, of those that the most probable one leaves."""
        hypotheses, running = self._belief.hypotheses, self._running()
        prefixes = [(*each.done, *(step for step in running if step not in each.done)) for each in hypotheses]
        forecasts = self._model.forecasts(prefixes)
        weights = np.array([each.probability for each in hypotheses])
        mixed = weights @ np.array(forecasts)
        rules = [rule for rule in self.graph.rules if rule.kind == "needs"]
        broken = {rule.after for rule in rules if rule.before not in done}  # whatever the recordings do
        left = {
            name: 0.0 if name in broken else float(mixed[place])
            for name, place in self._model.index.items()
            if name not in set(done)
        }
        total = sum(left.values())
        return {name: share / total if total else 1 / len(left) for name, share in left.items()}

    def _left_out_reason(self, name: Step) -> str:
        videos, evidence = len(videos_learned_from(self.graph)), self.graph.step_evidence(name)
        if evidence.videos is None or not videos:
            return "the graph says that every run does it"
        return f"{evidence.videos} of {videos} videos have it"

    def _require_step(self, name: Step) -> None:
        if not isinstance(name, str):
            raise InputError(f"{short_repr(str(name))} is no step: a step is a text")
        if name not in self._model.index:
            raise unknown_step_error(name, self.graph)

    def _time(self, at: float | None) -> float | None:
        """A time as a plain number; NumPy's are taken, too."""
        if at is None:
            return None
        if not is_finite(at):
            raise InputError(f"at is {short_repr(str(at))}, it must be a number of seconds")
        return float(at)


_SILENT = StepReport("", None, 0.0, False, None, 0.0, (), "nothing was judged")
"""The report on events that are not judged."""


def _probability(name: Step, fit: object) -> float:
    """A number as recognisers give it, of NumPy too."""
    if not is_finite(fit) or not 0 <= fit <= 1:
        what = f"the probability of {short_repr(name)} is {short_repr(str(fit))}, it must be a number from 0 to 1"
        raise InputError(what)
    return float(fit)


def _load_graph(graph: GraphSource) -> SubtaskGraph:
    if isinstance(graph, SubtaskGraph):
        return graph
    if isinstance(graph, Mapping):
        return SubtaskGraph.from_json(dict(graph))
    from msg2.formats import read_graph

    return read_graph(Path(graph))


def _load_videos(graph: SubtaskGraph, data: Demonstrations | None) -> Task | None:
    """The videos, with repeated steps; of several tasks that of the graph."""
    if data is None:
        return None
    task = task_of_graph(graph, data, repeats="keep")
    for name in task.steps:
        if name not in graph.steps:
            raise unknown_step_error(name, graph, where=f"the data of task {short_repr(task.name)}")
    return task
