"""One step of training: the losses, Adam, and CUDA graphs; also seeds and threads that keep results reproducible.

The ordinal loss of the paper (Eq. 4):   L = BCE(σ(ŝ + b), state ≠ not started) + BCE(σ(ŝ - b), state = completed)

On a GPU, a whole step is launched at once as a CUDA graph: its two thousand kernels may take longer to launch one by
one than to run. A graph is for one shape of batch, and all batches of that shape are copied to the same memory.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from msg2.errors import InputError
from msg2.states.configuration import StateModelOptions, TrainingOptions
from msg2.states.dataset import COMPLETED, FOLDS, FRAME, IN_PROGRESS, NOT_STARTED, Batch
from msg2.states.network import StateModel, StateModelOutput


@contextmanager
def single_thread(wanted: bool = True) -> Iterator[None]:
    """Limit PyTorch to one thread: sums do not depend on the number of cores, and small models are faster."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if wanted else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def torch_seed(*numbers: int) -> int:
    """Return a seed for PyTorch, which takes 64 bits, from numbers of any size from 0 up."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0]) >> 1


def training_loss(output: StateModelOutput, batch: Batch, options: StateModelOptions) -> Tensor:
    """The ordinal loss and, with an evidence model, the cross-entropy of the step that each frame shows."""
    loss = ordinal_loss(output.scores, batch.state, batch.weight, options.threshold, options.in_progress)
    if output.presence is not None:
        target = batch.present.float()[batch.asked]
        total = F.binary_cross_entropy_with_logits(output.presence[batch.asked], target, reduction="sum")
        loss = loss + total / batch.asked.sum().clamp(min=1)  # all steps may be labelled, and none dropped
    if not output.step_logits:
        return loss
    in_progress = (batch.state == IN_PROGRESS).sum(-1)
    counted = (batch.kind == FRAME) & (in_progress <= 1)  # where two steps overlap, nobody knows which is seen
    background = torch.full_like(batch.kind, batch.state.shape[-1])
    target = torch.where(in_progress == 0, background, (batch.state == IN_PROGRESS).long().argmax(-1))
    for logits in output.step_logits:
        for fold in range(FOLDS):
            others = counted & (batch.fold != fold)
            total = F.cross_entropy(logits[others][:, fold].float(), target[others], reduction="sum")
            loss = loss + total / others.sum().clamp(min=1)
    return loss


def ordinal_loss(scores: Tensor, state: Tensor, weight: Tensor, threshold: float, in_progress: bool = True) -> Tensor:
    """Eq. 4: the weighted mean of BCE(σ(ŝ + b), state ≠ not started) + BCE(σ(ŝ - b), state = completed)."""
    scores = scores.float()
    completed = (state == COMPLETED).to(scores.dtype)
    loss = F.binary_cross_entropy_with_logits(scores - threshold, completed, reduction="none")
    if in_progress:
        started = (state != NOT_STARTED).to(scores.dtype)
        loss = loss + F.binary_cross_entropy_with_logits(scores + threshold, started, reduction="none")
    return (loss * weight).sum() / weight.sum().clamp(min=1e-9)


def build_optimizer(model: StateModel, options: TrainingOptions) -> torch.optim.Adam:
    """Build Adam over the parameters in groups, each with a "rate_factor": its multiple of the learning rate."""
    fast = options.evidence_rate / options.learning_rate
    groups: dict[float, list[Tensor]] = {}
    for name, parameter in model.named_parameters():
        factor = 1.0
        # These models have few weights and start at zero; the single numbers that scale them learn faster still.
        if name == "bias" or name.startswith(("evidence_models.", "cooccurrence.", "presence_scale.")):
            factor = 4 * fast if parameter.numel() == 1 else fast
        groups.setdefault(factor, []).append(parameter)
    on_gpu = model.device.type == "cuda"
    settings = [{"params": parameters, "rate_factor": factor} for factor, parameters in groups.items()]
    optimizer = torch.optim.Adam(settings, fused=on_gpu, capturable=on_gpu)
    for group in optimizer.param_groups if on_gpu else ():
        group["lr"] = torch.zeros((), device=model.device)  # where a CUDA graph of a step finds it
    return optimizer


def optimizer_step(
    optimizer: torch.optim.Optimizer, parameters: Iterable[Tensor], loss: Callable[[], Tensor], clip: float
) -> Tensor:
    """Take one step: loss, gradient, clipping, update."""
    optimizer.zero_grad(set_to_none=True)
    value = loss()
    value.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(parameters, clip)
    optimizer.step()
    return value.detach()


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Give every group the learning rate times its "rate_factor", which is 1 where it has none."""
    for group in optimizer.param_groups:
        value = rate * group.get("rate_factor", 1.0)
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(value)
        else:
            group["lr"] = value


