"""One run of a task, live: what was done, what comes next, what is missing, how long it takes, and how to reach a goal.

An `Assistant` puts the parts of this package together. What it has learned is shared by all its runs; a run itself is a
list of observations, and after each of them a belief about what has been done (`msg2.assist.belief`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msg2.assist.belief import AssistantModel, Belief, Hypothesis
from msg2.assist.events import MissingStep, NextStep, RunEnd, StepReport, explain_deviation, explain_next
from msg2.assist.following import task_of_graph, unknown_step_error, videos_learned_from
from msg2.assist.monitoring import THRESHOLD
from msg2.assist.planning import Plan, plan_steps
from msg2.assist.rankers import rank_steps
from msg2.assist.time_left import TimeLeft
from msg2.errors import InputError, errors_at, is_finite, require, require_count, require_probability
from msg2.graph import SubtaskGraph
from msg2.task import Absent, Step, Task
from msg2.text import short_repr

if TYPE_CHECKING:
    from msg2.formats.conversion import Demonstrations

GraphSource: TypeAlias = SubtaskGraph | str | PathLike[str] | Mapping[str, object]
"""A graph, its file, or the content of one."""

FORMAT = "msg2.run/1"
"""Of a saved run."""
_LIKELY = 0.5
"""From this probability on a run is said to be finished, and something to have been a mistake."""
_ROUNDING = 0.01
"""By which the sum of probabilities may exceed 1."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen at a moment, and what became of it."""

    seen: Mapping[Step, float]
    """How well it fits each step; what is missing to 1, nothing was done."""
    at: float | None
    """Seconds."""
    accepted: bool
    """Whether the step was declared to be done, without being assessed."""
    report: StepReport | None
    """None where it was declared to be done."""


