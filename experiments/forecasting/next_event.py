"""The next event of logs, repeated ones too: our default ranker beside an n-gram that backs off and a small LSTM.

All three learn from the same cases and predict every event of the others, the first included, but not the end.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TypeAlias

from experiments.experiment_options import ExperimentOptions
from experiments.result_tables import Result, Table, Value
from msg2.assist.next_step_evaluation import evaluate_ranker, train_test_split
from msg2.assist.rankers import LEARNED_RANKER, Ranker, make_ranker
from msg2.formats import read
from msg2.inference import infer
from msg2.progress import Progress
from msg2.task import Step, Task

LONGEST = 5
"""Events that the n-gram looks back at, at most."""
EPOCHS, WIDTH, VALIDATION = 40, 64, 0.15
MOST_CASES = 1_500

_Event: TypeAlias = Step | None


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """Compare the three on every log."""
    files = sorted((data / "logs").glob("*.xes.gz"))[: 1 if options.quick else None]
    splits, rows = 1 if options.quick else 3, []
    for number, file in enumerate(files):
        task = read(file, repeats="keep").sample(100 if options.quick else MOST_CASES)
        if len(task) < 20:
            continue
        shares: dict[str, list[float]] = defaultdict(list)
        for seed in range(splits):
            progress(number * splits + seed, len(files) * splits, file.stem)
            training, test = train_test_split(task, seed=seed)
            rankers: dict[str, Ranker] = {
                "ours": make_ranker(LEARNED_RANKER, infer(training), training),
                "n-gram": back_off(training),
                "LSTM": lstm(training, seed, epochs=2 if options.quick else EPOCHS),
            }
            for name, ranker in rankers.items():
                shares[name].append(100 * (evaluate_ranker(ranker, test).accuracy or 0.0))
        means: list[Value] = [fmean(own) for own in shares.values()]
        rows.append([file.name.partition(".")[0], *means])
    title = "Next events that are predicted, percent"
    notes = [f"Means of {splits} splits; 15 % of the cases are predicted."]
    return Result("next-event", [Table(title, ["log", "ours", "n-gram", "LSTM"], rows, notes)], {})


def back_off(training: Task) -> Ranker:
    """Count what came next after the longest history that was seen."""
    counts: dict[tuple[_Event, ...], Counter[Step]] = defaultdict(Counter)
    for video in training:
        events: list[_Event] = [None, *(segment.step for segment in video.segments)]
        for place in range(1, len(events)):
            for back in range(min(place, LONGEST) + 1):
                name = events[place]
                if name is not None:
                    counts[tuple(events[place - back : place])][name] += 1

    def rank(done: Sequence[Step]) -> Mapping[Step, float]:
        events: list[_Event] = [None, *done]
        for back in range(min(len(events), LONGEST), -1, -1):
            found = counts.get(tuple(events[len(events) - back :]))
            if found:
                return {name: times / found.total() for name, times in found.items()}
        return {}

    return rank


def lstm(training: Task, seed: int, epochs: int) -> Ranker:
    """Train a small LSTM on whole cases, and keep what predicts held-out ones best."""
    import torch

    torch.manual_seed(seed)
    learned, held = train_test_split(training, seed=seed, test_share=VALIDATION)
    place = {name: number for number, name in enumerate(training.steps, start=1)}  # 0: the beginning
    embed = torch.nn.Embedding(len(place) + 1, WIDTH)
    recurrent = torch.nn.LSTM(WIDTH, WIDTH, batch_first=True)
    out = torch.nn.Linear(WIDTH, len(place) + 1)
    model = torch.nn.ModuleList([embed, recurrent, out])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)

    def loss_of(task: Task, size: int, step: Callable[[torch.Tensor], None]) -> float:
        cases = [[0, *(place[s.step] for s in video.segments)] for video in task if video.segments]
        order = torch.randperm(len(cases)).tolist()
        total = 0.0
        for low in range(0, len(cases), size):
            batch = [torch.tensor(cases[n]) for n in order[low : low + size]]
            padded = torch.nn.utils.rnn.pad_sequence(batch, batch_first=True, padding_value=-1)
            scores = out(recurrent(embed(padded[:, :-1].clamp(min=0)))[0])
            loss = torch.nn.functional.cross_entropy(scores.transpose(1, 2), padded[:, 1:], ignore_index=-1)
            step(loss)
            total += float(loss.detach()) * len(batch)
        return total / max(len(cases), 1)

    def update(loss: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    best, state = float("inf"), model.state_dict()
    for _ in range(epochs):
        loss_of(learned, 32, update)
        with torch.no_grad():
            loss = loss_of(held, 256, lambda _: None)
        if loss < best:
            best, state = loss, {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(state)

    def rank(done: Sequence[Step]) -> Mapping[Step, float]:
        with torch.no_grad():
            events = torch.tensor([[0, *(place[name] for name in done)]])
            probabilities = out(recurrent(embed(events))[0][0, -1])[1:].softmax(0).tolist()
        return dict(zip(training.steps, probabilities, strict=True))

    return rank