def learning_rate(step: int, steps: int, *, peak: float, warmup: int) -> float:
    """The learning rate of a step: linear over the warm-up, then half a cosine down to 0."""
    warmup = min(warmup, steps // 2)
    if step < warmup:
        return peak * ((step + 1) / warmup)
    return peak * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup))) / 2


def adam_moments(model: nn.Module, optimizer: torch.optim.Adam) -> dict[str, Tensor]:
    """The state of Adam as named tensors."""
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        state = optimizer.state.get(parameter, {"step": torch.zeros(())})
        tensors |= {f"adam.{key}.{name}": value for key, value in state.items()}
    return tensors


def restore_moments(optimizer: torch.optim.Adam, model: nn.Module, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Put saved moments back into Adam."""
    for name, parameter in model.named_parameters():
        shapes = {"step": torch.Size(), "exp_avg": parameter.shape, "exp_avg_sq": parameter.shape}
        state = {key: tensors[f"adam.{key}.{name}"] for key in shapes if f"adam.{key}.{name}" in tensors}
        if "step" in state and state["step"].shape == () and state["step"] == 0:
            continue  # nothing was ever learned there
        if {key: value.shape for key, value in state.items()} != shapes:
            hint = "train it again into another folder"
            raise InputError(f"the moments of {name} are missing or do not fit", where=where, hint=hint)
        optimizer.state[parameter] = {key: value.to(parameter.device) for key, value in state.items()}


MAX_GRAPHS = 16
"""Shapes with a graph of their own; each takes a fraction of a second and some memory. Others go without."""


class TrainStep:
    """What is done with every batch, on the device of the model; if `captured`, by a CUDA graph for its shape."""

    def __init__(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, loss: Callable[[Batch], Tensor], clip: float,
        *, captured: bool,
    ) -> None:  # fmt: skip
        self.parameters = list(model.parameters())
        self.optimizer, self.loss, self.clip = optimizer, loss, clip
        self.graphs: dict[torch.Size, tuple[torch.cuda.CUDAGraph, Batch, Tensor]] = {}
        """By the shape of a batch: the kernels of a step, and where they find the batch and leave the loss."""
        self.max_graphs = MAX_GRAPHS if captured else 0
        self.known_shapes: set[torch.Size] = set()

    def __call__(self, batch: Batch) -> Tensor:
        """Learn from the batch and return its loss."""
        shape = batch.kind.shape
        if shape not in self.graphs:
            if shape not in self.known_shapes or len(self.graphs) == self.max_graphs:
                self.known_shapes.add(shape)  # without a graph the first time, when libraries get ready
                return self._learn(batch)
            # One graph runs at a time, so all share their memory.
            graph, pool = torch.cuda.CUDAGraph(), next((other.pool() for other, *_ in self.graphs.values()), None)
            # "thread_local": what other threads do with the GPU meanwhile is no concern.
            with torch.cuda.graph(graph, pool, capture_error_mode="thread_local"):
                self.graphs[shape] = graph, batch, self._learn(batch)  # recorded, not done
        graph, own_batch, loss = self.graphs[shape]
        own_batch.copy_from(batch)
        graph.replay()
        return loss.clone()  # the next step overwrites it

    def _learn(self, batch: Batch) -> Tensor:
        return optimizer_step(self.optimizer, self.parameters, lambda: self.loss(batch), self.clip)