class Assistant:
    """Watches one run of a task and answers questions about it.

    Parameters
    ----------
    graph : SubtaskGraph, path or mapping
        What the steps need: a graph, its file, or the content of one.
    data : Task, path, DataFrame, sequences or mapping, optional
        Videos of the task, as in `msg2.infer`. Without any the graph alone answers, and `limitations` says what it
        cannot answer.
    threshold : float
        The probability from which on a step is called a mistake.
    absent : "skipped" or "unknown"
        What nobody told was not done; or it may have been, since the one who watches may miss steps: then a step that
        comes without what it needs is no mistake until that comes late.

    >>> graph = SubtaskGraph.from_json({"format": "msg2.graph/2", "task": "toast", "steps": ["whisk", "dip", "fry"],
    ...                                 "preconditions": {"dip": "whisk", "fry": "dip"}})
    >>> assistant = Assistant(graph, [["whisk", "dip", "fry"]] * 9)
    >>> assistant.did("whisk").mistake
    False
    >>> report = assistant.did("fry")
    >>> report.mistake, report.reason
    (True, "'fry' needs 'dip', which 9 of 9 videos did before it")
    >>> assistant.undo()
    >>> assistant.next(1)[0].step
    'dip'
    """

    def __init__(
        self,
        graph: GraphSource,
        data: Demonstrations | None = None,
        *,
        threshold: float = THRESHOLD,
        absent: Absent = "skipped",
    ) -> None:
        require_probability("threshold", threshold)
        require(absent in ("skipped", "unknown"), f"absent is {absent!r}, it must be 'skipped' or 'unknown'")
        loaded = _load_graph(graph)
        self._model = AssistantModel(loaded, _load_videos(loaded, data), threshold, absent)
        self._start()

    def _start(self) -> None:
        self._observations: tuple[Observation, ...] = ()
        self._beliefs = [Belief((Hypothesis(1.0, (), self._model.monitor),))]

    def new_run(self) -> Assistant:
        """Return an assistant of another run of the same task, which has learned what this one has."""
        other = Assistant.__new__(Assistant)
        other._model = self._model
        other._start()
        return other

    @property
    def graph(self) -> SubtaskGraph:
        """The graph."""
        return self._model.graph

    def did(self, step: Step, at: float | None = None, confidence: float | None = None) -> StepReport:
        """Tell that a step was done.

        Parameters
        ----------
        step : str
            A step of the graph.
        at : float, optional
            Seconds, from whenever the run's clock began; for the time that is left.
        confidence : float, optional
            How sure that is; by default certain. With the rest, nothing was done.

        Returns
        -------
        StepReport
            Whether it was a mistake, which kind, how probably, and why.

        Raises
        ------
        InputError
            For a step that the graph does not have, a time before the last one, or a confidence that is none.
        """
        self._require_step(step)
        return self.saw({step: 1.0 if confidence is None else confidence}, at)

    def saw(self, steps: Mapping[Step, float], at: float | None = None) -> StepReport:
        """Tell what a recogniser saw: how probably it was each step.

        What is missing to a sum of 1 is the probability that nothing was done. One call is one thing that happened, not
        one frame of a video. Which of several steps it was also depends on what was done before: see
        `msg2.assist.belief`.

        Parameters
        ----------
        steps : mapping of str to float
            Probabilities of steps, at least one above 0, with a sum of at most 1 (but for rounding).
        at : float, optional
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
        require(isinstance(steps, Mapping), "what was seen must be a mapping from steps to probabilities")
        for name in steps:
            self._require_step(name)
        seen = {name: share for name, fit in steps.items() if (share := _probability(name, fit)) > 0}
        total = sum(seen.values())
        require(bool(seen), "nothing was seen: give at least one step a probability above 0")
        require(total <= 1 + _ROUNDING, f"the probabilities have the sum {total:g}, above 1")
        seen = {name: share / max(total, 1.0) for name, share in seen.items()}
        self._require_time(at)
        belief = self._belief.after(seen, self._model.forecast)
        report = _report(belief, seen, at)
        self._add(belief, Observation(seen, at, False, report))
        return report

    def accept(self, step: Step) -> None:
        """Say that a step is done after all: nobody saw it, or what seemed a mistake counts."""
        self._require_step(step)
        accepted = tuple(hypothesis.accept(step) for hypothesis in self._belief.hypotheses)
        self._add(Belief(accepted), Observation({step: 1.0}, None, True, None))

    def undo(self) -> None:
        """Take back what was told last; an error where nothing was."""
        require(bool(self._observations), "there is nothing to undo")
        self._observations = self._observations[:-1]
        self._beliefs.pop()

    def log(self) -> tuple[Observation, ...]:
        """Everything that was told, in order, with the reports; what was taken back is not in it."""
        return self._observations

    def done(self) -> dict[Step, float]:
        """How probably each step has been done, mistakes included; those that nobody saw are not in it."""
        return self._belief.probability_done()

    def progress(self) -> tuple[Step, ...]:
        """What is done and counts, in order: the mistakes left out, by the most probable of what was seen."""
        return self._belief.best.progress

    def next(self, k: int | None = None) -> list[NextStep]:
        """The steps that may come next, the most probable first.

        Without data they are in the order of the paper's rule (what became possible last comes first), and have no
        probability. At most `k` are returned.
        """
        require_count("k", k)
        progress, model = self.progress(), self._model
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

    def missing(self, ended: bool = False) -> list[MissingStep]:
        """The steps that were left out so far, the surest first: something needs them, or they were done wrongly.

        Where the run has ended, everything required that was not done is missing.
        """
        missing: dict[Step, MissingStep] = {}
        best = self._belief.best
        for observation in self._observations:
            for finding in observation.report.skipped if observation.report else ():
                name = finding.deviation.other
                if name is not None and name not in best.done:
                    known = missing.get(name)
                    if known is None or known.probability < finding.probability:
                        missing[name] = MissingStep(name, finding.probability, explain_deviation(finding))
        for name in sorted(best.monitor.run.rejected):
            missing[name] = self._done_wrongly(name)
        for deviation in best.monitor.run.left_out() if ended else ():
            name = deviation.step
            if deviation.clause is None and name not in missing:
                probability = self._model.rules.left_out(name, new=True)
                missing[name] = MissingStep(name, probability, self._left_out_reason(name))
        return sorted(missing.values(), key=lambda step: (-step.probability, step.step))

    def time_left(self, now: float | None = None) -> TimeLeft | None:
        """How many seconds the run still takes; None without data that have times, see `limitations`.

        `now` is a time on the clock of `did`, by default that of the last step.
        """
        require(now is None or is_finite(now), f"now is {short_repr(str(now))}, it must be a number of seconds")
        if self._model.time_left is None:
            return None
        times = [observation.at for observation in self._observations if observation.at is not None]
        progress, expected = self.progress(), self._model.forecast(self.progress())
        rest = (*progress, max(expected, key=lambda name: (expected[name], name))) if expected else progress
        if not times:
            return replace(self._model.time_left(progress), least=self._model.time_left(rest).low)
        counted = self._last_progress()
        since = times[0] if counted is None else counted
        left = self._model.time_left(progress, since - times[0])
        passed = (times[-1] if now is None else now) - since
        require(now is None or now >= times[-1], f"now is {now}, before the last step at {times[-1]:g}")
        least = min(self._model.time_left(rest, since - times[0]).low, left.median)
        return replace(left, least=least).after(passed)

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

    def finished(self) -> RunEnd:
        """Whether the run is over: by what videos did after they had come as far."""
        best = self._belief.best
        left = tuple(name for name in self.graph.steps if name in self.graph.required and name not in best.progress)
        open_steps = f"{len(left)} required step{'s' * (len(left) != 1)} left" if left else "nothing required is left"
        if self._model.end_probability is None:
            return RunEnd(not left, None, left, open_steps)
        everything = len(best.progress) == len(self.graph.steps)
        probability = 1.0 if everything else sum(
            hypothesis.probability * self._model.end_probability(hypothesis.progress)
            for hypothesis in self._belief.hypotheses
        )  # fmt: skip
        reason = f"judged by videos at a similar point, nothing more comes with {100 * probability:.0f} %; {open_steps}"
        return RunEnd(probability >= _LIKELY and not left, probability, left, reason)

    def limitations(self) -> dict[str, str]:
        """What it cannot answer, by the name of the question, and why."""
        if self._model.videos is None:
            why = "it was given no data, only a graph"
            return {"next": f"ranks but no probabilities: {why}", "finished": f"no probability: {why}",
                    "plan": f"no probabilities: {why}", "time_left": why}  # fmt: skip
        return {} if self._model.time_left else {"time_left": "fewer than two videos of the data have times"}

    def to_json(self) -> dict[str, object]:
        """The run as plain values: what was told, in order. What was learned is not in it."""
        events = [{"accept": next(iter(event.seen))} if event.accepted else {"saw": dict(event.seen), "at": event.at}
                  for event in self._observations]  # fmt: skip
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

    def replay(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Tell all events of a saved run, as `to_json` writes them."""
        for event in events:
            if "accept" in event:
                self.accept(event["accept"])
            else:
                self.saw(event["saw"], event["at"])

    @property
    def _belief(self) -> Belief:
        return self._beliefs[-1]

    def _add(self, belief: Belief, observation: Observation) -> None:
        self._beliefs.append(belief)
        self._observations = (*self._observations, observation)

    def _expected(self, done: Sequence[Step]) -> Mapping[Step, float]:
        """The probability of each step over all hypotheses, of those that the most probable one leaves."""
        hypotheses = self._belief.hypotheses
        if len(hypotheses) == 1:
            return self._model.forecast(done)
        forecasts = [(hypothesis.probability, self._model.forecast(hypothesis.progress)) for hypothesis in hypotheses]
        left = [name for name in self.graph.steps if name not in set(done)]
        shares = {name: sum(weight * forecast.get(name, 0.0) for weight, forecast in forecasts) for name in left}
        total = sum(shares.values())
        return {name: share / total if total else 1 / len(left) for name, share in shares.items()}

    def _last_progress(self) -> float | None:
        """When something last came that counts; None where nothing has, or its time is not known."""
        before = [belief.best.progress for belief in self._beliefs]
        moments = (
            observation.at
            for observation, was, became in zip(self._observations, before, before[1:], strict=False)
            if was != became and observation.at is not None
        )
        return max(moments, default=None)

    def _done_wrongly(self, name: Step) -> MissingStep:
        """Why a step that was done does not count."""
        findings = [
            finding
            for observation in self._observations
            for finding in (observation.report.findings if observation.report else ())
            if name in (finding.deviation.step, finding.deviation.other)
        ]
        surest = max(findings, key=lambda finding: finding.probability, default=None)
        why = "" if surest is None else f": {explain_deviation(surest)}"
        probability = 1.0 if surest is None else surest.probability
        return MissingStep(name, probability, f"it was done wrongly, and not again{why}")

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

    def _require_time(self, at: float | None) -> None:
        last = next(
            (observation.at for observation in reversed(self._observations) if observation.at is not None), None
        )
        if at is not None and not is_finite(at):
            raise InputError(f"at is {short_repr(str(at))}, it must be a number of seconds")
        if at is not None and last is not None and at < last:
            raise InputError(f"at is {at:g}, before the last step at {last:g}", hint="tell steps in the order of time")


