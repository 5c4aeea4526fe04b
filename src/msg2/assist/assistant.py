"""One run of a task, live: what was done, what comes next, what is missing, how long it takes, and how to reach a goal.

An `Assistant` puts the parts of this package together. What it has learned is shared by all its runs; a run itself is a
list of events (`msg2.assist.run_log`), and after each of them a belief about what has been done
(`msg2.assist.belief`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar

import numpy as np

from msg2.assist.belief import AssistantModel, Belief
from msg2.assist.events import (
    Alarm,
    MissingStep,
    NextStep,
    RunEnd,
    StepReport,
    breaks_stated_rule,
    explain_follow_up,
    explain_mistake,
    explain_next,
)
from msg2.assist.following import task_of_graph, unknown_step_error, videos_learned_from
from msg2.assist.frames import FrameFilter
from msg2.assist.mistakes import ACCUSED, ALARM, Mistake
from msg2.assist.planning import Plan, plan_steps
from msg2.assist.rankers import rank_steps
from msg2.assist.recognisers import ConfusionSource, load_confusion
from msg2.assist.run_log import (
    FORMAT,
    EventKind,
    EventLog,
    Observation,
    RaisedAlarm,
    Standing,
    begin_log,
    read_run,
)
from msg2.assist.saved_model import is_saved_model, load_model, save_model
from msg2.assist.time_left import TimeLeft
from msg2.errors import InputError, errors_at, is_finite, require, require_count, require_probability
from msg2.files import temporary_path, write_whole
from msg2.graph import SubtaskGraph, step
from msg2.task import Absent, Step, Task
from msg2.text import short_repr

if TYPE_CHECKING:
    from msg2.formats.conversion import Demonstrations

GraphSource: TypeAlias = SubtaskGraph | str | PathLike[str] | Mapping[str, object]
"""A graph, its file, or the content of one."""

_ROUNDING = 0.01
"""By which the sum of probabilities may exceed 1."""
ALARM_SECONDS = 10.0
"""Seconds for which a mistake must be probable in a stream of frames before there is an alarm."""
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


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

    One run may be used by several threads. Without a `log`, all its events stay in memory, and each can be corrected.

    Parameters
    ----------
    graph : SubtaskGraph, path or mapping
        What the steps need: a graph, its file, or the content of one; or a file of `save_model`.
    data : Task, path, DataFrame, sequences or mapping, optional
        Videos of the task, as in `msg2.infer`. Without any the graph alone answers, and `limitations` says what it
        cannot answer.
    threshold : float, optional
        The probability of a mistake from which on there is an alarm; by default 0.4.
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
    log : path, optional
        A file to which every event is appended as it is told, for runs of any length: the last thousand events, at
        least, stay in memory and can be corrected. `load` goes on with it. Frames are not in it.

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
        log: str | PathLike[str] | None = None,
    ) -> None:
        if threshold is not None:
            require_probability("threshold", threshold)
        require(absent in ("skipped", "unknown"), f"absent is {absent!r}, it must be 'skipped' or 'unknown'")
        require(is_finite(window) and window >= 0, f"window is {window}, it must be 0 seconds or more")
        if alarm_cost is not None:
            require(threshold is None, "alarm_cost sets the threshold: give one of the two")
            require(is_finite(alarm_cost) and alarm_cost > 0, f"alarm_cost is {alarm_cost}, it must be above 0")
            threshold = alarm_cost / (1 + alarm_cost)
        if missed is not None:
            require(0 <= missed < 1, f"missed is {missed}, it must be 0 or more and below 1")
        videos: Task | None
        fitted: Mapping[str, object] = {}
        if isinstance(graph, str | PathLike) and is_saved_model(Path(graph)):
            require(data is None, "was saved with its videos", where=Path(graph), hint="leave out the data")
            loaded, videos, fitted = load_model(Path(graph))
        else:
            loaded = load_graph(graph)
            videos = _load_videos(loaded, data)
        errs = None if confusion is None else load_confusion(confusion, loaded)
        self._model = AssistantModel(loaded, videos, absent, missed, errs)
        self._model.__dict__.update(fitted)
        self._threshold, self._window = ALARM if threshold is None else threshold, window
        self._start(log)

    def _start(self, log: str | PathLike[str] | None = None) -> None:
        self._lock = threading.RLock()
        file = None if log is None else begin_log(Path(log), self._header())
        self._log = EventLog(self._take_in, self._window, file)
        self._frames: FrameFilter | None = None
        self._standing_of_frames = Standing()
        self._last_frame_report = _SILENT
        self._probable: dict[object, float] = {}
        """Mistakes in frames that are probable enough for an alarm, and since when."""

    def new_run(self, log: str | PathLike[str] | None = None) -> Assistant:
        """Return an assistant of another run of the same task, which has learned what this one has."""
        other = Assistant.__new__(Assistant)
        other._model, other._threshold, other._window = self._model, self._threshold, self._window
        other._start(log)
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
    def observe(self, steps: Mapping[Step, float], at: float | None = None) -> StepReport:
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
        hint = "observe frames in a new run"
        require(not len(self._log), "this run was told events, frames cannot be added", hint=hint)
        moment = self._time(at)
        if moment is None:
            raise InputError("a frame needs its time, at")
        if self._frames is None:
            self._frames = FrameFilter(self._model)
        shares = {self.graph.index[name]: share for name, share in self._shares(steps).items()}
        if not self._frames.observe(shares, moment):
            return self._last_frame_report
        running = self._frames.running()
        standing = replace(
            self._standing_of_frames.at(Observation("saw", {}, moment)),
            belief=self._frames.belief(),
            running={} if running is None else {running: 0},
        )
        found = standing.belief.mistakes(self._model, tuple(standing.running))
        # A look at a few frames may err: what lasts is no slip of the recogniser.
        probable = {cause for cause, (probability, _) in found.items() if probability >= self._threshold}
        self._probable = {cause: self._probable.get(cause, moment) for cause in probable}
        lasting = {cause for cause, since in self._probable.items() if moment - since >= ALARM_SECONDS}
        found = {cause: judged for cause, judged in found.items() if cause in lasting or cause not in probable}
        name = self._frames.latest()
        shown = None if name is None else self.graph.steps[name]
        event = Observation("saw", {}, moment)
        confidence = self._frames.confidence()
        self._standing_of_frames, report = self._report(
            standing, event, 0, name=shown, found=found, confidence=confidence
        )
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
        self._log.undo(id)

    @_locked
    def correct(self, id: str, steps: Step | Mapping[Step, float]) -> StepReport | None:
        """Replace what an event told: by a step that was done, or what was seen. Returns its new report."""
        seen = self._shares({steps: 1.0} if isinstance(steps, str) else steps)
        return self._log.correct(id, "did" if isinstance(steps, str) else "saw", seen)

    @_locked
    def log(self) -> tuple[Observation, ...]:
        """The events in memory, in the order of time, with their reports; what was taken back is not among them."""
        return self._log.events

    # -- questions ------------------------------------------------------------------------------------------------

    @_locked
    def alarms(self) -> list[Alarm]:
        """The alarms that were raised and still stand, the newest last."""
        standing = self._standing
        found = standing.belief.mistakes(self._model, tuple(standing.running))
        alarms: dict[Mistake, Alarm] = {}
        for raised in standing.raised:
            probability, mistake = found.get(raised.cause, (0.0, None))
            if raised.cause not in standing.accepted and mistake is not None and probability >= raised.least:
                reason, sure = explain_mistake(self.graph, mistake), min(probability, 1.0)
                stated = breaks_stated_rule(self.graph, mistake)
                alarm = Alarm(mistake.step, mistake.kind, sure, raised.at, reason, stated, mistake.unmet)
                alarms.setdefault(mistake, alarm)
        return list(alarms.values())

    @_locked
    def mistakes(self, ended: bool = True) -> list[Mistake]:
        """The mistakes of the most probable run, as `msg2.check` finds them; while it goes on, those so far."""
        best = self._belief.best
        segments = self._model.segments(best.done, best.starts, again=best.again)
        return self._model.judge.judge(segments, ended=ended) if segments else []

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
        progress = (*self.progress(), *(self.graph.steps[place] for place in self._standing.running))
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
                ranked.eligible and not ranked.awaited,
                breaks_stated_rule(self.graph, ranked),
                (*ranked.unmet, *map(step, ranked.awaited)),
            )
            for ranked in ranking
        ]

    @_locked
    def missing(self, ended: bool = False) -> list[MissingStep]:
        """The steps that were left out so far, the surest first: something needs them, or they were done wrongly.

        So are those that must follow what was done, and are still to come. Where the run has ended, everything required
        that was not done is missing.
        """
        missing: dict[Step, MissingStep] = {}
        belief = self._belief
        for (late, early), (probability, _) in self._awaited(belief).items():
            if late not in missing or missing[late].probability < probability:
                missing[late] = MissingStep(late, probability, f"'{early}' needs it, and is done")
        shares = self.done()
        for mistake in self._to_follow():
            missing.setdefault(
                mistake.step, MissingStep(mistake.step, mistake.probability, explain_follow_up(self.graph, mistake))
            )
        for mistake in self.mistakes() if ended else ():
            if mistake.kind == "left out" and not mistake.unmet and mistake.after is None:
                probability = mistake.probability * (1 - shares.get(mistake.step, 0.0))
                missing[mistake.step] = MissingStep(mistake.step, probability, self._left_out_reason(mistake.step))
        return sorted(missing.values(), key=lambda step: (-step.probability, step.step))

    def _to_follow(self) -> list[Mistake]:
        """What must follow something that was done, and has not been done since."""
        best = self._belief.best
        segments = self._model.segments(best.done, best.starts, again=best.again) if self.graph.responses else []
        return list(self._model.judge.to_follow(segments))

    def _awaited(self, belief: Belief) -> dict[tuple[Step, Step], tuple[float, Mistake]]:
        """What a step that is done needs, and is not: the pairs (missing, done). Of several ways none is missing."""
        done = belief.shares()
        return {
            cause: found
            for cause, found in belief.mistakes(self._model).items()
            if isinstance(cause, tuple) and len(cause) == 2 and done.get(self.graph.index[cause[0]], 0.0) < ACCUSED
            if all(clause.kind == "step" for clause in found[1].unmet)
        }

    @_locked
    def time_left(self, now: float | None = None) -> TimeLeft | None:
        """How many seconds the run still takes; None where the data do not tell working times, see `limitations`.

        `now` is a time on the clock of `did`, by default that of the last step.
        """
        require(now is None or is_finite(now), f"now is {short_repr(str(now))}, it must be a number of seconds")
        if self._model.time_left is None:
            return None
        progress = self.progress()
        (forecast,) = self._model.forecasts([self._belief.best.history])
        not_done = [name for name in self.graph.steps if name not in progress]
        following = max(not_done, key=lambda name: (forecast[self.graph.index[name]], name), default=None)
        rest = progress if following is None else (*progress, following)
        standing = self._standing
        if standing.began is None or standing.latest is None:
            return replace(self._model.time_left(progress), least=self._model.time_left(rest).low)
        latest = standing.latest
        require(now is None or now >= latest, f"now is {now}, before the last step at {latest:g}")
        counted = self._belief.best.last
        since = standing.began if counted is None else counted
        left = self._model.time_left(progress, since - standing.began)
        passed = standing.clock(latest if now is None else now) - since
        least = min(self._model.time_left(rest, since - standing.began).low, left.median)
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
        stated = {rule.before for rule in self.graph.rules if rule.kind == "needs" and rule.after in progress}
        if not self.graph.evidence:  # all of it is stated
            stated = stated.union(*(self.graph.necessary[name] for name in progress))
        following = {mistake.step for mistake in self._to_follow()}
        required = (self.graph.required | stated).difference(progress) | following
        left = tuple(name for name in self.graph.steps if name in required)
        open_steps = f"{len(left)} required step{'s' * (len(left) != 1)} left" if left else "nothing required is left"
        if self._model.end_probability is None:
            return RunEnd(not left, None, left, open_steps)
        everything = len(progress) == len(self.graph.steps)
        probability = 1.0 if everything else sum(
            each.probability * self._model.end_probability([self.graph.steps[place] for place in each.history])
            for each in self._belief.hypotheses
        )  # fmt: skip
        reason = f"judged by videos at a similar point, nothing more comes with {100 * probability:.0f} %; {open_steps}"
        return RunEnd(probability >= ACCUSED and not left, probability, left, reason)

    def limitations(self) -> dict[str, str]:
        """What it cannot answer, by the name of the question, and why."""
        why = self._model.times_unknown
        if why is None or self._model.videos is not None:
            return {} if why is None else {"time_left": why}
        return {"next": f"ranks but no probabilities: {why}", "finished": f"no probability: {why}",
                "plan": f"no probabilities: {why}", "time_left": why}  # fmt: skip

    @_locked
    def to_json(self) -> dict[str, object]:
        """The run as plain values: what was told, in order. What was learned is not in it."""
        return {"format": FORMAT, **self._header(), "events": [event.to_json() for event in self._log.events]}

    def _header(self) -> dict[str, object]:
        return {"task": self.graph.task, "graph": self._model.fingerprint}

    def save(self, path: str | PathLike[str]) -> None:
        """Save the run as JSON; one that observes frames cannot be saved."""
        hint = "keep the frames, and observe them again in a new run"
        require(self._frames is None, "this run observes frames, which are not in its log", where=Path(path), hint=hint)
        require(self._log.is_complete, "the first events of this run are in its log only", hint="load the log instead")
        write_whole(Path(path), json.dumps(self.to_json(), ensure_ascii=False, indent=1) + "\n")

    def save_model(self, path: str | PathLike[str]) -> None:
        """Save what was learned from the data: `Assistant(path)` starts from it at once.

        Parameters
        ----------
        path : path
            The file: graph, videos and all that was fitted, as JSON.

        Raises
        ------
        InputError
            Where it has learned from no data.
        """
        save_model(self._model, Path(path))

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
            The saved run, or its log.
        graph, data, **options
            As the assistant was made with. With `log`, what comes is appended to that file; where it is `path` and that
            is a saved run, it becomes a log.

        Returns
        -------
        Assistant
            It stands where the saved one stood.

        Raises
        ------
        InputError
            For a file that is none, or a run with another graph.
        """
        file, log = Path(path), options.pop("log", None)
        assistant = Assistant(graph, data, **options)
        header, events = read_run(file)
        if header.get("graph") != assistant._model.fingerprint:
            raise InputError("was saved with another graph", where=file, hint="load it with the graph it was made with")
        if log is not None:  # a new file takes the place of the old one once it is whole
            assistant = assistant.new_run(temporary_path(Path(log).parent))
        try:
            with errors_at(file):
                assistant.replay(events)
        except (KeyError, TypeError, AttributeError):
            raise InputError("is damaged: its events cannot be read", where=file) from None
        if log is not None:
            assistant._log.move_file(Path(log))
        return assistant

    @_locked
    def replay(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Make all calls of a saved run or a log, as `to_json` writes them."""
        for event in events:
            match event["kind"]:
                case "undo":
                    self.undo(event["id"])
                case "correct":
                    seen = event["seen"]
                    self.correct(event["id"], next(iter(seen)) if event["as"] != "saw" else seen)
                case kind:
                    self._tell(kind, event["seen"], event["at"], event.get("id"), event.get("actor"))

    @_locked
    def take_over(self, other: Assistant) -> None:
        """Go on with the run of another assistant, whose graph was edited since; steps that are gone are dropped."""
        for event in other.log():
            seen = {name: share for name, share in event.seen.items() if name in self.graph.index}
            if seen or not event.seen:
                self._tell(event.kind, seen, event.at, event.id, event.actor)

    # -- inside ---------------------------------------------------------------------------------------------------

    @property
    def _standing(self) -> Standing:
        return self._log.standing if self._frames is None else self._standing_of_frames

    @property
    def _belief(self) -> Belief:
        return self._standing.belief

    @_locked
    def _tell(
        self, kind: EventKind, seen: Mapping[Step, float], at: float | None, id: str | None, actor: str | None
    ) -> StepReport:
        for name in seen:
            self._require_step(name)
        require(
            self._frames is None, "this run observes frames, events cannot be added", hint="tell events in a new run"
        )
        return self._log.tell(Observation(kind, dict(seen), self._time(at), id, actor)) or _SILENT

    def _take_in(self, standing: Standing, event: Observation, number: int) -> tuple[Standing, StepReport | None]:
        """Take in an event: how the run stands after it, and the report on it."""
        belief, model, running = standing.belief, self._model, dict(standing.running)
        before = belief.shares()
        at = None if event.at is None else standing.clock(event.at)
        indices = {model.graph.index[name]: share for name, share in event.seen.items()}
        match event.kind:
            case "pause" | "resume":
                return standing, None
            case "did" | "accept":
                (step,) = indices
                started = running.pop(step, None)
                belief = belief.told(step, at if event.kind == "did" else belief.best.last, model, started)
            case "saw" if indices:
                belief = belief.after(indices, at, model)
            case "began":
                running |= dict.fromkeys(indices, len(belief.best.done))
        standing = replace(standing, belief=belief, running=running)
        if event.kind == "accept":
            (counts,) = event.seen
            causes = {cause for cause in belief.mistakes(model) if isinstance(cause, tuple) and counts in cause}
            return replace(standing, accepted=standing.accepted | causes), None
        shares = belief.shares()
        gained = {step: shares.get(step, 0.0) - before.get(step, 0.0) for step in indices}
        name_of = max(indices, key=lambda step: (round(gained[step], 6), indices[step]), default=None)
        name = None if name_of is None else self.graph.steps[name_of]
        confidence = (
            1.0 if event.kind in ("did", "began") else 0.0 if name_of is None else min(shares.get(name_of, 0.0), 1.0)
        )
        begun = tuple(indices) if event.kind == "began" else ()
        found = belief.mistakes(model, begun) if indices else {}  # a moment without a step says nothing new
        return self._report(standing, event, number, name=name, found=found, confidence=confidence)

    def _report(
        self,
        standing: Standing,
        event: Observation,
        number: int,
        *,
        name: Step | None,
        found: Mapping[object, tuple[float, Mistake]],
        confidence: float,
    ) -> tuple[Standing, StepReport]:
        """What is made of an event; alarms that are new are raised."""
        least = self._threshold
        told = standing.accepted.union(alarm.cause for alarm in standing.raised)
        new = {cause: judged for cause, judged in found.items() if judged[0] >= least and cause not in told}
        alarms = tuple(RaisedAlarm(cause, number, event.at, least) for cause in new)
        standing = replace(standing, raised=(*standing.raised, *alarms))
        if name is None:
            return standing, StepReport("", event.at, 0.0, bool(new), None, 0.0, (), "probably nothing was done")
        about = new or {cause: judged for cause, judged in found.items() if judged[1].step == name}
        findings = tuple(dict.fromkeys(m for _, m in sorted(about.values(), key=lambda judged: -judged[0])))
        probability = min(max((chance for chance, _ in about.values()), default=0.0), 1.0)
        reasons = [explain_mistake(self.graph, mistake) for mistake in findings]
        kind = findings[0].kind if findings else None
        reason = "; ".join(reasons) or "nothing speaks against it"
        report = StepReport(name, event.at, confidence, bool(new), kind, probability, findings, reason)
        return standing, report

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
        """The probability of each step that may come, over all hypotheses; of those that are done, to be done again."""
        hypotheses, running = self._belief.hypotheses, self._standing.running
        prefixes = [(*each.history, *(step for step in running if not each.has(step))) for each in hypotheses]
        shares = np.array([each.probability for each in hypotheses])[:, None] * self._model.forecasts(prefixes)
        rules = [rule for rule in self.graph.rules if rule.kind == "needs"]
        broken = {rule.after for rule in rules if rule.before not in done}  # whatever the recordings do
        expected = {}
        for name, place in self.graph.index.items():
            if name in broken:
                expected[name] = 0.0
            elif name not in done:
                expected[name] = float(shares[:, place].sum())
            elif place in self._model.repeated:
                expected[name] = float(
                    sum(row[place] for row, each in zip(shares, hypotheses, strict=True) if each.has(place))
                )
        total = sum(expected.values())
        return {name: share / total if total else 1 / len(expected) for name, share in expected.items()}

    def _left_out_reason(self, name: Step) -> str:
        videos, evidence = len(videos_learned_from(self.graph)), self.graph.step_evidence(name)
        if evidence.videos is None or not videos:
            return "the graph says that every run does it"
        return f"{evidence.videos} of {videos} videos have it"

    def _require_step(self, name: Step) -> None:
        if not isinstance(name, str):
            raise InputError(f"{short_repr(str(name))} is no step: a step is a text")
        if name not in self.graph.index:
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


def load_graph(graph: GraphSource) -> SubtaskGraph:
    """A graph, whichever way it is given."""
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
