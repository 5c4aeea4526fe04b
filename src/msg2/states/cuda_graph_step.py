"""One step of training: loss, gradient, clipping, Adam; on a GPU all of it is launched at once, as a CUDA graph.

A step of a large encoder is some two thousand kernels, which may take longer to launch one by one than to run. A graph
holds the kernels for one shape of batch, with the addresses of all they read and write: every batch of that shape is
copied to the same place, and so is the learning rate.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from msg2.states.batch import Batch
from msg2.states.optimizer import optimizer_step

MAX_GRAPHS = 16
"""Shapes with a graph of their own; each takes a fraction of a second and some memory. Others go without."""


class TrainStep:
    """What is done with every batch, on the device of the model."""

    def __init__(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, loss: Callable[[Batch], Tensor], clip: float,
        *, captured: bool,
    ) -> None:  # fmt: skip
        """Prepare the step.

        Parameters
        ----------
        model : nn.Module
            The model that learns.
        optimizer : torch.optim.Optimizer
            Over its parameters.
        loss : callable
            Gives the loss of a batch, a tensor of shape ().
        clip : float
            Longest gradient.
        captured : bool
            Whether CUDA graphs are captured.
        """
        self.parameters = list(model.parameters())
        self.optimizer, self.loss, self.clip = optimizer, loss, clip
        self.graphs: dict[torch.Size, _CapturedStep] = {}
        self.max_graphs = MAX_GRAPHS if captured else 0
        self.known_shapes: set[torch.Size] = set()

    def __call__(self, batch: Batch) -> Tensor:
        """Learn from the batch and return its loss.

        The first batch of a new shape goes without a graph: libraries get ready then.
        """
        shape = batch.kind.shape
        if shape not in self.graphs:
            if shape not in self.known_shapes or len(self.graphs) == self.max_graphs:
                self.known_shapes.add(shape)
                return self._learn(batch)
            self.graphs[shape] = _CapturedStep(self._learn, batch, next(iter(self.graphs.values()), None))
        return self.graphs[shape](batch)

    def _learn(self, batch: Batch) -> Tensor:
        return optimizer_step(self.optimizer, self.parameters, lambda: self.loss(batch), self.clip)


class _CapturedStep:
    """The kernels of a step with `batch`; its memory serves the `other` graphs too, since one runs at a time."""

    def __init__(self, learn: Callable[[Batch], Tensor], batch: Batch, other: _CapturedStep | None) -> None:
        self.batch, self.graph = batch, torch.cuda.CUDAGraph()
        pool = None if other is None else other.graph.pool()
        # "thread_local": what other threads do with the GPU meanwhile is no concern.
        with torch.cuda.graph(self.graph, pool, capture_error_mode="thread_local"):
            self.loss = learn(batch)  # recorded, not done

    def __call__(self, batch: Batch) -> Tensor:
        self.batch.copy_from(batch)
        self.graph.replay()
        return self.loss.clone()  # the next step overwrites it