def _report(belief: Belief, seen: Mapping[Step, float], at: float | None) -> StepReport:
    """What is made of what was seen, by all hypotheses in which it was done."""
    assessed = [
        (hypothesis.probability, hypothesis.assessment)
        for hypothesis in belief.hypotheses
        if hypothesis.assessment is not None
    ]
    weights: dict[Step, float] = {}
    for share, assessment in assessed:
        weights[assessment.step] = weights.get(assessment.step, 0.0) + share
    if not weights:
        return StepReport(max(seen, key=seen.__getitem__), at, 0.0, False, 0.0, (), (), (), "probably nothing was done")
    name = max(weights, key=lambda step: (weights[step], step))
    weight = weights[name]
    same = [(share / weight, assessment) for share, assessment in assessed if assessment.step == name]
    probability = sum(share * assessment.probability for share, assessment in same)
    mistake = weight * sum(share for share, assessment in same if assessment.mistake) >= _LIKELY
    best = same[0][1]
    findings = tuple(sorted(best.findings, key=lambda finding: -finding.probability))
    reasons = [explain_deviation(finding) for finding in findings]
    if best.corrects:
        reasons.append(f"it makes good {' and '.join(f'{step!r}' for step in best.corrects)}")
    reason = "; ".join(reasons) or "nothing speaks against it"
    return StepReport(name, at, min(weight, 1.0), mistake, probability, findings, best.corrects, best.skipped, reason)


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
